//! A workspace that was made, enabled or restored is open at this gateway before its caller is told, so that the
//! caller's next question finds it.

use std::time::Duration;

use futures::StreamExt;
use serde_json::Value;
use tg_mesh::ConfigView;

use crate::ask::{Part, Parts};
use crate::auth;
use crate::engine::translate::Body;

/// A change of configuration is known everywhere by then, or the reply goes out without.
const BOUND: Duration = Duration::from_secs(5);

/// Whether an operation of iam opens a workspace.
pub(crate) fn opens(operation: &str) -> bool {
    matches!(
        operation,
        "create-workspace" | "enable-workspace" | "restore-workspace"
    )
}

/// The parts of an answer to such an operation; those of a success wait.
pub(crate) fn awaited(parts: Parts, config: ConfigView, body: &Body) -> Parts {
    let record = body.get("workspace_record");
    let id = record.and_then(|record| record.get("id"));
    let Some(id) = id.and_then(Value::as_str).map(str::to_owned) else {
        return parts;
    };
    let hold = move |part: Part| {
        let (config, id) = (config.clone(), id.clone());
        async move {
            if let Part::Body { failed: false, .. } = part {
                // Unknown after that: whoever asks is told so.
                let _ = tokio::time::timeout(BOUND, open(&config, &id)).await;
            }
            part
        }
    };
    parts.then(hold).boxed()
}

async fn open(config: &ConfigView, id: &str) {
    let mut changes = config.changes();
    while !auth::is_open(config, id) {
        if changes.changed().await.is_err() {
            return;
        }
    }
}
