//! Fakes of embeddings, look-ups, prompts, library and rows.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tg_mesh::{ConsumeError, Cx, RecordConsumer, RequestHandler, Responder};
use tg_schemas::msg::*;
use tg_schemas::{Error, ErrorCode, Term};

use tg_testkit::flow::SOON;

use crate::world::Fake;

/// A text as the two numbers that tell bridges and lighthouses apart.
fn vector(text: &str) -> Vec<f32> {
    let has = |word: &str| f32::from(u8::from(text.to_lowercase().contains(word)));
    vec![has("bridge"), has("light"), 0.1]
}

#[async_trait]
impl RequestHandler<EmbeddingsRequest, EmbeddingsResponse> for Fake {
    async fn serve(
        &self,
        _: Cx,
        ask: EmbeddingsRequest,
        mut out: Responder<EmbeddingsResponse>,
    ) -> Result<(), Error> {
        self.asked("embeddings")?;
        out.send(EmbeddingsResponse {
            vectors: ask.texts.iter().map(|text| vector(text)).collect(),
            model: "fake".into(),
            ..EmbeddingsResponse::default()
        })
        .await
    }
}

#[async_trait]
impl RequestHandler<GraphEmbeddingsRequest, GraphEmbeddingsResponse> for Fake {
    async fn serve(
        &self,
        _: Cx,
        ask: GraphEmbeddingsRequest,
        mut out: Responder<GraphEmbeddingsResponse>,
    ) -> Result<(), Error> {
        self.asked("graph-embeddings")?;
        assert_eq!(ask.model, "fake");
        let entities = self.0.script.lock().entities.clone();
        let entities = entities.iter().enumerate().map(|(at, iri)| EntityMatch {
            entity: Some(Term::iri(*iri)),
            score: 1.0 - at as f64 / 100.0,
            ..EntityMatch::default()
        });
        out.send(GraphEmbeddingsResponse {
            entities: entities.collect(),
            ..GraphEmbeddingsResponse::default()
        })
        .await
    }
}

#[async_trait]
impl RequestHandler<DocumentEmbeddingsRequest, DocumentEmbeddingsResponse> for Fake {
    async fn serve(
        &self,
        _: Cx,
        _: DocumentEmbeddingsRequest,
        mut out: Responder<DocumentEmbeddingsResponse>,
    ) -> Result<(), Error> {
        self.asked("document-embeddings")?;
        let chunks = self.0.script.lock().chunks.clone();
        let chunks = chunks.iter().enumerate().map(|(at, (id, _))| ChunkMatch {
            chunk_id: (*id).to_owned(),
            score: 1.0 - at as f64 / 100.0,
            ..ChunkMatch::default()
        });
        out.send(DocumentEmbeddingsResponse {
            chunks: chunks.collect(),
            ..DocumentEmbeddingsResponse::default()
        })
        .await
    }
}

#[async_trait]
impl RequestHandler<KeywordIndexRequest, KeywordIndexResponse> for Fake {
    async fn serve(
        &self,
        _: Cx,
        _: KeywordIndexRequest,
        mut out: Responder<KeywordIndexResponse>,
    ) -> Result<(), Error> {
        self.asked("keyword-index")?;
        let words = self.0.script.lock().words.clone();
        let chunks = words.iter().map(|id| ChunkMatch {
            chunk_id: (*id).to_owned(),
            score: 1.0,
            ..ChunkMatch::default()
        });
        out.send(KeywordIndexResponse {
            chunks: chunks.collect(),
            ..KeywordIndexResponse::default()
        })
        .await
    }
}

