//! Calls of tools that are answered at the moment, by who made them: a notice of whoever did so cancels one. What a session is
//! called is all that there is of it: nothing is kept for one between two requests.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::RequestId;
use tokio_util::sync::CancellationToken;

/// Who made a call, in which session, and what they call it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    /// User id.
    pub(crate) user: Arc<str>,
    /// The session.
    pub(crate) session: String,
    /// The id of the request.
    pub(crate) id: RequestId,
}

/// All of them. Bounded by the requests in progress.
#[derive(Debug, Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<HashMap<Name, CancellationToken>>>);

/// One call; is known until dropped.
#[derive(Debug)]
pub(crate) struct Entered {
    all: Calls,
    name: Name,
}

impl Calls {
    /// Makes a call known by its name, unless one of that name is under way.
    pub(crate) fn enter(&self, name: Name, cancel: CancellationToken) -> Option<Entered> {
        match self.0.lock().entry(name.clone()) {
            Entry::Occupied(_) => return None,
            Entry::Vacant(place) => place.insert(cancel),
        };
        Some(Entered {
            all: self.clone(),
            name,
        })
    }

    /// Cancels a call, if it is under way.
    pub(crate) fn cancel(&self, name: &Name) {
        if let Some(cancel) = self.0.lock().get(name) {
            cancel.cancel();
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(user: &str, session: &str, id: i64) -> Name {
        Name {
            user: user.into(),
            session: session.to_owned(),
            id: RequestId::Number(id),
        }
    }

    #[test]
    fn a_call_is_cancelled_by_its_own_session_alone_and_forgotten_at_its_end() {
        let calls = Calls::default();
        let cancel = CancellationToken::new();
        let entered = calls.enter(name("u", "s", 1), cancel.clone());
        assert!(entered.is_some());
        assert!(calls.enter(name("u", "s", 1), cancel.clone()).is_none());
        for other in [name("v", "s", 1), name("u", "t", 1), name("u", "s", 2)] {
            calls.cancel(&other);
        }
        assert!(!cancel.is_cancelled());
        calls.cancel(&name("u", "s", 1));
        assert!(cancel.is_cancelled());
        drop(entered);
        assert!(calls.0.lock().is_empty());
    }
}
