//! `knowledge`: knowledge cores, one payload per message.

use serde_json::{Value, json};
use tg_schemas::Error;
use tg_schemas::msg::{
    DocumentEmbeddings, GraphEmbeddings, KnowledgeRequest, KnowledgeResponse, LibraryBlob,
    LibraryMetadata,
};

use super::bulk::{self, chunk_value, entity_value, show_triples};
use super::fields::{Body, Fields, Reply};
use super::{About, Translate};

/// The `knowledge` service.
pub struct Knowledge;

impl Translate for Knowledge {
    type Question = KnowledgeRequest;
    type Answer = KnowledgeResponse;

    fn question(body: &Fields<'_>, about: &About) -> Result<Self::Question, Error> {
        let request = KnowledgeRequest {
            operation: about.operation.clone(),
            id: body.text("id")?,
            flow: body.text("flow")?,
            collection: body.text("collection")?,
            triples: payload(body, "triples", bulk::triples)?,
            graph_embeddings: payload(body, "graph-embeddings", bulk::graph_embeddings)?,
            document_embeddings: payload(body, "document-embeddings", bulk::document_embeddings)?,
            library_metadata: payload(body, "library-metadata", library_metadata)?,
            library_blob: payload(body, "library-blob", library_blob)?,
            limit: body.integer_or("limit", 0)?,
            after: body.text("after")?,
        };
        match request.operation.as_str() {
            "put-kg-core" if carries_nothing(&request) => {
                let why = "is required (or graph-embeddings, library-metadata or library-blob)";
                Err(body.fault("triples", why))
            }
            "put-de-core" if request.document_embeddings.is_none() => {
                Err(body.fault("document-embeddings", "is required"))
            }
            "put-kg-core" | "put-de-core" | "list-kg-cores" | "list-de-cores" => Ok(request),
            _ if request.id.is_empty() => Err(body.fault("id", "is required")),
            _ => Ok(request),
        }
    }

    /// The first of ids, triples, graph-embeddings, document-embeddings, library-metadata, library-blob,
    /// eos; an empty object for a plain confirmation.
    fn part(part: Self::Answer, _about: &About) -> Body {
        let reply = Reply::new().put_truthy("next", part.next);
        let payload = None
            .or_else(|| part.ids.map(|ids| ("ids", json!(ids))))
            .or_else(|| Some(("triples", Value::Object(show_triples(&part.triples?)))))
            .or_else(|| Some(("graph-embeddings", entities(&part.graph_embeddings?))))
            .or_else(|| Some(("document-embeddings", chunks(&part.document_embeddings?))))
            .or_else(|| Some(("library-metadata", metadata_value(part.library_metadata?))))
            .or_else(|| Some(("library-blob", blob_value(part.library_blob?))));
        match payload {
            Some((key, value)) => reply.put(key, value).done(),
            None if part.eos => reply.put("eos", true).done(),
            None => reply.put_truthy("counts", counts(part.counts)).done(),
        }
    }
}

fn carries_nothing(request: &KnowledgeRequest) -> bool {
    request.triples.is_none()
        && request.graph_embeddings.is_none()
        && request.library_metadata.is_none()
        && request.library_blob.is_none()
}

