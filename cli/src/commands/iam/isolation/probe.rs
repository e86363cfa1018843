//! Asks as somebody, and keeps what was said and how long it took.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::body::{Bulk, Framed, Passage, Request, TOOLS};
use crate::args::Options;
use crate::client::{Call, Error, Export, Http, Import, Passed, Result, Socket, Tell};
use crate::interrupt::Interrupt;

/// Longest wait for one answer.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How long what passes by is listened to where it should have been refused.
const PASSES: Duration = Duration::from_millis(500);

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The status; of a frame, the one that its error would have had.
    pub status: u16,
    /// All of its text: of a streamed answer that of each frame.
    pub text: String,
    /// What its error says, if it has one: of a frame the error's type as well.
    pub error: Option<String>,
    /// From the request to the end of the answer.
    pub took: Duration,
}

impl Answer {
    /// One over REST, whose error stands in its body.
    pub fn of_rest(status: u16, text: String, took: Duration) -> Self {
        Self {
            error: error_of(status, &text),
            status,
            text,
            took,
        }
    }

    /// One to a call of a tool, whose result says whether it failed; the status is the one that its error would have had.
    pub fn of_tool(of: u16, text: String, took: Duration) -> Self {
        let said: Value = serde_json::from_slice(text.as_bytes()).unwrap_or_default();
        let result = said
            .get("result")
            .filter(|result| result["isError"] == true);
        let Some(error) = result.and_then(|one| one.pointer("/structuredContent/error")) else {
            return Self::of_rest(of, text, took);
        };
        Self {
            status: status(error["type"].as_str().unwrap_or_default()),
            error: Some(error.to_string()),
            text,
            took,
        }
    }

    /// One over a socket: what came, and how it ended.
    ///
    /// # Errors
    /// What is no answer: where nothing came in time, or the command was interrupted.
    pub fn of_socket(mut text: String, ended: Result<()>, took: Duration) -> Result<Self> {
        let (kind, message) = match ended {
            Ok(()) => {
                return Ok(Self {
                    status: 200,
                    text,
                    error: None,
                    took,
                });
            }
            Err(Error::Service { kind, message }) => (kind, message),
            Err(Error::Protocol(what)) => ("protocol".to_owned(), what),
            Err(error) => return Err(error),
        };
        let error = format!("{kind}: {message}");
        text.push_str(&error);
        Ok(Self {
            status: status(&kind),
            text,
            error: Some(error),
            took,
        })
    }
}

/// Somebody who asks.
pub struct Asker {
    /// What they may, as in reports.
    pub role: &'static str,
    options: Options,
    interrupt: Interrupt,
    http: Http,
    sockets: HashMap<Option<String>, Socket>,
}

impl Asker {
    /// With an API key, at the gateway of a session.
    ///
    /// # Errors
    /// As [`Http::new`].
    pub fn new(
        role: &'static str,
        key: String,
        options: &Options,
        interrupt: Interrupt,
    ) -> Result<Self> {
        let options = Options {
            token: Some(key),
            workspace: None,
            timeout: TIMEOUT,
            ..options.clone()
        };
        Ok(Self {
            role,
            http: Http::new(&options, interrupt.clone())?,
            options,
            interrupt,
            sockets: HashMap::new(),
        })
    }

    /// Over REST.
    ///
    /// # Errors
    /// As [`Http::exchange`].
    pub async fn rest(&self, request: &Request) -> Result<Answer> {
        let query: Vec<(&str, &str)> = request
            .query
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        let begun = Instant::now();
        if let Some(bulk) = &request.bulk {
            let mut text = String::new();
            let ended = match self.bulk(bulk, &mut text).await {
                Err(error @ Error::Protocol(_)) => return Err(error),
                ended => ended,
            };
            return Answer::of_socket(text, ended, begun.elapsed());
        }
        let body = request.body.clone();
        let headers: Vec<(&str, &str)> = request
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let said = self
            .http
            .exchange(request.method, &request.path, &query, &headers, body);
        let (status, text) = match said.await {
            // It was let in, and there is no end of it.
            Err(Error::Timeout(_)) => (200, String::new()),
            said => said?,
        };
        let took = begun.elapsed();
        Ok(match request.path == TOOLS {
            true => Answer::of_tool(status, text, took),
            false => Answer::of_rest(status, text, took),
        })
    }

