//! The trail of turns: a line of JSON for each turn, and for each call of a model that it took. It names who asked
//! what of whom and what that cost, and never what was said. A line that cannot be written fails nothing.

use std::fs::{File, OpenOptions, create_dir_all, read_dir, remove_file};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tg_mesh::leased_store::off_runtime;
use tg_mesh::{Cx, OpenError, clock};
use tg_schemas::msg::AnswerCall;
use tg_schemas::operations::{FailureCode, TurnResult, Usage};
use tg_schemas::{Error, ErrorCode};
use uuid::Uuid;

/// What the names of files begin with; the day follows.
const FILE: &str = "audit.jsonl.";
/// Characters of a date.
const DAY: usize = 10;

/// Bytes that are written on the thread of a task to a file that is there, as a short commit is: the answer of a turn waits for its
/// line, and would wait for two threads more.
const SHORT: usize = 64 << 10;

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 3600 * 1000;

/// See the module.
pub(crate) struct Trail {
    directory: PathBuf,
    /// Days whose files are kept; 0: all.
    days: u32,
}

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

/// Billionths of a dollar in one.
const NANO: f64 = 1e9;

/// A call of a model, by the service itself or by the agent of the turn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelCall {
    pub(crate) surface: &'static str,
    pub(crate) model: String,
    pub(crate) is_done: bool,
    pub(crate) usage: Usage,
    pub(crate) usd: Option<f64>,
}

impl ModelCall {
    /// One of those that the agent made for a turn.
    pub(crate) fn of_agent(surface: &'static str, call: AnswerCall) -> Self {
        #[allow(clippy::cast_precision_loss, reason = "it is shown as dollars")]
        let usd = call.nanodollars.map(|nano| nano as f64 / NANO);
        Self {
            surface,
            model: call.model,
            is_done: !call.failed,
            usage: Usage {
                input: call.in_token,
                output: call.out_token,
                cache_read: call.cache_read,
                cache_write: call.cache_write,
                total: call.in_token.saturating_add(call.out_token),
            },
            usd,
        }
    }
}

/// Something, or `null` for an empty text.
fn named(text: &str) -> Value {
    match text {
        "" => Value::Null,
        text => text.into(),
    }
}

/// Who holds the credential that the request came with, and the id of the key that it is, never the key itself.
fn holder(cx: &Cx) -> (Value, Value) {
    let headers = &cx.headers;
    let user = headers.user_id.as_deref().unwrap_or_default();
    let known = headers.credential.as_deref().unwrap_or_default();
    (
        named(user),
        named(known.strip_prefix("key:").unwrap_or_default()),
    )
}

/// Id of the request as its client knows it. The client may have chosen it: each line has our own id of the request, too.
fn request(cx: &Cx) -> String {
    cx.request().unwrap_or(&cx.id).to_owned()
}