fn payload<T>(
    body: &Fields<'_>,
    key: &str,
    read: impl Fn(&Fields<'_>) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    body.object(key)?.as_ref().map(read).transpose()
}

fn library_metadata(fields: &Fields<'_>) -> Result<LibraryMetadata, Error> {
    Ok(LibraryMetadata {
        id: named(fields)?,
        kind: fields.text("kind")?,
        title: fields.text("title")?,
        parent_id: fields.text("parent-id")?,
        document_type: fields.text_or("document-type", "source")?,
        comments: fields.text("comments")?,
        tags: fields.texts("tags")?,
    })
}

fn library_blob(fields: &Fields<'_>) -> Result<LibraryBlob, Error> {
    let mut data = fields.required_text("data")?;
    // The length of a part is told by its text.
    data.retain(|c| !c.is_ascii_whitespace());
    Ok(LibraryBlob {
        id: named(fields)?,
        data,
        offset: fields.integer_or("offset", 0)?,
        total: fields.integer_or("total", 0)?,
    })
}

fn named(fields: &Fields<'_>) -> Result<String, Error> {
    let id = fields.required_text("id")?;
    if id.is_empty() {
        return Err(fields.fault("id", "is required"));
    }
    Ok(id)
}

fn entities(record: &GraphEmbeddings) -> Value {
    let entities: Vec<Value> = record.entities.iter().map(entity_value).collect();
    let reply = Reply::new()
        .put("metadata", bulk::metadata(record.metadata.as_ref()))
        .put("entities", entities)
        .put_truthy("model", record.model.as_str());
    Value::Object(reply.done())
}

fn chunks(record: &DocumentEmbeddings) -> Value {
    let chunks: Vec<Value> = record.chunks.iter().map(chunk_value).collect();
    let reply = Reply::new()
        .put("metadata", bulk::metadata(record.metadata.as_ref()))
        .put("chunks", chunks)
        .put_truthy("model", record.model.as_str());
    Value::Object(reply.done())
}

fn metadata_value(one: LibraryMetadata) -> Value {
    json!({"id": one.id, "kind": one.kind, "title": one.title, "parent-id": one.parent_id,
           "document-type": one.document_type, "comments": one.comments, "tags": one.tags})
}

/// `offset` and `total` only where a document comes in parts.
fn blob_value(one: LibraryBlob) -> Value {
    let reply = Reply::new().put("id", one.id).put("data", one.data);
    let reply = if one.total > 0 {
        reply.put("offset", one.offset).put("total", one.total)
    } else {
        reply
    };
    Value::Object(reply.done())
}

fn counts(counts: std::collections::BTreeMap<String, i64>) -> Value {
    Value::Object(counts.into_iter().map(|(key, n)| (key, n.into())).collect())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;
    use tg_schemas::msg::{EntityEmbeddings, Metadata, Triples};
    use tg_schemas::{Reply as _, Term, Triple};

    fn ask(body: Value) -> Result<KnowledgeRequest, String> {
        let operation = body["operation"].as_str().unwrap().to_owned();
        question::<Knowledge>(body, &operation).map_err(|error| error.message)
    }

    #[test]
    fn payloads_are_read_and_faults_name_the_field() {
        let put = ask(json!({
            "operation": "put-kg-core", "id": "core",
            "graph-embeddings": {"metadata": {"id": "core", "collection": "c"},
                "entities": [{"entity": {"t": "i", "i": "urn:a"}, "vector": [1], "chunk_id": "k"}]}
        }))
        .unwrap();
        let entities = put.graph_embeddings.unwrap().entities;
        assert_eq!(
            (entities[0].chunk_id.as_str(), entities[0].vector.len()),
            ("k", 1)
        );
        let message = |body| ask(body).unwrap_err();
        assert!(message(json!({"operation": "put-kg-core"})).starts_with("triples: is required"));
        assert_eq!(
            message(json!({"operation": "put-de-core", "triples": null})),
            "document-embeddings: is required"
        );
        assert_eq!(
            message(json!({"operation": "get-kg-core"})),
            "id: is required"
        );
        assert_eq!(
            message(json!({"operation": "put-kg-core", "triples": {"triples": []}})),
            "triples.metadata: is required"
        );
        assert_eq!(
            message(json!({"operation": "put-kg-core",
                           "triples": {"metadata": {"id": "x"}, "triples": []}})),
            "triples.metadata.collection: is required"
        );
        assert_eq!(
            message(json!({"operation": "put-kg-core", "library-blob": {"id": "x"}})),
            "library-blob.data: is required"
        );
    }

    #[test]
    fn one_payload_leaves_per_message() {
        let triples = KnowledgeResponse {
            triples: Some(Triples {
                metadata: Some(Metadata {
                    id: "core".into(),
                    ..Metadata::default()
                }),
                triples: vec![Triple::new(
                    Term::iri("urn:a"),
                    Term::iri("urn:b"),
                    Term::literal("c"),
                )],
            }),
            ..Default::default()
        };
        assert!(!triples.is_last());
        let body = part::<Knowledge>(triples, "get-kg-core");
        assert_eq!(
            body["triples"]["metadata"],
            json!({"id": "core", "root": "", "collection": ""})
        );
        let vectors = KnowledgeResponse {
            graph_embeddings: Some(GraphEmbeddings {
                entities: vec![EntityEmbeddings {
                    entity: Some(Term::iri("urn:a")),
                    vector: vec![0.5],
                    ..Default::default()
                }],
                ..Default::default()
            }),
            ..Default::default()
        };
        assert_eq!(
            part::<Knowledge>(vectors, "")["graph-embeddings"]["entities"],
            json!([{"entity": {"t": "i", "i": "urn:a"}, "vector": [0.5]}])
        );
        let end = KnowledgeResponse {
            eos: true,
            ..Default::default()
        };
        assert_eq!(part::<Knowledge>(end, ""), json!({"eos": true}));
        assert_eq!(part::<Knowledge>(Default::default(), ""), json!({}));
        let ids = KnowledgeResponse {
            ids: Some(Vec::new()),
            ..Default::default()
        };
        assert_eq!(part::<Knowledge>(ids, ""), json!({"ids": []}));
        let page = KnowledgeResponse {
            ids: Some(vec!["a".to_owned()]),
            next: "y".to_owned(),
            ..Default::default()
        };
        let page = part::<Knowledge>(page, "list-kg-cores");
        assert_eq!(page, json!({"ids": ["a"], "next": "y"}));
        let asked = json!({"operation": "list-de-cores", "limit": 7, "after": "x"});
        let asked = ask(asked).unwrap();
        assert_eq!((asked.limit, asked.after.as_str()), (7, "x"));
        let blob = |total| KnowledgeResponse {
            library_blob: Some(LibraryBlob {
                id: "d".into(),
                data: "aGk=".into(),
                offset: 0,
                total,
            }),
            ..Default::default()
        };
        assert_eq!(
            part::<Knowledge>(blob(0), ""),
            json!({"library-blob": {"id": "d", "data": "aGk="}})
        );
        assert_eq!(part::<Knowledge>(blob(9), "")["library-blob"]["total"], 9);
        let loaded = KnowledgeResponse {
            counts: [("triples".to_owned(), 3)].into(),
            ..Default::default()
        };
        assert!(loaded.is_last());
        assert_eq!(
            part::<Knowledge>(loaded, ""),
            json!({"counts": {"triples": 3}})
        );
    }
}
