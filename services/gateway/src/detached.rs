//! Work that goes on when its caller goes away: it counts against its user until it ends, can be listed and
//! cancelled. What was asked here is known here; runs of the agent are in its ledger too, whichever gateway they came
//! through, and whether or not that one is still there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tg_clients::agent_runs::AgentRuns;
use tg_mesh::tg_bus::pause::doubled;
use tg_mesh::{Mesh, TaskKind, clock};
use tg_schemas::msg::{DetachedRun, RunHappened};
use tg_schemas::paging::{Asked, Page};
use tg_schemas::{Error, ErrorCode, WorkspaceId};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::{NoContext, Timestamp, Uuid};

use crate::ask::{Part, Parts};
use crate::auth::{Identity, Resource};
use crate::engine::translate::fields::Reply;
use crate::engine::translate::{Body, Fields};
use crate::error::RequestError;
use crate::inflight::{InFlight, Permit};
use crate::registry::Gate;
use crate::stands;

/// By id, and so by the millisecond in which they came.
type Entries = Arc<Mutex<BTreeMap<String, Entry>>>;

/// Name of the service whose ledger is asked.
const AGENT: &str = "agent";
/// How long after that it is said again that nobody listens to a run, first and at most.
const LEAVE_PAUSE: Duration = Duration::from_millis(300);
const LEAVE_PAUSE_MOST: Duration = Duration::from_secs(30);
/// The gateway repeats a cancel for so long, and at pauses of at most this: after that nobody waits for the answer of an agent that comes
/// back.
const CANCEL_LATER: Duration = Duration::from_secs(60);
const CANCEL_PAUSE_MOST: Duration = Duration::from_secs(5);
/// Pages of runs in which those of a request are looked for.
const RUN_PAGES: usize = 16;
/// It is said again for so long at least, however soon the run is to end.
const LEAVE_LEAST: Duration = Duration::from_secs(10);

/// All of it.
pub(crate) struct Detached {
    entries: Entries,
    users: InFlight,
    limit: usize,
}

/// What a list shows of a request. Nearly all end before somebody asks, so it is made into a row only then.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    pub(crate) service: &'static str,
    pub(crate) operation: String,
    pub(crate) flow: String,
    pub(crate) workspace: Option<WorkspaceId>,
    pub(crate) request_id: Arc<str>,
    pub(crate) needs: Option<Needs>,
}

/// What it took to ask, and the workspace in its generation: whoever cancels needs the same.
#[derive(Debug, Clone)]
pub(crate) struct Needs {
    pub(crate) gate: Gate,
    pub(crate) resource: Resource,
    pub(crate) owner: Option<(WorkspaceId, i64)>,
}

impl Shown {
    fn row(&self) -> Body {
        let workspace = self.workspace.as_ref().map_or("", WorkspaceId::as_str);
        let said = [
            ("service", self.service),
            ("operation", self.operation.as_str()),
            ("flow", self.flow.as_str()),
            ("workspace", workspace),
            ("request-id", &*self.request_id),
        ];
        let said = said.into_iter().filter(|(_, text)| !text.is_empty());
        said.map(|(key, text)| (key.to_owned(), Value::from(text)))
            .collect()
    }
}

/// What is told of a request.
struct Entry {
    user: Arc<str>,
    about: Shown,
    since: Instant,
    cancel: CancellationToken,
    /// It goes on without its caller, and is listed.
    goes_on: bool,
}

/// One request; is on the list until dropped.
pub(crate) struct Listed {
    entries: Entries,
    id: String,
    user: Arc<str>,
    counts: Option<Permit>,
}

impl Listed {
    /// Whether it goes on without its caller.
    pub(crate) fn goes_on(&self) -> bool {
        self.counts.is_some()
    }

    /// Says to the agent that nobody listens to its run, which it may not have begun yet; again until it has heard it, or the
    /// run's time without its caller is over.
    pub(crate) fn left(
        &self,
        mesh: Mesh,
        grace: Duration,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (id, user) = (self.id.clone(), self.user.clone());
        async move {
            let end = Instant::now() + grace.max(LEAVE_LEAST);
            let mut pause = LEAVE_PAUSE;
            loop {
                match AgentRuns::of(&mesh, &user).leave(&id).await {
                    Ok(true) => return,
                    Ok(false) => {}
                    Err(error) => tracing::debug!(%error, "the agent does not hear who is gone"),
                }
                if Instant::now() + pause >= end {
                    return;
                }
                tokio::time::sleep(pause).await;
                pause = doubled(pause, LEAVE_PAUSE_MOST);
            }
        }
    }

