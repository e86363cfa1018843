//! A run as server-sent events. A client that goes away ends no turn, unless it asked for that.

use std::collections::VecDeque;

use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use serde_json::{Value, json};
use tg_mesh::TaskKind;
use tg_schemas::operations::{CancelTurn, CancelledTurn, FailureCode, Object};

use crate::ask::Part;
use crate::engine::langgraph::events::{self, Told, event};
use crate::engine::langgraph::shown;
use crate::engine::translate::Body;
use crate::handlers::caller::{Caller, code, incomplete};
use crate::handlers::operations::{failed_with, result};
use crate::handlers::sse;
use crate::running::Running;

/// A run whose message is kept.
pub(super) struct Begun {
    /// Its id.
    pub(super) run: String,
    running: Running,
    /// What was told instead of the message: an answer that was there already.
    first: Option<(String, Body)>,
}

/// Waits until the message of a run is kept. What fails before has a status that says so.
pub(super) async fn begun(mut running: Running) -> Result<Begun, Object> {
    let (name, data) = match running.next().await {
        Some(Part::Body { body, failed, .. }) => named(body.into_tree(), failed)?,
        Some(Part::Error(error)) => return Err(failed_with(&error)),
        None => return Err(incomplete()),
    };
    let id = data.get("id").and_then(Value::as_str).map(str::to_owned);
    Ok(match (name.as_str(), id) {
        ("user-message", Some(run)) => Begun {
            run,
            running,
            first: None,
        },
        _ => Begun {
            run: uuid::Uuid::new_v4().to_string(),
            running,
            first: Some((name, data)),
        },
    })
}

/// The name of an event and what it says.
fn named(mut body: Body, failed: bool) -> Result<(String, Body), Object> {
    if failed {
        return Err(result(body, true).err().unwrap_or_default());
    }
    let name = body.get("event").and_then(Value::as_str);
    let name = name.unwrap_or("done").to_owned();
    match body.remove("data").or_else(|| body.remove("result")) {
        Some(Value::Object(data)) => Ok((name, data)),
        _ => Ok((name, Body::new())),
    }
}

/// The failure that the last event of a turn is.
fn failure_of(name: &str, data: &Body) -> Option<Object> {
    if name != "error" {
        return None;
    }
    let text = data.get("error_message").cloned().unwrap_or_default();
    let code = FailureCode::UpstreamError.as_str();
    let failure = [("code", code.into()), ("message", text)];
    let failure = failure.map(|(key, value)| (key.to_owned(), value));
    Some(failure.into_iter().collect())
}

/// Waits for the end of a run, which ends where its client leaves before.
pub(super) async fn ended(caller: &Caller, thread: &str, begun: Begun) -> Result<(), Object> {
    let mut leaver = Leaver::of(caller, thread, &begun.run)?;
    let outcome = last_of(begun).await;
    leaver.0 = None;
    outcome
}

/// Reads a run to its last event.
async fn last_of(begun: Begun) -> Result<(), Object> {
    if let Some((name, data)) = begun.first {
        return failure_of(&name, &data).map_or(Ok(()), Err);
    }
    let mut running = begun.running;
    loop {
        match running.next().await {
            Some(Part::Body { body, last, failed }) => {
                let (name, data) = named(body.into_tree(), failed)?;
                if last {
                    return failure_of(&name, &data).map_or(Ok(()), Err);
                }
            }
            Some(Part::Error(error)) => return Err(failed_with(&error)),
            None => return Err(incomplete()),
        }
    }
}

/// Ends a run whose client leaves before the last event.
struct Leaver(Option<(Caller, CancelledTurn)>);

impl Leaver {
    /// Of a run of a thread.
    fn of(caller: &Caller, thread: &str, run: &str) -> Result<Self, Object> {
        let which = caller.turn(thread, run);
        let caller = Caller::of(
            caller.app.clone(),
            caller.identity.clone(),
            caller.meta.clone(),
            caller.headers.clone(),
        )?;
        Ok(Self(Some((caller, which))))
    }
}