    /// Through a socket of records: what came out of it, whatever ended it.
    async fn bulk(&self, bulk: &Bulk, text: &mut String) -> Result<()> {
        let options = Options {
            workspace: bulk.workspace.clone(),
            ..self.options.clone()
        };
        let (flow, kind) = (&bulk.flow, &bulk.kind);
        let (collection, stored) = match &bulk.passage {
            Passage::In(record) => {
                let interrupt = self.interrupt.clone();
                let mut import = Import::open(&options, interrupt, flow, kind, Tell::Safe).await?;
                import.send(record).await?;
                import.end().await?;
                return Ok(());
            }
            Passage::Live(collection) => (collection, false),
            Passage::Stored(collection) => (collection, true),
        };
        let mut export = self
            .export(&options, flow, kind, Some(collection), stored)
            .await?;
        let listen = if stored { TIMEOUT } else { PASSES };
        let listening = async {
            while let Passed::Record(record) = export.next().await? {
                text.push_str(&record.to_string());
            }
            Ok::<(), Error>(())
        };
        // It was let in, and there is no end of it.
        let heard = tokio::time::timeout(listen, listening).await;
        export.close().await;
        heard.unwrap_or(Ok(()))
    }

    async fn export(
        &self,
        options: &Options,
        flow: &str,
        kind: &str,
        collection: Option<&str>,
        stored: bool,
    ) -> Result<Export> {
        let interrupt = self.interrupt.clone();
        Export::open(options, interrupt, flow, kind, collection, stored).await
    }

    /// What passes by in a flow of the asker's own workspace, of every collection.
    ///
    /// # Errors
    /// As [`Export::open`].
    pub async fn listen(&self, flow: &str, kind: &str) -> Result<Export> {
        self.export(&self.options, flow, kind, None, false).await
    }

    /// As a frame of a socket; nothing where the request has no such form.
    ///
    /// # Errors
    /// As [`Socket::ask`], but for what the gateway or a service refuses.
    pub async fn frame(
        &mut self,
        request: &Request,
        workspace: Option<&str>,
    ) -> Result<Option<Answer>> {
        let call = match request.frame.clone() {
            None => return Ok(None),
            Some(Framed::Ask(service, flow, request)) => Call {
                service: service.into(),
                flow,
                request,
                on_disconnect: None,
                resume: None,
            },
            Some(Framed::Resume(place)) => Call {
                resume: Some(place),
                ..Call::global("", Value::Null)
            },
        };
        let about = workspace.map(str::to_owned);
        if !self.sockets.contains_key(&about) {
            let options = Options {
                workspace: about.clone(),
                ..self.options.clone()
            };
            let socket = Socket::connect(&options, self.interrupt.clone()).await?;
            self.sockets.insert(about.clone(), socket);
        }
        let Some(socket) = self.sockets.get_mut(&about) else {
            return Ok(None);
        };
        let begun = Instant::now();
        let mut text = String::new();
        let ended = hear(socket, &call, &mut text).await;
        Answer::of_socket(text, ended, begun.elapsed()).map(Some)
    }

    /// Says goodbye.
    pub async fn close(self) {
        for socket in self.sockets.into_values() {
            socket.close().await;
        }
    }
}

/// Sends a call and hears each of its replies, not the last alone.
async fn hear(socket: &mut Socket, call: &Call, text: &mut String) -> Result<()> {
    let mut replies = socket.start(call).await?;
    while let Some(reply) = replies.next().await? {
        text.push_str(&reply.to_string());
        text.push('\n');
    }
    Ok(())
}

/// The status of an error's type.
fn status(kind: &str) -> u16 {
    match kind {
        "access-denied" => 403,
        "auth-failed" => 401,
        _ => 200,
    }
}

/// What the error of an answer over REST says, if it is one. The id of its request is another each time.
fn error_of(status: u16, text: &str) -> Option<String> {
    if status != 200 {
        let said: Option<Value> = serde_json::from_slice(text.as_bytes()).ok();
        let said = said.and_then(|mut said| {
            let within = said.get_mut("error").and_then(Value::as_object_mut);
            // In the words of one dialect it stands in the error, of the other beside it.
            let id = within.and_then(|error| error.remove("request_id"));
            id.or_else(|| said.as_object_mut()?.remove("request_id"))?;
            Some(said.to_string())
        });
        return Some(said.unwrap_or_else(|| text.to_owned()));
    }
    let said: Value = serde_json::from_slice(text.as_bytes()).ok()?;
    let error = said.get("error").filter(|error| !error.is_null())?;
    Some(error.to_string())
}

#[cfg(test)]
mod tests {
    use futures::{SinkExt, StreamExt};
    use serde_json::json;
    use tokio::net::TcpListener;
    use tokio_tungstenite::tungstenite::Message;

    use super::*;

