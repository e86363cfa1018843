//! The processor that this crate hosts.

use std::sync::Arc;

use tg_mesh::{Mesh, Processor};

use crate::handlers::ToolCalls;
use crate::options::Options;

/// Its id.
pub const TOOL: &str = "mcp-tool";

/// Calls in progress at once per flow.
const CONCURRENCY: usize = 256;

/// The tool service.
pub fn processors(_: &Mesh, options: Options) -> Vec<Processor> {
    let calls = Arc::new(ToolCalls::new(&options));
    vec![
        Processor::new(TOOL)
            .serves("request", calls)
            .watches(&["mcp"])
            .concurrency(CONCURRENCY),
    ]
}
