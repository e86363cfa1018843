//! Which threads are looked for, and in which order they are shown.

use serde_json::Value;
use tg_schemas::operations::{Failure, Session};

use super::asked::{number, refuse, text};
use crate::engine::translate::Body;

/// Threads of a page at most, and as many where none are named.
const THREADS: u64 = 100;
const THREADS_USUAL: u64 = 10;

/// What threads are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Id,
    Created,
    Updated,
}

/// Which threads are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThreadSearch {
    /// The agent whose threads they are; `None`: any.
    pub(crate) agent: Option<String>,
    /// How they go.
    pub(crate) status: Option<String>,
    /// Most of them.
    pub(crate) limit: usize,
    /// How many are passed over.
    pub(crate) offset: usize,
    ids: Option<Vec<String>>,
    by: By,
    ascending: bool,
    /// It names metadata that no thread has.
    fits_none: bool,
}

impl ThreadSearch {
    /// Reads it.
    ///
    /// # Errors
    /// A key cannot be what it is, or is not served.
    pub(crate) fn read(body: &Body) -> Result<Self, Failure> {
        refuse(body, &["values", "extract"])?;
        let (agent, fits_none) = of_metadata(body)?;
        let ids = match body.get("ids") {
            None | Some(Value::Null) => None,
            Some(Value::Array(ids)) => {
                let ids = ids.iter().map(|id| id.as_str().map(str::to_owned));
                let ids: Option<Vec<String>> = ids.collect();
                Some(ids.ok_or_else(|| Failure::invalid("ids", "must be texts"))?)
            }
            Some(_) => return Err(Failure::invalid("ids", "must be a list")),
        };
        Ok(Self {
            agent,
            status: text(body, "status")?.map(str::to_owned),
            limit: number(body, "limit", (THREADS_USUAL, THREADS))?,
            offset: number(body, "offset", (0, u64::MAX))?,
            ids,
            by: match text(body, "sort_by")? {
                None | Some("created_at") => By::Created,
                Some("updated_at" | "state_updated_at") => By::Updated,
                Some("thread_id") => By::Id,
                Some(_) => {
                    let reason = "must be thread_id, created_at or updated_at";
                    return Err(Failure::invalid("sort_by", reason));
                }
            },
            ascending: match text(body, "sort_order")? {
                None | Some("desc") => false,
                Some("asc") => true,
                Some(_) => return Err(Failure::invalid("sort_order", "must be asc or desc")),
            },
            fits_none,
        })
    }

    /// The threads that may be shown, in their order. How they go nobody knows yet.
    pub(crate) fn sorted(&self, mut all: Vec<Session>) -> Vec<Session> {
        let no_status = matches!(self.status.as_deref(), Some("interrupted" | "error"));
        if self.fits_none || no_status {
            return Vec::new();
        }
        if let Some(ids) = &self.ids {
            all.retain(|one| ids.contains(&one.id));
        }
        let key = |one: &Session| match self.by {
            By::Id => one.id.clone(),
            By::Created => one.created_at.clone(),
            By::Updated => one.updated_at.clone(),
        };
        all.sort_by_cached_key(key);
        if !self.ascending {
            all.reverse();
        }
        all
    }
}

/// The agent that metadata name, and whether they name what no thread has: of metadata a thread has its agent alone.
fn of_metadata(body: &Body) -> Result<(Option<String>, bool), Failure> {
    let metadata = match body.get("metadata") {
        None | Some(Value::Null) => return Ok((None, false)),
        Some(Value::Object(metadata)) => metadata,
        Some(_) => return Err(Failure::invalid("metadata", "must be an object")),
    };
    let mut agent: Option<&str> = None;
    for (key, value) in metadata {
        match (key.as_str(), value.as_str()) {
            ("graph_id" | "assistant_id", Some(named)) if agent.is_none_or(|one| one == named) => {
                agent = Some(named);
            }
            _ => return Ok((None, true)),
        }
    }
    Ok((agent.map(str::to_owned), false))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: Value) -> Result<ThreadSearch, String> {
        let body = body.as_object().cloned().unwrap();
        ThreadSearch::read(&body).map_err(|failure| failure.message)
    }

    fn sessions() -> Vec<Session> {
        let of = |id: &str, created: &str, updated: &str| Session {
            id: id.to_owned(),
            created_at: created.to_owned(),
            updated_at: updated.to_owned(),
            ..Session::default()
        };
        vec![of("b", "1", "9"), of("a", "2", "3"), of("c", "3", "4")]
    }

    fn ids(search: Value) -> Vec<String> {
        let found = read(search).unwrap().sorted(sessions());
        found.into_iter().map(|one| one.id).collect()
    }

    /// As agent-chat-ui and deep-agents-ui search.
    #[test]
    fn threads_are_found_by_their_agent_in_the_order_that_is_asked_for() {
        let search = read(json!({"metadata": {"graph_id": "ann"}, "limit": 100})).unwrap();
        assert_eq!((search.agent.as_deref(), search.limit), (Some("ann"), 100));
        let deep = json!({"limit": 20, "offset": 0, "sort_by": "updated_at", "sort_order": "desc",
            "status": null, "metadata": {}});
        assert_eq!(ids(deep), ["b", "c", "a"]);
        assert_eq!(ids(json!({})), ["c", "a", "b"]);
        let by_id = json!({"sort_by": "thread_id", "sort_order": "asc"});
        assert_eq!(ids(by_id), ["a", "b", "c"]);
        assert_eq!(ids(json!({"ids": ["a"]})), ["a"]);
    }

    #[test]
    fn what_no_thread_has_finds_none_and_what_is_wrong_is_named() {
        for none in [
            json!({"metadata": {"owner": "ann"}}),
            json!({"metadata": {"graph_id": "ann", "assistant_id": "bob"}}),
            json!({"status": "interrupted"}),
        ] {
            assert!(ids(none).is_empty());
        }
        for (wrong, key) in [
            (json!({"values": {"a": 1}}), "values"),
            (json!({"limit": 101}), "limit"),
            (json!({"sort_by": "status"}), "sort_by"),
            (json!({"sort_order": "up"}), "sort_order"),
            (json!({"ids": [1]}), "ids"),
            (json!({"metadata": "a"}), "metadata"),
        ] {
            let told = read(wrong).unwrap_err();
            assert!(told.starts_with(&format!("{key}: ")), "{told}");
        }
    }
}
