//! One attached instance of a processor, and where it runs.

use std::fmt;
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

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("the system"),
            Self::Workspace(workspace) => f.write_str(workspace),
            Self::Flow(workspace, flow) => write!(f, "{workspace}/{flow}"),
        }
    }
}

/// What is attached at one place.
pub(crate) struct Instance {
    pub(crate) slot: Arc<InstanceState>,
    pub(crate) consumers: Vec<Box<dyn Consumer>>,
    pub(crate) row: Arc<str>,
}
