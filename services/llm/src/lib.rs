//! Text completion: one question to a language model, answered whole or in pieces.
//!
//! * [`ChatModel`] is what a provider can do; [`providers`] holds one file per dialect, and one for the extractive reader
//!   ([`tg_reader`]) that serves when no provider is configured.
//! * [`Options`] chooses the provider by settings and variables; keys are [`Secret`]s.
//! * [`Completer`] runs a request against a model: one deadline, cancel down to the provider's socket. Its [`Router`] chooses
//!   among backends, retries before the first piece, and leaves those that failed alone.
//! * [`processors`] are the hosted processors: `text-completion`, `text-completion-rag`, and `image-to-text`, which has a
//!   model describe a [`Picture`].
//!
//! The crate never shows a provider's body or key to anybody, and its address only to those who run the system: in logs,
//! and to the doctor where everybody who asks does.

mod completer;
pub mod engine;
mod error;
mod handlers;
mod model;
mod options;
mod picture;
mod processors;
mod provider_client;
pub mod providers;
mod routing;
mod services;
mod traced;

pub use completer::Completer;
pub use error::LlmError;
pub use model::{ChatEvent, ChatModel, ChatRequest, ChatStream, Completion, Dialog, Format};
pub use options::{Backends, Options, ProviderKind, Variables};
pub use picture::Picture;
pub use processors::processors;
pub use routing::{Router, Rules};
pub use tg_provider_http::{Credentials, Secret};
