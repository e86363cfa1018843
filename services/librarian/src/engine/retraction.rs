//! Where retractions go.

use tg_schemas::processors::librarian::RETRACT;
use tg_schemas::{Error, FlowId, Topic};

use super::workspace;

/// Topic of a flow's retractions, by the key of its workspace.
pub(crate) fn topic(key: &str, flow: &str) -> Result<Topic, Error> {
    let flow = FlowId::new(flow)?;
    Ok(RETRACT.of_flow(&workspace::id(key)?, &flow))
}
