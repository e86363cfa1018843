//! Handlers: one file per processor.

mod mcp_tool;

pub(crate) use mcp_tool::ToolCalls;
