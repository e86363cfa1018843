//! Why a run ends by what failed in it.

use tg_mesh::Cx;
use tg_schemas::Error;

use crate::engine::decision::Ending;
use crate::error::{AgentError, Stop};

/// The error that the run ends with. A cancel or a passed deadline is the reason, and not what failed because of it.
pub(super) fn ending(cx: &Cx, error: &Error) -> Stop {
    Stop::End(if cx.cancel.is_cancelled() {
        Ending::from_error(&AgentError::Cancelled.into())
    } else if cx.deadline.passed() {
        Ending::from_error(&AgentError::Timeout.into())
    } else {
        Ending::from_error(error)
    })
}
