//! Runs as the ledger has them, as they are asked for and shown.

use tg_schemas::msg::{AgentRunsRequest, AgentTask, DetachedRun};
use tg_schemas::{Error, ErrorCode, WorkspaceKey};

use crate::store::{KnownRun, TaskRow, Whose};

pub(super) fn whose(ask: &AgentRunsRequest) -> Whose {
    match ask.workspace.is_empty() {
        true => Whose::User(ask.user.clone()),
        false => Whose::Workspace(ask.workspace.clone()),
    }
}

/// A run of somebody else looks like one that does not exist.
pub(super) fn unknown() -> Error {
    Error::new(ErrorCode::NotFound, "run not found")
}

pub(super) fn shown(run: KnownRun, now_ms: i64) -> DetachedRun {
    let state = match (run.over, run.cancelled) {
        (_, true) => "cancelled",
        (true, false) => "ended",
        (false, false) if run.caller.deadline_ms <= now_ms => "ended",
        (false, false) => "running",
    };
    let on_disconnect = match (run.caller.goes_on, run.caller.grace_ms / 1000) {
        (false, _) => "cancel".to_owned(),
        (true, 0) => "detach".to_owned(),
        (true, seconds) => format!("grace={seconds}"),
    };
    let key = WorkspaceKey::parse(&run.workspace);
    DetachedRun {
        id: run.caller.question,
        workspace: key.name().to_owned(),
        generation: key.generation(),
        flow: run.caller.flow,
        request_id: run.caller.request,
        started_ms: run.started_ms,
        user: run.caller.user,
        state: state.to_owned(),
        on_disconnect,
    }
}

pub(super) fn task_shown(task: TaskRow) -> AgentTask {
    AgentTask {
        workspace: WorkspaceKey::parse(&task.workspace).name().to_owned(),
        id: task.id,
        kind: task.kind,
        agent: task.agent,
        session: task.session,
        run: task.run,
        user: task.user,
        message: task.message,
        status: task.status.as_str().to_owned(),
        result: task.result,
        error: task.error,
        created_ms: task.created_ms,
        started_ms: task.started_ms,
        completed_ms: task.completed_ms,
    }
}