    /// By this it is listed and cancelled; its question bears it too.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.entries.lock().remove(&self.id);
    }
}

impl Detached {
    /// At most so many of one user.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            entries: Entries::default(),
            users: InFlight::new(limit),
            limit,
        }
    }

    /// Puts a request on the list. The token ends it.
    pub(crate) fn enter(
        &self,
        identity: &Identity,
        about: Shown,
        cancel: CancellationToken,
    ) -> Result<Listed, RequestError> {
        let counts = self.users.enter(&*identity.id).ok_or_else(too_many)?;
        Ok(self.put(identity, about, cancel, Some(counts)))
    }

    /// Notes a request that ends with its caller: it counts against nobody and is on no list, but its user can ask about it and
    /// end it.
    pub(crate) fn note(
        &self,
        identity: &Identity,
        about: Shown,
        cancel: CancellationToken,
    ) -> Listed {
        self.put(identity, about, cancel, None)
    }

    fn put(
        &self,
        identity: &Identity,
        about: Shown,
        cancel: CancellationToken,
        counts: Option<Permit>,
    ) -> Listed {
        // Whoever knows an id of the same millisecond must not guess this one, as with the counter of `now_v7`: the threads
        // service derives secrets from it.
        let id = Uuid::new_v7(Timestamp::now(NoContext)).to_string();
        let entry = Entry {
            user: identity.id.clone(),
            about,
            since: Instant::now(),
            cancel,
            goes_on: counts.is_some(),
        };
        self.entries.lock().insert(id.clone(), entry);
        Listed {
            entries: self.entries.clone(),
            id,
            user: identity.id.clone(),
            counts,
        }
    }

    /// Whether a user has, with what is on the list, no more under way than is allowed: also of the agent's runs that came
    /// through others. Where the agent cannot be asked, what is known here counts.
    pub(crate) async fn has_room(
        &self,
        mesh: &Mesh,
        identity: &Identity,
    ) -> Result<(), RequestError> {
        let runs = match AgentRuns::of(mesh, &identity.id).list().await {
            Ok(runs) => runs,
            Err(error) => {
                tracing::warn!(%error, "the agent's runs cannot be counted");
                return Ok(());
            }
        };
        match self.all_of(&identity.id, runs).len() <= self.limit {
            true => Ok(()),
            false => Err(too_many()),
        }
    }

    /// A user's own requests, with these runs of the agent, by id.
    fn all_of(&self, user: &str, runs: Vec<DetachedRun>) -> BTreeMap<String, Body> {
        let of_agent = |run: DetachedRun| {
            let since = clock::millis().saturating_sub(run.started_ms).max(0) / 1000;
            let said = [
                ("service", AGENT.to_owned()),
                ("flow", run.flow),
                ("workspace", run.workspace),
                ("request-id", run.request_id),
            ];
            let said = said.into_iter().filter(|(_, text)| !text.is_empty());
            let mut row: Body = said
                .map(|(key, text)| (key.to_owned(), json!(text)))
                .collect();
            row.insert("seconds".to_owned(), json!(since));
            (run.id, row)
        };
        let mut all: BTreeMap<_, _> = runs.into_iter().map(of_agent).collect();
        let entries = self.entries.lock();
        let own = |entry: &Entry| &*entry.user == user && entry.goes_on;
        for (id, entry) in entries.iter().filter(|(_, entry)| own(entry)) {
            let mut row = entry.about.row();
            row.insert("seconds".to_owned(), json!(entry.since.elapsed().as_secs()));
            all.insert(id.clone(), row);
        }
        all
    }

    /// Answers an operation on a user's own requests, or on the runs of a workspace.
    pub(crate) async fn answer(
        &self,
        mesh: &Mesh,
        (user, workspace): (&str, &str),
        operation: &str,
        body: &Body,
    ) -> Result<Parts, Error> {
        let fields = Fields::new(body);
        let runs = AgentRuns::of(mesh, user).of_workspace(workspace);
        let page = || {
            let (limit, after) = (fields.integer_or("limit", 0)?, fields.text("after")?);
            Asked::read(operation, limit, &after)
        };
        let reply = match operation {
            "list-requests" => list("requests", page()?, self.all_of(user, runs.list().await?))?,
            "list-runs" => {
                // The page is the agent's.
                let (limit, after) = (fields.integer_or("limit", 0)?, fields.text("after")?);
                page()?;
                let (known, next) = runs.known(limit, &after).await?;
                let rows = known.into_iter().map(run_shown).map(row_shown);
                Reply::new()
                    .put("runs", rows.collect::<Vec<_>>())
                    .put_truthy("next", next)
                    .done()
            }
            "why-run" => {
                let why = runs.why(&fields.required_text("run")?).await?;
                let (run, standing) = why.ok_or_else(|| not_found("run not found"))?;
                stands::of_run(run_shown(run), standing)
            }
            "why-request" => {
                let name = fields.required_text("request-id")?;
                let mut all = self.named(mesh, user, &name);
                stands::add_runs(&mut all, runs_named(&runs, &name).await?);
                if all.is_empty() {
                    return Err(not_found("request not found"));
                }
                let rows = all.into_iter().map(row_shown).collect::<Vec<_>>();
                Reply::new().put("requests", rows).done()
            }
            "confirm-run" => {
                let (id, answer) = (
                    fields.required_text("run")?,
                    fields.required_text("answer")?,
                );
                if !matches!(answer.as_str(), "yes" | "no") {
                    let text = "answer: must be yes or no";
                    return Err(Error::new(ErrorCode::BadRequest, text));
                }
                let asked = fields.text("message_id")?;
                if !runs.confirm(&id, &asked, &answer).await? {
                    return Err(not_found("run not found"));
                }
                Reply::new().put("run", id).put("answer", answer).done()
            }
            "cancel-request" if self.is_of_others(user, &fields.required_text("id")?) => {
                let id = fields.required_text("id")?;
                self.cancel(user, &id);
                cancelled(id, None)
            }
            "cancel-request" | "cancel-run" => {
                let key = if operation == "cancel-run" {
                    "run"
                } else {
                    "id"
                };
                let id = fields.required_text(key)?;
                // The agent notes it for good, also where this gateway hangs up; it is asked first, so that it says what had
                // happened.
                let noted = runs.cancel(&id).await;
                let here = workspace.is_empty() && self.cancel(user, &id);
                let happened = match noted {
                    Err(error) if !here => return Err(error),
                    noted => noted.unwrap_or_default(),
                };
                if !here && happened.is_none() {
                    let text = match key {
                        "run" => "run not found",
                        _ => "request not found",
                    };
                    return Err(not_found(text));
                }
                cancelled_at_last(mesh, user, id, happened)
            }
            _ => return Err(Error::new(ErrorCode::BadOperation, "unknown operation")),
        };
        let part = Part::Body {
            body: reply.into(),
            last: true,
            failed: false,
        };
        Ok(stream::iter([part]).boxed())
    }

    /// A user's own requests that are under way here and are called so, by id: how far each is.
    fn named(&self, mesh: &Mesh, user: &str, name: &str) -> BTreeMap<String, Body> {
        let entries = self.entries.lock();
        let called = |id: &str, entry: &Entry| {
            let known = Some(&*entry.about.request_id).filter(|known| !known.is_empty());
            &*entry.user == user && (id == name || known == Some(name))
        };
        let own = entries.iter().filter(|(id, entry)| called(id, entry));
        own.map(|(id, entry)| {
            let mut row = entry.about.row();
            row.insert("seconds".to_owned(), json!(entry.since.elapsed().as_secs()));
            row.insert("detached".to_owned(), json!(entry.goes_on));
            stands::of_question(&mut row, mesh.client().stands(id));
            (id.clone(), row)
        })
        .collect()
    }

    /// What it took to ask for a user's request. `None`: it is not here.
    pub(crate) fn needs(&self, user: &str, id: &str) -> Option<Needs> {
        let entries = self.entries.lock();
        let entry = entries.get(id).filter(|entry| &*entry.user == user);
        entry.and_then(|entry| entry.about.needs.clone())
    }

    /// Whether a user's request is here, and no run of the agent is behind it: the agent need not be asked.
    fn is_of_others(&self, user: &str, id: &str) -> bool {
        let entries = self.entries.lock();
        entries.get(id).is_some_and(|entry| {
            let service = entry.about.service;
            &*entry.user == user && !matches!(service, "" | "agent" | "thru")
        })
    }

    /// `false`: it is not on the list, or another user's.
    fn cancel(&self, user: &str, id: &str) -> bool {
        let entries = self.entries.lock();
        let entry = entries.get(id).filter(|entry| &*entry.user == user);
        if let Some(entry) = entry {
            entry.cancel.cancel();
        }
        entry.is_some()
    }
}

