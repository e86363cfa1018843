//! The extractors as processors of the mesh, over one cache of replies.

use std::sync::Arc;

use tg_collections::reaper;
use tg_mesh::{LeasedStore, Mesh, Processor};
use tg_schemas::determinants;
use tg_schemas::processors::{
    ProcessorSpec, kg_extract_agent, kg_extract_definitions, kg_extract_ontology,
    kg_extract_relationships, kg_extract_rows, violations,
};

use crate::engine::knowledge::Content;
use crate::handlers::{Agent, Knowledge, Measure, OntologyExtractor, RowsOf, Violations};
use crate::ontologies::{ONTOLOGIES, ReadyOntologies};
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
    let most = options.workspace_mb << 20;
    let (statements, bytes) = (options.violations, options.violations_mb << 20);
    let open = move || {
        let ledger = Ledger::open(&opened, durability, most);
        ledger.map(|ledger| ledger.keeping(statements, bytes))
    };
    let store = LeasedStore::blocking(STORE, open);
    store.kept_in(file);
    reaper::start(mesh, STORE, store.clone());
    let parallel = options.parallel;
    let cache = Arc::new(ReplyCache::new(store.clone()));
    let of = |of: ProcessorSpec| {
        Processor::new(of)
            .concurrency(parallel)
            .watches(&WATCHED)
            .owns(store.clone())
    };
    let knowledge = |by, content| {
        Arc::new(Knowledge {
            cache: cache.clone(),
            by,
            content,
        })
    };
    let definitions = knowledge(determinants::DEFINITIONS, Content::Definitions);
    let relationships = knowledge(determinants::RELATIONSHIPS, Content::Relationships);
    let ready = Arc::new(ReadyOntologies::new(options.clone()));
    let kept = Arc::new(Violations::new(store.clone(), options.clone()));
    vec![
        Processor::new(violations::PROCESSOR)
            .serves(violations::VIOLATIONS, kept)
            .watches(&[ONTOLOGIES, "flow", "collection"])
            .owns(store.clone()),
        of(kg_extract_definitions::PROCESSOR)
            .reads(kg_extract_definitions::INPUT, definitions)
            .serves(
                kg_extract_definitions::MEASURE,
                Arc::new(Measure::Definitions),
            ),
        of(kg_extract_relationships::PROCESSOR)
            .reads(kg_extract_relationships::INPUT, relationships)
            .serves(
                kg_extract_relationships::MEASURE,
                Arc::new(Measure::Relationships),
            ),
        of(kg_extract_agent::PROCESSOR)
            .reads(kg_extract_agent::INPUT, Arc::new(Agent::new(cache.clone())))
            .serves(kg_extract_agent::MEASURE, Arc::new(Measure::Agent)),
        of(kg_extract_rows::PROCESSOR)
            .watches(&[tg_schemas::table::TABLE])
            .reads(kg_extract_rows::INPUT, Arc::new(RowsOf::new(cache.clone())))
            .serves(kg_extract_rows::MEASURE, Arc::new(Measure::Rows)),
        of(kg_extract_ontology::PROCESSOR)
            .watches(&[ONTOLOGIES])
            .reads(
                kg_extract_ontology::INPUT,
                Arc::new(OntologyExtractor::new(cache, store.clone(), ready.clone())),
            )
            .serves(
                kg_extract_ontology::MEASURE,
                Arc::new(Measure::Ontology(ready)),
            ),
    ]
}
