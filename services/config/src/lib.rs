//! Key/type/value configuration per workspace, with change notices.
//!
//! * `engine`: the rows in memory, what reads answer, what a write changes and whom it notifies. Pure.
//! * `store`: the rows where they last: a trait, the adapter over SQLite, and the suite that adapters pass.
//! * `cached`: reads from memory; writes to the store, then memory, then notice, one at a time.
//! * `handlers`: the two queues, `request:tg:config` and `request:tg:config:<workspace>`.
//! * `announce`: announces the version again at each start and reconnect, so that a lost notice heals.
//! * [`mod@bootstrap`]: seeds a fresh system.
//!
//! Only this service touches its store. It interprets no value except the workspace registry's.

mod announce;
pub mod bootstrap;
mod cached;
mod engine;
mod error;
mod handlers;
mod options;
mod processors;
mod store;

pub use bootstrap::{Seed, bootstrap};
pub use options::Options;
pub use processors::{PROCESSOR, processors};
pub use store::{ONE_WORKSPACE, workspace_key};
