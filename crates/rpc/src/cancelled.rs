//! Which askers gave up lately, for work that is between two messages when the cancel comes.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

/// Cancels remembered.
const KEPT: usize = 4096;

/// Questions that were cancelled lately, each with the inbox of who cancelled it: who asks under the same id after that
/// one means a question of its own.
#[derive(Default)]
pub(crate) struct Cancelled(Mutex<VecDeque<Cancel>>);

/// Id of the question, and the inbox that the cancel came from.
type Cancel = (Arc<str>, Option<Arc<str>>);

impl Cancelled {
    /// A question was cancelled; by whom is not known of a process that does not say so.
    pub(crate) fn note(&self, id: &str, from: Option<&str>) {
        let mut kept = self.0.lock();
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back((id.into(), from.map(Into::into)));
    }

    /// Whether the asker with this inbox cancelled the question.
    pub(crate) fn has(&self, id: &str, asker: &str) -> bool {
        let kept = self.0.lock();
        kept.iter()
            .any(|(known, from)| **known == *id && from.as_deref().is_none_or(|from| from == asker))
    }
}
