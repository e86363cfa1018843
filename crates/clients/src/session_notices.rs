//! What is said in a session beyond its turns: kept where sessions are.

use std::time::Duration;

use serde_json::Value;
use tg_mesh::Cx;
use tg_schemas::msg::{OperationResponse, SessionNotice};
use tg_schemas::processors::sessions::NOTICES;
use tg_schemas::{Error, ErrorCode, WorkspaceId};

use crate::caller::Caller;

/// How long the turns of the session may take that are in progress or wait before it.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// Field of the answer: the text that the session keeps.
pub const KEPT: &str = "text";

/// Adds a notice to its session, once its turns are over. A session that is not there keeps nothing, and neither does a system
/// without sessions. Whoever adds it again adds nothing. Returns the text that was kept; `None`: nothing was.
///
/// # Errors
/// How the question failed.
pub async fn keep(
    cx: &Cx,
    workspace: &WorkspaceId,
    notice: &SessionNotice,
) -> Result<Option<String>, Error> {
    let asked =
        Caller::<SessionNotice, OperationResponse>::within(cx, Ok(NOTICES.of_workspace(workspace)));
    let asked = asked.patient(TIMEOUT).known_as(notice.message_id.clone());
    match asked.last(notice).await {
        Err(error) if error.code() == ErrorCode::NobodyServes => Ok(None),
        answered => answered.map(|answer| {
            let kept = answer.data.get(KEPT).and_then(Value::as_str);
            kept.map(str::to_owned)
        }),
    }
}
