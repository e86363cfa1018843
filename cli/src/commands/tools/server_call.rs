//! One message of an MCP client, handed to the gateway, and what comes back for it.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::rc::Rc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use futures::stream::{self, AbortHandle, Abortable, Stream};
use serde_json::{Value, json};
use tg_schemas::limits;

use crate::client::{Error, Events, Http, Result, Streamed};

/// Where the gateway takes messages.
const PATH: &str = "mcp";
/// Longest message of the gateway.
const LONGEST: usize = limits::MESSAGE;
const SESSION: &str = "mcp-session-id";
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Codes of JSON-RPC.
const PARSE_ERROR: i64 = -32700;
const INTERNAL_ERROR: i64 = -32603;

/// Lines that answer a message.
pub(super) type Answers = Pin<Box<dyn Stream<Item = String>>>;

/// A message of a client.
#[derive(Debug, Clone)]
pub(super) struct Message {
    body: String,
    id: Option<Value>,
    method: String,
    /// The revision that it says itself.
    version: Option<String>,
    /// The tool that it calls.
    name: Option<String>,
    /// The request that it cancels.
    cancels: Option<String>,
}

/// Reads a line.
///
/// # Errors
/// What is answered to a line that is no object.
pub(super) fn message(line: String) -> std::result::Result<Message, Value> {
    let fault = |why: String| failure(Value::Null, PARSE_ERROR, &why);
    let read: Value = serde_json::from_slice(line.as_bytes())
        .map_err(|error| fault(format!("no JSON: {error}")))?;
    if !read.is_object() {
        return Err(fault("a message must be an object".to_owned()));
    }
    let text = |pointer: &str| read.pointer(pointer).and_then(Value::as_str);
    let method = text("/method").unwrap_or_default().to_owned();
    let meta = read.pointer("/params/_meta");
    let version = meta.and_then(|meta| meta.get(VERSION)?.as_str());
    let of = read.pointer("/params/requestId");
    let of = of.filter(|_| method == "notifications/cancelled");
    Ok(Message {
        // What answers a question of the gateway's is not answered.
        id: read.get("id").filter(|_| !method.is_empty()).cloned(),
        version: version.map(str::to_owned),
        name: text("/params/name")
            .filter(|_| method == "tools/call")
            .map(str::to_owned),
        cancels: of.map(Value::to_string),
        method,
        body: line,
    })
}

impl Message {
    /// What its answer is known by, if it has one.
    pub(super) fn id(&self) -> Option<String> {
        self.id.as_ref().map(Value::to_string)
    }

    /// The request that it cancels.
    pub(super) fn cancels(&self) -> Option<&str> {
        self.cancels.as_deref()
    }
}

/// Requests that are under way, by their ids.
#[derive(Debug, Default, Clone)]
pub(super) struct Calls(Rc<RefCell<HashMap<String, AbortHandle>>>);

/// One of them, until it is over.
struct Known {
    all: Calls,
    id: String,
}

impl Drop for Known {
    fn drop(&mut self) {
        self.all.0.borrow_mut().remove(&self.id);
    }
}

impl Calls {
    /// What is answered to a message of this id, until it is cancelled.
    pub(super) fn begin(&self, id: Option<String>, answers: Answers) -> Abortable<Answers> {
        let (abort, watch) = AbortHandle::new_pair();
        let known = id.map(|id| {
            self.0.borrow_mut().insert(id.clone(), abort);
            Known {
                all: self.clone(),
                id,
            }
        });
        let answers = stream::unfold((answers, known), |(mut answers, known)| async move {
            let answer = answers.next().await?;
            Some((answer, (answers, known)))
        });
        Abortable::new(Box::pin(answers), watch)
    }

    /// Ends the one that a message cancels: its connection is closed, by which the gateway cancels what it asked for.
    pub(super) fn cancel(&self, message: &Message) {
        let of = message
            .cancels()
            .and_then(|id| self.0.borrow_mut().remove(id));
        if let Some(call) = of {
            call.abort();
        }
    }
}

