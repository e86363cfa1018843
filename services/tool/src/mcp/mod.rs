//! MCP servers of the workspaces. Only `session`, `listing`, `messages` and `content` know the MCP library.

mod content;
#[cfg(test)]
mod fuzz;
mod listing;
mod messages;
mod pool;
mod process;
mod row;
mod session;

pub(crate) use pool::Servers;
pub(crate) use row::{Server, USER_TOKENS};
