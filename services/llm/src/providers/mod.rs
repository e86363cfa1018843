//! Providers of models: one file per wire dialect over one small HTTP layer.

mod anthropic;
mod chats;
mod dialogs;
mod events;
mod failure;
mod fields;
#[cfg(test)]
mod fuzz;
mod listed;
mod ollama;
mod openai;
mod reading;

pub use anthropic::Anthropic;
pub use ollama::{Ollama, models_at};
pub use openai::OpenAi;

#[cfg(test)]
mod odd_servers;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod thinking_tests;
