//! `librarian`: documents, their content, uploads and processing records.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tg_schemas::limits;
use tg_schemas::msg::{
    Criteria, DocumentMetadata, LibrarianRequest, LibrarianResponse, ProcessingError,
    ProcessingMetadata, Reindexed, UploadSession,
};
use tg_schemas::{Error, ErrorCode};

use super::fields::{Body, Fields, Reply, triples_to_api};
use super::{About, Translate};

/// Chunk of a streamed document when the caller names none.
const STREAM_CHUNK: i64 = limits::STREAM_PIECE as i64;
/// Chunk of an upload when the caller names none.
const UPLOAD_CHUNK: i64 = limits::UPLOAD_CHUNK as i64;

/// Most base64 text of one message.
const INLINE: usize = limits::CONTENT_TEXT;

/// The `librarian` service.
pub struct Librarian;

impl Translate for Librarian {
    type Question = LibrarianRequest;
    type Answer = LibrarianResponse;

    fn question(body: &Fields<'_>, about: &About) -> Result<LibrarianRequest, Error> {
        let operation = match about.operation.as_str() {
            "get-document" => "get-document-metadata",
            other => other,
        };
        let default_chunk = match operation {
            "stream-document" => STREAM_CHUNK,
            "begin-upload" => UPLOAD_CHUNK,
            _ => 0,
        };
        Ok(LibrarianRequest {
            operation: operation.to_owned(),
            document_id: body.text("document-id")?,
            processing_id: body.text("processing-id")?,
            document_metadata: body
                .object("document-metadata")?
                .as_ref()
                .map(document)
                .transpose()?,
            processing_metadata: body
                .object("processing-metadata")?
                .as_ref()
                .map(processing)
                .transpose()?,
            content: inline("content", body.text("content")?)?,
            collection: body.text("collection")?,
            criteria: criteria(body)?,
            total_size: body.integer_or("total-size", 0)?,
            chunk_size: positive(body.integer_or("chunk-size", 0)?, default_chunk),
            upload_id: body.text("upload-id")?,
            chunk_index: body.integer_or("chunk-index", 0)?,
            include_children: body.flag("include-children")?,
            dry_run: body.flag("dry-run")?,
            document_ids: body.texts("document-ids")?,
            only_chunk: about.whole && body.value("chunk-index").is_some(),
            limit: body.integer_or("limit", 0)?,
            after: body.text("after")?,
            replace: body.flag("replace")?,
            content_hash: body.text("content-hash")?,
            force: body.flag("force")?,
            ..LibrarianRequest::default()
        })
    }

    fn part(part: LibrarianResponse, about: &About) -> Body {
        let documents: Vec<Value> = part.document_metadatas.iter().map(document_value).collect();
        let processings: Vec<Value> = part
            .processing_metadatas
            .iter()
            .map(processing_value)
            .collect();
        let sessions: Vec<Value> = part.upload_sessions.iter().map(session_value).collect();
        let reply = Reply::new()
            .put_some(
                "document-metadata",
                part.document_metadata.as_ref().map(document_value),
            )
            .put_truthy("content", part.content)
            .put("document-metadatas", documents)
            .put("processing-metadatas", processings)
            .put_truthy("upload-id", part.upload_id)
            .put_truthy("chunk-size", part.chunk_size)
            .put_truthy("total-chunks", part.total_chunks)
            .put_truthy("chunk-index", part.chunk_index)
            .put_truthy("chunks-received", part.chunks_received)
            .put_truthy("bytes-received", part.bytes_received)
            .put_truthy("total-bytes", part.total_bytes)
            .put_truthy("document-id", part.document_id)
            .put_truthy("object-id", part.object_id)
            .put_truthy("upload-state", part.upload_state)
            .put_truthy("contents", part.contents)
            .put_truthy("estimate", counts(&part.estimate))
            .put_truthy("next", part.next);
        match about.operation.as_str() {
            "get-upload-status" => reply
                .put("received-chunks", part.received_chunks)
                .put("missing-chunks", part.missing_chunks)
                .done(),
            // Only who says the hash of the content is told which chunks are there.
            "begin-upload" => reply
                .put_truthy("received-chunks", part.received_chunks)
                .put_truthy("missing-chunks", part.missing_chunks)
                .done(),
            "list-uploads" => reply.put("upload-sessions", sessions).done(),
            "reindex" => {
                let reindexed = part.reindexed.iter().map(reindexed_value);
                reply
                    .put("reindexed", reindexed.collect::<Vec<Value>>())
                    .done()
            }
            _ => reply.done(),
        }
    }
}

