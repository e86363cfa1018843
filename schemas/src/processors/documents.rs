//! Processors that make texts, facts and vectors of documents.

use super::declare::{ProcessorScope, ProcessorSpec, Rows, count, flatten, processors};
use super::shared;
use super::spec::{Reads, Serves, Spec, SpecRow, Writes};
use crate::msg::*;

processors! {
    /// Cuts texts into chunks.
    chunker("chunker", Flow, hosted: true, parameters: ["chunk-overlap", "chunk-size", "chunker"]) {
        INPUT: Reads<TextDocument> = Spec::new("input").on("text-document-load");
        MEASURE: Serves<MeasureRequest, MeasureResponse> = Spec::new("measure-text").own();
        OUTPUT: Writes<Chunk> = Spec::new("output");
        + [LIBRARIAN, TRIPLES];
    }

    /// Takes documents apart into texts.
    document_decoder("document-decoder", Flow, hosted: true) {
        INPUT: Reads<Document> = Spec::new("input").on("document-load");
        OUTPUT: Writes<TextDocument> = Spec::new("output");
        + [LIBRARIAN, TRIPLES];
    }

    /// Has vectors made of chunks.
    document_embeddings("document-embeddings", Flow, hosted: true) {
        INPUT: Reads<Chunk> = shared::CHUNKS;
        OUTPUT: Writes<DocumentEmbeddings> = Spec::new("output");
        + [EMBEDDINGS];
    }

    /// Makes vectors of texts.
    embeddings("embeddings", Flow, hosted: true, parameters: ["model"]) {
        REQUEST: Serves<EmbeddingsRequest, EmbeddingsResponse> = Spec::pair("request", "response");
    }

    /// Has vectors made of entities.
    graph_embeddings("graph-embeddings", Flow, hosted: true) {
        INPUT: Reads<EntityContexts> = Spec::new("input").on("entity-contexts-load").keeps();
        OUTPUT: Writes<GraphEmbeddings> = Spec::new("output");
        + [EMBEDDINGS];
    }

    /// Has an agent find triples in chunks.
    kg_extract_agent("kg-extract-agent", Flow, hosted: true) {
        INPUT: Reads<Chunk> = shared::CHUNKS;
        MEASURE: Serves<MeasureRequest, MeasureResponse> = Spec::new("measure-agent-kg").own();
        + [AGENT, AGENT_MEASURE, ENTITY_CONTEXTS, TRIPLES];
    }

    /// Finds definitions in chunks.
    kg_extract_definitions("kg-extract-definitions", Flow, hosted: true, parameters: ["llm-model", "ontology"]) {
        INPUT: Reads<Chunk> = shared::CHUNKS;
        MEASURE: Serves<MeasureRequest, MeasureResponse> = Spec::new("measure-defs").own();
        + [ENTITY_CONTEXTS, PROMPT, PROMPT_MEASURE, TRIPLES];
    }

    /// Finds in chunks what an ontology names.
    kg_extract_ontology("kg-extract-ontology", Flow, hosted: true) {
        INPUT: Reads<Chunk> = shared::CHUNKS;
        MEASURE: Serves<MeasureRequest, MeasureResponse> = Spec::new("measure-terms").own();
        + [EMBEDDINGS, ENTITY_CONTEXTS, PROMPT, PROMPT_MEASURE, TRIPLES];
    }

    /// Finds relationships in chunks.
    kg_extract_relationships("kg-extract-relationships", Flow, hosted: true, parameters: ["llm-model", "ontology"]) {
        INPUT: Reads<Chunk> = shared::CHUNKS;
        MEASURE: Serves<MeasureRequest, MeasureResponse> = Spec::new("measure-rels").own();
        + [ENTITY_CONTEXTS, PROMPT, PROMPT_MEASURE, TRIPLES];
    }

    /// Finds rows of tables in chunks.
    kg_extract_rows("kg-extract-rows", Flow, hosted: true) {
        INPUT: Reads<Chunk> = shared::CHUNKS;
        MEASURE: Serves<MeasureRequest, MeasureResponse> = Spec::new("measure-rows").own();
        OUTPUT: Writes<ExtractedObject> = Spec::new("output");
        + [ENTITY_CONTEXTS, PROMPT, PROMPT_MEASURE];
    }

    /// Has vectors made of rows.
    row_embeddings("row-embeddings", Flow, hosted: true) {
        INPUT: Reads<ExtractedObject> = shared::OBJECTS;
        OUTPUT: Writes<RowEmbeddings> = Spec::new("output");
        + [EMBEDDINGS];
    }
}
