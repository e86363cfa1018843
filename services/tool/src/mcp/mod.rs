//! MCP servers of the workspaces. Only `session` knows the MCP library.

#[cfg(test)]
mod fuzz;
mod pool;
mod row;
mod session;

pub(crate) use pool::Servers;
pub(crate) use row::Server;
