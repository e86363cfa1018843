//! OpenAI chat completions, the dialect most servers speak (vLLM, LM Studio, llama.cpp, OpenRouter …).

use async_trait::async_trait;
use reqwest::RequestBuilder;
use serde::Deserialize;
use serde_json::{Value, json};
use tg_provider_http::{NoClient, Secret};
use tg_schemas::msg::ModelInfo;

use super::chats::{Chats, messages};
use super::failure;
use super::reading::{self, Dialect, Said};
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
        Ok(Self {
            http: Chats::new(base_url)?,
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
            .chat(model, request.temperature, |temperature| {
                let builder = self.signed(self.http.post(&url));
                (builder, body(request, model, temperature))
            })
            .await?;
        if request.streaming {
            return Ok(reading::events(response, Answer::new(model)));
        }
        let whole: Whole = response.json().await?;
        let mut answer = Answer::new(model);
        answer.note(whole.model, whole.usage);
        let choice = whole
            .choices
            .into_iter()
            .next()
            .ok_or(LlmError::Malformed)?;
        answer.finish(choice.finish_reason);
        let text = choice.message.content.unwrap_or_default();
        Ok(reading::at_once(text, answer.completion()))
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        let url = format!("{}/models", self.base_url);
        let listed: Listed = self.http.json(self.signed(self.http.get(&url))).await?;
        Ok(listed.models())
    }
}

fn body(request: &ChatRequest, model: &str, temperature: Option<f64>) -> Value {
    let mut body = json!({"model": model, "messages": messages(request)});
    if let Some(temperature) = temperature {
        body["temperature"] = json!(temperature);
    }
    if request.streaming {
        body["stream"] = json!(true);
        body["stream_options"] = json!({"include_usage": true});
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

#[derive(Deserialize)]
struct Whole {
    model: Option<String>,
    #[serde(default)]
    choices: Vec<WholeChoice>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct WholeChoice {
    #[serde(default)]
    message: Content,
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
struct Content {
    content: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    prompt_tokens: Option<i64>,
    completion_tokens: Option<i64>,
}

#[derive(Deserialize)]
struct Chunk {
    model: Option<String>,
    choices: Option<Vec<ChunkChoice>>,
    usage: Option<Usage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct ChunkChoice {
    #[serde(default)]
    delta: Content,
    finish_reason: Option<String>,
}

pub(super) struct Answer {
    completion: Completion,
    finished: bool,
}

impl Answer {
    pub(super) fn new(model: &str) -> Self {
        Self {
            completion: Completion::of(model),
            finished: false,
        }
    }

    fn note(&mut self, model: Option<String>, usage: Option<Usage>) {
        if let Some(model) = model.filter(|model| !model.is_empty()) {
            self.completion.model = model;
        }
        if let Some(usage) = usage {
            self.completion.in_token = usage.prompt_tokens;
            self.completion.out_token = usage.completion_tokens;
        }
    }

    fn finish(&mut self, reason: Option<String>) {
        if let Some(reason) = reason {
            self.finished = true;
            self.completion.truncated = reason == "length";
        }
    }
}

impl Dialect for Answer {
    fn read(&mut self, data: &str) -> Result<Said, LlmError> {
        if data.trim() == "[DONE]" {
            return Ok(Said::End);
        }
        let chunk: Chunk = serde_json::from_str(data).map_err(|_| LlmError::Malformed)?;
        if let Some(error) = chunk.error {
            return Err(failure::in_stream(&error));
        }
        self.note(chunk.model, chunk.usage);
        let Some(choice) = chunk.choices.and_then(|choices| choices.into_iter().next()) else {
            return Ok(Said::Nothing);
        };
        self.finish(choice.finish_reason);
        Ok(choice.delta.content.map_or(Said::Nothing, Said::Piece))
    }

    fn complete(&self) -> bool {
        self.finished
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
        self.data.into_iter().map(Model::info).collect()
    }
}

#[derive(Deserialize)]
struct Model {
    id: String,
    name: Option<String>,
    owned_by: Option<String>,
    created: Option<i64>,
    description: Option<String>,
    context_length: Option<i64>,
    max_model_len: Option<i64>,
}

impl Model {
    fn info(self) -> ModelInfo {
        ModelInfo {
            id: self.id,
            name: self.name,
            owned_by: self.owned_by,
            created: self.created,
            description: self.description,
            context_length: self.context_length.or(self.max_model_len),
            ..ModelInfo::default()
        }
    }
}
