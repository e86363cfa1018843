//! Anthropic messages. A wanted schema becomes a forced tool call, streamed or not.

use async_trait::async_trait;
use reqwest::RequestBuilder;
use serde::Deserialize;
use serde_json::{Value, json};
use tg_provider_http::{NoClient, Secret};
use tg_schemas::msg::ModelInfo;

use super::chats::Chats;
use super::failure;
use super::reading::{self, Dialect, Said};
use crate::error::LlmError;
use crate::model::{ChatModel, ChatRequest, ChatStream, Completion};

const VERSION: &str = "2023-06-01";
/// The dialect demands a limit; this one every current model allows.
const MAX_TOKENS: u32 = 8192;
const TOOL: &str = "answer";

/// The Anthropic API.
pub struct Anthropic {
    http: Chats,
    base_url: String,
    key: Secret,
    model: String,
}

impl Anthropic {
    /// The API at a base address without version.
    ///
    /// # Errors
    /// [`NoClient`] if TLS cannot be set up.
    pub fn new(base_url: &str, key: Secret, model: &str) -> Result<Self, NoClient> {
        Ok(Self {
            http: Chats::new(base_url)?,
            base_url: base_url.to_owned(),
            key,
            model: model.to_owned(),
        })
    }

    fn signed(&self, request: RequestBuilder) -> RequestBuilder {
        request
            .header("x-api-key", self.key.expose())
            .header("anthropic-version", VERSION)
    }
}

#[async_trait]
impl ChatModel for Anthropic {
    fn provider(&self) -> &'static str {
        "anthropic"
    }

    fn default_model(&self) -> &str {
        &self.model
    }

    async fn chat(&self, request: &ChatRequest) -> Result<ChatStream, LlmError> {
        let model = request.model.as_deref().unwrap_or(&self.model);
        let url = format!("{}/v1/messages", self.base_url);
        let response = self
            .http
            .chat(model, request.temperature, |temperature| {
                let builder = self.signed(self.http.post(&url));
                (builder, body(request, model, temperature))
            })
            .await?;
        if request.streaming {
            return Ok(reading::events(response, Answer::new(model)));
        }
        let whole: Message = response.json().await?;
        let mut answer = Answer::new(model);
        let text = whole.content.iter().map(Block::text).collect();
        answer.note(whole.model, whole.usage);
        answer.stop(whole.stop_reason.as_deref());
        Ok(reading::at_once(text, answer.completion()))
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        let url = format!("{}/v1/models?limit=1000", self.base_url);
        let listed: Listed = self.http.json(self.signed(self.http.get(&url))).await?;
        Ok(listed.models())
    }
}

fn body(request: &ChatRequest, model: &str, temperature: Option<f64>) -> Value {
    let mut body = json!({
        "model": model,
        "max_tokens": MAX_TOKENS,
        "messages": [{"role": "user", "content": request.prompt}],
    });
    if !request.system.is_empty() {
        body["system"] = json!(request.system);
    }
    if let Some(temperature) = temperature {
        body["temperature"] = json!(temperature.clamp(0.0, 1.0));
    }
    if request.streaming {
        body["stream"] = json!(true);
    }
    if let Some(schema) = request.format.object() {
        body["tools"] = json!([{
            "name": TOOL, "description": "Gives the answer.", "input_schema": schema,
        }]);
        body["tool_choice"] = json!({"type": "tool", "name": TOOL});
    }
    body
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Message {
    model: Option<String>,
    content: Vec<Block>,
    stop_reason: Option<String>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Block {
    text: Option<String>,
    input: Option<Value>,
}

impl Block {
    fn text(&self) -> String {
        match (&self.text, &self.input) {
            (Some(text), _) => text.clone(),
            (None, Some(input)) => input.to_string(),
            (None, None) => String::new(),
        }
    }
}

#[derive(Deserialize)]
struct Usage {
    input_tokens: Option<i64>,
    output_tokens: Option<i64>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Message,
    },
    ContentBlockDelta {
        delta: Delta,
    },
    MessageDelta {
        #[serde(default)]
        delta: Stop,
        usage: Option<Usage>,
    },
    MessageStop,
    Error {
        error: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Delta {
    text: Option<String>,
    partial_json: Option<String>,
}

#[derive(Deserialize, Default)]
struct Stop {
    stop_reason: Option<String>,
}

pub(super) struct Answer {
    completion: Completion,
}

impl Answer {
    pub(super) fn new(model: &str) -> Self {
        Self {
            completion: Completion::of(model),
        }
    }

    fn note(&mut self, model: Option<String>, usage: Option<Usage>) {
        if let Some(model) = model {
            self.completion.model = model;
        }
        if let Some(usage) = usage {
            self.completion.in_token = usage.input_tokens.or(self.completion.in_token);
            self.completion.out_token = usage.output_tokens.or(self.completion.out_token);
        }
    }

    fn stop(&mut self, reason: Option<&str>) {
        self.completion.truncated |= reason == Some("max_tokens");
    }
}

impl Dialect for Answer {
    fn read(&mut self, data: &str) -> Result<Said, LlmError> {
        match serde_json::from_str(data).map_err(|_| LlmError::Malformed)? {
            Event::MessageStart { message } => self.note(message.model, message.usage),
            Event::ContentBlockDelta { delta } => {
                return Ok(delta
                    .text
                    .or(delta.partial_json)
                    .map_or(Said::Nothing, Said::Piece));
            }
            Event::MessageDelta { delta, usage } => {
                self.note(None, usage);
                self.stop(delta.stop_reason.as_deref());
            }
            Event::MessageStop => return Ok(Said::End),
            Event::Error { error } => return Err(failure::in_stream(&error)),
            Event::Other => {}
        }
        Ok(Said::Nothing)
    }

    fn complete(&self) -> bool {
        false
    }

    fn completion(&mut self) -> Completion {
        std::mem::take(&mut self.completion)
    }
}

#[derive(Deserialize)]
pub(super) struct Listed {
    #[serde(default)]
    data: Vec<Model>,
}

impl Listed {
    pub(super) fn models(self) -> Vec<ModelInfo> {
        let info = |model: Model| ModelInfo {
            id: model.id,
            name: model.display_name,
            owned_by: Some("anthropic".to_owned()),
            ..ModelInfo::default()
        };
        self.data.into_iter().map(info).collect()
    }
}

#[derive(Deserialize)]
struct Model {
    id: String,
    display_name: Option<String>,
}
