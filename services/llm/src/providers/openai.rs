//! OpenAI chat completions, the dialect most servers speak (vLLM, LM Studio, llama.cpp, OpenRouter …).

use async_trait::async_trait;
use futures::stream;
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use tg_provider_http::{NoClient, Reach, Secret};
use tg_schemas::msg::ModelInfo;

use super::calls::{CallDelta, Calls};
use super::chats::{Chats, messages};
use super::dialogs;
use super::reading::{self, Begun, Dialect, Said};
use super::{failure, listed, plain};
use crate::error::LlmError;
use crate::model::{ChatModel, ChatRequest, ChatStream, Completion, Format};

/// A server that speaks OpenAI chat completions.
pub struct OpenAi {
    http: Chats,
    base_url: String,
    key: Option<Secret>,
    model: String,
}

impl OpenAi {
    /// A server at a base address (with version), e.g. `https://api.openai.com/v1`.
    ///
    /// # Errors
    /// [`NoClient`] if TLS cannot be set up.
    pub fn new(base_url: &str, key: Option<Secret>, model: &str) -> Result<Self, NoClient> {
        Self::within(base_url, key, model, Reach::Anywhere)
    }

    /// The same, asked only at these addresses.
    ///
    /// # Errors
    /// As of [`Self::new`].
    pub(crate) fn within(
        base_url: &str,
        key: Option<Secret>,
        model: &str,
        reach: Reach,
    ) -> Result<Self, NoClient> {
        Ok(Self {
            http: Chats::within(base_url, reach)?,
            base_url: base_url.to_owned(),
            key,
            model: model.to_owned(),
        })
    }

    fn signed(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.key {
            Some(key) => request.bearer_auth(key.expose()),
            None => request,
        }
    }
}

#[async_trait]
impl ChatModel for OpenAi {
    fn provider(&self) -> &'static str {
        "openai"
    }

    fn default_model(&self) -> &str {
        &self.model
    }

    async fn chat(&self, request: &ChatRequest) -> Result<ChatStream, LlmError> {
        let model = request.model.as_deref().unwrap_or(&self.model);
        let url = format!("{}/chat/completions", self.base_url);
        let response = self
            .http
            .chat(model, request, || {
                let builder = self.signed(self.http.post(&url));
                let mut body = body(request, model);
                if self.base_url.contains(TELLS_COST) {
                    body["usage"] = json!({"include": true});
                }
                if self.base_url.contains(SIGNS_CALLS) {
                    sign(&mut body);
                }
                (builder, body)
            })
            .await?;
        let mut answer = Answer::new(model);
        let body = match reading::begun(response).await? {
            Begun::Pieces(pieces) => return Ok(reading::events_of(pieces, answer)),
            Begun::Whole(body) => body,
        };
        let text = String::from_utf8_lossy(&body);
        let whole = text.trim_start_matches('\u{feff}').trim_end();
        // Some servers end a body as if it were a stream.
        let whole = whole.strip_suffix("[DONE]").unwrap_or(whole).trim_end();
        let whole = whole.strip_suffix("data:").unwrap_or(whole);
        match serde_json::from_slice::<Value>(whole.as_bytes()) {
            Ok(whole) => {
                let (thought, text) = answer.whole(&whole)?;
                Ok(reading::at_once(thought, text, answer.completion()))
            }
            // One JSON object a line.
            Err(_) if request.streaming => Ok(reading::events_of(stream::iter([Ok(body)]), answer)),
            Err(_) => Err(LlmError::Malformed),
        }
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        let url = format!("{}/models", self.base_url);
        let listed: Value = self.http.json(self.signed(self.http.get(&url))).await?;
        listed::models(&listed)
    }
}

/// Who says what a call cost, if it is asked to.
const TELLS_COST: &str = "://openrouter.ai/";
/// Who refuses calls of earlier turns that do not have the signatures with which its models made them.
const SIGNS_CALLS: &str = "://generativelanguage.googleapis.com/";
/// What it takes for the signature of a call that has none. Signatures do not pass through a chat of ours.
const UNSIGNED: &str = "skip_thought_signature_validator";

