//! The records' disk: a **write-ahead log**, append-only, in segments, written before a publish returns.
//!
//! A segment is deleted when it and all older ones hold nothing that a queue still waits for; what pins
//! mostly dead segments is copied to the head (**compaction**). Each segment starts with the catalogue of queues and
//! topics, so older ones are never needed for it. Nothing here knows consumers.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tg_storage::{Durability, OwnerLock, StorageError, log_full_disk};
use tokio::sync::watch;

use super::frame::{self, Entry};
use super::record::{Position, Record, RecordState};
use super::recovery::{Catalogue, Found, read_at, segment_files};
use super::waiting::Waiting;
use crate::bus::{BusError, Envelope};

/// A segment is closed when it has grown to this.
const SEGMENT: u64 = 16 << 20;
/// Less than this is never copied together.
const WORTH_COPYING: u64 = 4 * SEGMENT;

/// The log of one bus.
pub(super) struct Log {
    dir: PathBuf,
    durability: Durability,
    state: Mutex<State>,
    synced: watch::Sender<Synced>,
    syncing: AtomicBool,
    /// The first segment of this process is safe in the directory.
    listed: AtomicBool,
    copying: AtomicBool,
    lock: OwnerLock,
}

/// What has reached the disk for good.
#[derive(Clone, Copy)]
struct Synced {
    upto: u64,
    failed: bool,
}

struct State {
    segments: BTreeMap<u32, Segment>,
    head: u32,
    /// Bytes on disk, and those of records that are waited for.
    bytes: u64,
    live_bytes: u64,
    /// The latter by workspace.
    waiting: Waiting,
    /// Bytes on disk at most.
    max_bytes: u64,
    /// Bytes ever appended by this process: the ticket of a write.
    written: u64,
    torn: bool,
    /// Finished segments that are not yet safe from a power loss.
    unsynced: Vec<Arc<File>>,
    /// Another process may have the directory: nothing is written or deleted any more.
    closed: bool,
    buffer: Vec<u8>,
    catalogue: Catalogue,
}

struct Segment {
    file: Arc<File>,
    bytes: u64,
    live: HashMap<u64, Arc<Record>>,
}

impl Log {
    /// Opens or creates the log in a directory; blocks. The directory belongs to one process.
    pub(super) fn open(
        dir: &Path,
        durability: Durability,
        max_bytes: u64,
    ) -> Result<(Self, Found), StorageError> {
        fs::create_dir_all(dir).map_err(|e| StorageError::from_io(&e))?;
        let lock = OwnerLock::take(&owner(dir))?;
        let mut segments = BTreeMap::new();
        let mut found = Found::default();
        for (number, path) in segment_files(dir).map_err(|e| StorageError::from_io(&e))? {
            let segment = reopen(number, &path, &mut found);
            segments.insert(number, segment.map_err(|e| StorageError::from_io(&e))?);
        }
        found.settle();
        let mut state = State {
            head: segments.keys().next_back().copied().unwrap_or(0),
            bytes: segments.values().map(|segment| segment.bytes).sum(),
            live_bytes: 0,
            waiting: Waiting::new(max_bytes),
            max_bytes,
            segments,
            written: 0,
            torn: true,
            unsynced: Vec::new(),
            closed: false,
            buffer: Vec::new(),
            catalogue: Catalogue {
                queues: found.catalogue.queues.clone(),
                topics: found.catalogue.topics.clone(),
            },
        };
        for record in found.records.values() {
            state.adopt(record, &record.state.lock());
        }
        let log = Self {
            dir: dir.to_owned(),
            durability,
            state: Mutex::new(state),
            synced: watch::Sender::new(Synced {
                upto: 0,
                failed: false,
            }),
            syncing: AtomicBool::new(false),
            listed: AtomicBool::new(false),
            copying: AtomicBool::new(false),
            lock,
        };
        Ok((log, found))
    }

    /// Appends a record; returns its place and the ticket to wait for in [`Log::safe`].
    pub(super) fn put(
        &self,
        record: &Arc<Record>,
        queues: &[u32],
        envelope: &Envelope,
    ) -> Result<u64, BusError> {
        let mut state = self.state.lock();
        if state.bytes >= state.max_bytes {
            tracing::error!("the message store has reached its size limit");
            return Err(BusError::Store);
        }
        if !state
            .waiting
            .has_room(&envelope.headers, envelope.body.len())
        {
            metrics::counter!("tg_bus_records_refused_total").increment(1);
            return Err(BusError::WorkspaceFull);
        }
        let seq = record.seq;
        let place = self.append(&mut state, |out| {
            frame::write_record(out, seq, queues, envelope)
        })?;
        let mut own = record.state.lock();
        own.place = place;
        own.workspace = state.waiting.name(&envelope.headers);
        state.adopt(record, &own);
        Ok(state.written)
    }

