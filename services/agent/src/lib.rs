//! The agent: ReAct runs whose steps are records on a durable queue, whose decisions are committed before
//! anything follows from them, and whose trace is a graph.
//!
//! Hosts the processor `agent-manager`: questions on its `request` spec, steps on the flow's own
//! `agent-step` topic. [`engine`] holds the logic with plain values, [`store`] the ledger, [`kinds`] what
//! each kind of tool does, [`run`] how a step is taken.
//!
//! It never asks a model or a store itself, only other services by their queues, and never believes what a
//! client says of sessions.

pub mod engine;
mod error;
mod handlers;
pub mod kinds;
mod options;
mod prices;
mod processors;
mod programs;
pub mod run;
pub mod sessions;
pub mod store;

pub use error::AgentError;
pub use options::Options;
pub use processors::processors;
pub use programs::CliAgents;
