//! `text-completion`: one model call, or the list of models.

use serde_json::Value;
use tg_schemas::Error;
use tg_schemas::msg::{ModelInfo, TextCompletionRequest, TextCompletionResponse};

use super::fields::{Body, Fields, Reply};
use super::{About, Translate};

/// The `text-completion` service.
pub struct Completion;

impl Translate for Completion {
    type Question = TextCompletionRequest;
    type Answer = TextCompletionResponse;

    fn question(body: &Fields<'_>, _about: &About) -> Result<Self::Question, Error> {
        Ok(TextCompletionRequest {
            operation: body.name_or("operation", "completion")?,
            system: body.text("system")?,
            prompt: body.text("prompt")?,
            streaming: body.flag("streaming")?,
            response_format: body.opt_text("response_format")?,
            schema: body.map("schema")?.cloned(),
            ..TextCompletionRequest::default()
        })
    }

    fn part(part: Self::Answer, _about: &About) -> Body {
        let models: Vec<Value> = part.models.into_iter().map(model).collect();
        Reply::new()
            .put("response", part.response)
            .put_some("in_token", part.in_token)
            .put_some("out_token", part.out_token)
            .put_some("model", part.model)
            .put("end_of_stream", part.end_of_stream)
            .put_truthy("models", models)
            .done()
    }
}

pub(super) fn model(info: ModelInfo) -> Value {
    let reply = Reply::new()
        .put("id", info.id)
        .put_some("name", info.name)
        .put_some("owned_by", info.owned_by)
        .put_some("created", info.created)
        .put_some("description", info.description)
        .put_some("context_length", info.context_length)
        .put_some("max_output_length", info.max_output_length)
        .put_truthy("input_modalities", info.input_modalities)
        .put_truthy("output_modalities", info.output_modalities)
        .put_truthy("supported_features", info.supported_features)
        .put_some("input_price", info.input_price)
        .put_some("output_price", info.output_price)
        .put_some("family", info.family)
        .put_some("parameter_size", info.parameter_size)
        .put_some("quantization", info.quantization)
        .put_some("format", info.format);
    Value::Object(reply.done())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;
    use serde_json::json;

    #[test]
    fn defaults_and_schema() {
        let request =
            question::<Completion>(json!({"prompt": "p", "schema": {"type": "object"}}), "")
                .unwrap();
        assert_eq!(request.operation, "completion");
        assert_eq!(request.schema.unwrap()["type"], "object");
        let error = question::<Completion>(json!({"streaming": "yes"}), "").unwrap_err();
        assert_eq!(error.message, "streaming: must be true or false");
    }

    #[test]
    fn absent_counts_stay_absent() {
        let reply = TextCompletionResponse {
            response: "hi".into(),
            in_token: Some(0),
            end_of_stream: true,
            ..Default::default()
        };
        assert_eq!(
            part::<Completion>(reply, ""),
            json!({"response": "hi", "in_token": 0, "end_of_stream": true})
        );
    }

    #[test]
    fn models_carry_only_what_is_known() {
        let reply = TextCompletionResponse {
            models: vec![ModelInfo {
                id: "m".into(),
                context_length: Some(8),
                ..ModelInfo::default()
            }],
            ..Default::default()
        };
        assert_eq!(
            part::<Completion>(reply, "")["models"],
            json!([{"id": "m", "context_length": 8}])
        );
    }
}
