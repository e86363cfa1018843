//! Tool calls: MCP and built-in tools.
