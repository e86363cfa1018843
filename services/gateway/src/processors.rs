//! What the gateway hosts: no handlers, only the wish to see flow records and workspaces.

use tg_mesh::Processor;

/// The processors of this service.
pub fn processors() -> Vec<Processor> {
    vec![Processor::new("api-gateway").watches(&["flow"])]
}
