//! The answer to a call of a tool: one message at its end, or, for whoever wants to hear how it goes, events before it.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use rmcp::model::{CallToolResult, ProgressToken};
use serde_json::{Value, json};
use tg_clients::agent_runs::confirm_command;
use tg_schemas::Error;

use super::sse;
use super::whole::Whole;
use crate::ask::Part;
use crate::calls::Entered;
use crate::engine::mcp::confirm;
use crate::engine::mcp::level::Level;
use crate::engine::mcp::message::Request;
use crate::engine::mcp::revision::Revision;
use crate::engine::mcp::told::{self, floor};
use crate::engine::mcp::tools::Tool;
use crate::engine::translate::Body;
use crate::error::json_written;
use crate::offers::logged;
use crate::running::Running;
use crate::sending::Outlet;

/// Longest text of a step that is told on the way; the answer has the whole.
const STEP_BYTES: usize = 4 << 10;

/// What an answer is made of, beside what is answered.
pub(super) struct Answer {
    /// What is answered.
    pub(super) request: Request,
    /// In which words.
    pub(super) revision: Revision,
    /// What was called.
    pub(super) tool: &'static Tool,
    /// The document that is read, where one is.
    pub(super) document: String,
    /// Where the text of a document begins.
    pub(super) offset: usize,
}

impl Answer {
    /// The message.
    pub(super) fn of(&self, mut result: CallToolResult) -> Value {
        if self.revision == Revision::Handshake {
            result.result_type = None;
        }
        let result = serde_json::to_value(result).unwrap_or_default();
        self.request.answer(result)
    }

    fn ended(&self, ended: Result<Body, Error>) -> Bytes {
        let result = match ended {
            Ok(body) => told::result(self.tool, &body, (&self.document, self.offset)),
            Err(error) => told::failure(&error),
        };
        self.of(result).to_string().into()
    }
}

/// What a client hears before the answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Tells {
    /// How it goes, by this token.
    pub(super) token: Option<ProgressToken>,
    /// The same as a log, from this level on.
    pub(super) level: Option<Level>,
    /// What the run asks its user.
    pub(super) asks: bool,
}

impl Tells {
    /// Whether it hears of anything.
    pub(super) fn any(&self) -> bool {
        self.token.is_some() || self.logs() || self.asks
    }

    fn logs(&self) -> bool {
        self.level.is_some_and(|from| Level::Info >= from)
    }
}

/// A call under way. Dropping it cancels what it asked for.
pub(super) struct Exchange {
    answer: Answer,
    running: Running,
    /// A notice of its caller cancels it while this is held.
    _known: Option<Entered>,
}

impl Exchange {
    /// Of what was started.
    pub(super) fn new(answer: Answer, running: Running, known: Option<Entered>) -> Self {
        Self {
            answer,
            running,
            _known: known,
        }
    }

    fn collects(&self) -> Whole {
        Whole::of(self.running.name, "", &Body::new())
    }

    /// All of it at its end.
    pub(super) async fn whole(mut self, outlet: &Outlet) -> Response {
        let ended = self.collects().collect(&mut self.running).await;
        let ended = ended.map_err(|fault| fault.error());
        let message = self.answer.ended(ended);
        json_written(StatusCode::OK, outlet.hold(message).await)
    }

    /// Thoughts, and what tools are used, as they come; then the answer.
    pub(super) fn stream(self, tells: Tells, heartbeat: Duration, outlet: Outlet) -> Response {
        let told = Told {
            whole: Some(self.collects()),
            exchange: self,
            tells,
            count: 0,
            pending: VecDeque::new(),
        };
        let events = stream::unfold((told, outlet), |(mut told, outlet)| async move {
            let event = outlet.hold(told.next().await?).await;
            Some((event, (told, outlet)))
        });
        sse::kept_alive(events, heartbeat)
    }
}

/// A call whose progress is told.
struct Told {
    exchange: Exchange,
    /// Until the answer is made of it.
    whole: Option<Whole>,
    tells: Tells,
    count: u64,
    /// Events that are to be sent: of one part.
    pending: VecDeque<Bytes>,
}

