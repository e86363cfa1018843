//! The trail of turns: a line of JSON for each turn, and for each call of a model that the service makes itself. It names who asked
//! what of whom and what that cost, and never what was said. A line that cannot be written fails nothing.

use std::fs::{OpenOptions, create_dir_all};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tg_mesh::leased_store::off_runtime;
use tg_mesh::{Cx, OpenError, clock};
use tg_schemas::operations::{TurnResult, Usage};
use tg_schemas::{Error, ErrorCode};
use uuid::Uuid;

/// What the names of files begin with; the day follows.
const FILE: &str = "audit.jsonl.";
/// Characters of a date.
const DAY: usize = 10;

/// See the module.
pub(crate) struct Trail(PathBuf);

/// Who asked, and what caused it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Who {
    pub(crate) surface: &'static str,
    pub(crate) agent: String,
    pub(crate) user: String,
    pub(crate) session: Option<String>,
    pub(crate) depth: i64,
    pub(crate) parent: String,
}

/// A call of a model that the service made itself.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelCall {
    pub(crate) surface: &'static str,
    pub(crate) model: String,
    pub(crate) is_done: bool,
    pub(crate) usage: Usage,
    pub(crate) usd: Option<f64>,
}

/// Something, or `null` for an empty text.
fn named(text: &str) -> Value {
    match text {
        "" => Value::Null,
        text => text.into(),
    }
}

/// Id of the request as its client knows it. The client may have chosen it: each line has our own id of the request, too.
fn request(cx: &Cx) -> String {
    cx.request().unwrap_or(&cx.id).to_owned()
}

/// A line for each call of a model.
fn called(cx: &Cx, who: &Who, calls: &[ModelCall]) -> Vec<Value> {
    let line = |call: &ModelCall| {
        json!({
            "event": "llm.call", "request_id": Uuid::new_v4().to_string(), "id": cx.id.to_string(),
            "parent_request_id": request(cx), "caller_depth": who.depth + 1,
            "workspace": cx.workspace(), "user_id": named(&who.user), "surface": call.surface,
            "agent": who.agent, "session_id": who.session, "model": named(&call.model),
            "status": if call.is_done { "ok" } else { "error" },
            "input_tokens": call.usage.input, "output_tokens": call.usage.output,
            "cache_read": call.usage.cache_read, "cache_write": call.usage.cache_write,
            "total_tokens": call.usage.total, "cost_usd": call.usd,
        })
    };
    calls.iter().map(line).collect()
}

impl Trail {
    /// Below a directory.
    pub(crate) fn below(data: &Path) -> Self {
        Self(data.join("audit"))
    }

    /// Writes down how a turn ended, after the calls that were made for it.
    pub(crate) async fn turn(
        &self,
        cx: &Cx,
        who: &Who,
        calls: &[ModelCall],
        ended: Result<&TurnResult, &str>,
        milliseconds: i64,
    ) {
        let mut fields = called(cx, who, calls);
        let turn = ended.ok().cloned().unwrap_or_default();
        fields.push(json!({
            "event": "agent.turn", "request_id": request(cx), "id": cx.id.to_string(), "parent_request_id": named(&who.parent),
            "caller_depth": who.depth, "workspace": cx.workspace(), "user_id": named(&who.user),
            "surface": who.surface, "agent": who.agent,
            "session_id": turn.session_id.as_ref().or(who.session.as_ref()),
            "model": named(&turn.model), "status": if ended.is_ok() { "ok" } else { "error" },
            "error_code": ended.err(), "sub_calls": turn.cost.sub_calls,
            "input_tokens": turn.usage.input, "output_tokens": turn.usage.output,
            "cache_read": turn.usage.cache_read, "cache_write": turn.usage.cache_write,
            "total_tokens": turn.usage.total, "cost_eur": turn.cost.eur, "cost_usd": turn.cost.usd,
            "cost_source": named(&turn.cost.source), "duration_ms": milliseconds,
        }));
        self.write(fields).await;
    }

    /// Writes down calls that were made for no turn, or after it.
    pub(crate) async fn calls(&self, cx: &Cx, who: &Who, calls: &[ModelCall]) {
        if !calls.is_empty() {
            self.write(called(cx, who, calls)).await;
        }
    }

    async fn write(&self, fields: Vec<Value>) {
        let now = clock::rfc3339_of(clock::millis());
        let lines: String = fields
            .into_iter()
            .map(|fields| {
                let line =
                    json!({"timestamp": now, "level": "INFO", "target": "audit", "fields": fields});
                format!("{line}\n")
            })
            .collect();
        let day: String = now.chars().take(DAY).collect();
        let (directory, file) = (self.0.clone(), self.0.join(format!("{FILE}{day}")));
        let written = off_runtime(move || append(&directory, &file, &lines)).await;
        if written.is_err() {
            tracing::warn!("the trail of turns cannot be written");
        }
    }
}

/// Adds lines to a file, in one write.
fn append(directory: &Path, file: &Path, lines: &str) -> Result<(), OpenError> {
    let done = create_dir_all(directory).and_then(|()| {
        let mut file = OpenOptions::new().create(true).append(true).open(file)?;
        file.write_all(lines.as_bytes())
    });
    done.map_err(|error| Error::new(ErrorCode::Storage, error.to_string()).into())
}
