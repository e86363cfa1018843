//! The processor that this crate hosts.

use std::sync::Arc;

use tg_mesh::Processor;

use crate::handler::ToolCalls;

/// Its id.
pub const TOOL: &str = "mcp-tool";

/// Calls in progress at once per flow.
const CONCURRENCY: usize = 256;

/// The tool service.
pub fn processors() -> Vec<Processor> {
    let calls = Arc::new(ToolCalls::default());
    vec![
        Processor::new(TOOL)
            .serves("request", calls)
            .watches(&["mcp"])
            .concurrency(CONCURRENCY),
    ]
}