/// Marks the calls of earlier turns as calls without a signature.
fn sign(body: &mut Value) {
    let turns = body.get_mut("messages").and_then(Value::as_array_mut);
    let calls = turns.into_iter().flatten().filter_map(|turn| {
        let calls = turn.get_mut("tool_calls")?;
        calls.as_array_mut()
    });
    for call in calls.flatten() {
        call["extra_content"] = json!({"google": {"thought_signature": UNSIGNED}});
    }
}

/// The user's text, with the picture that it is about as an address that holds it.
fn user(request: &ChatRequest) -> Value {
    let Some(picture) = &request.picture else {
        return json!({"role": "user", "content": request.prompt});
    };
    json!({"role": "user", "content": [
        {"type": "text", "text": request.prompt},
        {"type": "image_url", "image_url": {"url": picture.data_uri()}},
    ]})
}

fn body(request: &ChatRequest, model: &str) -> Value {
    // A chat is long: its turns are moved.
    let turns = match &request.dialog {
        Some(dialog) => dialogs::openai_turns(dialog),
        None => messages(request, user(request)),
    };
    let mut body = json!({"model": model});
    body["messages"] = turns.into();
    if let Some(temperature) = request.temperature {
        body["temperature"] = json!(temperature);
    }
    if let Some(most) = request.max_tokens {
        body["max_tokens"] = json!(most);
    }
    if request.streaming {
        body["stream"] = json!(true);
        body["stream_options"] = json!({"include_usage": true});
    }
    if let Some(dialog) = &request.dialog {
        dialogs::openai_wishes(dialog, &mut body);
    }
    match &request.format {
        Format::Text => {}
        Format::Json => body["response_format"] = json!({"type": "json_object"}),
        Format::Schema(_) => {
            if let Some(schema) = request.format.object() {
                body["response_format"] = json!({
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "strict": true, "schema": schema},
                });
            }
        }
    }
    body
}

/// A text that says something.
fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    let text = value.get(name).and_then(Value::as_str);
    text.filter(|text| !text.is_empty())
}

/// Whether a reason for the end is a fault, such as `network_error`.
fn is_fault(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    reason == "error" || reason.ends_with("_error")
}

/// What is said in a choice: a message or a piece of one.
fn message(choice: &Value) -> Option<&Value> {
    let mut messages = ["delta", "message"].iter().map(|name| choice.get(*name));
    messages.find_map(|one| one.filter(|one| one.is_object()))
}

/// What the model thinks and what it answers, in a message or a piece of one. The content is a text, parts, or nothing.
fn apart(message: &Value) -> (String, String) {
    let (mut thought, mut said) = (String::new(), String::new());
    // By the server it is called so or so, or both.
    let names = ["reasoning_content", "reasoning", "thinking"];
    if let Some(told) = names.iter().find_map(|name| text(message, name)) {
        thought.push_str(told);
    }
    match message.get("content") {
        Some(Value::String(text)) => said.push_str(text),
        Some(Value::Array(parts)) => parts.iter().for_each(|part| match part {
            Value::String(text) => said.push_str(text),
            part => {
                let thoughts = match part.get("thinking") {
                    Some(Value::Array(parts)) => {
                        parts.iter().filter_map(|part| text(part, "text")).collect()
                    }
                    _ => text(part, "thinking").unwrap_or_default().to_owned(),
                };
                thought.push_str(&thoughts);
                said.push_str(text(part, "text").unwrap_or_default());
            }
        }),
        Some(Value::Object(_)) => {
            said.push_str(text(&message["content"], "text").unwrap_or_default())
        }
        _ => {}
    }
    if said.is_empty() {
        // What a model says instead of an answer is one.
        said.push_str(text(message, "refusal").unwrap_or_default());
    }
    (thought, said)
}

pub(super) struct Answer {
    completion: Completion,
    finished: bool,
    /// A choice came, if only an empty one.
    begun: bool,
    /// Some text or call came.
    spoke: bool,
    /// The server keeps the answer back for what it says.
    withheld: bool,
    calls: Calls,
}

impl Answer {
    pub(super) fn new(model: &str) -> Self {
        Self {
            completion: Completion::of(model),
            finished: false,
            begun: false,
            spoke: false,
            withheld: false,
            calls: Calls::default(),
        }
    }

