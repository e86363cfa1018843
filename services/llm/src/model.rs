//! What a language model is to the rest of the mesh: a request in, pieces and one completion out.
//! Holds no provider's vocabulary.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde_json::{Map, Value};
use tg_mesh::telemetry::Place;
use tg_schemas::limits::MODEL_NAME;
use tg_schemas::msg::{ChatTool, ChatToolCall, ChatTurn, ModelInfo, ModelService};
use tg_schemas::paging::object_length;

use crate::engine::tokens::{Counts, estimated, nanodollars};
use crate::error::LlmError;
use crate::picture::Picture;

/// The shape the answer is wanted in.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Format {
    /// Any text.
    #[default]
    Text,
    /// Some JSON.
    Json,
    /// JSON that follows a schema.
    Schema(Map<String, Value>),
}

impl Format {
    /// The schema, if it describes objects: providers enforce no other. The prompt has to describe any other.
    pub(crate) fn object(&self) -> Option<&Map<String, Value>> {
        let schema = match self {
            Self::Schema(schema) => schema,
            Self::Text | Self::Json => return None,
        };
        let kind = schema.get("type").and_then(Value::as_str);
        (kind == Some("object")).then_some(schema)
    }
}

/// One question to a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChatRequest {
    /// Instructions; may be empty.
    pub system: String,
    /// The user's text.
    pub prompt: String,
    /// The picture that the text is about.
    pub picture: Option<Picture>,
    /// Model to use instead of the provider's configured one.
    pub model: Option<String>,
    /// Sampling temperature; the provider's default when absent.
    pub temperature: Option<f64>,
    /// Most tokens of the answer; as many as the model writes when absent.
    pub max_tokens: Option<i64>,
    /// Wanted shape.
    pub format: Format,
    /// Whether the answer is wanted in pieces. A provider may still give it in one.
    pub streaming: bool,
    /// Models to be asked, in this order, where the first has no backend that answers.
    pub fallbacks: Vec<String>,
    /// The workspace that asks.
    pub workspace: String,
    /// The LLM service of the workspace that answers, instead of the provider.
    pub service: Option<ModelService>,
    /// A chat of several turns; then `system` and `prompt` are what of it a model without turns reads.
    pub dialog: Option<Arc<Dialog>>,
    /// Where in a trace it is asked.
    pub place: Place,
}

/// A chat with a model, with tools that it may call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dialog {
    /// The turns, oldest first. Their pictures are those of `pictures`.
    pub turns: Vec<ChatTurn>,
    /// Pictures, each with the place of its turn.
    pub pictures: Vec<(usize, Picture)>,
    /// Tools that the model may call.
    pub tools: Vec<ChatTool>,
    /// `auto`, `none`, `required` or the name of a tool; absent: as the model does.
    pub tool_choice: Option<String>,
    /// Share of the likeliest words that is chosen from.
    pub top_p: Option<f64>,
    /// Texts at which the answer ends.
    pub stop: Vec<String>,
}

impl Dialog {
    /// Whether the model may call a tool.
    pub(crate) fn offers_tools(&self) -> bool {
        !self.tools.is_empty() && self.tool_choice.as_deref() != Some("none")
    }

    /// The pictures of a turn.
    pub(crate) fn pictures_of(&self, turn: usize) -> impl Iterator<Item = &Picture> {
        let own = self.pictures.iter().filter(move |(at, _)| *at == turn);
        own.map(|(_, picture)| picture)
    }
}

impl ChatRequest {
    /// Whether the model has to read a picture.
    pub(crate) fn has_pictures(&self) -> bool {
        let chat = self.dialog.as_deref();
        self.picture.is_some() || chat.is_some_and(|chat| !chat.pictures.is_empty())
    }

    /// Characters that the model is sent.
    pub(crate) fn characters(&self) -> usize {
        let schema = match &self.format {
            Format::Schema(schema) => object_length(schema),
            Format::Text | Format::Json => 0,
        };
        let Some(dialog) = &self.dialog else {
            return self.system.chars().count() + self.prompt.chars().count() + schema;
        };
        let tool = |tool: &ChatTool| {
            let parameters = tool.parameters.as_ref().map_or(0, object_length);
            tool.name.len() + tool.description.chars().count() + parameters
        };
        let of = |turn: &ChatTurn| {
            let calls = turn.tool_calls.iter();
            let calls: usize = calls.map(|call| call.arguments.chars().count()).sum();
            turn.content.chars().count() + calls
        };
        let turns: usize = dialog.turns.iter().map(of).sum();
        turns + dialog.tools.iter().map(tool).sum::<usize>() + schema
    }
}

