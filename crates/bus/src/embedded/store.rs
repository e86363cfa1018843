//! Where records are between publish and acknowledgement: in memory within a budget, and on disk if the
//! bus has one. Knows no consumers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use tg_schemas::Subscription;
use tg_storage::{Durability, StorageError};

use super::frame::Entry;
use super::log::Log;
use super::record::Record;
use super::recovery::Found;
use crate::bus::{BusError, Envelope};
use crate::handover::Handover;
use crate::in_hand::InHand;

/// What an envelope takes beside its body, roughly.
const OVERHEAD: usize = 512;
/// What a message at hand takes, roughly, in bodies.
const AT_HAND: usize = 4;
/// Bytes in memory from which on a record waits as its body alone: its reader decodes that, when its turn comes.
const BODIES_ALONE: usize = 8 << 20;

/// Keeps records.
pub(super) struct Store {
    log: Option<Arc<Log>>,
    /// Most bytes of messages held in memory.
    budget: usize,
    used: AtomicUsize,
    next_seq: AtomicU64,
    next_queue: AtomicU32,
    /// What is handed out and not settled: as much again.
    pub(super) in_hand: Arc<InHand>,
}

impl Store {
    /// A store without a disk: it refuses records beyond its budget.
    pub(super) fn in_memory(budget: usize) -> Self {
        Self {
            log: None,
            budget,
            used: AtomicUsize::new(0),
            next_seq: AtomicU64::new(1),
            next_queue: AtomicU32::new(1),
            in_hand: InHand::new(budget),
        }
    }

    /// A store on disk, and what is in it; blocks.
    pub(super) fn open(
        dir: &Path,
        durability: Durability,
        budget: usize,
        disk: u64,
    ) -> Result<(Self, Found), StorageError> {
        let (log, found) = Log::open(dir, durability, disk)?;
        let store = Self {
            log: Some(Arc::new(log)),
            budget,
            used: AtomicUsize::new(0),
            next_seq: AtomicU64::new(found.next_seq.max(1)),
            next_queue: AtomicU32::new(found.next_queue.max(1)),
            in_hand: InHand::new(budget),
        };
        Ok((store, found))
    }

    /// Stores a record for these queues. Returns it with the ticket for [`Store::safe`].
    pub(super) fn put(
        &self,
        queues: Vec<u32>,
        mut envelope: Envelope,
    ) -> Result<(Arc<Record>, u64), BusError> {
        let seq = self.next_seq.fetch_add(1, Ordering::Relaxed);
        if self.in_use() >= BODIES_ALONE && !envelope.handover.is_unwritten() {
            envelope.handover = Handover::default();
        }
        let bodies = if envelope.handover.is_some() {
            1 + AT_HAND
        } else {
            1
        };
        let size = envelope.body.len() * bodies + OVERHEAD;
        let fits = self.reserve(size);
        let Some(log) = &self.log else {
            if !fits {
                tracing::error!("too many records wait in memory");
                return Err(BusError::Store);
            }
            let record = Record::new(seq, size, queues, Some(Arc::new(envelope)));
            return Ok((Arc::new(record), 0));
        };
        let envelope = Arc::new(envelope);
        let kept = fits.then(|| envelope.clone());
        let record = Arc::new(Record::new(seq, size, queues.clone(), kept));
        match log.put(&record, &queues, &envelope) {
            Ok(ticket) => Ok((record, ticket)),
            Err(error) => {
                self.forget(&record);
                Err(error)
            }
        }
    }

    /// Waits until the write with this ticket is as durable as promised.
    pub(super) async fn safe(&self, ticket: u64) -> Result<(), BusError> {
        match &self.log {
            Some(log) => log.safe(ticket).await,
            None => Ok(()),
        }
    }

    /// Brings a record's message into memory; blocks.
    pub(super) fn load(&self, record: &Record) -> Result<Arc<Envelope>, BusError> {
        if let Some(message) = record.cached() {
            return Ok(message);
        }
        let log = self.log.as_ref().ok_or(BusError::Store)?;
        let message = Arc::new(log.read(record)?);
        let mut state = record.state.lock();
        if state.message.is_none() {
            self.used.fetch_add(record.size, Ordering::Relaxed);
            state.message = Some(message.clone());
        }
        Ok(message)
    }

    /// A queue is done with a record.
    pub(super) fn done(&self, queue: u32, record: &Arc<Record>) {
        match &self.log {
            Some(log) => log.done(queue, record),
            None => record.state.lock().waiting.retain(|id| *id != queue),
        }
        self.forget_finished(record);
    }

    /// A queue is gone, with the records that waited in it.
    pub(super) fn drop_all(&self, queue: u32, records: &[Arc<Record>]) {
        match &self.log {
            Some(log) => log.drop_all(queue, records),
            None => {
                for record in records {
                    record.state.lock().waiting.retain(|id| *id != queue);
                }
            }
        }
        for record in records {
            self.forget_finished(record);
        }
    }

    /// A number for a new queue.
    pub(super) fn number(&self) -> u32 {
        self.next_queue.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes topics and queues that came or went. Returns a ticket for [`Store::safe`].
    pub(super) fn note(&self, entries: &[Entry]) -> Result<u64, BusError> {
        match &self.log {
            Some(log) if !entries.is_empty() => log.note(entries),
            _ => Ok(0),
        }
    }

    /// Starts tidying the disk if it is worth it. Call it from the async runtime.
    pub(super) fn tidy(&self) {
        if let Some(log) = &self.log
            && log.wants_copying()
        {
            let log = log.clone();
            tokio::task::spawn_blocking(move || log.copy_together());
        }
    }

    /// Bytes of messages in memory.
    pub(super) fn in_use(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes on disk.
    pub(super) fn on_disk(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.bytes())
    }

    /// Releases the directory.
    pub(super) fn close(&self) {
        if let Some(log) = &self.log {
            log.close();
        }
    }

    fn reserve(&self, size: usize) -> bool {
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                let sum = used + size;
                (sum <= self.budget).then_some(sum)
            })
            .is_ok()
    }

    fn forget_finished(&self, record: &Record) {
        if record.state.lock().waiting.is_empty() {
            self.forget(record);
        }
    }

    fn forget(&self, record: &Record) {
        if record.state.lock().message.take().is_some() {
            self.used.fetch_sub(record.size, Ordering::Relaxed);
        }
    }
}

/// The entry for a new queue.
pub(super) fn queue_entry(id: u32, of: &Subscription) -> Entry {
    Entry::Queue(id, of.topic.to_string(), of.name.clone())
}

#[cfg(test)]
mod tests {
    use tg_schemas::msg::TextDocument;

    use super::*;

    #[test]
    fn of_a_long_backlog_only_the_first_wait_decoded() {
        let store = Store::in_memory(2 * BODIES_ALONE);
        let record = || {
            let body = bytes::Bytes::from(vec![b'x'; 4_000]);
            let envelope = Envelope {
                handover: Handover::new(true, &body, TextDocument::default),
                body,
                ..Envelope::default()
            };
            let (record, _) = store.put(vec![1], envelope).unwrap();
            let decoded = record.cached().unwrap().handover.is_some();
            (record, decoded)
        };
        let mut waiting = Vec::new();
        while store.in_use() < BODIES_ALONE {
            let (record, decoded) = record();
            assert!(decoded);
            waiting.push(record);
        }
        let before = store.in_use();
        assert!(!record().1);
        assert_eq!(store.in_use() - before, 4_000 + OVERHEAD);
        for record in waiting {
            store.done(1, &record);
        }
        assert!(record().1, "there is room again");
    }
}
