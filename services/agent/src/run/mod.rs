//! Runs: a step record takes one step, a ledger row comes before whatever follows from it.
//!
//! `step` begins steps, at once or from their records · `execution` takes one step · `think` asks the model ·
//! `act` uses the tool · `recorded` is
//! whether it may say what it thinks · `leases` is what this process knows of steps under way · `agent` is what all share.

mod act;
pub(crate) mod agent;
pub(crate) mod execution;
pub(crate) mod leases;
pub(crate) mod recorded;
pub(crate) mod step;
mod think;
mod titles;
mod tools;

pub use agent::Agent;
pub(crate) use agent::STORE;
pub use tools::WATCHED;

#[cfg(test)]
mod tests;