impl Drop for Leaver {
    fn drop(&mut self) {
        let Some((caller, which)) = self.0.take() else {
            return;
        };
        // The client did not leave: the gateway cuts what outlasts its drain time, and the run goes on.
        if caller.app.closing.is_cancelled() {
            return;
        }
        let mesh = caller.app.mesh.clone();
        mesh.spawn(TaskKind::Background, async move {
            if let Err(failure) = caller.ask::<CancelTurn>(&which).await {
                tracing::debug!(
                    code = code(&failure),
                    "a run goes on although its client left"
                );
            }
        });
    }
}

/// Events on their way.
pub(super) struct Stream {
    caller: Caller,
    thread: String,
    told: Told,
    /// Events that are to be sent.
    pending: VecDeque<Bytes>,
    running: Option<Running>,
    leaver: Leaver,
}

impl Stream {
    /// Of a run of a thread.
    pub(super) fn new(caller: Caller, thread: String, told: Told) -> Self {
        let pending = VecDeque::from([told.begun()]);
        Self {
            caller,
            thread,
            told,
            pending,
            running: None,
            leaver: Leaver(None),
        }
    }

    /// The same of a run that ends where its client leaves.
    pub(super) fn ends_with_its_client(mut self, run: &str) -> Result<Self, Object> {
        self.leaver = Leaver::of(&self.caller, &self.thread, run)?;
        Ok(self)
    }

    /// From the user's message on.
    pub(super) async fn of(mut self, begun: Begun) -> Result<Response, Object> {
        self.values().await?;
        match begun.first {
            None => self.running = Some(begun.running),
            Some((name, data)) => self.over(&name, &data).await,
        }
        Ok(self.respond())
    }

    /// The thread once a question is answered that waits for the run.
    pub(super) fn until(mut self, running: Running) -> Response {
        self.running = Some(running);
        self.respond()
    }

    /// An answer that is there.
    pub(super) fn whole(mut self, content: &str, values: &Value) -> Response {
        let done = json!({"content": content});
        let told = done.as_object().map(|done| self.told.take("done", done));
        self.pending.extend(told.into_iter().flatten());
        if self.told.tells_values() {
            self.pending.push_back(event("values", values));
        }
        self.pending.push_back(events::end());
        self.respond()
    }

    /// Adds the messages of the thread, if they are wanted.
    async fn values(&mut self) -> Result<(), Object> {
        if self.told.tells_values() {
            let messages = self.caller.messages(&self.thread, None).await?;
            let values = shown::values(&messages);
            self.pending.push_back(event("values", &values));
        }
        Ok(())
    }

    /// Adds what the last event of a turn is.
    async fn over(&mut self, name: &str, data: &Body) {
        self.leaver.0 = None;
        if let Some(failure) = failure_of(name, data) {
            self.failed(&failure);
            return;
        }
        self.pending.extend(self.told.take(name, data));
        if let Err(failure) = self.values().await {
            self.pending.push_back(events::failed(&failure));
        }
        self.pending.push_back(events::end());
    }

    fn failed(&mut self, failure: &Object) {
        self.leaver.0 = None;
        self.pending.push_back(events::failed(failure));
        self.pending.push_back(events::end());
    }

    /// The next event.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some((event, self));
            }
            let mut running = self.running.take()?;
            match running.next().await {
                Some(Part::Body { body, last, failed }) => match named(body.into_tree(), failed) {
                    Ok((name, data)) if last => self.over(&name, &data).await,
                    Ok((name, data)) => {
                        self.pending.extend(self.told.take(&name, &data));
                        self.running = Some(running);
                    }
                    Err(failure) => self.failed(&failure),
                },
                Some(Part::Error(error)) => self.failed(&failed_with(&error)),
                None => self.failed(&incomplete()),
            }
        }
    }

    fn respond(self) -> Response {
        let heartbeat = self.caller.app.options.heartbeat;
        let outlet = self.caller.app.sending.outlet(&self.caller.identity);
        let events = stream::unfold((self, outlet), |(stream, outlet)| async {
            let (event, stream) = stream.next().await?;
            let event = outlet.hold(event).await;
            Some((event, (stream, outlet)))
        });
        sse::kept_alive(events, heartbeat)
    }
}
