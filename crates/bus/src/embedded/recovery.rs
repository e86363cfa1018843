//! Reading a log back: which queues and topics exist, and which records they still wait for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::frame::{self, Entry};
use super::record::{Position, Record};
use crate::bus::Envelope;

/// Queues and topics that exist.
#[derive(Default)]
pub(super) struct Catalogue {
    /// Number, topic id and name.
    pub(super) queues: BTreeMap<u32, (String, String)>,
    /// Topic ids.
    pub(super) topics: BTreeSet<String>,
}

/// What an earlier process left.
#[derive(Default)]
pub(super) struct Found {
    /// Queues and topics.
    pub(super) catalogue: Catalogue,
    /// Records that a queue waits for, oldest first.
    pub(super) records: BTreeMap<u64, Arc<Record>>,
    /// The next free record number.
    pub(super) next_seq: u64,
    /// The next free queue number.
    pub(super) next_queue: u32,
    /// Names of workspaces, each once.
    workspaces: BTreeSet<Arc<str>>,
}

impl Catalogue {
    /// Follows an entry of the log.
    pub(super) fn apply(&mut self, entry: &Entry) {
        match entry {
            Entry::Queue(id, topic, name) => {
                self.queues.insert(*id, (topic.clone(), name.clone()));
            }
            Entry::QueueGone(id) => {
                self.queues.remove(id);
            }
            Entry::Topic(topic) => {
                self.topics.insert(topic.clone());
            }
            Entry::TopicGone(topic) => {
                self.topics.remove(topic);
            }
            Entry::Record(..) | Entry::Done(..) => {}
        }
    }

    /// Appends what there is as entries.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for topic in &self.topics {
            frame::write(out, &Entry::Topic(topic.clone()));
        }
        for (id, (topic, name)) in &self.queues {
            frame::write(out, &Entry::Queue(*id, topic.clone(), name.clone()));
        }
    }
}

impl Found {
    /// Replays a segment into what was found before it; returns its length.
    pub(super) fn replay_segment(&mut self, number: u32, path: &Path) -> io::Result<u64> {
        let data = fs::read(path)?;
        let mut at = 0;
        while let Some((entry, length)) = frame::read(&data[at..]) {
            let place = Position {
                segment: number,
                offset: at as u32,
                length: length as u32,
            };
            self.replay(entry, place);
            at += length;
        }
        if at < data.len() {
            tracing::warn!(
                bytes = data.len() - at,
                "the end of a part of the message store was cut off by a crash"
            );
        }
        Ok(data.len() as u64)
    }

    /// Forgets records that no existing queue waits for.
    pub(super) fn settle(&mut self) {
        let queues = &self.catalogue.queues;
        self.records.retain(|_, record| {
            let mut state = record.state.lock();
            state.waiting.retain(|id| queues.contains_key(id));
            !state.waiting.is_empty()
        });
    }

    fn name(&mut self, workspace: String) -> Arc<str> {
        if let Some(name) = self.workspaces.get(workspace.as_str()) {
            return name.clone();
        }
        let name: Arc<str> = workspace.into();
        self.workspaces.insert(name.clone());
        name
    }

    fn replay(&mut self, entry: Entry, place: Position) {
        self.catalogue.apply(&entry);
        match entry {
            Entry::Queue(id, ..) => self.next_queue = self.next_queue.max(id + 1),
            Entry::Record(seq, queues, envelope) => {
                self.next_seq = self.next_seq.max(seq + 1);
                for id in &queues {
                    self.next_queue = self.next_queue.max(id + 1);
                }
                match self.records.get(&seq) {
                    // A copy made to free an older segment.
                    Some(known) => known.state.lock().place = place,
                    None => {
                        let size = envelope.body.len();
                        let record = Record::new(seq, size, queues, None);
                        {
                            let mut state = record.state.lock();
                            state.place = place;
                            let workspace = envelope.headers.workspace.clone();
                            state.workspace = workspace.map(|of| self.name(of));
                        }
                        self.records.insert(seq, Arc::new(record));
                    }
                }
            }
            Entry::Done(queue, seq) => {
                if let Some(record) = self.records.get(&seq) {
                    let mut state = record.state.lock();
                    state.waiting.retain(|id| *id != queue);
                    let finished = state.waiting.is_empty();
                    drop(state);
                    if finished {
                        self.records.remove(&seq);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Reads the record at a place.
pub(super) fn read_at(file: &File, place: Position) -> io::Result<Envelope> {
    let mut data = vec![0; place.length as usize];
    file.read_exact_at(&mut data, u64::from(place.offset))?;
    match frame::read(&data) {
        Some((Entry::Record(_, _, envelope), _)) => Ok(envelope),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The segments in a directory by number.
pub(super) fn segment_files(dir: &Path) -> io::Result<BTreeMap<u32, PathBuf>> {
    let mut files = BTreeMap::new();
    for file in fs::read_dir(dir)? {
        let path = file?.path();
        let number = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_suffix(".log"))
            .and_then(|number| number.parse().ok());
        if let Some(number) = number {
            files.insert(number, path);
        }
    }
    Ok(files)
}
