//! A call of a model as a span, in the words that OpenTelemetry has for generative AI: which model, how many tokens, how it
//! ended. Nothing of what was asked or answered.

use std::borrow::Cow;

use futures::StreamExt;
use tg_mesh::telemetry::attributes;
use tg_mesh::{Span, SpanKind};
use tg_schemas::ErrorCode;

use crate::error::LlmError;
use crate::model::{ChatEvent, ChatModel, ChatRequest, ChatStream};

/// Sends a request within a span that ends with its answer. `backend` is empty where there is one provider.
///
/// # Errors
/// As [`ChatModel::chat`].
pub(crate) async fn chat(
    model: &dyn ChatModel,
    request: &ChatRequest,
    backend: &str,
) -> Result<ChatStream, LlmError> {
    let mut span = begun(model, request, backend);
    if !span.is_recorded() {
        return model.chat(request).await;
    }
    let place = request.place.within(&span);
    let asked = match place.for_providers() {
        // What a provider is told is the span of its own call.
        Some(_) => Cow::Owned(ChatRequest {
            place,
            ..request.clone()
        }),
        None => Cow::Borrowed(request),
    };
    match model.chat(&asked).await {
        Ok(events) => {
            // Unless it comes to its end.
            span.fail(ErrorCode::Cancelled.as_str());
            Ok(events.inspect(move |event| seen(&mut span, event)).boxed())
        }
        Err(error) => {
            span.fail(error.code().as_str());
            Err(error)
        }
    }
}

fn begun(model: &dyn ChatModel, request: &ChatRequest, backend: &str) -> Span {
    let name = request.model.as_deref().unwrap_or(model.default_model());
    let provider = model.provider();
    let kind = match provider {
        // It is in this process.
        "builtin" => SpanKind::Internal,
        _ => SpanKind::Client,
    };
    let mut span = request.place.span(kind, || format!("chat {name}"));
    if span.is_recorded() {
        span.say(attributes::GEN_AI_OPERATION, "chat");
        span.say(attributes::GEN_AI_PROVIDER, provider);
        span.say(attributes::GEN_AI_REQUEST_MODEL, name);
        span.say(attributes::BACKEND, backend);
    }
    span
}

/// Notes what an event says of the call; with the last one it is over.
fn seen(span: &mut Span, event: &Result<ChatEvent, LlmError>) {
    match event {
        Ok(ChatEvent::Delta(_) | ChatEvent::Thinking(_)) => {}
        Ok(ChatEvent::Done(completion)) => {
            span.well();
            span.say(attributes::GEN_AI_RESPONSE_MODEL, &completion.model);
            if let Some(tokens) = completion.in_token {
                span.count(attributes::GEN_AI_INPUT_TOKENS, tokens);
            }
            if let Some(tokens) = completion.out_token {
                span.count(attributes::GEN_AI_OUTPUT_TOKENS, tokens);
            }
            span.end();
        }
        Err(error) => {
            span.fail(error.code().as_str());
            span.end();
        }
    }
}

#[cfg(test)]
mod tests;
