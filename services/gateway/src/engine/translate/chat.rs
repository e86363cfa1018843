//! `chat-completion`: a chat with the model of a flow, and the state of its backends.

use serde::Serialize;
use serde_json::Value;
use tg_schemas::Error;
use tg_schemas::msg::{
    ChatCompletionRequest, ChatCompletionResponse, ChatTool, ChatToolCall, ChatTurn,
};

use super::completion::model;
use super::fields::{Body, Fields, Reply};
use super::{About, Translate, error_body};

/// A number, if present.
pub(super) fn number(body: &Fields<'_>, key: &str) -> Result<Option<f64>, Error> {
    let is_there = body.value(key).is_some();
    let number = body.number_or(key, 0.0)?;
    Ok(is_there.then_some(number))
}

/// Most tokens that a model may write, if present.
pub(super) fn most_tokens(body: &Fields<'_>) -> Result<Option<i64>, Error> {
    if body.value("max_tokens").is_none() {
        return Ok(None);
    }
    match body.integer_or("max_tokens", 0)? {
        most @ 1.. => Ok(Some(most)),
        _ => Err(body.fault("max_tokens", "must be at least 1")),
    }
}

/// The `chat-completion` service.
pub struct Chat;

impl Translate for Chat {
    type Question = ChatCompletionRequest;
    type Answer = ChatCompletionResponse;

    fn question(body: &Fields<'_>, _about: &About) -> Result<Self::Question, Error> {
        Ok(ChatCompletionRequest {
            operation: body.name_or("operation", "completion")?,
            model: body.opt_text("model")?,
            models: body.texts("models")?,
            messages: all(body.objects("messages")?, turn)?,
            tools: all(body.objects("tools")?, tool)?,
            tool_choice: body.opt_text("tool_choice")?,
            temperature: number(body, "temperature")?,
            top_p: number(body, "top_p")?,
            max_tokens: most_tokens(body)?,
            stop: body.texts("stop")?,
            response_format: body.opt_text("response_format")?,
            schema: body.map("schema")?.cloned(),
            streaming: body.flag("streaming")?,
        })
    }

    fn part(part: Self::Answer, _about: &About) -> Body {
        let models: Vec<Value> = part.models.into_iter().map(model).collect();
        let calls: Vec<Value> = part.tool_calls.iter().map(plain).collect();
        let health: Vec<Value> = part.health.iter().map(plain).collect();
        Reply::new()
            .put_truthy("delta", part.delta)
            .put_truthy("content", part.content)
            .put_truthy("thinking", part.thinking)
            .put_truthy("tool_calls", calls)
            .put_some("finish_reason", part.finish_reason)
            .put_some("model", part.model)
            .put_some("backend", part.backend)
            .put_some("usage", part.usage.map(|usage| plain(&usage)))
            .put_some("cost", part.cost)
            .put("end_of_stream", part.end_of_stream)
            .put_truthy("models", models)
            .put_truthy("health", health)
            .put_some("route", part.route.map(|route| plain(&route)))
            .done()
    }

    fn failure(error: &Error, part: Self::Answer) -> Body {
        let mut body = error_body(error);
        if let Some(failure) = part.failure {
            body.insert("failure".to_owned(), failure.into());
        }
        if let Some(seconds) = part.retry_after {
            body.insert("retry_after".to_owned(), seconds.into());
        }
        body
    }
}

fn all<T>(
    items: Vec<Fields<'_>>,
    read: impl Fn(&Fields<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    items.iter().map(read).collect()
}

fn turn(fields: &Fields<'_>) -> Result<ChatTurn, Error> {
    Ok(ChatTurn {
        role: fields.required_text("role")?,
        content: fields.text("content")?,
        tool_calls: all(fields.objects("tool_calls")?, call)?,
        tool_call_id: fields.opt_text("tool_call_id")?,
        name: fields.opt_text("name")?,
        images: fields.texts("images")?,
    })
}

fn call(fields: &Fields<'_>) -> Result<ChatToolCall, Error> {
    Ok(ChatToolCall {
        id: fields.text("id")?,
        name: fields.required_text("name")?,
        arguments: fields.text("arguments")?,
    })
}

fn tool(fields: &Fields<'_>) -> Result<ChatTool, Error> {
    Ok(ChatTool {
        name: fields.required_text("name")?,
        description: fields.text("description")?,
        parameters: fields.map("parameters")?.cloned(),
    })
}

/// As JSON, without what is not known.
fn plain(of: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(of).unwrap_or_default();
    drop_nulls(&mut value);
    value
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;
    use serde_json::json;
    use tg_schemas::msg::{ModelRoute, RouteBackend};

    #[test]
    fn turns_and_wishes_are_read_and_named_where_they_are_wrong() {
        let body = json!({
            "messages": [{"role": "user", "content": "hi", "images": ["data:a"]}, {"role": "assistant", "tool_calls":
                [{"id": "c", "name": "add", "arguments": "{}"}]}],
            "tools": [{"name": "add", "parameters": {"type": "object"}}],
            "temperature": 0, "stop": ["END"],
        });
        let read = question::<Chat>(body, "").unwrap();
        assert_eq!((read.temperature, read.top_p), (Some(0.0), None));
        assert_eq!(read.messages[0].images, ["data:a"]);
        assert_eq!(read.messages[1].tool_calls[0].name, "add");
        for (wrong, told) in [
            (
                json!({"messages": [{"content": "x"}]}),
                "messages[0].role: is required",
            ),
            (json!({"max_tokens": 0}), "max_tokens: must be at least 1"),
            (json!({"tools": [3]}), "tools[0]: must be an object"),
        ] {
            assert_eq!(question::<Chat>(wrong, "").unwrap_err().message, told);
        }
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let route = ModelRoute {
            model: "m".into(),
            backends: vec![RouteBackend::default()],
            ..ModelRoute::default()
        };
        let answer = ChatCompletionResponse {
            route: Some(route),
            end_of_stream: true,
            ..Default::default()
        };
        let shown = part::<Chat>(answer, "");
        assert!(shown["route"].get("chosen").is_none());
        assert!(shown["route"]["backends"][0].get("until").is_none());
        assert!(shown.get("delta").is_none());
        let error = Error::new(tg_schemas::ErrorCode::Provider, "m");
        let refused = ChatCompletionResponse {
            failure: Some("model_not_found".into()),
            retry_after: Some(7),
            ..Default::default()
        };
        let body = Chat::failure(&error, refused);
        assert_eq!(
            (&body["failure"], &body["retry_after"]),
            (&json!("model_not_found"), &json!(7))
        );
    }
}
