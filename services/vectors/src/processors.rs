//! The stores as processors of the mesh: thin handlers, one engine for all processors of a store.

use std::sync::Arc;

use tg_collections::{Dropper, Retractor, reaper};
use tg_mesh::{LeasedStore, Mesh, Processor};
use tg_schemas::processors::{
    ProcessorSpec, doc_embeddings_query, doc_embeddings_write, graph_embeddings_query,
    graph_embeddings_write, kw_index, row_embeddings_query, row_embeddings_write,
};

use crate::engine::kind::Kind;
use crate::handlers::{KeywordIndex, Querier, Reembed, Writer};
use crate::options::{INDEXED, Options, QUESTIONS, WRITES};
use crate::reembedder;
use crate::store::keywords::SqliteKeywords;
use crate::store::points::SqlitePoints;

/// Where the vectors are below the data directory.
const VECTORS: &str = "vectors.sqlite";
/// Where the keyword index is.
const KEYWORDS: &str = "keywords.sqlite";

/// The processors that keep and search vectors and words, over two files. A file is opened,
/// and its lock taken, when this process is asked first: a process that stands by leaves it alone.
///
/// Also starts the tasks that purge what belonged to deleted workspaces, and that make vectors again by another model.
pub fn processors(mesh: &Mesh, options: Options) -> Vec<Processor> {
    let (durability, limits, words) = (options.durability, options.limits(), options.keywords());
    let data_dir = options.data_dir;
    let file = data_dir.join(VECTORS);
    let open = move || SqlitePoints::open(&file, durability, limits);
    let vectors = LeasedStore::blocking("vectors", open);
    vectors.kept_in(data_dir.join(VECTORS));
    let file = data_dir.join(KEYWORDS);
    let open = move || SqliteKeywords::open(&file, durability, words);
    let words = LeasedStore::blocking("keywords", open);
    words.kept_in(data_dir.join(KEYWORDS));
    reaper::start(mesh, "vectors", vectors.clone());
    reaper::start(mesh, "keywords", words.clone());

    let reembed = Arc::new(Reembed {
        doing: reembedder::start(mesh, vectors.clone()),
        store: vectors.clone(),
    });
    let writer = Arc::new(Writer(vectors.clone()));
    let querier = Arc::new(Querier(vectors.clone()));
    let index = Arc::new(KeywordIndex(words.clone()));
    let vector_store = |of: ProcessorSpec| Processor::new(of).owns(vectors.clone());
    let retracts = |kind| Arc::new(Retractor::new(vectors.clone(), kind));
    vec![
        vector_store(graph_embeddings_write::PROCESSOR)
            .reads(graph_embeddings_write::INPUT, writer.clone())
            .reads(graph_embeddings_write::RETRACT, retracts(Kind::Entity))
            .serves(
                graph_embeddings_write::DROP,
                Arc::new(Dropper::new(vectors.clone())),
            )
            .serves(graph_embeddings_write::REEMBED, reembed)
            .concurrency(WRITES),
        vector_store(doc_embeddings_write::PROCESSOR)
            .reads(doc_embeddings_write::INPUT, writer.clone())
            .reads(doc_embeddings_write::RETRACT, retracts(Kind::Chunk))
            .concurrency(WRITES),
        vector_store(row_embeddings_write::PROCESSOR)
            .reads(row_embeddings_write::INPUT, writer)
            .reads(row_embeddings_write::RETRACT, retracts(Kind::Row))
            .concurrency(WRITES),
        vector_store(graph_embeddings_query::PROCESSOR)
            .serves(graph_embeddings_query::REQUEST, querier.clone())
            .concurrency(QUESTIONS),
        vector_store(doc_embeddings_query::PROCESSOR)
            .serves(doc_embeddings_query::REQUEST, querier.clone())
            .concurrency(QUESTIONS),
        vector_store(row_embeddings_query::PROCESSOR)
            .serves(row_embeddings_query::REQUEST, querier)
            .concurrency(QUESTIONS),
        Processor::new(kw_index::PROCESSOR)
            .owns(words.clone())
            .reads(kw_index::INPUT, index.clone())
            .serves(kw_index::REQUEST, index)
            .reads(
                kw_index::RETRACT,
                Arc::new(Retractor::new(words.clone(), ())),
            )
            .serves(kw_index::DROP, Arc::new(Dropper::new(words)))
            .concurrency(INDEXED),
    ]
}
