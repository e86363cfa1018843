//! What requests of all APIs have in common, as `chat-completion` reads it.

use serde_json::Value;
use tg_schemas::Error;

use crate::engine::translate::fields::fault;
use crate::engine::translate::{Body, Fields};

/// The model, which every API requires.
pub(super) fn model(fields: &Fields<'_>) -> Result<String, Error> {
    let model = fields.required_text("model")?;
    match model.is_empty() {
        true => Err(fault("model", "is required")),
        false => Ok(model),
    }
}

/// The beginning of a question.
pub(super) fn begun(model: &str, messages: Vec<Value>, tools: Vec<Value>, streaming: bool) -> Body {
    let mut own = Body::new();
    own.insert("model".into(), model.into());
    own.insert("messages".into(), messages.into());
    own.insert("tools".into(), tools.into());
    own.insert("streaming".into(), streaming.into());
    own
}

/// How the model chooses its words, as the request says it.
pub(super) fn add_sampling(fields: &Fields<'_>, own: &mut Body) {
    for key in ["temperature", "top_p"] {
        if let Some(value) = fields.value(key) {
            own.insert(key.into(), value.clone());
        }
    }
}

/// Most tokens of the answer, under the name that the API has for it.
pub(super) fn add_most(fields: &Fields<'_>, name: &str, own: &mut Body) {
    if let Some(most) = fields.value(name) {
        own.insert("max_tokens".into(), most.clone());
    }
}
