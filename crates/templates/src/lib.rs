//! The prompts of a workspace, without bus and model: whoever asks a model by a prompt renders it by this. Pure.
//!
//! * [`template`] renders templates: minijinja behind a small translation of the dialect that published prompt packs are
//!   written in. No loader, bounded work, no escaping.
//! * [`PromptSet`] is the prompts of one workspace as the configuration has them.
//! * [`Schema`] is what a JSON reply is to fit.

mod error;
mod prompts;
mod schema;
pub mod template;

pub use error::RenderError;
pub use prompts::{Kind, Prompt, PromptSet};
pub use schema::Schema;
