//! Ollama's own chat dialect: one JSON object a line, context length settable.

use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tg_provider_http::NoClient;
use tg_schemas::msg::ModelInfo;

use super::calls::{CallDelta, Calls};
use super::chats::{Chats, messages};
use super::dialogs;
use super::failure;
use super::reading::{self, Dialect, Said};
use crate::error::LlmError;
use crate::model::{ChatModel, ChatRequest, ChatStream, Completion, Format};

/// An Ollama server.
pub struct Ollama {
    http: Chats,
    host: String,
    model: String,
    context: Option<u32>,
}

impl Ollama {
    /// A server at a base address. `context` overrides its context length, whose default silently cuts
    /// long histories.
    ///
    /// # Errors
    /// [`NoClient`] if TLS cannot be set up.
    pub fn new(host: &str, model: &str, context: Option<u32>) -> Result<Self, NoClient> {
        Ok(Self {
            http: Chats::new(host)?,
            host: host.to_owned(),
            model: model.to_owned(),
            context,
        })
    }

    fn body(&self, request: &ChatRequest, model: &str) -> Value {
        let mut options = json!({});
        if let Some(temperature) = request.temperature {
            options["temperature"] = json!(temperature);
        }
        if let Some(most) = request.max_tokens {
            options["num_predict"] = json!(most);
        }
        if let Some(context) = self.context {
            options["num_ctx"] = json!(context);
        }
        let mut body = json!({
            "model": model, "messages": messages(request, user(request)), "stream": request.streaming, "options": options,
        });
        if let Some(dialog) = &request.dialog {
            dialogs::ollama(dialog, &mut body);
        }
        match &request.format {
            Format::Text => {}
            Format::Json => body["format"] = json!("json"),
            Format::Schema(schema) => body["format"] = Value::Object(schema.clone()),
        }
        body
    }
}

/// The user's text, with the picture that it is about beside it.
fn user(request: &ChatRequest) -> Value {
    let mut user = json!({"role": "user", "content": request.prompt});
    if let Some(picture) = &request.picture {
        user["images"] = json!([picture.base64]);
    }
    user
}

/// The models of the Ollama that answers at an address; `None` if none does within this time.
pub async fn models_at(host: &str, within: Duration) -> Option<Vec<String>> {
    let server = Ollama::new(host, "", None).ok()?;
    let listed = tokio::time::timeout(within, server.list_models()).await;
    let models = listed.ok()?.ok()?;
    Some(models.into_iter().map(|model| model.id).collect())
}

#[async_trait]
impl ChatModel for Ollama {
    fn provider(&self) -> &'static str {
        "ollama"
    }

    fn default_model(&self) -> &str {
        &self.model
    }

    async fn chat(&self, request: &ChatRequest) -> Result<ChatStream, LlmError> {
        let model = request.model.as_deref().unwrap_or(&self.model);
        let url = format!("{}/api/chat", self.host);
        let response = self
            .http
            .chat(model, request, || {
                let builder = self.http.post(&url);
                (builder, self.body(request, model))
            })
            .await?;
        let mut answer = Answer {
            completion: Completion::of(model),
            ..Answer::default()
        };
        if request.streaming {
            return Ok(reading::lines(response, answer));
        }
        let whole: Line = response.json().await?;
        if whole.message.is_none() && whole.error.is_none() {
            return Err(LlmError::Malformed);
        }
        let (thought, text) = answer.take(whole)?;
        Ok(reading::at_once(thought, text, answer.completion()))
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        let url = format!("{}/api/tags", self.host);
        let listed: Listed = self.http.json(self.http.get(&url)).await?;
        Ok(listed.models())
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Line {
    model: Option<String>,
    message: Option<Message>,
    done: bool,
    done_reason: Option<String>,
    prompt_eval_count: Value,
    eval_count: Value,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
    /// What the model thinks.
    thinking: Option<String>,
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Default)]
pub(super) struct Answer {
    completion: Completion,
    ended: bool,
    calls: Calls,
}

impl Answer {
    /// What the model thinks and what it answers.
    fn take(&mut self, line: Line) -> Result<(String, String), LlmError> {
        if let Some(error) = line.error {
            return Err(failure::in_stream(&error));
        }
        if let Some(model) = line.model {
            self.completion.named(&model);
        }
        if line.done {
            self.ended = true;
            let usage = json!({
                "prompt_eval_count": line.prompt_eval_count,
                "eval_count": line.eval_count,
            });
            self.completion.count(Some(&usage));
            self.completion.truncated = line.done_reason.as_deref() == Some("length");
        }
        let Some(message) = line.message else {
            return Ok(Default::default());
        };
        self.calls.add_whole(message.tool_calls);
        let (thought, text) = (message.thinking, message.content);
        Ok((thought.unwrap_or_default(), text.unwrap_or_default()))
    }
}

impl Dialect for Answer {
    fn read(&mut self, data: &str) -> Result<Said, LlmError> {
        if data.trim().is_empty() {
            return Ok(Said::Nothing);
        }
        let line: Line =
            serde_json::from_slice(data.as_bytes()).map_err(|_| LlmError::Malformed)?;
        let (thought, text) = self.take(line)?;
        Ok(match text.is_empty() && thought.is_empty() {
            true if self.ended => Said::End,
            _ => Said::Thinking(thought, text),
        })
    }

    fn complete(&self) -> bool {
        self.ended
    }

    fn completion(&mut self) -> Completion {
        self.completion.tool_calls = self.calls.take();
        std::mem::take(&mut self.completion)
    }
}

#[derive(Deserialize)]
pub(super) struct Listed {
    #[serde(default)]
    models: Vec<Model>,
}

impl Listed {
    pub(super) fn models(self) -> Vec<ModelInfo> {
        let info = |model: Model| ModelInfo {
            id: model.name.clone(),
            name: Some(model.name),
            family: model.details.family,
            parameter_size: model.details.parameter_size,
            quantization: model.details.quantization_level,
            format: model.details.format,
            ..ModelInfo::default()
        };
        self.models.into_iter().map(info).collect()
    }
}

#[derive(Deserialize)]
struct Model {
    name: String,
    #[serde(default)]
    details: Details,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Details {
    family: Option<String>,
    parameter_size: Option<String>,
    quantization_level: Option<String>,
    format: Option<String>,
}
