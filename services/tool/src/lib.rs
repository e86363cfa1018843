//! Tool calls: MCP servers that a workspace configures, and a few tools built in.
//!
//! Hosts the processor `mcp-tool`. A request names a key of config type `mcp`, or one of the reserved names
//! in [`engine`]. A server is at an address, or a program that the settings list. Sessions with MCP servers are kept and used again. Addresses, tokens and what a server
//! says beyond its own result never reach a client.

pub mod engine;
mod error;
mod handlers;
mod mcp;
mod options;
mod processors;
mod programs;
mod wikipedia;

pub use error::ToolError;
pub use options::Options;
pub use processors::processors;
pub use programs::Programs;
