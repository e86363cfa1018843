//! Which askers gave up lately, for work that is between two messages when the cancel comes.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

/// Cancels remembered.
const KEPT: usize = 4096;

/// Questions that were cancelled lately, each with the inbox of who cancelled it: who asks under the same id after that
/// one means a question of its own.
#[derive(Default)]
pub(crate) struct Cancelled(Mutex<Kept>);

/// By their ids: each question that comes is looked up.
#[derive(Default)]
struct Kept {
    /// The inboxes that the cancels of a question came from, in order.
    by_id: HashMap<Arc<str>, VecDeque<Option<Arc<str>>>>,
    /// The ids of all cancels, in order.
    order: VecDeque<Arc<str>>,
}

impl Kept {
    fn forget_oldest(&mut self) {
        let Some(oldest) = self.order.pop_front() else {
            return;
        };
        if let Entry::Occupied(mut of) = self.by_id.entry(oldest) {
            of.get_mut().pop_front();
            if of.get().is_empty() {
                of.remove();
            }
        }
    }
}

impl Cancelled {
    /// A question was cancelled; by whom is not known of a process that does not say so.
    pub(crate) fn note(&self, id: &str, from: Option<&str>) {
        let id: Arc<str> = id.into();
        let mut kept = self.0.lock();
        if kept.order.len() >= KEPT {
            kept.forget_oldest();
        }
        let of = kept.by_id.entry(id.clone()).or_default();
        of.push_back(from.map(Into::into));
        kept.order.push_back(id);
    }

    /// Whether the asker with this inbox cancelled the question.
    pub(crate) fn has(&self, id: &str, asker: &str) -> bool {
        let kept = self.0.lock();
        let of = kept.by_id.get(id);
        let mut of = of.into_iter().flatten();
        of.any(|from| from.as_deref().is_none_or(|from| from == asker))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_cancels_are_known_each_by_who_sent_it() {
        let cancelled = Cancelled::default();
        cancelled.note("q", Some("a"));
        cancelled.note("q", Some("b"));
        cancelled.note("r", None);
        for (id, asker, has) in [
            ("q", "a", true),
            ("q", "b", true),
            ("q", "c", false),
            ("r", "c", true),
            ("s", "a", false),
        ] {
            assert_eq!(cancelled.has(id, asker), has, "{id} {asker}");
        }
        // The first one goes, and the second of that question stays.
        (3..=KEPT).for_each(|n| cancelled.note(&n.to_string(), None));
        assert!(!cancelled.has("q", "a") && cancelled.has("q", "b"));
        cancelled.note("t", None);
        assert!(!cancelled.has("q", "b") && cancelled.has("r", "a"));
        let kept = cancelled.0.lock();
        assert_eq!((kept.order.len(), kept.by_id.len()), (KEPT, KEPT));
    }
}
