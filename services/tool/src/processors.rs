//! The processor that this crate hosts.

use std::sync::Arc;

use tg_mesh::{Mesh, Processor};
use tg_schemas::processors::mcp_tool;

use crate::handlers::ToolCalls;
use crate::mcp::USER_TOKENS;
use crate::options::Options;

/// Calls in progress at once per flow.
const CONCURRENCY: usize = 256;

/// The tool service.
pub fn processors(mesh: &Mesh, options: Options) -> Vec<Processor> {
    let calls = Arc::new(ToolCalls::new(mesh, &options));
    vec![
        Processor::new(mcp_tool::PROCESSOR)
            .serves(mcp_tool::REQUEST, calls)
            .watches(&["mcp", USER_TOKENS])
            .concurrency(CONCURRENCY),
    ]
}
