//! Prompts: templates from the configuration, rendered with a question's values, sent to the model,
//! and the reply brought into the shape the template promises.
//!
//! * `tg_templates` renders templates, and `tg_clients::rendering` keeps those of a workspace ready.
//! * [`engine::shape`] reads replies: text, one JSON value, or one JSON value a line, checked against a schema.
//! * [`processors`] are the two hosted processors, `prompt` and `prompt-rag`.
//!
//! The crate never talks to a provider; it asks the flow's text completion.

pub mod engine;
mod error;
mod handlers;
mod options;
mod processors;

pub use error::PromptError;
pub use options::Options;
pub use processors::processors;
