//! Work that goes on when its caller goes away: it counts against its user until it ends, can be listed and
//! cancelled. What runs here is what was asked here: another gateway knows its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tg_schemas::{Error, ErrorCode};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::ask::{Part, Parts};
use crate::auth::Identity;
use crate::engine::translate::{Body, Fields};
use crate::error::Fault;
use crate::inflight::{InFlight, Permit};

type Entries = Arc<Mutex<BTreeMap<String, Entry>>>;

/// All of it.
pub(crate) struct Detached {
    entries: Entries,
    users: InFlight,
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
        }
    }

    /// Puts a request on the list. The token ends it.
    pub(crate) fn enter(
        &self,
        identity: &Identity,
        about: Body,
        cancel: CancellationToken,
    ) -> Result<Listed, Fault> {
        let counts = self
            .users
            .enter(&*identity.id)
            .ok_or_else(|| Fault::busy("that go on without their caller"))?;
        let id = uuid::Uuid::new_v4().to_string();
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

    /// Answers an operation on a user's own requests.
    pub(crate) fn answer(
        &self,
        identity: &Identity,
        operation: &str,
        body: &Body,
    ) -> Result<Parts, Error> {
        let reply = match operation {
            "list-requests" => self.list(&identity.id),
            "cancel-request" => self.cancel(&identity.id, &Fields::new(body).text("id")?)?,
            _ => return Err(Error::new(ErrorCode::BadOperation, "unknown operation")),
        };
        let part = Part::Body {
            body: reply,
            last: true,
            failed: false,
        };
        Ok(stream::iter([part]).boxed())
    }

    fn list(&self, user: &str) -> Body {
        let entries = self.entries.lock();
        let mut own: Vec<_> = entries.iter().filter(|(_, e)| &*e.user == user).collect();
        own.sort_by_key(|(_, entry)| entry.since);
        let shown = own.into_iter().map(|(id, entry)| {
            let mut row = Body::new();
            row.insert("id".to_owned(), json!(id));
            row.extend(entry.about.clone());
            row.insert("seconds".to_owned(), json!(entry.since.elapsed().as_secs()));
            Value::Object(row)
        });
        Body::from_iter([("requests".to_owned(), shown.collect())])
    }

    fn cancel(&self, user: &str, id: &str) -> Result<Body, Error> {
        if id.is_empty() {
            return Err(Error::new(ErrorCode::BadRequest, "id: is required"));
        }
        let entries = self.entries.lock();
        let entry = entries.get(id).filter(|entry| &*entry.user == user);
        let entry = entry.ok_or_else(|| Error::new(ErrorCode::NotFound, "request not found"))?;
        entry.cancel.cancel();
        Ok(Body::from_iter([("cancelled".to_owned(), json!(id))]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_and_is_its_users_alone() {
        let all = Detached::new(1);
        let (ann, bob) = (Identity::plain("ann", "w"), Identity::plain("bob", "w"));
        let token = CancellationToken::new();
        let about = Body::from_iter([("service".to_owned(), json!("agent"))]);
        let listed = all.enter(&ann, about, token.clone()).ok().unwrap();
        let another = all.enter(&ann, Body::new(), CancellationToken::new());
        assert!(another.is_err());
        assert_eq!(all.list("ann")["requests"][0]["service"], "agent");
        assert_eq!(all.list("bob")["requests"], json!([]));
        let body = Body::from_iter([("id".to_owned(), json!(listed.id))]);
        assert!(all.answer(&bob, "cancel-request", &body).is_err());
        assert!(!token.is_cancelled());
        assert!(all.answer(&ann, "cancel-request", &body).is_ok());
        assert!(token.is_cancelled());
        drop(listed);
        assert_eq!(all.list("ann")["requests"], json!([]));
        assert!(
            all.enter(&ann, Body::new(), CancellationToken::new())
                .is_ok()
        );
    }
}
