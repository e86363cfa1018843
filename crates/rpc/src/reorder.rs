//! The parts of one answer in order: drops repeats, keeps what came early, bounds what waits for the reader.

use std::collections::{BTreeMap, VecDeque};

use tg_bus::Envelope;
use tg_schemas::{Error, ErrorCode};

use crate::window::{CREDIT_BYTES, CREDIT_PARTS, MAX_BYTES, MAX_PARTS};

/// A part, and whether its number is the last.
pub(crate) type Part = (Envelope, bool);

/// A reorder buffer.
#[derive(Default)]
pub(crate) struct Reorder {
    ready: VecDeque<Part>,
    ready_bytes: usize,
    early: BTreeMap<u64, Part>,
    next: u64,
    taken: u64,
    credited: u64,
    bytes_since_credit: usize,
}

impl Reorder {
    /// Number of the next part that is not there yet.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// First number above all that are there, also of what came early.
    pub(crate) fn end(&self) -> u64 {
        let early = self.early.last_key_value();
        early.map_or(self.next, |(seq, _)| seq + 1)
    }

    /// Whether a part is there to be read.
    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether a later part is there while an earlier one is missing.
    pub(crate) fn has_gap(&self) -> bool {
        !self.early.is_empty()
    }

    /// Forgets what came early.
    pub(crate) fn drop_early(&mut self) {
        self.early.clear();
    }

    /// Takes a part. `true`: all parts are there.
    ///
    /// # Errors
    /// `interrupted` when too much came early, `busy` when the reader is too far behind.
    pub(crate) fn accept(&mut self, seq: u64, part: Part) -> Result<bool, Error> {
        if seq < self.next {
            return Ok(false);
        }
        if self.early.len() >= MAX_PARTS {
            return Err(interrupted());
        }
        // Nearly all come in order: those are never put among the early ones, whose tree takes kilobytes for the first of them.
        let mut next = match seq == self.next {
            true => Some(part),
            false => {
                self.early.insert(seq, part);
                None
            }
        };
        let mut complete = false;
        while let Some(part) = next {
            self.ready_bytes += part.0.size();
            complete = part.1;
            self.ready.push_back(part);
            self.next += 1;
            next = self.early.remove(&self.next);
        }
        let full =
            self.ready.len() > MAX_PARTS || (self.ready_bytes > MAX_BYTES && self.ready.len() > 1);
        if full && !complete {
            let text = "the reader is too slow for this answer";
            return Err(Error::new(ErrorCode::Busy, text));
        }
        Ok(complete)
    }

    /// The next part for the reader.
    pub(crate) fn pop(&mut self) -> Option<Part> {
        let part = self.ready.pop_front()?;
        let bytes = part.0.size();
        self.ready_bytes -= bytes;
        self.bytes_since_credit += bytes;
        self.taken += 1;
        Some(part)
    }

    /// The number up to which the server gets credit now, if enough was used up since it last got any.
    pub(crate) fn credit_due(&mut self) -> Option<u64> {
        let due =
            self.taken - self.credited >= CREDIT_PARTS || self.bytes_since_credit >= CREDIT_BYTES;
        if due { self.credit() } else { None }
    }

    /// The number up to which the server gets credit, however little that is; none before the first part.
    pub(crate) fn credit(&mut self) -> Option<u64> {
        self.credited = self.taken;
        self.bytes_since_credit = 0;
        (self.taken > 0).then_some(self.taken)
    }
}

/// How a question ends whose answer broke off after parts were passed on.
pub fn interrupted() -> Error {
    Error::new(
        ErrorCode::Interrupted,
        "the answer was interrupted; please ask again",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(bytes: usize, last: bool) -> Part {
        let body = vec![b'x'; bytes].into();
        let envelope = Envelope {
            body,
            ..Envelope::default()
        };
        (envelope, last)
    }

    #[test]
    fn parts_come_out_in_order_and_once() {
        let mut parts = Reorder::default();
        assert_eq!(parts.accept(1, part(1, false)), Ok(false));
        assert!(parts.has_gap() && !parts.is_ready());
        assert_eq!(parts.accept(0, part(2, false)), Ok(false));
        assert_eq!(parts.accept(0, part(9, false)), Ok(false));
        assert_eq!(parts.accept(2, part(3, true)), Ok(true));
        let sizes: Vec<_> = std::iter::from_fn(|| parts.pop())
            .map(|(envelope, last)| (envelope.body.len(), last))
            .collect();
        assert_eq!(sizes, [(2, false), (1, false), (3, true)]);
    }

    #[test]
    fn a_full_window_and_one_largest_message_are_kept() {
        let mut parts = Reorder::default();
        assert!(parts.accept(0, part((4 << 20) - 1, false)).is_ok());
        assert!(parts.accept(1, part(16 << 20, false)).is_ok());
        let over = parts.accept(2, part(2, false)).unwrap_err();
        assert_eq!(over.code(), ErrorCode::Busy);
    }

    #[test]
    fn what_comes_early_is_bounded() {
        let mut parts = Reorder::default();
        for seq in 1..=MAX_PARTS as u64 {
            assert!(parts.accept(seq, part(0, false)).is_ok());
        }
        let over = parts.accept(999, part(0, false)).unwrap_err();
        assert_eq!(over.code(), ErrorCode::Interrupted);
    }

    #[test]
    fn credit_is_due_after_parts_or_bytes() {
        let mut parts = Reorder::default();
        for seq in 0..CREDIT_PARTS {
            parts.accept(seq, part(1, false)).unwrap();
            assert_eq!(parts.credit_due(), None);
            parts.pop();
        }
        assert_eq!(parts.credit_due(), Some(CREDIT_PARTS));
        assert_eq!(parts.credit_due(), None);
        parts
            .accept(CREDIT_PARTS, part(CREDIT_BYTES, false))
            .unwrap();
        parts.pop();
        assert_eq!(parts.credit_due(), Some(CREDIT_PARTS + 1));
        assert_eq!(Reorder::default().credit(), None);
    }
}
