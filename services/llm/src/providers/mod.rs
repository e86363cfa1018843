//! Providers of models: one file per wire dialect over one small HTTP layer.

mod anthropic;
mod chats;
mod dialogs;
mod failure;
#[cfg(test)]
mod fuzz;
mod ollama;
mod openai;
mod reading;

pub use anthropic::Anthropic;
pub use ollama::{Ollama, models_at};
pub use openai::OpenAi;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod thinking_tests;