    /// An answer that came whole.
    fn whole(&mut self, body: &Value) -> Result<(String, String), LlmError> {
        let said = self.take(body)?.ok_or(LlmError::Malformed)?;
        self.check()?;
        Ok(said)
    }

    /// What a body, or an event, says; `None`: nothing of the answer.
    fn take(&mut self, body: &Value) -> Result<Option<(String, String)>, LlmError> {
        let choice = body.get("choices").and_then(|choices| choices.get(0));
        let choice = choice.filter(|choice| choice.is_object());
        if let Some(error) = failure::told(body).or_else(|| choice.and_then(failure::told)) {
            return Err(error);
        }
        if let Some(model) = text(body, "model") {
            self.completion.named(model);
        }
        self.completion.count(body.get("usage"));
        let Some(choice) = choice else {
            return Ok(None);
        };
        self.begun = true;
        match text(choice, "finish_reason") {
            None => {}
            Some("error") => return Err(LlmError::Interrupted),
            // An aggregator's own word for the end says less than that of the server behind it.
            Some(_) if text(choice, "native_finish_reason").is_some_and(is_fault) => {
                return Err(LlmError::Interrupted);
            }
            Some(reason) => {
                self.finished = true;
                self.completion.truncated = matches!(reason, "length" | "model_length");
                self.withheld = reason == "content_filter";
            }
        }
        let said = match message(choice) {
            Some(message) => {
                self.called(message);
                apart(message)
            }
            // As in the dialect before chats.
            None => (
                String::new(),
                text(choice, "text").unwrap_or_default().to_owned(),
            ),
        };
        // One answer is asked for: further choices are more of it. Copilot sends each call in one of its own.
        let further = body.get("choices").and_then(Value::as_array);
        for message in further.into_iter().flatten().skip(1).filter_map(message) {
            self.called(message);
        }
        self.spoke |= !said.1.is_empty();
        Ok(Some(said))
    }

    /// Notes the calls of a message, or of a piece of one.
    fn called(&mut self, message: &Value) {
        let calls = CallDelta::of(message);
        self.spoke |= !calls.is_empty();
        self.calls.add(Some(calls));
    }

    /// Whether what came may be the answer.
    fn check(&self) -> Result<(), LlmError> {
        match self.withheld && !self.spoke {
            true => Err(LlmError::Withheld),
            false => Ok(()),
        }
    }
}

impl Dialect for Answer {
    fn read(&mut self, data: &str) -> Result<Said, LlmError> {
        match data.trim() {
            "[DONE]" if !self.begun => return Err(LlmError::BrokenOff),
            "[DONE]" => {
                self.check()?;
                return Ok(Said::End);
            }
            // A server that has nothing to say yet.
            "" => return Ok(Said::Nothing),
            _ => {}
        }
        if let Some((model, text)) = plain::piece(data) {
            self.completion.named(&model);
            (self.begun, self.spoke) = (true, true);
            return Ok(Said::Thinking(String::new(), text));
        }
        let chunk: Value =
            serde_json::from_slice(data.as_bytes()).map_err(|_| LlmError::Malformed)?;
        Ok(match self.take(&chunk)? {
            Some((thought, text)) => Said::Thinking(thought, text),
            None => Said::Nothing,
        })
    }

    fn complete(&self) -> bool {
        self.finished && self.check().is_ok()
    }

    fn completion(&mut self) -> Completion {
        self.completion.tool_calls = self.calls.take();
        std::mem::take(&mut self.completion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_earlier_turns_are_marked_as_unsigned() {
        let mut body = json!({"messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "a"}, {"id": "b"}]},
            {"role": "tool", "tool_call_id": "a", "content": "1"},
        ]});
        sign(&mut body);
        for call in body["messages"][1]["tool_calls"].as_array().unwrap() {
            let signature = &call["extra_content"]["google"]["thought_signature"];
            assert_eq!(signature, UNSIGNED);
        }
        assert!(body["messages"][2].get("extra_content").is_none());
        let mut none = json!({});
        sign(&mut none);
        assert_eq!(none, json!({}));
    }
}
