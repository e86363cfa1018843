//! Handlers: both processors answer prompts, and share one.

mod prompt;

pub(crate) use prompt::PromptHandler;
