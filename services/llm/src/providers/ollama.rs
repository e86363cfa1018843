//! Ollama's own chat dialect: one JSON object a line, context length settable.

use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tg_provider_http::NoClient;
use tg_schemas::msg::ModelInfo;

use super::chats::{Chats, messages};
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

    fn body(&self, request: &ChatRequest, model: &str, temperature: Option<f64>) -> Value {
        let mut options = json!({});
        if let Some(temperature) = temperature {
            options["temperature"] = json!(temperature);
        }
        if let Some(context) = self.context {
            options["num_ctx"] = json!(context);
        }
        let mut body = json!({
            "model": model, "messages": messages(request), "stream": request.streaming, "options": options,
        });
        match &request.format {
            Format::Text => {}
            Format::Json => body["format"] = json!("json"),
            Format::Schema(schema) => body["format"] = Value::Object(schema.clone()),
        }
        body
    }
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
            .chat(model, request.temperature, |temperature| {
                let builder = self.http.post(&url);
                (builder, self.body(request, model, temperature))
            })
            .await?;
        let mut answer = Answer {
            completion: Completion::of(model),
            ended: false,
        };
        if request.streaming {
            return Ok(reading::lines(response, answer));
        }
        let whole: Line = response.json().await?;
        let text = answer.take(whole)?.unwrap_or_default();
        Ok(reading::at_once(text, answer.completion()))
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
    prompt_eval_count: Option<i64>,
    eval_count: Option<i64>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
}

#[derive(Default)]
pub(super) struct Answer {
    completion: Completion,
    ended: bool,
}

impl Answer {
    fn take(&mut self, line: Line) -> Result<Option<String>, LlmError> {
        if let Some(error) = line.error {
            return Err(failure::in_stream(&error));
        }
        if let Some(model) = line.model {
            self.completion.model = model;
        }
        if line.done {
            self.ended = true;
            self.completion.in_token = line.prompt_eval_count;
            self.completion.out_token = line.eval_count;
            self.completion.truncated = line.done_reason.as_deref() == Some("length");
        }
        Ok(line.message.and_then(|message| message.content))
    }
}

impl Dialect for Answer {
    fn read(&mut self, data: &str) -> Result<Said, LlmError> {
        if data.trim().is_empty() {
            return Ok(Said::Nothing);
        }
        let line: Line = serde_json::from_str(data).map_err(|_| LlmError::Malformed)?;
        let text = self.take(line)?.filter(|text| !text.is_empty());
        Ok(match text {
            Some(text) => Said::Piece(text),
            None if self.ended => Said::End,
            None => Said::Nothing,
        })
    }

    fn complete(&self) -> bool {
        self.ended
    }

    fn completion(&mut self) -> Completion {
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