#[async_trait]
impl RequestHandler<PromptRequest, PromptResponse> for Fake {
    async fn serve(
        &self,
        cx: Cx,
        ask: PromptRequest,
        mut out: Responder<PromptResponse>,
    ) -> Result<(), Error> {
        self.asked("prompt")?;
        self.0.prompted.lock().push(ask.clone());
        if self.0.script.lock().hanging == ask.id {
            assert!(cx.deadline.left() <= SOON, "one deadline for all");
            out.send(PromptResponse {
                text: "Well ".to_owned(),
                ..PromptResponse::default()
            })
            .await?;
            cx.cancel.cancelled().await;
            self.0.cancelled.notify_one();
            return Ok(());
        }
        let reply = self.0.script.lock().prompts.get(ask.id.as_str()).cloned();
        let Some(reply) = reply else {
            return Err(Error::new(ErrorCode::NotFound, "no such prompt"));
        };
        let end = |text: String, object: String| PromptResponse {
            text,
            object,
            end_of_stream: true,
            in_token: Some(10),
            out_token: Some(2),
            model: Some("fake-model".into()),
            ..PromptResponse::default()
        };
        if ask.streaming {
            for piece in reply.split_inclusive(' ') {
                out.send(PromptResponse {
                    text: piece.to_owned(),
                    ..PromptResponse::default()
                })
                .await?;
            }
            return out.send(end(String::new(), String::new())).await;
        }
        let is_object = reply.starts_with(['{', '[']) && !reply.starts_with("[1");
        out.send(if is_object {
            end(String::new(), reply)
        } else {
            end(reply, String::new())
        })
        .await
    }
}

#[async_trait]
impl RequestHandler<LibrarianRequest, LibrarianResponse> for Fake {
    async fn serve(
        &self,
        _: Cx,
        ask: LibrarianRequest,
        mut out: Responder<LibrarianResponse>,
    ) -> Result<(), Error> {
        self.asked("librarian")?;
        let text = |id: &str| {
            let script = self.0.script.lock();
            let found = script.chunks.iter().find(|(chunk, _)| *chunk == id);
            found.map_or_else(String::new, |(_, text)| STANDARD.encode(text))
        };
        let mut reply = LibrarianResponse::default();
        match ask.operation.as_str() {
            "get-contents" if !self.0.script.lock().old_library => {
                reply.contents = ask.document_ids.iter().map(|id| text(id)).collect();
                let script = self.0.script.lock();
                let stands = script
                    .contexts
                    .iter()
                    .map(|(id, context)| DocumentMetadata {
                        id: (*id).to_owned(),
                        parent_id: "urn:doc:library".to_owned(),
                        comments: (*context).to_owned(),
                        ..DocumentMetadata::default()
                    });
                reply.document_metadatas = stands.collect();
            }
            "get-document-content" => reply.content = text(&ask.document_id),
            "get-document-metadata" => {
                let is_chunk = ask.document_id.starts_with("urn:chunk:");
                reply.document_metadata = Some(DocumentMetadata {
                    id: ask.document_id.clone(),
                    title: if is_chunk { "a chunk" } else { "Harbours" }.into(),
                    parent_id: if is_chunk { "urn:doc:library" } else { "" }.into(),
                    ..DocumentMetadata::default()
                });
            }
            _ => return Err(Error::new(ErrorCode::BadOperation, "no such operation")),
        }
        out.send(reply).await
    }
}

#[async_trait]
impl RequestHandler<RowsQueryRequest, RowsQueryResponse> for Fake {
    async fn serve(
        &self,
        _: Cx,
        ask: RowsQueryRequest,
        mut out: Responder<RowsQueryResponse>,
    ) -> Result<(), Error> {
        self.asked("rows")?;
        assert_eq!(ask.variables["least"], serde_json::json!(3));
        let data = self.0.script.lock().rows.clone();
        out.send(RowsQueryResponse {
            data,
            errors: vec![GraphQLError {
                message: "odd".into(),
                path: vec!["orders".into()],
                ..GraphQLError::default()
            }],
            ..RowsQueryResponse::default()
        })
        .await
    }
}

#[async_trait]
impl RecordConsumer<LibraryTexts> for Fake {
    async fn consume(&self, _: Cx, record: LibraryTexts) -> Result<(), ConsumeError> {
        assert_eq!(record.workspace, "default");
        let texts = record.texts.into_iter().map(|text| (text.id, text.text));
        self.0.saved.lock().extend(texts);
        Ok(())
    }
}

#[async_trait]
impl RecordConsumer<Triples> for Fake {
    async fn consume(&self, _: Cx, record: Triples) -> Result<(), ConsumeError> {
        self.0.counts.add("records");
        self.0.stored.lock().extend(record.triples);
        Ok(())
    }
}
