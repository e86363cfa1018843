//! What the gateway hosts: nothing that a queue reaches, as its handlers serve endpoints ([`crate::serve`]); only the
//! wish to see flow records, workspaces and revocations.

use tg_mesh::{Mesh, Processor};

/// The processors of this service.
pub fn processors(_: &Mesh) -> Vec<Processor> {
    vec![Processor::new("api-gateway").watches(&["flow", crate::auth::REVOCATION.1])]
}
