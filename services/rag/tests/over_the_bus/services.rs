//! Fakes of embeddings, look-ups, prompts, library and rows.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tg_mesh::Cx;
use tg_schemas::msg::*;
use tg_schemas::{Error, ErrorCode, Term};

use tg_testkit::fakes::{Play, Played};
use tg_testkit::flow::SOON;

use crate::world::Fake;

/// A text as the two numbers that tell bridges and lighthouses apart.
fn vector(text: &str) -> Vec<f32> {
    let has = |word: &str| f32::from(u8::from(text.to_lowercase().contains(word)));
    vec![has("bridge"), has("light"), 0.1]
}

pub fn embeddings(fake: Fake) -> Arc<Played<EmbeddingsRequest, EmbeddingsResponse>> {
    Played::new(move |_: &Cx, ask: EmbeddingsRequest| {
        fake.asked("embeddings")?;
        let model = match ask.model.as_str() {
            "" => OWN,
            other => {
                let served = fake.0.script.lock().served.clone();
                let known = served.into_iter().find(|one| *one == other);
                known.ok_or_else(|| Error::new(ErrorCode::BadRequest, "model: unknown"))?
            }
        };
        Ok(EmbeddingsResponse {
            vectors: ask.texts.iter().map(|text| vector(text)).collect(),
            model: model.into(),
            ..EmbeddingsResponse::default()
        })
    })
}

/// The model of the embeddings.
const OWN: &str = "fake";

/// As a store says it: vectors of another model than those that are kept are refused, or told to who asks so.
fn other(fake: &Fake, model: &str, tell: bool) -> Result<Option<String>, Error> {
    let held = match fake.0.script.lock().held {
        "" => OWN,
        held => held,
    };
    match (model == held, tell) {
        (true, _) => Ok(None),
        (false, true) => Ok(Some(held.to_owned())),
        (false, false) => Err(Error::new(ErrorCode::Conflict, "another model")),
    }
}

pub fn entities(fake: Fake) -> Arc<Played<GraphEmbeddingsRequest, GraphEmbeddingsResponse>> {
    Played::new(move |_: &Cx, ask: GraphEmbeddingsRequest| {
        fake.asked("graph-embeddings")?;
        if let Some(model) = other(&fake, &ask.model, ask.tell_model)? {
            return Ok(GraphEmbeddingsResponse {
                model,
                ..GraphEmbeddingsResponse::default()
            });
        }
        let entities = fake.0.script.lock().entities.clone();
        let entities = entities.iter().enumerate().map(|(at, iri)| EntityMatch {
            entity: Some(Term::iri(*iri)),
            score: 1.0 - at as f64 / 100.0,
            ..EntityMatch::default()
        });
        Ok(GraphEmbeddingsResponse {
            entities: entities.collect(),
            ..GraphEmbeddingsResponse::default()
        })
    })
}

pub fn chunks(fake: Fake) -> Arc<Played<DocumentEmbeddingsRequest, DocumentEmbeddingsResponse>> {
    Played::new(move |_: &Cx, ask: DocumentEmbeddingsRequest| {
        fake.asked("document-embeddings")?;
        if let Some(model) = other(&fake, &ask.model, ask.tell_model)? {
            return Ok(DocumentEmbeddingsResponse {
                model,
                ..DocumentEmbeddingsResponse::default()
            });
        }
        let chunks = fake.0.script.lock().chunks.clone();
        let chunks = chunks.iter().enumerate().map(|(at, (id, _))| ChunkMatch {
            chunk_id: (*id).to_owned(),
            score: 1.0 - at as f64 / 100.0,
            ..ChunkMatch::default()
        });
        Ok(DocumentEmbeddingsResponse {
            chunks: chunks.collect(),
            ..DocumentEmbeddingsResponse::default()
        })
    })
}

pub fn keywords(fake: Fake) -> Arc<Played<KeywordIndexRequest, KeywordIndexResponse>> {
    Played::new(move |_: &Cx, _: KeywordIndexRequest| {
        fake.asked("keyword-index")?;
        let words = fake.0.script.lock().words.clone();
        let chunks = words.iter().map(|id| ChunkMatch {
            chunk_id: (*id).to_owned(),
            score: 1.0,
            ..ChunkMatch::default()
        });
        Ok(KeywordIndexResponse {
            chunks: chunks.collect(),
            ..KeywordIndexResponse::default()
        })
    })
}

pub fn prompts(fake: Fake) -> Arc<Played<PromptRequest, PromptResponse>> {
    Played::new(move |cx: &Cx, ask: PromptRequest| {
        fake.asked("prompt")?;
        let piece = |text: &str| PromptResponse {
            text: text.to_owned(),
            ..PromptResponse::default()
        };
        if fake.0.script.lock().hanging == ask.id {
            assert!(cx.deadline.left() <= SOON, "one deadline for all");
            return Ok(Play::from(piece("Well ")).hanging());
        }
        let reply = fake.0.script.lock().prompts.get(ask.id.as_str()).cloned();
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
            let pieces = reply.split_inclusive(' ').map(piece);
            let end = end(String::new(), String::new());
            return Ok(pieces.chain([end]).collect::<Vec<_>>().into());
        }
        let is_object = reply.starts_with(['{', '[']) && !reply.starts_with("[1");
        Ok(match is_object {
            true => end(String::new(), reply),
            false => end(reply, String::new()),
        }
        .into())
    })
}

pub fn library(fake: Fake) -> Arc<Played<LibrarianRequest, LibrarianResponse>> {
    Played::new(move |_: &Cx, ask: LibrarianRequest| {
        fake.asked("librarian")?;
        let text = |id: &str| {
            let script = fake.0.script.lock();
            let found = script.chunks.iter().find(|(chunk, _)| *chunk == id);
            found.map_or_else(String::new, |(_, text)| STANDARD.encode(text))
        };
        let mut reply = LibrarianResponse::default();
        match ask.operation.as_str() {
            "get-contents" if !fake.0.script.lock().old_library => {
                reply.contents = ask.document_ids.iter().map(|id| text(id)).collect();
                let script = fake.0.script.lock();
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
        Ok(reply)
    })
}

pub fn rows(fake: Fake) -> Arc<Played<RowsQueryRequest, RowsQueryResponse>> {
    Played::new(move |_: &Cx, ask: RowsQueryRequest| {
        fake.asked("rows")?;
        assert_eq!(ask.variables["least"], serde_json::json!(3));
        let data = fake.0.script.lock().rows.clone();
        Ok(RowsQueryResponse {
            data,
            errors: vec![GraphQLError {
                message: "odd".into(),
                path: vec!["orders".into()],
                ..GraphQLError::default()
            }],
            ..RowsQueryResponse::default()
        })
    })
}
