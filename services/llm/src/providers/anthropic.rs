//! Anthropic messages. A wanted schema becomes a forced tool call, streamed or not.

use async_trait::async_trait;
use reqwest::RequestBuilder;
use serde::Deserialize;
use serde_json::{Value, json};
use tg_provider_http::{NoClient, Secret};
use tg_schemas::msg::ModelInfo;

use super::calls::Calls;
use super::chats::Chats;
use super::dialogs;
use super::failure;
use super::reading::{self, Dialect, Said};
use crate::error::LlmError;
use crate::model::{ChatModel, ChatRequest, ChatStream, Completion, Dialog};

const VERSION: &str = "2023-06-01";
/// The dialect demands a limit; this one every current model allows.
const MAX_TOKENS: i64 = 8192;
const TOOL: &str = "answer";
/// Why an answer ended that is kept back.
const REFUSED: &str = "refusal";

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
        let dialog = request.dialog.as_deref();
        if request.format.object().is_some() && dialog.is_some_and(Dialog::offers_tools) {
            // The forced call that a schema becomes leaves no choice of another tool.
            return Err(LlmError::SchemaAndTools);
        }
        let model = request.model.as_deref().unwrap_or(&self.model);
        let url = format!("{}/v1/messages", self.base_url);
        let response = self
            .http
            .chat(model, request, || {
                let builder = self.signed(self.http.post(&url));
                (builder, body(request, model))
            })
            .await?;
        if request.streaming {
            return Ok(reading::events(response, Answer::new(model).of(request)));
        }
        let body: Value = response.json().await?;
        if let Some(error) = failure::told(&body) {
            return Err(error);
        }
        let whole = Message::deserialize(body).map_err(|_| LlmError::Malformed)?;
        if whole.is_withheld() {
            return Err(LlmError::Withheld);
        }
        let mut answer = Answer::new(model).of(request);
        let thoughts = whole
            .content
            .iter()
            .filter_map(|block| block.thinking.clone());
        let thought = thoughts.collect();
        let text = match &request.dialog {
            None => whole.content.iter().map(Block::text).collect(),
            Some(_) => answer.whole(whole.content),
        };
        answer.note(whole.model, whole.usage);
        answer.stop(whole.stop_reason.as_deref());
        Ok(reading::at_once(thought, text, answer.completion()))
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        let url = format!("{}/v1/models?limit=1000", self.base_url);
        let listed: Listed = self.http.json(self.signed(self.http.get(&url))).await?;
        Ok(listed.models())
    }
}

/// The user's text, after the picture that it is about.
fn content(request: &ChatRequest) -> Value {
    let Some(picture) = &request.picture else {
        return json!(request.prompt);
    };
    json!([dialogs::image(picture), {"type": "text", "text": request.prompt}])
}

fn body(request: &ChatRequest, model: &str) -> Value {
    let mut body = json!({
        "model": model,
        "max_tokens": request.max_tokens.unwrap_or(MAX_TOKENS),
        "messages": [{"role": "user", "content": content(request)}],
    });
    if !request.system.is_empty() {
        body["system"] = json!(request.system);
    }
    if let Some(temperature) = request.temperature {
        body["temperature"] = json!(temperature.clamp(0.0, 1.0));
    }
    if request.streaming {
        body["stream"] = json!(true);
    }
    if let Some(dialog) = &request.dialog {
        dialogs::anthropic(dialog, &mut body);
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
    usage: Option<Value>,
}

impl Message {
    /// The model refused, and says nothing else.
    fn is_withheld(&self) -> bool {
        let says = |block: &Block| !block.text().is_empty();
        self.stop_reason.as_deref() == Some(REFUSED) && !self.content.iter().any(says)
    }
}

#[derive(Deserialize)]
struct Block {
    text: Option<String>,
    /// What the model thinks.
    thinking: Option<String>,
    input: Option<Value>,
    id: Option<String>,
    name: Option<String>,
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
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Message,
    },
    ContentBlockStart {
        #[serde(default)]
        index: usize,
        content_block: Block,
    },
    ContentBlockDelta {
        #[serde(default)]
        index: usize,
        delta: Delta,
    },
    MessageDelta {
        #[serde(default)]
        delta: Stop,
        usage: Option<Value>,
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
    thinking: Option<String>,
    partial_json: Option<String>,
}

#[derive(Deserialize, Default)]
struct Stop {
    stop_reason: Option<String>,
}

pub(super) struct Answer {
    completion: Completion,
    /// Of a dialog: the tools called. Otherwise a tool is how JSON is had, and what it is given is the answer.
    calls: Option<Calls>,
    /// Some text came.
    spoke: bool,
    /// The model refused.
    refused: bool,
}

impl Answer {
    pub(super) fn new(model: &str) -> Self {
        Self {
            completion: Completion::of(model),
            calls: None,
            spoke: false,
            refused: false,
        }
    }

    /// As a request wants it read.
    pub(super) fn of(mut self, request: &ChatRequest) -> Self {
        let has_tools = |dialog: &Dialog| !dialog.tools.is_empty();
        let is_dialog = request.dialog.as_deref().is_some_and(has_tools);
        self.calls = (is_dialog && request.format.object().is_none()).then(Calls::default);
        self
    }

    /// The text of an answer that came whole; tools that it calls are noted.
    fn whole(&mut self, blocks: Vec<Block>) -> String {
        let mut text = String::new();
        for (index, block) in blocks.into_iter().enumerate() {
            match (&mut self.calls, block.name.as_deref()) {
                (Some(calls), Some(name)) => {
                    let input = block.input.map(|input| input.to_string());
                    calls.begin(index, block.id.as_deref(), name);
                    calls.more(index, input.as_deref().unwrap_or_default());
                }
                _ => text += &block.text(),
            }
        }
        text
    }

    fn note(&mut self, model: Option<String>, usage: Option<Value>) {
        if let Some(model) = model {
            self.completion.named(&model);
        }
        self.completion.count(usage.as_ref());
    }

    fn stop(&mut self, reason: Option<&str>) {
        self.completion.truncated |= reason == Some("max_tokens");
        self.refused |= reason == Some(REFUSED);
    }
}

impl Dialect for Answer {
    fn read(&mut self, data: &str) -> Result<Said, LlmError> {
        match serde_json::from_slice(data.as_bytes()).map_err(|_| LlmError::Malformed)? {
            Event::MessageStart { message } => self.note(message.model, message.usage),
            Event::ContentBlockStart {
                index,
                content_block,
            } => {
                if let (Some(calls), Some(name)) = (&mut self.calls, &content_block.name) {
                    calls.begin(index, content_block.id.as_deref(), name);
                }
            }
            Event::ContentBlockDelta { index, delta } => {
                if let (Some(calls), Some(json)) = (&mut self.calls, &delta.partial_json) {
                    calls.more(index, json);
                    return Ok(Said::Nothing);
                }
                if let Some(thought) = delta.thinking {
                    return Ok(Said::Thinking(thought, String::new()));
                }
                let said = delta.text.or(delta.partial_json);
                self.spoke |= said.as_ref().is_some_and(|said| !said.is_empty());
                return Ok(said.map_or(Said::Nothing, Said::Piece));
            }
            Event::MessageDelta { delta, usage } => {
                self.note(None, usage);
                self.stop(delta.stop_reason.as_deref());
            }
            Event::MessageStop if self.refused && !self.spoke => return Err(LlmError::Withheld),
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
        if let Some(calls) = &mut self.calls {
            self.completion.tool_calls = calls.take();
        }
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
