//! Agents that are programs on this machine, as the settings list them: whoever may write a workspace's configuration starts none.
//!
//! `listed` is the setting · `process` a program that runs, in a process group of its own · `once` asks one that answers and ends ·
//! `output` reads what one says that stays, `session` speaks with it, `pool` keeps such sessions while they are used.
//!
//! Knows nothing of runs, tasks and budgets.

mod listed;
mod once;
mod output;
mod pool;
mod process;
mod session;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;

pub use listed::CliAgents;
pub(crate) use output::Reply;
pub(crate) use pool::{Asked, Key, Pool};
