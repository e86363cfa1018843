//! The trail of turns: a line of JSON for each turn, and for each call of a model that it took. A line has the caller, the agent
//! and the cost, and no text of a message. The service also announces each line on the bus. If it cannot write or announce a line,
//! the turn goes on.

use std::fs::{File, OpenOptions, create_dir_all, read_dir, remove_file};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tg_mesh::leased_store::off_runtime;
use tg_mesh::tg_bus::Link;
use tg_mesh::{Cx, Mesh, OpenError, TaskKind, clock};
use tg_schemas::msg::{AnswerCall, AuditEvent};
use tg_schemas::operations::{FailureCode, TurnResult, Usage};
use tg_schemas::{Class, Error, ErrorCode, Topic};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::engine::trail_line::Line;

/// What the names of files begin with; the day follows.
const FILE: &str = "audit.jsonl.";
/// Characters of a date.
const DAY: usize = 10;

/// Bytes that are written on the thread of a task to a file that is there, as a short commit is: the answer of a turn waits for its
/// line, and would wait for two threads more.
const SHORT: usize = 64 << 10;

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 3600 * 1000;

/// Base of the topic on which lines are announced.
const EVENTS: &str = "audit-events";
/// Who announces them.
const PRODUCER: &str = "sessions";
/// Lines that wait to be announced: several of the longest turns.
const WAITING: usize = 1_024;

/// See the module.
pub(crate) struct Trail {
    directory: PathBuf,
    /// Days whose files are kept; 0: all.
    days: u32,
    /// Euros for a dollar; 0: not set.
    rate: f64,
    /// Takes the lines that are to be announced, from the first one on.
    announced: OnceLock<mpsc::Sender<AuditEvent>>,
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
    /// The client reads events.
    pub(crate) stream: bool,
}

/// Billionths of a dollar in one.
const NANO: f64 = 1e9;

/// A call of a model, by the service itself or by the agent of the turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ModelCall {
    pub(crate) surface: &'static str,
    pub(crate) model: String,
    /// The backend that answered; `None`: unknown.
    pub(crate) backend: Option<String>,
    /// How often a backend was asked; `None`: unknown.
    pub(crate) attempts: Option<i64>,
    pub(crate) is_done: bool,
    /// Why it failed; `None`: it did not, or the reason is unknown.
    pub(crate) error_code: Option<String>,
    pub(crate) usage: Usage,
    /// Whether the output tokens are an estimate; `None`: unknown.
    pub(crate) estimated: Option<bool>,
    pub(crate) usd: Option<f64>,
    /// Source of the cost; empty: unknown.
    pub(crate) source: String,
    pub(crate) duration_ms: Option<i64>,
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
            backend: named(call.backend),
            attempts: call.attempts,
            source: call.source,
            duration_ms: Some(call.duration_ms).filter(|took| *took > 0),
            ..Self::default()
        }
    }
}

/// A text, unless it is empty.
fn named(text: impl Into<String>) -> Option<String> {
    Some(text.into()).filter(|text| !text.is_empty())
}

