//! A workspace that was made, enabled or restored is open at this gateway before its caller is answered, so that the
//! caller's next question finds it; a flow that was started is known here; so is a collection that was made or
//! deleted, so that what the caller imports next is for the one that is there; and so are rows that were written.

use std::time::Duration;

use futures::StreamExt;
use serde_json::Value;
use tg_clients::config::shown;
use tg_mesh::ConfigView;
use tg_schemas::flow_record::{self, FlowRecord};

use crate::ask::{Part, Parts};
use crate::engine::translate::Body;

/// A change of configuration is known everywhere by then, or the reply goes out without.
const BOUND: Duration = Duration::from_secs(5);

/// What holds once this gateway knows of a change.
#[derive(Debug, Clone)]
pub(crate) enum Known {
    /// The workspace is open.
    Open(String),
    /// The flow of a workspace runs.
    Flow(String, String),
    /// The collection of a workspace is registered, or is not.
    Collection(String, String, bool),
    /// The configuration at the version that the reply tells.
    Written,
}

impl Known {
    /// What an operation brings about; `None` where nothing waits for it.
    pub(crate) fn by(service: &str, operation: &str, body: &Body, workspace: &str) -> Option<Self> {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let collection = |there| {
            let named = text(body.get("collection"))?;
            Some(Self::Collection(workspace.to_owned(), named, there))
        };
        match (service, operation) {
            ("iam", "create-workspace" | "enable-workspace" | "restore-workspace") => {
                let record = body.get("workspace_record")?;
                text(record.get("id")).map(Self::Open)
            }
            ("flow", "start-flow") => {
                let named = text(body.get("flow-id"))?;
                Some(Self::Flow(workspace.to_owned(), named))
            }
            ("collection-management", "update-collection") => collection(true),
            ("collection-management", "delete-collection") => collection(false),
            ("config", "put" | "delete") => Some(Self::Written),
            _ => None,
        }
    }

    fn holds(&self, config: &ConfigView, reply: &Body) -> bool {
        match self {
            Self::Open(workspace) => config.is_open(workspace),
            Self::Flow(workspace, id) => config
                .get(workspace, flow_record::KIND, id)
                .and_then(|row| FlowRecord::read(&row))
                .is_some_and(|record| record.runs()),
            Self::Collection(workspace, id, there) => {
                config.has_collection(workspace, id) == *there
            }
            // A foreign service tells no version of a write, and nothing waits.
            Self::Written => {
                let version = reply.get("version").and_then(Value::as_i64);
                config.version() >= version.unwrap_or_default()
            }
        }
    }
}

/// The parts of an answer; those of a success wait until the change is known here.
pub(crate) fn awaited(parts: Parts, config: ConfigView, known: Known) -> Parts {
    let hold = move |part: Part| {
        let (config, known) = (config.clone(), known.clone());
        async move {
            if let Part::Body {
                failed: false,
                body,
                ..
            } = &part
            {
                // Unknown after that: whoever asks is told so.
                let body = body.tree();
                shown(&config, BOUND, || known.holds(&config, &body)).await;
            }
            part
        }
    };
    parts.then(hold).boxed()
}
