//! Blueprints, flow lifecycle and put-aside records.
//!
//! * [`engine`]: blueprints checked and resolved, starts planned, what a stop may take away. Pure.
//! * `service`: start-flow and stop-flow, each finished after a crash at any point; put-aside records and
//!   their retries; the operators' questions.
//! * `store`: epochs, progress of stops, put-aside records, in one SQLite file.
//! * `config`: what is asked of the config service, which keeps flow records and processor rows.
//! * `handler`: the doors.
//!
//! The only service that declares and removes a flow's names. It never reads a message's body.

mod config;
pub mod engine;
mod faults;
mod handler;
mod processor;
mod reaped;
mod reply;
mod service;
mod settings;
mod store;

pub use processor::{PROCESSOR, processors, processors_with};
pub use settings::{FlowSettings, Quota, Quotas};
