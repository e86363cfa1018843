//! Work that goes on when its caller goes away: it counts against its user until it ends, can be listed and
//! cancelled. What runs here is what was asked here: another gateway knows its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::{StreamExt, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tg_schemas::paging::{Asked, Page};
use tg_schemas::{Error, ErrorCode};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::ask::{Part, Parts};
use crate::auth::Identity;
use crate::engine::translate::fields::Reply;
use crate::engine::translate::{Body, Fields};
use crate::error::Fault;
use crate::inflight::{InFlight, Permit};

/// By id, and so in the order they came.
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

    /// Answers an operation on a user's own requests.
    pub(crate) fn answer(
        &self,
        identity: &Identity,
        operation: &str,
        body: &Body,
    ) -> Result<Parts, Error> {
        let fields = Fields::new(body);
        let reply = match operation {
            "list-requests" => {
                let (limit, after) = (fields.integer_or("limit", 0)?, fields.text("after")?);
                self.list(&identity.id, Asked::read(operation, limit, &after)?)?
            }
            "cancel-request" => self.cancel(&identity.id, &fields.text("id")?)?,
            _ => return Err(Error::new(ErrorCode::BadOperation, "unknown operation")),
        };
        let part = Part::Body {
            body: reply,
            last: true,
            failed: false,
        };
        Ok(stream::iter([part]).boxed())
    }

    fn list(&self, user: &str, asked: Asked) -> Result<Body, Error> {
        let entries = self.entries.lock();
        let own = entries.iter().filter(|(_, entry)| &*entry.user == user);
        let page = Page::of(
            asked,
            own,
            |(id, _)| id.as_str(),
            |(id, entry)| {
                let mut row = Body::new();
                row.insert("id".to_owned(), json!(id));
                row.extend(entry.about.clone());
                row.insert("seconds".to_owned(), json!(entry.since.elapsed().as_secs()));
                Value::Object(row)
            },
        )?;
        Ok(Reply::new()
            .put("requests", page.entries)
            .put_truthy("next", page.next)
            .done())
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
        let listed_of = |user: &str| all.list(user, Asked::default()).unwrap()["requests"].clone();
        assert_eq!(listed_of("ann")[0]["service"], "agent");
        assert_eq!(listed_of("bob"), json!([]));
        let body = Body::from_iter([("id".to_owned(), json!(listed.id))]);
        assert!(all.answer(&bob, "cancel-request", &body).is_err());
        assert!(!token.is_cancelled());
        assert!(all.answer(&ann, "cancel-request", &body).is_ok());
        assert!(token.is_cancelled());
        drop(listed);
        assert_eq!(listed_of("ann"), json!([]));
        assert!(
            all.enter(&ann, Body::new(), CancellationToken::new())
                .is_ok()
        );
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
            let page = all.list("ann", asked).unwrap();
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
