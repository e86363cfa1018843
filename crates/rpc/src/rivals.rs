//! Servers that begin an answer anew while another one is giving it: a question that was asked again because its server
//! was silent for long may be answered twice, and the words of two answers do not fit together.

use std::sync::Arc;

/// Rivals that are remembered of one answer: more copies of a service than that answer no question at once.
const MOST: usize = 8;

/// Who began anew. What they say does not count until the server that they compete with is given up.
#[derive(Default)]
pub(crate) struct Rivals(Vec<Arc<str>>);

impl Rivals {
    /// Whether a part from another server than the one that answers belongs to another answer: it repeats a number that
    /// is already there (`end` is the first that is not), or its sender did so before.
    ///
    /// Who goes on with an answer, as a process does that takes a run over, begins after what is there.
    pub(crate) fn competes(&mut self, from: &str, seq: u64, end: u64) -> bool {
        if self.knows(from) {
            return true;
        }
        let begins_anew = seq < end;
        if begins_anew {
            if self.0.len() == MOST {
                self.0.remove(0);
            }
            self.0.push(from.into());
        }
        begins_anew
    }

    /// Whether a server began anew.
    pub(crate) fn knows(&self, from: &str) -> bool {
        self.0.iter().any(|rival| **rival == *from)
    }
}
