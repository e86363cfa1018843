//! Records as frames of exports.

use serde_json::{Value, json};
use tg_schemas::Term;
use tg_schemas::msg::{
    ChunkEmbeddings, DocumentEmbeddings, EntityContexts, EntityEmbeddings, ExtractedObject,
    GraphEmbeddings, Metadata, Triples,
};

use crate::engine::translate::fields::{Body, Reply, triples_to_api};
use crate::engine::translate::vectors::vector_to_api;

/// `{metadata, triples}`.
pub fn show_triples(record: &Triples) -> Body {
    Reply::new()
        .put("metadata", metadata(record.metadata.as_ref()))
        .put("triples", triples_to_api(&record.triples))
        .done()
}

/// `{metadata, entities: [{entity, vector, …}]}`.
pub fn show_graph_embeddings(record: &GraphEmbeddings) -> Body {
    let entities: Vec<Value> = record.entities.iter().map(entity_value).collect();
    Reply::new()
        .put("metadata", metadata(record.metadata.as_ref()))
        .put("entities", entities)
        .put_truthy("model", record.model.as_str())
        .done()
}

/// `{metadata, chunks: [{chunk_id, vector, …}]}`. Older tools look for `vectors`, and for `metadata` in the
/// metadata.
pub fn show_document_embeddings(record: &DocumentEmbeddings) -> Body {
    let chunk = |chunk: &ChunkEmbeddings| {
        let mut value = chunk_value(chunk);
        value["vectors"] = value["vector"].clone();
        value
    };
    let chunks: Vec<Value> = record.chunks.iter().map(chunk).collect();
    let mut metadata = metadata(record.metadata.as_ref());
    metadata["metadata"] = json!([]);
    Reply::new()
        .put("metadata", metadata)
        .put("chunks", chunks)
        .put_truthy("model", record.model.as_str())
        .done()
}

/// `{metadata, schema_name, values, confidence, source_span}`: what an import of rows reads.
pub fn show_rows(record: &ExtractedObject) -> Body {
    Reply::new()
        .put("metadata", metadata(record.metadata.as_ref()))
        .put("schema_name", record.schema_name.as_str())
        .put("values", json!(record.values))
        .put("confidence", record.confidence)
        .put_truthy("source_span", record.source_span.as_str())
        .done()
}

/// `{metadata, entities: [{entity, context, …}]}`.
pub fn show_entity_contexts(record: &EntityContexts) -> Body {
    let entities: Vec<Value> = record
        .entities
        .iter()
        .map(|one| {
            let reply = Reply::new()
                .put_some("entity", one.entity.as_ref().map(Term::to_api))
                .put("context", one.context.as_str())
                .put_truthy("chunk_id", one.chunk_id.as_str())
                .put_truthy("rdf_type", one.rdf_type.clone())
                .put_truthy("attributes", one.attributes.clone());
            Value::Object(reply.done())
        })
        .collect();
    Reply::new()
        .put("metadata", metadata(record.metadata.as_ref()))
        .put("entities", entities)
        .done()
}

/// One entity with its vector.
pub(crate) fn entity_value(one: &EntityEmbeddings) -> Value {
    let reply = Reply::new()
        .put_some("entity", one.entity.as_ref().map(Term::to_api))
        .put("vector", vector_to_api(&one.vector))
        .put_truthy("chunk_id", one.chunk_id.as_str())
        .put_truthy("rdf_type", one.rdf_type.clone())
        .put_truthy("attributes", one.attributes.clone())
        .put_truthy("text", one.text.as_str());
    Value::Object(reply.done())
}

/// One chunk with its vector.
pub(crate) fn chunk_value(one: &ChunkEmbeddings) -> Value {
    let reply = Reply::new()
        .put("chunk_id", one.chunk_id.as_str())
        .put("vector", vector_to_api(&one.vector))
        .put_truthy("attributes", one.attributes.clone())
        .put_truthy("text", one.text.as_str());
    Value::Object(reply.done())
}

/// `root` is always there.
pub(crate) fn metadata(metadata: Option<&Metadata>) -> Value {
    let none = Metadata::default();
    let metadata = metadata.unwrap_or(&none);
    json!({"id": metadata.id, "root": metadata.root, "collection": metadata.collection})
}
