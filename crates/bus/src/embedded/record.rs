//! A record that at least one queue waits for, shared by all of them.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::bus::Envelope;

/// Where a record is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Position {
    /// Number of the segment.
    pub(super) segment: u32,
    /// Where its frame starts.
    pub(super) offset: u32,
    /// How long its frame is.
    pub(super) length: u32,
}

/// One record. Small, so that a long backlog costs little memory while its bodies are on disk.
#[derive(Debug)]
pub(super) struct Record {
    /// Its number: the order in a queue.
    pub(super) seq: u64,
    /// Bytes it takes in memory, roughly.
    pub(super) size: usize,
    /// What changes.
    pub(super) state: Mutex<RecordState>,
}

/// What changes about a record.
#[derive(Debug, Default)]
pub(super) struct RecordState {
    /// Where it is on disk (if the bus has one).
    pub(super) place: Position,
    /// Whose it is, where it counts on disk.
    pub(super) workspace: Option<Arc<str>>,
    /// The queues that are not done with it.
    pub(super) waiting: Vec<u32>,
    /// Its message, unless that is on disk only.
    pub(super) message: Option<Arc<Envelope>>,
}

impl Record {
    /// A record for these queues.
    pub(super) fn new(
        seq: u64,
        size: usize,
        waiting: Vec<u32>,
        message: Option<Arc<Envelope>>,
    ) -> Self {
        Self {
            seq,
            size,
            state: Mutex::new(RecordState {
                waiting,
                message,
                ..RecordState::default()
            }),
        }
    }

    /// The message, if it is in memory.
    pub(super) fn cached(&self) -> Option<Arc<Envelope>> {
        self.state.lock().message.clone()
    }
}
