//! Handlers: both processors answer prompts, and share one.

mod measure;
mod prompt;

pub(crate) use measure::Measure;
pub(crate) use prompt::PromptHandler;
