//! Reads frames of imports, and the payloads of knowledge cores, which look the same.

use serde_json::{Map, Value};
use tg_schemas::Error;
use tg_schemas::msg::{
    ChunkEmbeddings, DEFAULT_COLLECTION, DocumentEmbeddings, EntityContext, EntityContexts,
    EntityEmbeddings, ExtractedObject, GraphEmbeddings, Metadata, Triples,
};

use crate::engine::translate::fields::{Body, Fields};
use crate::engine::translate::vectors::vectors;

/// A batch with metadata, or one bare triple for collection `default`.
pub(super) fn triples_frame(body: &Body) -> Result<Triples, Error> {
    let fields = Fields::new(body);
    if body.contains_key("s") && !body.contains_key("triples") {
        return Ok(Triples {
            metadata: Some(Metadata {
                collection: DEFAULT_COLLECTION.to_owned(),
                ..Metadata::default()
            }),
            triples: vec![fields.triple()?],
        });
    }
    triples(&fields)
}

pub(super) fn graph_frame(body: &Body) -> Result<GraphEmbeddings, Error> {
    graph_embeddings(&Fields::new(body))
}

/// Both fields of the metadata have defaults here, unlike elsewhere.
pub(super) fn document_frame(body: &Body) -> Result<DocumentEmbeddings, Error> {
    let fields = Fields::new(body);
    let metadata = match fields.object("metadata")? {
        Some(metadata) => Metadata {
            id: metadata.text("id")?,
            root: metadata.text("root")?,
            collection: metadata.collection()?,
        },
        None => Metadata {
            collection: DEFAULT_COLLECTION.to_owned(),
            ..Metadata::default()
        },
    };
    chunks_of(&fields, metadata)
}

pub(super) fn contexts_frame(body: &Body) -> Result<EntityContexts, Error> {
    let fields = Fields::new(body);
    let metadata = metadata(&fields)?;
    let context = |fields: Fields<'_>| {
        Ok::<_, Error>(EntityContext {
            entity: Some(required_term(&fields)?),
            context: fields.required_text("context")?,
            chunk_id: fields.text("chunk_id")?,
            rdf_type: types(&fields)?,
            attributes: attributes(&fields)?,
            ..EntityContext::default()
        })
    };
    let entities = required_list(&fields, "entities")?;
    Ok(EntityContexts {
        metadata: Some(metadata),
        entities: entities
            .into_iter()
            .map(context)
            .collect::<Result<_, _>>()?,
    })
}

/// `values` is a list of rows, or one row.
pub(super) fn rows_frame(body: &Body) -> Result<ExtractedObject, Error> {
    let fields = Fields::new(body);
    let metadata = metadata(&fields)?;
    let schema_name = fields.required_text("schema_name")?;
    let values = match fields.value("values") {
        None => return Err(fields.fault("values", "is required")),
        Some(Value::Object(_)) => vec![fields.text_map("values")?],
        Some(_) => fields
            .objects("values")?
            .iter()
            .map(Fields::texts_of)
            .collect(),
    };
    Ok(ExtractedObject {
        metadata: Some(metadata),
        schema_name,
        values,
        confidence: fields.number_or("confidence", 1.0)?,
        source_span: fields.text("source_span")?,
        ..ExtractedObject::default()
    })
}

/// `{metadata, triples}`.
pub(crate) fn triples(fields: &Fields<'_>) -> Result<Triples, Error> {
    let metadata = metadata(fields)?;
    if fields.opt_list("triples")?.is_none() {
        return Err(fields.fault("triples", "is required"));
    }
    Ok(Triples {
        metadata: Some(metadata),
        triples: fields.triples("triples")?,
    })
}

/// `{metadata, entities: [{entity, vector, …}]}`.
pub(crate) fn graph_embeddings(fields: &Fields<'_>) -> Result<GraphEmbeddings, Error> {
    let metadata = metadata(fields)?;
    let mut entities = Vec::new();
    for one in required_list(fields, "entities")? {
        let entity = EntityEmbeddings {
            entity: Some(required_term(&one)?),
            vector: Vec::new(),
            chunk_id: one.text("chunk_id")?,
            rdf_type: types(&one)?,
            attributes: attributes(&one)?,
            text: one.text("text")?,
            ..EntityEmbeddings::default()
        };
        entities.extend(vectors(&one)?.into_iter().map(|vector| EntityEmbeddings {
            vector,
            ..entity.clone()
        }));
    }
    Ok(GraphEmbeddings {
        metadata: Some(metadata),
        entities,
        model: fields.text("model")?,
    })
}

/// `{metadata, chunks: [{chunk_id, vector, …}]}`.
pub(crate) fn document_embeddings(fields: &Fields<'_>) -> Result<DocumentEmbeddings, Error> {
    chunks_of(fields, metadata(fields)?)
}

fn chunks_of(fields: &Fields<'_>, metadata: Metadata) -> Result<DocumentEmbeddings, Error> {
    let mut chunks = Vec::new();
    for one in required_list(fields, "chunks")? {
        let chunk = ChunkEmbeddings {
            chunk_id: one.required_text("chunk_id")?,
            vector: Vec::new(),
            attributes: attributes(&one)?,
            text: one.text("text")?,
        };
        chunks.extend(vectors(&one)?.into_iter().map(|vector| ChunkEmbeddings {
            vector,
            ..chunk.clone()
        }));
    }
    Ok(DocumentEmbeddings {
        metadata: Some(metadata),
        chunks,
        model: fields.text("model")?,
    })
}

fn metadata(fields: &Fields<'_>) -> Result<Metadata, Error> {
    let metadata = fields
        .object("metadata")?
        .ok_or_else(|| fields.fault("metadata", "is required"))?;
    Ok(Metadata {
        id: metadata.required_text("id")?,
        root: metadata.text("root")?,
        collection: metadata.required_text("collection")?,
    })
}

fn required_list<'a>(fields: &Fields<'a>, key: &str) -> Result<Vec<Fields<'a>>, Error> {
    if fields.opt_list(key)?.is_none() {
        return Err(fields.fault(key, "is required"));
    }
    fields.objects(key)
}

fn required_term(fields: &Fields<'_>) -> Result<tg_schemas::Term, Error> {
    let term = fields.term("entity")?;
    term.ok_or_else(|| fields.fault("entity", "is required"))
}

/// A list of types, or one.
fn types(fields: &Fields<'_>) -> Result<Vec<String>, Error> {
    match fields.value("rdf_type") {
        Some(Value::String(one)) if one.is_empty() => Ok(Vec::new()),
        Some(Value::String(one)) => Ok(vec![one.clone()]),
        _ => fields.texts("rdf_type"),
    }
}

fn attributes(fields: &Fields<'_>) -> Result<Map<String, Value>, Error> {
    Ok(fields.map("attributes")?.cloned().unwrap_or_default())
}
