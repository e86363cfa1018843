//! Where retractions go.

use tg_schemas::msg::RETRACT;
use tg_schemas::{Class, Error, FlowId, Topic};

use super::workspace;

/// Topic of a flow's retractions, by the key of its workspace.
pub(crate) fn topic(key: &str, flow: &str) -> Result<Topic, Error> {
    let flow = FlowId::new(flow)?;
    Ok(Topic::flow(
        Class::Flow,
        RETRACT,
        &workspace::id(key)?,
        &flow,
    ))
}