/// Who holds the credential that the request came with, and the id of the key that it is, never the key itself.
fn holder(cx: &Cx) -> (Option<String>, Option<String>) {
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

/// A line of a file, around the fields of a line as JSON.
fn in_file(timestamp: &str, fields: &str) -> String {
    format!(
        "{{\"timestamp\":\"{timestamp}\",\"level\":\"INFO\",\"target\":\"audit\",\"fields\":{fields}}}\n"
    )
}

/// Has lines announced one after the other until this process stops. A bus that is away keeps no turn waiting.
///
/// The topic is declared once for each connection. A broker on which nobody listens has none: it would close a channel, and log that,
/// for each line.
fn announcing(mesh: &Mesh) -> mpsc::Sender<AuditEvent> {
    let (sender, mut waiting) = mpsc::channel::<AuditEvent>(WAITING);
    let with = mesh.clone();
    mesh.spawn(TaskKind::Background, async move {
        let topic = Topic::system(Class::Notify, EVENTS);
        let stopping = with.stopping().clone();
        let link = with.bus().link();
        let announced = async {
            let mut declared = None;
            while let Some(event) = waiting.recv().await {
                let connection = *link.borrow();
                if matches!(connection, Link::Up { .. }) && declared != Some(connection) {
                    // Whoever may not declare it, or lost the bus meanwhile, publishes all the same.
                    let topics = std::slice::from_ref(&topic);
                    if let Err(fault) = with.bus().declare(topics, &[]).await {
                        tracing::debug!(%fault, "the topic of the trail was not declared");
                    }
                    declared = Some(connection);
                }
                if let Err(error) = with.notify(&topic, &event).await {
                    tracing::debug!(%error.message, "a line of the trail was not announced");
                }
            }
        };
        stopping.run_until_cancelled(announced).await;
    });
    sender
}

impl Trail {
    /// Below a directory, of so many days; 0: of all.
    pub(crate) fn below(data: &Path, days: u32) -> Self {
        Self {
            directory: data.join("audit"),
            days,
            rate: 0.0,
            announced: OnceLock::new(),
        }
    }

    /// With euros for a dollar; 0: not set.
    pub(crate) fn rated(self, rate: f64) -> Self {
        Self { rate, ..self }
    }

    /// The fields that all lines of a request share.
    fn line(&self, cx: &Cx, who: &Who, usd: Option<f64>) -> Line {
        let (principal, token_id) = holder(cx);
        Line {
            id: cx.id.to_string(),
            workspace: cx.workspace().to_owned(),
            principal,
            token_id,
            user_id: named(&who.user),
            agent: who.agent.clone(),
            session_id: who.session.clone(),
            cost_eur: usd.filter(|_| self.rate > 0.0).map(|usd| usd * self.rate),
            cost_usd: usd,
            ..Line::default()
        }
    }

    /// A line for each call of a model.
    fn called(&self, cx: &Cx, who: &Who, calls: &[ModelCall]) -> Vec<Line> {
        let line = |call: &ModelCall| Line {
            event: "llm.call".to_owned(),
            request_id: Uuid::new_v4().to_string(),
            parent_request_id: Some(request(cx)),
            caller_depth: who.depth + 1,
            surface: call.surface.to_owned(),
            model: named(&call.model),
            backend: call.backend.clone(),
            attempts: call.attempts,
            status: if call.is_done { "ok" } else { "error" }.to_owned(),
            error_code: call.error_code.clone(),
            input_tokens: call.usage.input,
            output_tokens: call.usage.output,
            cache_read: call.usage.cache_read,
            cache_write: call.usage.cache_write,
            total_tokens: call.usage.total,
            usage_estimated: call.estimated,
            cost_source: named(&call.source),
            duration_ms: call.duration_ms,
            ..self.line(cx, who, call.usd)
        };
        calls.iter().map(line).collect()
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
        let mut lines = self.called(cx, who, calls);
        let turn = ended.ok().cloned().unwrap_or_default();
        let status = match ended {
            Ok(_) => "ok",
            Err(code) if code == FailureCode::TurnInterrupted.as_str() => "cancelled",
            Err(_) => "error",
        };
        let line = self.line(cx, who, turn.cost.usd);
        lines.push(Line {
            event: "agent.turn".to_owned(),
            request_id: request(cx),
            parent_request_id: named(&who.parent),
            caller_depth: who.depth,
            surface: who.surface.to_owned(),
            session_id: turn.session_id.or(line.session_id),
            model: named(turn.model),
            stream: Some(who.stream),
            status: status.to_owned(),
            error_code: ended.err().map(str::to_owned),
            sub_calls: Some(turn.cost.sub_calls),
            input_tokens: turn.usage.input,
            output_tokens: turn.usage.output,
            cache_read: turn.usage.cache_read,
            cache_write: turn.usage.cache_write,
            total_tokens: turn.usage.total,
            cost_eur: turn.cost.eur,
            cost_source: named(turn.cost.source),
            duration_ms: Some(milliseconds),
            ..line
        });
        self.add(cx, lines).await;
    }

    /// Writes down calls that were made for no turn, or after it.
    pub(crate) async fn calls(&self, cx: &Cx, who: &Who, calls: &[ModelCall]) {
        if !calls.is_empty() {
            self.add(cx, self.called(cx, who, calls)).await;
        }
    }

    /// Writes lines down, and announces them.
    async fn add(&self, cx: &Cx, lines: Vec<Line>) {
        let millis = clock::millis();
        let now = clock::rfc3339_of(millis);
        let announced = self.announced.get_or_init(|| announcing(&cx.mesh));
        let mut written = String::new();
        for line in lines {
            let Ok(fields) = serde_json::to_string(&line) else {
                tracing::warn!("a line of the trail has no JSON");
                continue;
            };
            written.push_str(&in_file(&now, &fields));
            let event = AuditEvent {
                event_id: Uuid::new_v4().to_string(),
                event_type: line.event,
                timestamp: now.clone(),
                producer: PRODUCER.to_owned(),
                payload_json: fields,
                ..AuditEvent::default()
            };
            if announced.try_send(event).is_err() {
                tracing::debug!("there is no room for a line of the trail that is to be announced");
            }
        }
        self.write(millis, written).await;
    }

    /// Adds lines to the file of the day in which they were made.
    async fn write(&self, millis: i64, lines: String) {
        let name = |millis: i64| {
            let day = clock::rfc3339_of(millis);
            format!("{FILE}{}", day.chars().take(DAY).collect::<String>())
        };
        let begin = millis - i64::from(self.days) * DAY_MS;
        let oldest = (self.days > 0).then(|| name(begin));
        let (directory, file) = (self.directory.clone(), name(millis));
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
    use serde_json::{Value, json};

    use super::*;

    #[tokio::test]
    async fn lines_stand_in_their_order_however_long_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let trail = Trail::below(dir.path(), 0);
        let texts = [String::new(), "x".to_owned(), "x".repeat(SHORT)];
        for (at, text) in texts.iter().chain(&texts).enumerate() {
            let now = clock::millis();
            let fields = json!({"at": at, "text": text}).to_string();
            let line = in_file(&clock::rfc3339_of(now), &fields);
            trail.write(now, line).await;
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