/// The answer to a cancel. If the agent does not know the run, the gateway cancels it again later: a successor of the agent would go on
/// with it, or the run has not begun.
fn cancelled_at_last(mesh: &Mesh, user: &str, id: String, happened: Option<RunHappened>) -> Body {
    if happened.is_none() {
        let later = cancel_later(mesh.clone(), user.to_owned(), id.clone());
        mesh.spawn(TaskKind::Background, later);
    }
    cancelled(id, happened)
}

/// Cancels a run as soon as the agent knows it.
async fn cancel_later(mesh: Mesh, user: String, id: String) {
    let end = Instant::now() + CANCEL_LATER;
    let mut pause = LEAVE_PAUSE;
    while Instant::now() + pause < end {
        tokio::time::sleep(pause).await;
        match AgentRuns::of(&mesh, &user).cancel(&id).await {
            Ok(Some(_)) => return,
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, "the agent does not hear what is cancelled"),
        }
        pause = doubled(pause, CANCEL_PAUSE_MOST);
    }
}

/// Runs that are known and were asked for by a request that is called so; among so many of the newest.
async fn runs_named(runs: &AgentRuns<'_>, name: &str) -> Result<Vec<(String, Body)>, Error> {
    let (mut found, mut after) = (Vec::new(), String::new());
    for _ in 0..RUN_PAGES {
        let (known, next) = runs.known(0, &after).await?;
        let called = known.into_iter();
        let called = called.filter(|run| [&*run.request_id, &*run.id].contains(&name));
        found.extend(called.map(|run| {
            let since = clock::millis().saturating_sub(run.started_ms).max(0) / 1000;
            let (id, mut row) = run_shown(run);
            row.insert("seconds".to_owned(), json!(since));
            (id, row)
        }));
        if next.is_empty() {
            break;
        }
        after = next;
    }
    Ok(found)
}