impl Told {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            let whole = self.whole.as_mut()?;
            let ended = match self.exchange.running.next().await {
                Some(Part::Body { body, last, .. }) => {
                    let body = match last {
                        true => body.into_tree(),
                        false => body.into_unexplained(),
                    };
                    whole.add(&body);
                    match last {
                        true => Some(Ok(body)),
                        false => {
                            self.tell(&body);
                            None
                        }
                    }
                }
                Some(Part::Error(error)) => Some(Err(error)),
                None => Some(Ok(Body::new())),
            };
            let Some(ended) = ended else { continue };
            let whole = self.whole.take()?;
            let ended = ended.map(|last| whole.finish(last));
            let message = self.exchange.answer.ended(ended);
            self.pending.push_back(event(&message));
        }
    }

    /// What a part says, in each way in which its client hears of it.
    fn tell(&mut self, part: &Body) {
        let run = self.exchange.running.run.as_ref();
        let run = run.map(|(run, _)| run.clone());
        if let Some(said) = progress(part, run.as_deref()) {
            if let Some(token) = &self.tells.token {
                self.count += 1;
                let notice = json!({
                    "jsonrpc": "2.0",
                    "method": "notifications/progress",
                    "params": {"progressToken": token, "progress": self.count, "message": said},
                });
                self.pending.push_back(message(&notice));
            }
            if self.tells.logs() {
                let notice = logged("info", "agent", &said);
                self.pending.push_back(message(&notice));
            }
        }
        let asks = run.filter(|_| self.tells.asks);
        if let Some(question) = asks.and_then(|run| confirm::question(&run, part)) {
            self.pending.push_back(message(&question));
        }
    }
}

/// What a part of a run says of how it goes.
fn progress(part: &Body, run: Option<&str>) -> Option<String> {
    let text = |key: &str| part.get(key).and_then(Value::as_str).unwrap_or_default();
    let (kind, said) = (text("message_type"), text("content"));
    if said.trim().is_empty() {
        return None;
    }
    let said = match floor(said, STEP_BYTES) {
        end if end < said.len() => Cow::from(format!("{}…", &said[..end])),
        _ => Cow::from(said),
    };
    match kind {
        "thought" | "observation" | "action" => Some(format!("{kind}: {said}")),
        // Whoever can be asked is asked, too.
        "confirm" => {
            let command = confirm_command(run.unwrap_or_default(), text("message_id"));
            Some(format!("waits for `{command}`, or no: {said}"))
        }
        _ => None,
    }
}

/// The same of a message as a value.
pub(super) fn message(message: &Value) -> Bytes {
    event(message.to_string().as_bytes())
}

/// A message as an event of one line: JSON has no line ends outside of texts, and escapes them there.
fn event(message: &[u8]) -> Bytes {
    let mut event = Vec::with_capacity(message.len() + 24);
    event.extend_from_slice(b"event: message\ndata: ");
    event.extend_from_slice(message);
    event.extend_from_slice(b"\n\n");
    event.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_and_tools_are_told_and_pieces_of_the_answer_are_not() {
        let of = |kind: &str, content: &str| {
            let part = json!({"message_type": kind, "content": content, "message_id": "urn:m"});
            progress(part.as_object().unwrap(), Some("r"))
        };
        assert_eq!(
            of("thought", "look it up"),
            Some("thought: look it up".to_owned())
        );
        assert_eq!(of("action", "{}"), Some("action: {}".to_owned()));
        let asked = of("confirm", "{}").unwrap();
        assert_eq!(
            asked,
            "waits for `tg confirm r yes --message-id urn:m`, or no: {}"
        );
        assert_eq!(of("thought", " "), None);
        let long = of("observation", &"ä".repeat(STEP_BYTES)).unwrap();
        assert_eq!(long.len(), "observation: …".len() + STEP_BYTES);
        assert_eq!(of("answer", "42"), None);
        assert_eq!(of("explain", "x"), None);
    }

    #[test]
    fn whoever_hears_of_nothing_waits_for_the_answer() {
        assert!(!Tells::default().any());
        let from = |level| Tells {
            level: Some(level),
            ..Tells::default()
        };
        assert!(from(Level::Debug).any() && from(Level::Info).any());
        assert!(!from(Level::Warning).any());
    }

    #[test]
    fn an_event_is_one_line() {
        assert_eq!(event(b"{}"), "event: message\ndata: {}\n\n");
    }
}
