//! Handlers: both processors complete texts, and share one.

mod text_completion;

pub(crate) use text_completion::TextCompletion;
