//! Which pieces are on their way, and what their stores said. Pure.

use std::collections::HashMap;

use tg_schemas::msg::RunTallyEntry;

use crate::engine::piece::{Part, Piece};
use crate::flow::store_of;

/// A piece on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) id: i64,
    pub(super) part: Part,
    pub(super) items: usize,
    pub(super) bytes: usize,
}

impl Sent {
    pub(super) fn of(id: i64, piece: &Piece) -> Self {
        Self {
            id,
            part: piece.part,
            items: piece.items,
            bytes: piece.body.len(),
        }
    }
}

/// The pieces on their way.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    sent: HashMap<String, Sent>,
    bytes: usize,
    /// Pieces that a store will never take, with the first reason.
    failed: usize,
    why: String,
}

impl InFlight {
    pub(super) fn add(&mut self, record: String, sent: Sent) {
        self.bytes += sent.bytes;
        self.sent.insert(record, sent);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.sent.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// In the order in which they were stored.
    pub(super) fn all(&self) -> Vec<Sent> {
        let mut all: Vec<Sent> = self.sent.values().copied().collect();
        all.sort_by_key(|sent| sent.id);
        all
    }

    /// Takes word of a record in; the piece if that settles it for good and well.
    pub(super) fn hear(&mut self, entry: &RunTallyEntry) -> Heard {
        let Some(sent) = self.sent.get(&entry.record).copied() else {
            return Heard::Nothing;
        };
        // Others read the same records; the store's word is the one that counts.
        let by = entry.subscription.split("--").next();
        if by != Some(store_of(sent.part)) || entry.outcome == "part" {
            return Heard::Nothing;
        }
        self.sent.remove(&entry.record);
        self.bytes -= sent.bytes;
        if entry.outcome == "ok" {
            return Heard::Kept(sent);
        }
        if self.failed == 0 {
            self.why.clone_from(&entry.detail);
        }
        self.failed += 1;
        Heard::Failed
    }

    /// How many pieces failed, and why the first did.
    pub(super) fn failed(&self) -> Option<(usize, &str)> {
        (self.failed > 0).then_some((self.failed, self.why.as_str()))
    }
}

/// What word of a record means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// Nothing to this load.
    Nothing,
    Kept(Sent),
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(record: &str, by: &str, outcome: &str) -> RunTallyEntry {
        RunTallyEntry {
            record: record.into(),
            subscription: format!("{by}--w--f--input"),
            outcome: outcome.into(),
            detail: "because".into(),
            ..RunTallyEntry::default()
        }
    }

    #[test]
    fn only_the_stores_word_counts_and_it_counts_once() {
        let sent = Sent {
            id: 7,
            part: Part::Triples,
            items: 3,
            bytes: 10,
        };
        let mut all = InFlight::default();
        all.add("a".into(), sent);
        all.add("b".into(), Sent { id: 8, ..sent });
        assert_eq!((all.len(), all.bytes()), (2, 20));
        assert_eq!(all.hear(&entry("a", "kg-store", "ok")), Heard::Nothing);
        assert_eq!(all.hear(&entry("x", "triples-write", "ok")), Heard::Nothing);
        let kept = all.hear(&entry("a", "triples-write", "ok"));
        assert_eq!(kept, Heard::Kept(sent));
        assert_eq!(all.hear(&entry("a", "triples-write", "ok")), Heard::Nothing);
        assert_eq!(all.all(), [Sent { id: 8, ..sent }]);
        let failed = all.hear(&entry("b", "triples-write", "failed"));
        assert_eq!(failed, Heard::Failed);
        assert!(all.is_empty());
        assert_eq!(all.bytes(), 0);
        assert_eq!(all.failed(), Some((1, "because")));
    }
}
