//! `embeddings`: texts to vectors.

use tg_schemas::Error;
use tg_schemas::msg::{EmbeddingsRequest, EmbeddingsResponse};

use super::fields::{Body, Fields, Reply};
use super::vectors::vector_to_api;
use super::{About, Translate};

/// The `embeddings` service.
pub struct Embeddings;

impl Translate for Embeddings {
    type Question = EmbeddingsRequest;
    type Answer = EmbeddingsResponse;

    fn question(body: &Fields<'_>, _about: &About) -> Result<Self::Question, Error> {
        let texts = body.opt_texts("texts")?;
        Ok(EmbeddingsRequest {
            texts: texts.ok_or_else(|| body.fault("texts", "is required"))?,
            model: body.text("model")?,
            ..EmbeddingsRequest::default()
        })
    }

    /// The model's name is an extra key, so that a query can be checked against what is stored.
    fn part(part: Self::Answer, _about: &About) -> Body {
        let vectors: Vec<_> = part.vectors.iter().map(|one| vector_to_api(one)).collect();
        Reply::new()
            .put("vectors", vectors)
            .put_truthy("model", part.model)
            .done()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_are_required_and_vectors_are_short_numbers() {
        let error = question::<Embeddings>(json!({"texts": null}), "").unwrap_err();
        assert_eq!(error.message, "texts: is required");
        let error = question::<Embeddings>(json!({"texts": ["a", 1]}), "").unwrap_err();
        assert_eq!(error.message, "texts[1]: must be a string");
        let reply = EmbeddingsResponse {
            vectors: vec![vec![0.1, -2.0]],
            model: "lexical".into(),
            ..Default::default()
        };
        let body = part::<Embeddings>(reply, "");
        assert_eq!(
            body.to_string(),
            r#"{"vectors":[[0.1,-2.0]],"model":"lexical"}"#
        );
        assert_eq!(
            part::<Embeddings>(Default::default(), ""),
            json!({"vectors": []})
        );
    }
}