/// Where the gateway is, and what it said at the beginning.
#[derive(Clone)]
pub(super) struct Bridge {
    http: Http,
    query: Rc<Vec<(&'static str, String)>>,
    begun: Rc<RefCell<Begun>>,
}

/// What the answer to `initialize` said.
#[derive(Debug, Default, Clone)]
struct Begun {
    session: Option<String>,
    version: Option<String>,
}

/// A message that is being answered.
struct Asking {
    bridge: Bridge,
    message: Message,
    /// Lines that are to be written.
    pending: VecDeque<String>,
    step: Step,
}

/// How far it is.
enum Step {
    /// It is to be asked.
    Ask,
    /// Events come; the answer is one of them.
    Events(Streamed, Events),
    /// Nothing follows.
    Over,
}

impl Bridge {
    /// With a query for each message.
    pub(super) fn new(http: Http, query: &[(&'static str, Option<&str>)]) -> Self {
        let query = query
            .iter()
            .filter_map(|(key, value)| Some((*key, (*value)?.to_owned())));
        Self {
            http,
            query: Rc::new(query.collect()),
            begun: Rc::default(),
        }
    }

    /// What is answered to a message.
    pub(super) fn ask(&self, message: Message) -> Answers {
        let asking = Asking {
            bridge: self.clone(),
            message,
            pending: VecDeque::new(),
            step: Step::Ask,
        };
        Box::pin(stream::unfold(asking, |mut asking| async move {
            loop {
                if let Some(line) = asking.pending.pop_front() {
                    return Some((line, asking));
                }
                let step = std::mem::replace(&mut asking.step, Step::Over);
                let went = match step {
                    Step::Over => return None,
                    Step::Ask => asking.begin().await,
                    Step::Events(response, events) => asking.go_on(response, events).await,
                };
                if let Err(error) = went {
                    asking.failed(&error);
                }
            }
        }))
    }

    async fn post(&self, message: &mut Message) -> Result<Streamed> {
        let begun = match message.method.as_str() {
            "initialize" => Begun::default(),
            _ => self.begun.borrow().clone(),
        };
        let method = in_header(&message.method);
        let name = message.name.as_deref().map(in_header);
        let mut headers = vec![
            ("accept", "application/json, text/event-stream"),
            ("mcp-method", method.as_str()),
        ];
        let version = message.version.as_deref().or(begun.version.as_deref());
        headers.extend(version.map(|version| ("mcp-protocol-version", version)));
        headers.extend(name.as_deref().map(|name| ("mcp-name", name)));
        headers.extend(begun.session.as_deref().map(|session| (SESSION, session)));
        let query: Vec<(&str, &str)> = self
            .query
            .iter()
            .map(|(key, value)| (*key, value.as_str()))
            .collect();
        let body = std::mem::take(&mut message.body);
        self.http.post_stream(PATH, &query, &headers, body).await
    }
}

impl Asking {
    async fn begin(&mut self) -> Result<()> {
        let mut response = self.bridge.post(&mut self.message).await?;
        let header = |name: &str| {
            let value = response.headers().get(name)?.to_str().ok()?;
            Some(value.to_owned())
        };
        let session = header(SESSION);
        let status = response.status().as_u16();
        let kind = header("content-type").unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            self.step = Step::Events(response, Events::new(LONGEST));
            return Ok(());
        }
        let mut text = Vec::new();
        while let Some(bytes) = self.bridge.http.next_bytes(&mut response).await? {
            if text.len() + bytes.len() > LONGEST {
                return Err(too_long());
            }
            text.extend(bytes);
        }
        if text.is_empty() && (200..300).contains(&status) {
            return Ok(());
        }
        match serde_json::from_slice::<Value>(&text) {
            Ok(answer) if answer.get("jsonrpc").is_some() => {
                if self.message.method == "initialize" {
                    let version = answer.pointer("/result/protocolVersion");
                    *self.bridge.begun.borrow_mut() = Begun {
                        session,
                        version: version.and_then(Value::as_str).map(str::to_owned),
                    };
                }
                self.pending.push_back(answer.to_string());
                Ok(())
            }
            // The gateway said so before it looked at the message.
            _ => Err(Error::from_status(status, &String::from_utf8_lossy(&text))),
        }
    }

    async fn go_on(&mut self, mut response: Streamed, mut events: Events) -> Result<()> {
        let Some(bytes) = self.bridge.http.next_bytes(&mut response).await? else {
            return Err(Error::Protocol("the answer was broken off".to_owned()));
        };
        let mut answered = false;
        for event in events.push(&bytes)? {
            let message: Value = serde_json::from_slice(event.as_bytes())
                .map_err(|error| Error::Protocol(format!("not JSON ({error})")))?;
            // Others are what it tells and asks before.
            answered |= message.get("id").is_some() && message.get("method").is_none();
            self.pending.push_back(message.to_string());
        }
        if !answered {
            self.step = Step::Events(response, events);
        }
        Ok(())
    }

    /// What cannot be answered is said to be so. What needs no answer has none.
    fn failed(&mut self, error: &Error) {
        if let Some(id) = self.message.id.clone() {
            let answer = failure(id, INTERNAL_ERROR, &error.to_string());
            self.pending.push_back(answer.to_string());
        }
    }
}

fn too_long() -> Error {
    Error::Protocol(format!("an answer is longer than {LONGEST} bytes"))
}

fn failure(id: Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// A text as the header that repeats it: what cannot stand in one is written in base64.
fn in_header(text: &str) -> String {
    let plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    match plain && text.trim() == text && !text.starts_with("=?base64?") {
        true => text.to_owned(),
        false => format!("=?base64?{}?=", STANDARD.encode(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: Value) -> Message {
        message(body.to_string()).expect("a message")
    }

    #[test]
    fn a_message_is_read_for_what_its_headers_repeat() {
        let call = read(
            json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
            "name": "ask_agent", "_meta": {VERSION: "2026-07-28"}}}),
        );
        assert_eq!(call.version.as_deref(), Some("2026-07-28"));
        assert_eq!(call.name.as_deref(), Some("ask_agent"));
        assert_eq!(call.cancels(), None);
        let cancel = read(
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": 7}}),
        );
        assert_eq!(cancel.cancels(), Some("7"));
        let reply = read(json!({"jsonrpc": "2.0", "id": "confirm r m", "result": {}}));
        assert_eq!((call.id(), reply.id()), (Some("7".to_owned()), None));
        for wrong in ["", "[]", "3", "{"] {
            let answer = message(wrong.to_owned()).expect_err("refused");
            assert_eq!(answer["error"]["code"], PARSE_ERROR, "{wrong}");
        }
    }

    #[test]
    fn a_header_holds_any_text() {
        assert_eq!(in_header("ask_agent"), "ask_agent");
        assert_eq!(in_header("ä"), "=?base64?w6Q=?=");
        assert_eq!(in_header(" a"), "=?base64?IGE=?=");
        assert!(in_header("a\nb").starts_with("=?base64?"));
    }

    #[test]
    fn a_call_is_known_until_it_ends_or_is_cancelled() {
        let calls = Calls::default();
        let call = read(json!({"jsonrpc": "2.0", "id": "a", "method": "ping"}));
        let never: Answers = Box::pin(stream::pending());
        let mut answers = calls.begin(call.id(), never);
        let cancel = read(
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": "a"}}),
        );
        calls.cancel(&cancel);
        assert_eq!(futures::executor::block_on(answers.next()), None);
        let once: Answers = Box::pin(stream::iter(["x".to_owned()]));
        let mut answers = calls.begin(call.id(), once);
        assert_eq!(calls.0.borrow().len(), 1);
        assert_eq!(
            futures::executor::block_on(answers.next()),
            Some("x".to_owned())
        );
        assert_eq!(futures::executor::block_on(answers.next()), None);
        drop(answers);
        assert!(calls.0.borrow().is_empty());
    }
}