    /// A gateway that answers every call with these frames, or with the call itself where there are none; its address.
    async fn answering(frames: Vec<Value>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
            while let Some(Ok(Message::Text(text))) = socket.next().await {
                let asked: Value = serde_json::from_slice(text.as_bytes()).unwrap();
                let replies = match asked["type"] == "auth" {
                    true => vec![json!({"type": "auth-ok"})],
                    false if frames.is_empty() => {
                        vec![json!({"response": asked, "complete": true})]
                    }
                    false => frames.clone(),
                };
                for mut reply in replies {
                    reply["id"] = asked["id"].clone();
                    socket.send(Message::text(reply.to_string())).await.unwrap();
                }
            }
        });
        address
    }

    async fn framed(frames: Vec<Value>) -> Answer {
        let frame = Framed::Ask("config".to_owned(), None, json!({}));
        asked(frames, frame).await
    }

    async fn asked(frames: Vec<Value>, frame: Framed) -> Answer {
        let options = Options {
            url: Some(answering(frames).await),
            ..Options::local()
        };
        let key = "k".to_owned();
        let mut asker = Asker::new("reader", key, &options, Interrupt::never()).unwrap();
        let request = Request {
            method: "POST",
            path: String::new(),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            bulk: None,
            frame: Some(frame),
        };
        asker.frame(&request, None).await.unwrap().unwrap()
    }

    #[tokio::test]
    async fn each_frame_of_an_answer_is_seen() {
        let frames = [
            json!({"response": {"text": "S3CRET-OF-B"}}),
            json!({"response": {"text": "end"}, "complete": true}),
        ];
        let said = framed(frames.to_vec()).await;
        assert!(said.text.contains("S3CRET-OF-B") && said.text.contains("end"));
        assert_eq!((said.status, said.error), (200, None));
        let broken = json!({"error": {"type": "not-found", "message": "no such"}});
        let said = framed(vec![frames[0].clone(), broken]).await;
        assert!(said.text.contains("S3CRET-OF-B"), "{said:?}");
        assert_eq!(said.error.as_deref(), Some("not-found: no such"));
    }

    /// The gateway answers with the frame that it got.
    #[tokio::test]
    async fn a_run_is_joined_by_a_frame_without_a_request() {
        let said = asked(Vec::new(), Framed::Resume(json!({"run": "r-1"}))).await;
        let sent: Value = serde_json::from_slice(said.text.trim().as_bytes()).unwrap();
        assert_eq!(sent, json!({"id": "req-1", "resume": {"run": "r-1"}}));
    }

    #[test]
    fn a_tool_that_failed_says_so_in_its_result() {
        let said = |text: Value| Answer::of_tool(200, text.to_string(), Duration::ZERO);
        let denied = json!({"jsonrpc": "2.0", "id": 1, "result": {"isError": true, "content": [],
            "structuredContent": {"error": {"type": "access-denied", "message": "access denied"}}}});
        let denied = said(denied);
        assert_eq!(denied.status, 403);
        assert!(denied.error.unwrap().contains("access denied"));
        let done = said(json!({"jsonrpc": "2.0", "id": 1, "result": {"isError": false}}));
        assert_eq!((done.status, done.error), (200, None));
        let wrong = said(json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602}}));
        assert_eq!(wrong.status, 200);
        assert!(wrong.error.is_some());
    }

    #[test]
    fn errors_are_told_wherever_they_stand() {
        let rest = |status, text: &str| Answer::of_rest(status, text.to_owned(), Duration::ZERO);
        assert_eq!(rest(200, r#"{"error": null}"#).error, None);
        assert_eq!(rest(404, "gone").error.as_deref(), Some("gone"));
        assert!(rest(200, r#"{"error": {"message": "no"}}"#).error.is_some());
        let denied =
            |id: &str| format!(r#"{{"error": {{"code": "forbidden", "request_id": "{id}"}}}}"#);
        let said = rest(403, &denied("r-1")).error;
        assert_eq!(said, rest(403, &denied("r-2")).error);
        assert!(said.unwrap().contains("forbidden"));
        let beside = |id: &str| format!(r#"{{"error": {{"type": "a"}}, "request_id": "{id}"}}"#);
        assert_eq!(rest(403, &beside("1")).error, rest(403, &beside("2")).error);
        let denied = Error::Service {
            kind: "access-denied".to_owned(),
            message: "no".to_owned(),
        };
        let said = Answer::of_socket(String::new(), Err(denied), Duration::ZERO).unwrap();
        assert_eq!(
            (said.status, said.text.as_str()),
            (403, "access-denied: no")
        );
        let late = Answer::of_socket(String::new(), Err(Error::Timeout(1)), Duration::ZERO);
        assert!(late.is_err());
    }
}
