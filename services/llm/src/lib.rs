//! Text completion: one question to a language model, answered whole or in pieces.
//!
//! * [`ChatModel`] is what a provider can do; [`providers`] holds one file per dialect and
//!   [`engine::builtin`] the extractive reader that serves when no provider is configured.
//! * [`Options`] chooses the provider by settings and variables; keys are [`Secret`]s.
//! * [`Completer`] runs a request against a model: retries before the first piece, one deadline, cancel
//!   down to the provider's socket.
//! * [`processors`] are the two hosted processors, `text-completion` and `text-completion-rag`.
//!
//! The crate never shows a provider's body or key to anybody, and its address only to those who run the system: in logs,
//! and to the doctor where everybody who asks does.

mod completer;
pub mod engine;
mod error;
mod handlers;
mod model;
mod options;
mod processors;
mod provider_client;
pub mod providers;

pub use completer::Completer;
pub use error::LlmError;
pub use model::{ChatEvent, ChatModel, ChatRequest, ChatStream, Completion, Format};
pub use options::{Options, ProviderKind, Variables};
pub use processors::processors;
pub use tg_provider_http::{Backoff, Secret};
