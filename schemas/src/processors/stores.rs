//! Processors that keep what was found, and find it again.

use super::declare::{ProcessorScope, ProcessorSpec, Rows, count, flatten, processors};
use super::shared;
use super::spec::{Reads, Serves, Spec, SpecRow};
use crate::msg::*;

processors! {
    /// Finds chunks next to a vector.
    doc_embeddings_query("doc-embeddings-query", Flow, hosted: true) {
        REQUEST: Serves<DocumentEmbeddingsRequest, DocumentEmbeddingsResponse> =
            Spec::pair("request", "response");
    }

    /// Keeps vectors of chunks.
    doc_embeddings_write("doc-embeddings-write", Flow, hosted: true) {
        INPUT: Reads<DocumentEmbeddings> = Spec::new("input").on("document-embeddings-store").keeps();
        RETRACT: Reads<Retract> = shared::RETRACT.read();
    }

    /// Finds entities next to a vector.
    graph_embeddings_query("graph-embeddings-query", Flow, hosted: true) {
        REQUEST: Serves<GraphEmbeddingsRequest, GraphEmbeddingsResponse> =
            Spec::pair("request", "response");
    }

    /// Keeps vectors of entities.
    graph_embeddings_write("graph-embeddings-write", Flow, hosted: true) {
        DROP: Serves<CollectionDrop, CollectionDropped> = Spec::new("drop-vectors").system();
        REEMBED: Serves<ReembedRequest, ReembedResponse> = Spec::new("reembed-vectors").system();
        INPUT: Reads<GraphEmbeddings> = Spec::new("input").on("graph-embeddings-store").keeps();
        RETRACT: Reads<Retract> = shared::RETRACT.read();
    }

    /// Keeps knowledge cores of what a flow finds.
    kg_store("kg-store", Flow, hosted: true) {
        GRAPH_EMBEDDINGS_INPUT: Reads<GraphEmbeddings> =
            Spec::new("graph-embeddings-input").on("graph-embeddings-store");
        TRIPLES_INPUT: Reads<Triples> = Spec::new("triples-input").on("triples-store");
    }

    /// Keeps which words are in which chunk, and finds chunks by them.
    kw_index("kw-index", Flow, hosted: true) {
        DROP: Serves<CollectionDrop, CollectionDropped> = Spec::new("drop-keywords").system();
        INPUT: Reads<Chunk> = shared::CHUNKS;
        REQUEST: Serves<KeywordIndexRequest, KeywordIndexResponse> =
            Spec::pair("request", "response");
        RETRACT: Reads<Retract> = shared::RETRACT.read();
    }

    /// Finds rows next to a vector.
    row_embeddings_query("row-embeddings-query", Flow, hosted: true) {
        REQUEST: Serves<RowEmbeddingsRequest, RowEmbeddingsResponse> =
            Spec::pair("request", "response");
    }

    /// Keeps vectors of rows.
    row_embeddings_write("row-embeddings-write", Flow, hosted: true) {
        INPUT: Reads<RowEmbeddings> = Spec::new("input").on("row-embeddings-store");
        RETRACT: Reads<Retract> = shared::RETRACT.read();
    }

    /// Finds rows.
    rows_query("rows-query", Flow, hosted: true) {
        REQUEST: Serves<RowsQueryRequest, RowsQueryResponse> = Spec::pair("request", "response");
    }

    /// Keeps rows.
    rows_write("rows-write", Flow, hosted: true) {
        DROP: Serves<CollectionDrop, CollectionDropped> = Spec::new("drop-rows").system();
        INPUT: Reads<ExtractedObject> = shared::OBJECTS.keeps();
        RETRACT: Reads<Retract> = shared::RETRACT.read();
    }

    /// Answers queries of the graph.
    sparql_query("sparql-query", Flow, hosted: true) {
        REQUEST: Serves<SparqlQueryRequest, SparqlQueryResponse> =
            Spec::pair("request", "response");
        + [TRIPLES_QUERY];
    }

    /// Finds triples by a pattern, and answers what retrieval asks of the graph at once.
    triples_query("triples-query", Flow, hosted: true) {
        NEIGHBOURS: Serves<NeighbourhoodRequest, NeighbourhoodResponse> =
            shared::NEIGHBOURS.served();
        REQUEST: Serves<TriplesQueryRequest, TriplesQueryResponse> =
            Spec::pair("request", "response");
        SOURCES: Serves<SourcesRequest, SourcesResponse> = shared::SOURCES.served();
    }

    /// Keeps triples.
    triples_write("triples-write", Flow, hosted: true) {
        DROP: Serves<CollectionDrop, CollectionDropped> = Spec::new("drop-graph").system();
        INPUT: Reads<Triples> = Spec::new("input").on("triples-store").keeps();
        RETRACT: Reads<Retract> = shared::RETRACT.read();
    }
}