fn reindexed_value(one: &Reindexed) -> Value {
    let mut told = json!({
        "document-id": one.document_id,
        "flow": one.flow,
        "collection": one.collection,
        "outcome": one.outcome,
        "chunks": one.chunks,
        "chunks-due": one.chunks_due,
        "changes": one.changes,
    });
    if !one.why.is_empty() {
        told["error"] = json!(one.why);
    }
    if !one.processing_id.is_empty() {
        told["processing-id"] = json!(one.processing_id);
    }
    told
}

/// Content in base64 that fits one message; what is larger goes in chunks.
pub(super) fn inline(field: &str, content: String) -> Result<String, Error> {
    if content.len() > INLINE {
        let text = format!(
            "{field}: is larger than {} bytes; upload it in chunks (begin-upload)",
            INLINE / 4 * 3
        );
        return Err(Error::new(ErrorCode::TooLarge, text));
    }
    Ok(content)
}

fn positive(given: i64, default: i64) -> i64 {
    if given > 0 { given } else { default }
}

fn document(fields: &Fields<'_>) -> Result<DocumentMetadata, Error> {
    Ok(DocumentMetadata {
        id: fields.text("id")?,
        time: fields.integer_or("time", 0)?,
        kind: fields.text("kind")?,
        title: fields.text("title")?,
        comments: fields.text("comments")?,
        metadata: fields.triples("metadata")?,
        tags: fields.texts("tags")?,
        parent_id: fields.text("parent-id")?,
        document_type: fields.text_or("document-type", "source")?,
        content_hash: String::new(),
    })
}

fn processing(fields: &Fields<'_>) -> Result<ProcessingMetadata, Error> {
    Ok(ProcessingMetadata {
        id: fields.text("id")?,
        document_id: fields.text("document-id")?,
        time: fields.integer_or("time", 0)?,
        flow: fields.text("flow")?,
        collection: fields.text("collection")?,
        tags: fields.texts("tags")?,
        ..ProcessingMetadata::default()
    })
}

fn criteria(body: &Fields<'_>) -> Result<Vec<Criteria>, Error> {
    let one = |fields: &Fields<'_>| {
        Ok(Criteria {
            key: fields.text("key")?,
            value: fields.text("value")?,
            operator: fields.text("operator")?,
        })
    };
    body.objects("criteria")?.iter().map(one).collect()
}

/// `metadata` and `tags` are always there: official clients reject a listing without them.
fn document_value(one: &DocumentMetadata) -> Value {
    let reply = Reply::new()
        .put_truthy("id", one.id.as_str())
        .put_truthy("time", one.time)
        .put_truthy("kind", one.kind.as_str())
        .put_truthy("title", one.title.as_str())
        .put_truthy("comments", one.comments.as_str())
        .put("metadata", triples_to_api(&one.metadata))
        .put("tags", one.tags.clone())
        .put_truthy("parent-id", one.parent_id.as_str())
        .put_truthy("document-type", one.document_type.as_str())
        .put_truthy("content-hash", one.content_hash.as_str());
    Value::Object(reply.done())
}

fn processing_value(one: &ProcessingMetadata) -> Value {
    let reply = Reply::new()
        .put_truthy("id", one.id.as_str())
        .put_truthy("document-id", one.document_id.as_str())
        .put_truthy("time", one.time)
        .put_truthy("flow", one.flow.as_str())
        .put_truthy("collection", one.collection.as_str())
        .put("tags", one.tags.clone())
        .put_truthy("status", one.status.as_str())
        .put_truthy("error", one.error.as_str())
        .put_truthy("progress", counts(&one.progress))
        .put_truthy("errors", one.errors.iter().map(mishap).collect::<Vec<_>>())
        .put_truthy("errors-total", one.errors_total)
        .put_truthy("warnings", one.warnings)
        .put_truthy("retry", one.retry.as_str());
    Value::Object(reply.done())
}

fn mishap(one: &ProcessingError) -> Value {
    let reply = Reply::new()
        .put("subject", one.subject.as_str())
        .put("processor", one.processor.as_str())
        .put("message", one.message.as_str())
        .put_truthy("type", one.kind.as_str());
    Value::Object(reply.done())
}

fn counts(map: &BTreeMap<String, i64>) -> Value {
    Value::Object(
        map.iter()
            .map(|(key, n)| (key.clone(), (*n).into()))
            .collect(),
    )
}

