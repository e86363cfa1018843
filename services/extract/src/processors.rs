//! The extractors as processors of the mesh, over one cache of replies.

use std::sync::Arc;

use tg_collections::reaper;
use tg_mesh::{Mesh, OwnedStore, Processor, TaskKind};

use crate::engine::knowledge::Content;
use crate::handlers::{Agent, Knowledge, OntologyExtractor, RowsOf};
use crate::ontologies::ONTOLOGIES;
use crate::options::Options;
use crate::replies::{ReplyCache, keys};
use crate::store::Ledger;

/// Where the service keeps its replies below the data directory.
const FILE: &str = "extract.sqlite";
/// Store that one process owns.
const STORE: &str = "extract";
/// Config types that every extractor looks at: prompts, who renders them with which model, collections.
const WATCHED: [&str; 4] = [
    keys::PROMPTS,
    "processor:prompt",
    "processor:prompt-rag",
    "collection",
];

/// The extractors, over one file in the data directory. A process that stands by leaves it alone.
///
/// Also starts the task that forgets what belonged to deleted workspaces.
pub fn processors(mesh: &Mesh, options: Options) -> Vec<Processor> {
    let (file, durability) = (options.data_dir.join(FILE), options.durability);
    let opened = file.clone();
    let store = OwnedStore::blocking(STORE, move || Ledger::open(&opened, durability));
    store.kept_in(file);
    mesh.spawn(
        TaskKind::Background,
        reaper::run(mesh.clone(), STORE, store.clone()),
    );
    let parallel = options.parallel;
    let cache = Arc::new(ReplyCache::new(store.clone()));
    let of = |id: &str| {
        Processor::new(id)
            .concurrency(parallel)
            .watches(&WATCHED)
            .owns(store.clone())
    };
    let knowledge = |extractor, prompts, content| {
        Arc::new(Knowledge {
            cache: cache.clone(),
            extractor,
            prompts,
            content,
        })
    };
    let definitions = knowledge(
        "kg-extract-definitions",
        &["extract-definitions"],
        Content::Definitions,
    );
    let relationships = knowledge(
        "kg-extract-relationships",
        &["extract-relationships"],
        Content::Relationships,
    );
    vec![
        of("kg-extract-definitions").reads("input", definitions),
        of("kg-extract-relationships").reads("input", relationships),
        of("kg-extract-agent").reads("input", Arc::new(Agent::new(cache.clone()))),
        of("kg-extract-rows")
            .watches(&[tg_schemas::table::TABLE])
            .reads("input", Arc::new(RowsOf::new(cache.clone()))),
        of("kg-extract-ontology")
            .watches(&[ONTOLOGIES])
            .reads("input", Arc::new(OntologyExtractor::new(cache, options))),
    ]
}
