//! OpenAI chat completions, the dialect most servers speak (vLLM, LM Studio, llama.cpp, OpenRouter …).

use async_trait::async_trait;
use reqwest::RequestBuilder;
use serde::Deserialize;
use serde_json::{Value, json};
use tg_provider_http::{NoClient, Secret};
use tg_schemas::msg::ModelInfo;

use super::chats::{Chats, messages};
use super::dialogs::{self, CallDelta, Calls};
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
            .chat(model, request, |temperature| {
                let builder = self.signed(self.http.post(&url));
                let mut body = body(request, model, temperature);
                if self.base_url.contains(TELLS_COST) {
                    body["usage"] = json!({"include": true});
                }
                (builder, body)
            })
            .await?;
        if request.streaming {
            return Ok(reading::events(response, Answer::new(model)));
        }
        let whole: Whole = response.json().await?;
        let mut answer = Answer::new(model);
        answer.note(whole.model, whole.usage);
        let mut choice = whole
            .choices
            .into_iter()
            .next()
            .ok_or(LlmError::Malformed)?;
        answer.finish(choice.finish_reason);
        let (thought, text) = choice.message.apart();
        answer.calls.add(choice.message.tool_calls);
        Ok(reading::at_once(thought, text, answer.completion()))
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        let url = format!("{}/models", self.base_url);
        let listed: Listed = self.http.json(self.signed(self.http.get(&url))).await?;
        Ok(listed.models())
    }
}

/// Who says what a call cost, if it is asked to.
const TELLS_COST: &str = "://openrouter.ai/";

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

fn body(request: &ChatRequest, model: &str, temperature: Option<f64>) -> Value {
    let mut body = json!({"model": model, "messages": messages(request, user(request))});
    if let Some(temperature) = temperature {
        body["temperature"] = json!(temperature);
    }
    if request.streaming {
        body["stream"] = json!(true);
        body["stream_options"] = json!({"include_usage": true});
    }
    if let Some(dialog) = &request.dialog {
        body["messages"] = dialogs::openai_turns(dialog).into();
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

#[derive(Deserialize)]
struct Whole {
    model: Option<String>,
    #[serde(default)]
    choices: Vec<WholeChoice>,
    usage: Option<Value>,
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
    /// What the model thinks; by the server it is called so or so, or both.
    #[serde(default)]
    reasoning_content: Lenient,
    #[serde(default)]
    reasoning: Lenient,
    tool_calls: Option<Vec<CallDelta>>,
}

impl Content {
    /// What the model thinks and what it answers.
    fn apart(&mut self) -> (String, String) {
        let thought = self.reasoning_content.take();
        let thought = thought.or_else(|| self.reasoning.take());
        (
            thought.unwrap_or_default(),
            self.content.take().unwrap_or_default(),
        )
    }
}

/// A text, or something else that says nothing here.
#[derive(Deserialize, Default)]
struct Lenient(Value);

impl Lenient {
    fn take(&mut self) -> Option<String> {
        match std::mem::take(&mut self.0) {
            Value::String(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
struct Chunk {
    model: Option<String>,
    choices: Option<Vec<ChunkChoice>>,
    usage: Option<Value>,
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
    calls: Calls,
}

impl Answer {
    pub(super) fn new(model: &str) -> Self {
        Self {
            completion: Completion::of(model),
            finished: false,
            calls: Calls::default(),
        }
    }

    fn note(&mut self, model: Option<String>, usage: Option<Value>) {
        if let Some(model) = model.filter(|model| !model.is_empty()) {
            self.completion.model = model;
        }
        self.completion.count(usage.as_ref());
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
        let chunk: Chunk =
            serde_json::from_slice(data.as_bytes()).map_err(|_| LlmError::Malformed)?;
        if let Some(error) = chunk.error {
            return Err(failure::in_stream(&error));
        }
        self.note(chunk.model, chunk.usage);
        let Some(mut choice) = chunk.choices.and_then(|choices| choices.into_iter().next()) else {
            return Ok(Said::Nothing);
        };
        self.finish(choice.finish_reason);
        let (thought, text) = choice.delta.apart();
        self.calls.add(choice.delta.tool_calls);
        Ok(Said::Thinking(thought, text))
    }

    fn complete(&self) -> bool {
        self.finished
    }

    fn completion(&mut self) -> Completion {
        self.completion.tool_calls = self.calls.take();
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
