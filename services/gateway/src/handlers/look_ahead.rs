//! Frames of a socket that wait until one of its questions ends. Bounded in number and bytes: beyond, the socket is
//! not read, and its client waits. Over all sockets they count as bodies that are being received, and what finds no room
//! there is not kept. What a client sends to cancel a question is never kept here.

use std::collections::VecDeque;

use axum::body::Bytes;
use serde_json::Value;

use crate::budget::Share;

/// A frame that waits.
pub(super) struct Waiting {
    pub(super) id: Value,
    pub(super) bytes: Bytes,
    pub(super) number: u64,
    /// What it counts while it waits; nothing where it does not.
    pub(super) _share: Option<Share>,
}

/// Frames that wait, in the order they came.
pub(super) struct LookAhead {
    frames: VecDeque<Waiting>,
    bytes: usize,
    limit: (usize, usize),
}

impl LookAhead {
    /// At most so many bytes and frames; a single frame may be larger.
    pub(super) fn new(limit: (usize, usize)) -> Self {
        Self {
            frames: VecDeque::new(),
            bytes: 0,
            limit,
        }
    }

    /// Whether another frame may be read.
    pub(super) fn has_room(&self) -> bool {
        self.bytes < self.limit.0 && self.frames.len() < self.limit.1
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Lets a frame wait.
    pub(super) fn push(&mut self, frame: Waiting) {
        self.bytes += frame.bytes.len();
        self.frames.push_back(frame);
    }

    /// The frame that has waited longest.
    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let frame = self.frames.pop_front()?;
        self.bytes -= frame.bytes.len();
        Some(frame)
    }

    /// Takes out what has an id; how many it were.
    pub(super) fn remove(&mut self, id: &Value) -> usize {
        let before = self.frames.len();
        self.frames.retain(|frame| frame.id != *id);
        self.bytes = self.frames.iter().map(|frame| frame.bytes.len()).sum();
        before - self.frames.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn frames_wait_in_order_within_their_bounds() {
        let mut ahead = LookAhead::new((10, 3));
        let frame = |number: u64, size: usize| Waiting {
            id: json!(number % 2),
            bytes: vec![0; size].into(),
            number,
            _share: None,
        };
        ahead.push(frame(1, 100));
        assert!(!ahead.has_room());
        assert_eq!(ahead.pop().map(|frame| frame.number), Some(1));
        for number in 2..5 {
            assert!(ahead.has_room());
            ahead.push(frame(number, 1));
        }
        assert!(!ahead.has_room());
        assert_eq!(ahead.remove(&json!(0)), 2);
        assert!(ahead.has_room());
        assert_eq!(ahead.pop().map(|frame| frame.number), Some(3));
        assert!(ahead.is_empty());
    }
}