fn not_found(text: &str) -> Error {
    Error::new(ErrorCode::NotFound, text)
}

fn too_many() -> RequestError {
    RequestError::busy("that are detached")
}

/// What had happened by the time something was cancelled, where that is known.
fn cancelled(id: String, happened: Option<RunHappened>) -> Body {
    let reply = Reply::new().put("cancelled", id);
    let Some(happened) = happened else {
        return reply.done();
    };
    let calls = happened.calls.into_iter().map(|call| {
        Reply::new()
            .put("tool", call.tool)
            .put("returned", call.returned)
            .put("failed", call.failed)
            .done()
    });
    let calls: Vec<Value> = calls.map(Value::Object).collect();
    reply
        .put("ended", happened.over)
        .put("steps", happened.steps)
        .put("tool-calls", calls)
        .put("in-token", happened.in_token)
        .put("out-token", happened.out_token)
        .done()
}

/// A run in a list.
fn run_shown(run: DetachedRun) -> (String, Body) {
    let row = Reply::new()
        .put_truthy("flow", run.flow)
        .put_truthy("workspace", run.workspace)
        .put_truthy("user", run.user)
        .put_truthy("request-id", run.request_id)
        .put("state", run.state)
        .put("on-disconnect", run.on_disconnect)
        .put("started-ms", run.started_ms);
    (run.id, row.done())
}

fn row_shown((id, mut row): (String, Body)) -> Value {
    row.insert("id".to_owned(), json!(id));
    Value::Object(row)
}

fn list(key: &str, asked: Asked, all: BTreeMap<String, Body>) -> Result<Body, Error> {
    let page = Page::of(asked, all, |(id, _)| id.clone(), row_shown)?;
    Ok(Reply::new()
        .put(key, page.entries)
        .put_truthy("next", page.next)
        .done())
}

#[cfg(test)]
mod tests;
