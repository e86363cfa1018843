//! Blueprints, flow lifecycle and dead letters.
//!
//! * [`engine`]: blueprints checked and resolved, starts planned, what a stop may take away. Pure.
//! * `operations`: start-flow and stop-flow, each finished after a crash at any point; dead letters and
//!   their retries; the operators' questions.
//! * `store`: epochs, progress of stops, dead letters: traits, the adapter over SQLite, and the suite that adapters
//!   pass.
//! * `config`: what is asked of the config service, which keeps flow records and processor rows.
//! * `handlers`: the endpoints, and the queue of dead letters.
//!
//! The only service that declares and removes a flow's names. It never reads a message's body.

mod config;
pub mod engine;
mod error;
mod handlers;
mod operations;
mod options;
mod processors;
mod reaped;
mod store;

pub use options::{Options, Quota, Quotas, Waits};
pub use processors::{PROCESSOR, processors};
pub use store::ONE_WORKSPACE;