/// How a finished call went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// Model that answered, as the provider names it.
    pub model: String,
    /// Backend that answered, where there are several; empty: there are not.
    pub backend: String,
    /// How often a backend was asked for it; 0: nobody counted.
    pub attempts: u32,
    /// Input tokens, if the provider reports them.
    pub in_token: Option<i64>,
    /// Output tokens, if the provider reports them.
    pub out_token: Option<i64>,
    /// All token counts that it reports.
    pub counts: Counts,
    /// Cost in billionths of a dollar, if the provider reports it.
    pub nanodollars: Option<u64>,
    /// Characters of the answer, as far as they are counted.
    pub characters: usize,
    /// Whether the provider cut the answer at a length limit.
    pub truncated: bool,
    /// Tools that the model calls.
    pub tool_calls: Vec<ChatToolCall>,
}

impl Completion {
    /// Adds the token counts that a provider reports, in any spelling. Earlier counts stay where it reports none.
    pub(crate) fn count(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage else { return };
        self.counts = self.counts.then(Counts::read(usage));
        (self.in_token, self.out_token) = (self.counts.input, self.counts.output);
        self.nanodollars = nanodollars(usage).or(self.nanodollars);
    }

    /// Notes the model as its provider names it. The asked name stays where that one is empty or too long for a name.
    pub(crate) fn named(&mut self, model: &str) {
        if (1..=MODEL_NAME).contains(&model.len()) {
            model.clone_into(&mut self.model);
        }
    }

    /// Input tokens; if the provider reports none, as many as are likely.
    pub(crate) fn read(&self, likely: i64) -> i64 {
        reported(self.in_token).unwrap_or(likely)
    }

    /// Output tokens; if the provider reports none, an estimate by the characters of the answer.
    pub(crate) fn written(&self) -> i64 {
        reported(self.out_token).unwrap_or_else(|| estimated(self.characters))
    }

    /// Whether [`Self::written`] is an estimate.
    pub(crate) fn is_estimated(&self) -> bool {
        reported(self.out_token).is_none()
    }

    /// Cost in dollars, if the provider reports it.
    pub(crate) fn dollars(&self) -> Option<f64> {
        self.nanodollars.map(|nano| nano as f64 / 1e9)
    }

    /// How often a backend was asked for it, if that was counted.
    pub(crate) fn attempts(&self) -> Option<i64> {
        (self.attempts > 0).then(|| self.attempts.into())
    }

    /// Its backend, where there are several.
    pub(crate) fn backend(&self) -> Option<String> {
        Some(self.backend.clone()).filter(|name| !name.is_empty())
    }

    /// Nothing is known but who answers.
    pub(crate) fn of(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            ..Self::default()
        }
    }
}

/// Tokens that a provider reports. 0 is no report: every call reads some, and servers that do not count send it.
fn reported(tokens: Option<i64>) -> Option<i64> {
    tokens.filter(|tokens| *tokens > 0)
}

/// One event of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatEvent {
    /// The next piece of text, never empty.
    Delta(String),
    /// The next piece of what the model thinks before it answers, never empty. No part of the answer.
    Thinking(String),
    /// The end; nothing follows.
    Done(Completion),
}

/// Events of one answer: pieces, then exactly one [`ChatEvent::Done`], or an error that ends it.
/// Dropping the stream closes the provider's socket.
pub type ChatStream = BoxStream<'static, Result<ChatEvent, LlmError>>;

/// A language model behind some provider.
#[async_trait]
pub trait ChatModel: Send + Sync + 'static {
    /// Which provider this is; also a metric label.
    fn provider(&self) -> &'static str;

    /// Name of the model that answers when a request names none.
    fn default_model(&self) -> &str;

    /// Sends the request. Resolves when the provider has accepted it.
    ///
    /// # Errors
    /// What the provider refused, or that it cannot be reached.
    async fn chat(&self, request: &ChatRequest) -> Result<ChatStream, LlmError>;

    /// Lists what the provider offers.
    ///
    /// # Errors
    /// [`LlmError::Unsupported`] where the provider cannot say, else as for [`Self::chat`].
    async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError>;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tokens_that_a_provider_does_not_report_are_estimated() {
        for (in_token, out_token, expected, is_estimated) in [
            (Some(7), Some(3), (7, 3), false),
            (None, None, (90, 10), true),
            (Some(0), Some(0), (90, 10), true),
            (Some(7), None, (7, 10), true),
            (Some(0), Some(3), (90, 3), false),
        ] {
            let completion = Completion {
                in_token,
                out_token,
                characters: 40,
                ..Completion::default()
            };
            assert_eq!((completion.read(90), completion.written()), expected);
            assert_eq!(completion.is_estimated(), is_estimated);
        }
    }

    #[test]
    fn a_tool_counts_with_its_schema_as_json() {
        let schema = json!({"type": "object", "title": "\"ü\""});
        let tool = ChatTool {
            name: "add".to_owned(),
            description: "Adds.".to_owned(),
            parameters: schema.as_object().cloned(),
        };
        let request = ChatRequest {
            dialog: Some(Arc::new(Dialog {
                tools: vec![tool],
                ..Dialog::default()
            })),
            ..ChatRequest::default()
        };
        assert_eq!(request.characters(), 8 + schema.to_string().len());
    }
}
