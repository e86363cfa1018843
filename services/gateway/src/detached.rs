//! Work that goes on when its caller goes away: it counts against its user until it ends, can be listed and
//! cancelled. What was asked here is known here; runs of the agent are in its ledger too, whichever gateway they came
//! through, and whether or not that one is still there.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tg_clients::agent_runs::AgentRuns;
use tg_mesh::{Mesh, clock};
use tg_schemas::msg::DetachedRun;
use tg_schemas::paging::{Asked, Page};
use tg_schemas::{Error, ErrorCode};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::ask::{Part, Parts};
use crate::auth::Identity;
use crate::engine::translate::fields::Reply;
use crate::engine::translate::{Body, Fields};
use crate::error::RequestError;
use crate::inflight::{InFlight, Permit};

/// By id, and so in the order they came.
type Entries = Arc<Mutex<BTreeMap<String, Entry>>>;

/// Name of the service whose ledger is asked.
const AGENT: &str = "agent";

/// All of it.
pub(crate) struct Detached {
    entries: Entries,
    users: InFlight,
    limit: usize,
}

/// What is told of a request.
struct Entry {
    user: Arc<str>,
    about: Body,
    since: Instant,
    cancel: CancellationToken,
}

/// One request; is on the list until dropped.
pub(crate) struct Listed {
    entries: Entries,
    id: String,
    _counts: Permit,
}

impl Listed {
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
        about: Body,
        cancel: CancellationToken,
    ) -> Result<Listed, RequestError> {
        let counts = self.users.enter(&*identity.id).ok_or_else(too_many)?;
        let id = uuid::Uuid::now_v7().to_string();
        let entry = Entry {
            user: identity.id.clone(),
            about,
            since: Instant::now(),
            cancel,
        };
        self.entries.lock().insert(id.clone(), entry);
        Ok(Listed {
            entries: self.entries.clone(),
            id,
            _counts: counts,
        })
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
        for (id, entry) in entries.iter().filter(|(_, entry)| &*entry.user == user) {
            let mut row = entry.about.clone();
            row.insert("seconds".to_owned(), json!(entry.since.elapsed().as_secs()));
            all.insert(id.clone(), row);
        }
        all
    }

    /// Answers an operation on a user's own requests.
    pub(crate) async fn answer(
        &self,
        mesh: &Mesh,
        identity: &Identity,
        operation: &str,
        body: &Body,
    ) -> Result<Parts, Error> {
        let fields = Fields::new(body);
        let runs = AgentRuns::of(mesh, &identity.id);
        let reply = match operation {
            "list-requests" => {
                let (limit, after) = (fields.integer_or("limit", 0)?, fields.text("after")?);
                let asked = Asked::read(operation, limit, &after)?;
                list(asked, self.all_of(&identity.id, runs.list().await?))?
            }
            "cancel-request" => {
                let id = fields.text("id")?;
                if id.is_empty() {
                    return Err(Error::new(ErrorCode::BadRequest, "id: is required"));
                }
                // The agent notes it for good, also where this gateway hangs up.
                let here = self.cancel(&identity.id, &id);
                let noted = match runs.cancel(&id).await {
                    Err(error) if !here => return Err(error),
                    noted => noted.unwrap_or(false),
                };
                if !here && !noted {
                    return Err(Error::new(ErrorCode::NotFound, "request not found"));
                }
                Body::from_iter([("cancelled".to_owned(), json!(id))])
            }
            _ => return Err(Error::new(ErrorCode::BadOperation, "unknown operation")),
        };
        let part = Part::Body {
            body: reply,
            last: true,
            failed: false,
        };
        Ok(stream::iter([part]).boxed())
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

fn too_many() -> RequestError {
    RequestError::busy("that are detached")
}

fn list(asked: Asked, all: BTreeMap<String, Body>) -> Result<Body, Error> {
    let page = Page::of(
        asked,
        all,
        |(id, _)| id.clone(),
        |(id, mut row)| {
            row.insert("id".to_owned(), json!(id));
            Value::Object(row)
        },
    )?;
    Ok(Reply::new()
        .put("requests", page.entries)
        .put_truthy("next", page.next)
        .done())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_and_is_its_users_alone() {
        let all = Detached::new(1);
        let ann = Identity::plain("ann", "w");
        let token = CancellationToken::new();
        let about = Body::from_iter([("service".to_owned(), json!("agent"))]);
        let listed = all.enter(&ann, about, token.clone()).ok().unwrap();
        let another = all.enter(&ann, Body::new(), CancellationToken::new());
        assert!(another.is_err());
        let listed_of = |user: &str| {
            let all = all.all_of(user, Vec::new());
            list(Asked::default(), all).unwrap()["requests"].clone()
        };
        assert_eq!(listed_of("ann")[0]["service"], "agent");
        assert_eq!(listed_of("bob"), json!([]));
        assert!(!all.cancel("bob", listed.id()) && !token.is_cancelled());
        assert!(all.cancel("ann", listed.id()) && token.is_cancelled());
        drop(listed);
        assert_eq!(listed_of("ann"), json!([]));
        assert!(
            all.enter(&ann, Body::new(), CancellationToken::new())
                .is_ok()
        );
    }

    #[test]
    fn a_run_that_the_agent_knows_too_counts_once() {
        let all = Detached::new(2);
        let (ann, about) = (Identity::plain("ann", "w"), Body::new());
        let listed = all.enter(&ann, about, CancellationToken::new());
        let run = |id: &str| DetachedRun {
            id: id.to_owned(),
            flow: "f".to_owned(),
            ..DetachedRun::default()
        };
        let id = listed.as_ref().ok().unwrap().id().to_owned();
        let rows = all.all_of("ann", vec![run(&id), run("elsewhere")]);
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (&rows["elsewhere"]["service"], &rows["elsewhere"]["flow"]),
            (&json!("agent"), &json!("f"))
        );
        assert_eq!(rows["elsewhere"].get("request-id"), None);
    }

    #[test]
    fn requests_are_listed_in_pages_in_the_order_they_came() {
        let all = Detached::new(9);
        let ann = Identity::plain("ann", "w");
        let enter = |name: &str| {
            let about = Body::from_iter([("request-id".to_owned(), json!(name))]);
            all.enter(&ann, about, CancellationToken::new())
                .ok()
                .unwrap()
        };
        let page = |limit: i64, after: &str| {
            let asked = Asked::read("list-requests", limit, after).unwrap();
            let page = list(asked, all.all_of("ann", Vec::new())).unwrap();
            let names = page["requests"].as_array().unwrap().iter();
            let names: Vec<_> = names.map(|row| row["request-id"].clone()).collect();
            let next = page
                .get("next")
                .map(|next| next.as_str().unwrap().to_owned());
            (names, next)
        };
        let listed: Vec<_> = ["c", "a", "b"].map(enter).into();
        let (names, next) = page(2, "");
        assert_eq!(names, ["c", "a"]);
        assert_eq!(page(2, &next.unwrap()), (vec![json!("b")], None));
        assert_eq!(page(0, "").0, ["c", "a", "b"]);
        drop(listed);
    }
}