/// A line for each call of a model.
fn called(cx: &Cx, who: &Who, calls: &[ModelCall]) -> Vec<Value> {
    let (principal, token) = holder(cx);
    let line = |call: &ModelCall| {
        json!({
            "principal": principal, "token_id": token,
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
    /// Below a directory, of so many days; 0: of all.
    pub(crate) fn below(data: &Path, days: u32) -> Self {
        Self {
            directory: data.join("audit"),
            days,
        }
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
        let (principal, token) = holder(cx);
        let status = match ended {
            Ok(_) => "ok",
            Err(code) if code == FailureCode::TurnInterrupted.as_str() => "cancelled",
            Err(_) => "error",
        };
        fields.push(json!({
            "principal": principal, "token_id": token,
            "event": "agent.turn", "request_id": request(cx), "id": cx.id.to_string(), "parent_request_id": named(&who.parent),
            "caller_depth": who.depth, "workspace": cx.workspace(), "user_id": named(&who.user),
            "surface": who.surface, "agent": who.agent,
            "session_id": turn.session_id.as_ref().or(who.session.as_ref()),
            "model": named(&turn.model), "status": status,
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
        let millis = clock::millis();
        let now = clock::rfc3339_of(millis);
        let lines: String = fields
            .into_iter()
            .map(|fields| {
                let line =
                    json!({"timestamp": now, "level": "INFO", "target": "audit", "fields": fields});
                format!("{line}\n")
            })
            .collect();
        let name = |day: &str| format!("{FILE}{}", day.chars().take(DAY).collect::<String>());
        let begin = clock::rfc3339_of(millis - i64::from(self.days) * DAY_MS);
        let oldest = (self.days > 0).then(|| name(&begin));
        let (directory, file) = (self.directory.clone(), name(&now));
        let known = (lines.len() <= SHORT).then(|| directory.join(&file));
        let written = match known.and_then(|path| open(&path, false).ok()) {
            Some(mut file) => file.write_all(lines.as_bytes()).is_ok(),
            None => {
                let work = move || append(&directory, &file, &lines, oldest.as_deref());
                off_runtime(work).await.is_ok()
            }
        };
        if !written {
            tracing::warn!("the trail of turns cannot be written");
        }
    }
}

/// Opens a file of a trail to add to it.
fn open(path: &Path, make: bool) -> std::io::Result<File> {
    OpenOptions::new().create(make).append(true).open(path)
}

/// Adds lines to a file, in one write. The first of a day removes the files whose names come before the oldest.
fn append(
    directory: &Path,
    name: &str,
    lines: &str,
    oldest: Option<&str>,
) -> Result<(), OpenError> {
    let path = directory.join(name);
    let done = create_dir_all(directory).and_then(|()| {
        let is_first = !path.exists();
        let mut file = open(&path, true)?;
        file.write_all(lines.as_bytes())?;
        match oldest.filter(|_| is_first) {
            Some(oldest) => remove_before(directory, oldest),
            None => Ok(()),
        }
    });
    done.map_err(|error| Error::new(ErrorCode::Storage, error.to_string()).into())
}

/// Removes the files of a trail whose names come before one.
fn remove_before(directory: &Path, oldest: &str) -> std::io::Result<()> {
    for entry in read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_old = |name: &str| name.starts_with(FILE) && name < oldest;
        if name.to_str().is_some_and(is_old) {
            remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_stand_in_their_order_however_long_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let trail = Trail::below(dir.path(), 0);
        let texts = [String::new(), "x".to_owned(), "x".repeat(SHORT)];
        for (at, text) in texts.iter().chain(&texts).enumerate() {
            trail.write(vec![json!({"at": at, "text": text})]).await;
        }
        // A new day may have begun meanwhile.
        let files = read_dir(dir.path().join("audit")).unwrap();
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        let read = |path: &PathBuf| std::fs::read_to_string(path).unwrap();
        let all: String = files.iter().map(read).collect();
        let lines = all.lines().map(|line| {
            let line: Value = serde_json::from_slice(line.as_bytes()).unwrap();
            let fields = &line["fields"];
            (
                fields["at"].as_u64().unwrap(),
                fields["text"].as_str().unwrap().len(),
            )
        });
        let expected = (0..).zip([0, 1, SHORT, 0, 1, SHORT]);
        assert!(lines.eq(expected));
    }

    #[test]
    fn the_first_line_of_a_day_removes_old_days() {
        let dir = tempfile::tempdir().unwrap();
        let days = ["2026-01-01", "2026-01-02", "2026-01-03"];
        let names = days.map(|day| format!("{FILE}{day}"));
        std::fs::write(dir.path().join("other"), "x").unwrap();
        let left = || {
            let all = read_dir(dir.path()).unwrap();
            let mut all: Vec<String> = all
                .map(|one| one.unwrap().file_name().into_string().unwrap())
                .collect();
            all.sort();
            all
        };
        for name in &names[..2] {
            append(dir.path(), name, "x\n", None).unwrap();
        }
        append(dir.path(), &names[1], "x\n", Some(&names[1])).unwrap();
        assert_eq!(left(), [names[0].as_str(), &names[1], "other"]);
        append(dir.path(), &names[2], "x\n", Some(&names[1])).unwrap();
        assert_eq!(left(), [names[1].as_str(), &names[2], "other"]);
    }
}
