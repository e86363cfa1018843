//! Key/type/value configuration per workspace, with change notices.
//!
//! * `engine`: the rows in memory, what reads answer, what a write changes and whom it tells. Pure.
//! * `store`: the rows on disk, one SQLite file.
//! * `service`: reads from memory; writes to disk, then memory, then notice, one at a time.
//! * `handler`: the two doors, `request:tg:config` and `request:tg:config:<workspace>`.
//! * `announce`: tells the version again at each start and reconnect, so that a lost notice heals.
//! * [`bootstrap`]: seeds a fresh system.
//!
//! Only this service touches its file. It interprets no value except the workspace registry's.

mod announce;
pub mod bootstrap;
mod engine;
mod handler;
mod processor;
mod reply;
mod service;
mod store;

pub use bootstrap::{Seed, bootstrap};
pub use processor::{PROCESSOR, processors};
