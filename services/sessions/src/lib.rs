//! Agents over time: who they are, their sessions with users, and the turns of these.
//!
//! * [`engine`]: what files say of agents, what requests may say, what an agent reads of a session. Pure.
//! * [`store`]: sessions and messages, with one file for each workspace.
//! * [`processors`] makes the one hosted processor, `sessions`. One process at a time holds the store.
//!
//! A turn is written down before the flow's agent is asked, and its answer before anybody reads it. The turns of a session
//! follow one another. The crate never talks to a model: it asks the agent of a flow.

mod agents_dir;
pub mod engine;
mod error;
mod handlers;
mod options;
mod pasts;
mod processors;
pub mod store;
#[cfg(test)]
mod tests;
mod trail;
mod turns;

pub use error::{AgentFilesError, SessionsError};
pub use options::Options;
pub use processors::processors;
