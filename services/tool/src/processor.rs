//! The processor that this crate hosts.

use std::sync::Arc;

use tg_mesh::Processor;
use tg_schemas::Error;

use crate::handler::ToolCalls;
use crate::mcp::Servers;

/// Its id.
pub const TOOL: &str = "mcp-tool";

/// Calls in progress at once per flow.
const CONCURRENCY: usize = 256;

/// The tool service.
pub fn processors() -> Result<Vec<Processor>, Error> {
    let calls = Arc::new(ToolCalls::new(Servers::new()?));
    Ok(vec![
        Processor::new(TOOL)
            .serves("request", calls)
            .watches(&["mcp"])
            .concurrency(CONCURRENCY),
    ])
}
