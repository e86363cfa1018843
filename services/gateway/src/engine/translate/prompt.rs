//! `prompt`: a template filled with terms.

use std::collections::BTreeMap;

use serde_json::Value;
use tg_schemas::Error;
use tg_schemas::msg::{PromptRequest, PromptResponse};

use super::fields::{Body, Fields, Reply};
use super::{About, Translate};

/// The `prompt` service.
pub struct Prompt;

impl Translate for Prompt {
    type Question = PromptRequest;
    type Answer = PromptResponse;

    fn question(body: &Fields<'_>, _about: &About) -> Result<PromptRequest, Error> {
        let terms = match body.map("variables")? {
            Some(variables) => encoded(variables),
            None => body.map("terms")?.map(as_json_texts).unwrap_or_default(),
        };
        Ok(PromptRequest {
            id: body.required_text("id")?,
            terms,
            streaming: body.flag("streaming")?,
            ..PromptRequest::default()
        })
    }

    /// Of `text` and `object` (JSON text) only the one in use is there.
    fn part(part: PromptResponse, _about: &About) -> Body {
        let is_object = !part.object.is_empty();
        let text = (!is_object || !part.text.is_empty()).then_some(part.text);
        Reply::new()
            .put_some("text", text)
            .put_truthy("object", part.object)
            .put("end_of_stream", part.end_of_stream)
            .put_some("in_token", part.in_token)
            .put_some("out_token", part.out_token)
            .put_some("model", part.model)
            .done()
    }
}

/// Every value as JSON text.
fn encoded(variables: &Body) -> BTreeMap<String, String> {
    variables
        .iter()
        .map(|(name, value)| (name.clone(), value.to_string()))
        .collect()
}

/// Terms should be JSON texts already; some clients send raw values.
fn as_json_texts(terms: &Body) -> BTreeMap<String, String> {
    let one = |value: &Value| match value {
        Value::String(text) if serde_json::from_slice::<Value>(text.as_bytes()).is_ok() => {
            text.clone()
        }
        other => other.to_string(),
    };
    terms
        .iter()
        .map(|(name, value)| (name.clone(), one(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;
    use serde_json::json;

    #[test]
    fn variables_win_and_every_term_is_json_text() {
        let request = question::<Prompt>(
            json!({"id": "p", "variables": {"a": "x", "n": [1]}, "terms": {"a": "\"y\""}}),
            "",
        )
        .unwrap();
        assert_eq!(request.terms["a"], "\"x\"");
        assert_eq!(request.terms["n"], "[1]");
        let request = question::<Prompt>(
            json!({"id": "p", "terms": {"a": "\"y\"", "b": "raw", "c": 2}}),
            "",
        )
        .unwrap();
        assert_eq!(request.terms["a"], "\"y\"");
        assert_eq!(request.terms["b"], "\"raw\"");
        assert_eq!(request.terms["c"], "2");
        assert_eq!(
            question::<Prompt>(json!({}), "").unwrap_err().message,
            "id: is required"
        );
    }

    #[test]
    fn only_what_is_used_is_there() {
        let text = PromptResponse {
            text: "hi".into(),
            end_of_stream: true,
            ..PromptResponse::default()
        };
        assert_eq!(
            part::<Prompt>(text, ""),
            json!({"text": "hi", "end_of_stream": true})
        );
        let object = PromptResponse {
            object: "{\"a\":1}".into(),
            end_of_stream: true,
            ..PromptResponse::default()
        };
        assert_eq!(
            part::<Prompt>(object, ""),
            json!({"object": "{\"a\":1}", "end_of_stream": true})
        );
    }
}