    /// Notes that a queue is done with a record.
    pub(super) fn done(&self, queue: u32, record: &Arc<Record>) {
        // Held over the append, so that copying a record never brings a finished queue back.
        let mut own = record.state.lock();
        own.waiting.retain(|id| *id != queue);
        let mut state = self.state.lock();
        // A lost note means the record comes again: allowed.
        let _ = self.append(&mut state, |out| {
            frame::write(out, &Entry::Done(queue, record.seq))
        });
        if own.waiting.is_empty() {
            state.forget(record.seq, &own);
            self.prune(&mut state);
        }
    }

    /// Notes new queues and topics, or that they are gone: in one write, so that a disk without room keeps all of them or
    /// none.
    pub(super) fn note(&self, entries: &[Entry]) -> Result<u64, BusError> {
        let mut state = self.state.lock();
        self.append(&mut state, |out| {
            entries.iter().map(|entry| frame::write(out, entry)).sum()
        })?;
        for entry in entries {
            state.catalogue.apply(entry);
        }
        Ok(state.written)
    }

    /// Drops what a deleted queue still waited for.
    pub(super) fn drop_all(&self, queue: u32, records: &[Arc<Record>]) {
        for record in records {
            let mut own = record.state.lock();
            own.waiting.retain(|id| *id != queue);
            if own.waiting.is_empty() {
                self.state.lock().forget(record.seq, &own);
            }
        }
        self.prune(&mut self.state.lock());
    }

    /// Reads a record's message from disk; blocks.
    pub(super) fn read(&self, record: &Record) -> Result<Envelope, BusError> {
        let mut tries = 0;
        loop {
            let place = record.state.lock().place;
            let file = self
                .state
                .lock()
                .segments
                .get(&place.segment)
                .map(|segment| segment.file.clone());
            match file.map(|file| read_at(&file, place)) {
                Some(Ok(envelope)) => return Ok(envelope),
                // It may have been copied to another segment meanwhile.
                _ if tries < 3 && record.state.lock().place != place => tries += 1,
                _ => {
                    tracing::error!(record = record.seq, "a stored message is unreadable");
                    return Err(BusError::Store);
                }
            }
        }
    }

    /// Waits until everything up to the ticket survives what the durability promises.
    pub(super) async fn safe(self: &Arc<Self>, ticket: u64) -> Result<(), BusError> {
        if self.durability == Durability::Process {
            return Ok(());
        }
        let mut synced = self.synced.subscribe();
        loop {
            let now = *synced.borrow_and_update();
            if now.upto >= ticket {
                return Ok(());
            }
            if now.failed {
                return Err(BusError::Store);
            }
            if !self.syncing.swap(true, Ordering::AcqRel) {
                let log = self.clone();
                tokio::task::spawn_blocking(move || log.sync());
            }
            if synced.changed().await.is_err() {
                return Err(BusError::Closed);
            }
        }
    }

    /// Whether [`Log::copy_together`] would gain something; says so to one caller at a time.
    pub(super) fn wants_copying(&self) -> bool {
        let Some(state) = self.state.try_lock() else {
            return false;
        };
        state.worth_copying() && !self.copying.swap(true, Ordering::AcqRel)
    }

    /// Copies what pins old, mostly dead segments to the head; blocks.
    pub(super) fn copy_together(&self) {
        while let Some(records) = self.oldest_live() {
            for record in records {
                if self.copy(&record).is_err() {
                    self.copying.store(false, Ordering::Release);
                    return;
                }
            }
            self.prune(&mut self.state.lock());
        }
        self.copying.store(false, Ordering::Release);
    }

    /// Bytes on disk.
    pub(super) fn bytes(&self) -> u64 {
        self.state.lock().bytes
    }

