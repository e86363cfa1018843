//! What the gateway hosts: nothing that a queue reaches, as its handlers serve endpoints ([`crate::serve`]), which also has other
//! gateways ask for streams; only the wish to see flow records, workspaces, prices of models, agents and revocations.

use tg_mesh::{Mesh, Processor};
use tg_schemas::processors::api_gateway;

/// The processors of this service.
pub fn processors(_: &Mesh) -> Vec<Processor> {
    vec![Processor::new(api_gateway::PROCESSOR).watches(&[
        "flow",
        crate::auth::REVOCATION.1,
        crate::engine::compat::cost::PRICES,
        crate::engine::compat::cost::MODELS,
        crate::engine::compat::agents::ROWS,
    ])]
}
