//! One attached instance of a processor, and where it runs.

use std::sync::Arc;

use tg_bus::Consumer;

use crate::instance_state::InstanceState;

/// Where an instance runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum At {
    System,
    Workspace(String),
    Flow(String, String),
}

/// What is attached at one place.
pub(crate) struct Instance {
    pub(crate) slot: Arc<InstanceState>,
    pub(crate) consumers: Vec<Box<dyn Consumer>>,
    pub(crate) row: Arc<str>,
}