    /// Lets another process have the directory.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        let _ = self.lock.unlock();
    }

    fn oldest_live(&self) -> Option<Vec<Arc<Record>>> {
        let state = self.state.lock();
        if !state.worth_copying() {
            return None;
        }
        let (_, oldest) = state.segments.first_key_value()?;
        Some(oldest.live.values().cloned().collect())
    }

    fn copy(&self, record: &Arc<Record>) -> Result<(), BusError> {
        let envelope = match record.cached() {
            Some(envelope) => envelope,
            None => Arc::new(self.read(record)?),
        };
        let mut own = record.state.lock();
        if own.waiting.is_empty() {
            return Ok(());
        }
        let mut state = self.state.lock();
        let place = self.append(&mut state, |out| {
            frame::write_record(out, record.seq, &own.waiting, &envelope)
        })?;
        state.forget(record.seq, &own);
        own.place = place;
        state.adopt(record, &own);
        Ok(())
    }

    fn append(
        &self,
        state: &mut State,
        fill: impl FnOnce(&mut Vec<u8>) -> usize,
    ) -> Result<Position, BusError> {
        if state.closed {
            return Err(BusError::Closed);
        }
        let full = state
            .segments
            .get(&state.head)
            .is_none_or(|head| head.bytes >= SEGMENT);
        if state.torn || full {
            self.rotate(state).map_err(|error| failed(&error))?;
        }
        let mut buffer = std::mem::take(&mut state.buffer);
        let length = fill(&mut buffer);
        let result = state.write(&buffer);
        buffer.clear();
        buffer.shrink_to(1 << 20);
        state.buffer = buffer;
        let offset = result.map_err(|error| failed(&error))?;
        Ok(Position {
            segment: state.head,
            offset: offset as u32,
            length: length as u32,
        })
    }

    /// Starts a new segment. Also after a failed write, whose remains stay behind unread.
    fn rotate(&self, state: &mut State) -> io::Result<()> {
        let number = state.head + 1;
        let path = self.dir.join(format!("{number:010}.log"));
        let file = OpenOptions::new()
            .create_new(true)
            .read(true)
            .append(true)
            .open(&path)?;
        let mut start = Vec::new();
        state.catalogue.write(&mut start);
        if let Err(error) = (&file).write_all(&start) {
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        if self.durability == Durability::Power {
            let head = state.segments.get(&state.head);
            let head = head.map(|segment| segment.file.clone());
            state.unsynced.extend(head);
        }
        let segment = Segment::new(file, start.len() as u64);
        state.bytes += segment.bytes;
        state.segments.insert(number, segment);
        state.head = number;
        state.torn = false;
        self.prune(state);
        Ok(())
    }

    /// Deletes segments from the oldest on, as long as nobody waits for anything in them.
    fn prune(&self, state: &mut State) {
        while let Some(oldest) = state.segments.first_entry() {
            if state.closed || *oldest.key() == state.head || !oldest.get().live.is_empty() {
                return;
            }
            let path = self.dir.join(format!("{:010}.log", oldest.key()));
            if let Err(error) = fs::remove_file(path) {
                tracing::warn!(%error, "cannot remove an old part of the message store");
            }
            let bytes = oldest.remove().bytes;
            state.bytes -= bytes;
        }
    }

    fn sync(&self) {
        let (upto, finished, head) = {
            let mut state = self.state.lock();
            let finished = std::mem::take(&mut state.unsynced);
            let head = state.segments.get(&state.head);
            let head = head.map(|segment| segment.file.clone());
            (state.written, finished, head)
        };
        let mut result = finished.iter().chain(&head).try_for_each(|f| f.sync_data());
        if result.is_ok() && (!finished.is_empty() || !self.listed.load(Ordering::Acquire)) {
            // The directory knows the new segments, too.
            result = File::open(&self.dir).and_then(|dir| dir.sync_all());
            self.listed.store(true, Ordering::Release);
        }
        // Whoever waits looks again after this and starts the next one.
        self.syncing.store(false, Ordering::Release);
        self.synced.send_modify(|synced| match result {
            Ok(()) => synced.upto = synced.upto.max(upto),
            Err(error) => {
                failed(&error);
                synced.failed = true;
            }
        });
    }
}

impl State {
    fn write(&mut self, data: &[u8]) -> io::Result<u64> {
        let Some(head) = self.segments.get_mut(&self.head) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let offset = head.bytes;
        if let Err(error) = (&*head.file).write_all(data) {
            self.torn = head.file.set_len(offset).is_err();
            return Err(error);
        }
        head.bytes += data.len() as u64;
        self.bytes += data.len() as u64;
        self.written += data.len() as u64;
        Ok(offset)
    }

    /// Where a quarter is waited for; and where the disk is nearly full, as long as a quarter can be had back: what one
    /// workspace lets wait keeps nobody else's on disk.
    fn worth_copying(&self) -> bool {
        let nearly_full = self.bytes > self.max_bytes / 4 * 3;
        let most = if nearly_full { 3 } else { 1 };
        let waited_for = self.live_bytes < self.bytes / 4 * most;
        self.bytes > WORTH_COPYING && waited_for && self.segments.len() > 1
    }

    fn adopt(&mut self, record: &Arc<Record>, own: &RecordState) {
        if let Some(segment) = self.segments.get_mut(&own.place.segment) {
            segment.live.insert(record.seq, record.clone());
            self.live_bytes += u64::from(own.place.length);
            self.waiting.add(own);
        }
    }

    fn forget(&mut self, seq: u64, own: &RecordState) {
        if let Some(segment) = self.segments.get_mut(&own.place.segment)
            && segment.live.remove(&seq).is_some()
        {
            self.live_bytes -= u64::from(own.place.length);
            self.waiting.remove(own);
        }
    }
}

impl Segment {
    fn new(file: File, bytes: u64) -> Self {
        Self {
            file: Arc::new(file),
            bytes,
            live: HashMap::new(),
        }
    }
}

fn reopen(number: u32, path: &Path, found: &mut Found) -> io::Result<Segment> {
    let bytes = found.replay_segment(number, path)?;
    let file = OpenOptions::new().read(true).append(true).open(path)?;
    Ok(Segment::new(file, bytes))
}

/// The file that says which process has a directory.
pub(super) fn owner(dir: &Path) -> PathBuf {
    dir.join("owner.lock")
}

fn failed(error: &io::Error) -> BusError {
    match StorageError::from_io(error) {
        StorageError::Full => log_full_disk("the message store cannot write"),
        _ => tracing::error!(%error, "the message store failed"),
    }
    BusError::Store
}
