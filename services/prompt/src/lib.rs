//! Prompts: templates from the configuration, rendered with a question's values, sent to the model,
//! and the reply brought into the shape the template promises.
//!
//! * [`engine::template`] renders templates: minijinja behind a small translation of the dialect that published
//!   prompt packs are written in. No loader, bounded work, no escaping.
//! * [`PromptSet`] is the prompts of one workspace as the configuration has them.
//! * [`engine::shape`] reads replies: text, one JSON value, or one JSON value a line, checked against a schema.
//! * [`processors`] are the two hosted processors, `prompt` and `prompt-rag`.
//!
//! The crate never talks to a provider; it asks the flow's text completion.

pub mod engine;
mod error;
mod handlers;
mod options;
mod processors;
mod ready;

pub use engine::prompts::{Kind, Prompt, PromptSet};
pub use error::PromptError;
pub use options::Options;
pub use processors::processors;