fn session_value(one: &UploadSession) -> Value {
    json!({
        "upload-id": one.upload_id,
        "document-id": one.document_id,
        "document-metadata-json": one.document_metadata_json,
        "total-size": one.total_size,
        "chunk-size": one.chunk_size,
        "total-chunks": one.total_chunks,
        "chunks-received": one.chunks_received,
        "created-at": one.created_at,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;

    #[test]
    fn the_listings_are_always_there_and_zeros_are_not() {
        assert_eq!(
            part::<Librarian>(LibrarianResponse::default(), "add-document"),
            json!({"document-metadatas": [], "processing-metadatas": []})
        );
        let reply = LibrarianResponse {
            document_metadatas: vec![DocumentMetadata {
                id: "d".into(),
                kind: "text/plain".into(),
                ..DocumentMetadata::default()
            }],
            ..LibrarianResponse::default()
        };
        assert_eq!(
            part::<Librarian>(reply, "list-documents")["document-metadatas"][0],
            json!({"id": "d", "kind": "text/plain", "metadata": [], "tags": [],
                   "document-type": "source"})
        );
    }

    #[test]
    fn a_document_is_read_with_its_triples() {
        let request = question::<Librarian>(
            json!({
                "document-metadata": {
                    "id": "d", "kind": "text/plain", "time": "12", "parent-id": null,
                    "metadata": [{"s": {"t": "i", "i": "urn:a"}, "p": {"t": "i", "i": "urn:p"},
                                  "o": {"t": "l", "v": "x"}}],
                    "tags": ["t"]
                },
                "content": "aGk="
            }),
            "add-document",
        )
        .unwrap();
        let metadata = request.document_metadata.unwrap();
        assert_eq!((metadata.time, metadata.metadata.len()), (12, 1));
        assert_eq!(metadata.document_type, "source");
        let error = question::<Librarian>(
            json!({"document-metadata": {"metadata": [{"s": "urn:a", "p": "urn:p"}]}}),
            "add-document",
        )
        .unwrap_err();
        assert_eq!(
            error.message,
            "document-metadata.metadata[0].o: is required"
        );
    }

    #[test]
    fn an_upload_that_is_gone_on_with_says_what_is_missing_and_no_other_does() {
        let body = json!({"document-metadata": {"id": "d", "kind": "text/plain"}, "total-size": 9,
            "content-hash": "2cf2"});
        let request = question::<Librarian>(body, "begin-upload").unwrap();
        assert_eq!(
            (request.content_hash.as_str(), request.total_size),
            ("2cf2", 9)
        );
        let plain = LibrarianResponse {
            upload_id: "u".into(),
            chunk_size: 4,
            total_chunks: 3,
            ..LibrarianResponse::default()
        };
        let told = json!({"document-metadatas": [], "processing-metadatas": [], "upload-id": "u",
            "chunk-size": 4, "total-chunks": 3});
        assert_eq!(
            json!(part::<Librarian>(plain.clone(), "begin-upload")),
            told
        );
        let open = LibrarianResponse {
            received_chunks: vec![0],
            missing_chunks: vec![1, 2],
            ..plain
        };
        let body = part::<Librarian>(open, "begin-upload");
        assert_eq!(body["received-chunks"], json!([0]));
        assert_eq!(body["missing-chunks"], json!([1, 2]));
    }

    #[test]
    fn unrouted_operations_of_the_sdk_have_their_meaning() {
        let request = question::<Librarian>(json!({"document-id": "d"}), "get-document").unwrap();
        assert_eq!(request.operation, "get-document-metadata");
        let request = question::<Librarian>(json!({}), "stream-document").unwrap();
        assert_eq!(request.chunk_size, 1_048_576);
    }

    #[test]
    fn a_processing_says_how_far_it_is_and_what_went_wrong() {
        let reply = LibrarianResponse {
            processing_metadatas: vec![ProcessingMetadata {
                id: "p".into(),
                status: "processing".into(),
                progress: [("chunks".to_owned(), 3)].into(),
                errors: vec![ProcessingError {
                    subject: "urn:chunk:1".into(),
                    processor: "kg-extract-definitions".into(),
                    message: "no".into(),
                    kind: "bad-content".into(),
                }],
                errors_total: 7,
                warnings: 7,
                retry: "retry-processing".into(),
                ..ProcessingMetadata::default()
            }],
            estimate: [("model-calls".to_owned(), 7)].into(),
            ..LibrarianResponse::default()
        };
        let body = part::<Librarian>(reply, "list-processing");
        assert_eq!(
            body["processing-metadatas"][0],
            json!({"id": "p", "tags": [], "status": "processing", "progress": {"chunks": 3},
                   "errors": [{"subject": "urn:chunk:1", "processor": "kg-extract-definitions",
                               "message": "no", "type": "bad-content"}],
                   "errors-total": 7, "warnings": 7, "retry": "retry-processing"})
        );
        assert_eq!(body["estimate"], json!({"model-calls": 7}));
    }

    #[test]
    fn one_chunk_is_asked_for_where_one_reply_is_wanted() {
        let body = json!({"document-id": "d", "chunk-index": 0});
        let body = body.as_object().unwrap();
        let ask = |whole| {
            let about = About {
                operation: "stream-document".into(),
                whole,
                ..About::default()
            };
            Librarian::question(&Fields::new(body), &about)
                .unwrap()
                .only_chunk
        };
        assert!(ask(true));
        assert!(!ask(false));
    }
}
