//! What a language model is to the rest of the mesh: a request in, pieces and one completion out.
//! Holds no provider's vocabulary.

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde_json::{Map, Value};
use tg_schemas::msg::ModelInfo;

use crate::error::LlmError;

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
    /// The schema, where it is one of objects: only such can be enforced; of anything else the prompt has to tell.
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
    /// Model to use instead of the provider's configured one.
    pub model: Option<String>,
    /// Sampling temperature; the provider's default when absent.
    pub temperature: Option<f64>,
    /// Wanted shape.
    pub format: Format,
    /// Whether the answer is wanted in pieces. A provider may still give it in one.
    pub streaming: bool,
}

/// How a finished call went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// Model that answered, as the provider names it.
    pub model: String,
    /// Input tokens, when the provider says.
    pub in_token: Option<i64>,
    /// Output tokens, when the provider says.
    pub out_token: Option<i64>,
    /// Whether the provider cut the answer at a length limit.
    pub truncated: bool,
}

impl Completion {
    /// Nothing is known but who answers.
    pub(crate) fn of(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            ..Self::default()
        }
    }
}

/// One event of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatEvent {
    /// The next piece of text, never empty.
    Delta(String),
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
