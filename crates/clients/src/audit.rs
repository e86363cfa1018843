//! What happened, on its way to the iam service, which keeps it. What is the same is one entry with a count, so that a
//! batch a second holds all of it.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tg_mesh::{Peer, clock};
use tg_schemas::Error;
use tg_schemas::msg::{AuditEntry, AuditRequest, AuditResponse};
use tg_schemas::processors::iam_svc::AUDIT;

use crate::caller::Caller;

/// What changed.
pub const CHANGE: &str = "change";
/// Somebody came in by a password, or got a token.
pub const LOGIN: &str = "login";
/// Somebody who is known was let do something that changes something.
pub const ALLOWED: &str = "allowed";
/// Somebody who is known was let read something.
pub const READ: &str = "read";
/// Somebody who is known was refused something.
pub const REFUSED: &str = "refused";
/// Somebody who is not known was refused.
pub const STRANGER: &str = "stranger";
/// So many were not kept, as there was no room for them.
pub const LOST: &str = "lost";
/// All of them.
pub const KINDS: [&str; 7] = [CHANGE, LOGIN, ALLOWED, READ, REFUSED, STRANGER, LOST];

/// How long a batch may take to be kept.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of entries that wait: of what was done, of what was refused to those who are known, and to strangers. More are
/// counted only.
const DONE: usize = 8 << 20;
const REFUSALS: usize = 2 << 20;
const STRANGERS: usize = 1 << 20;
/// Bytes of a batch.
const BATCH: usize = 256 << 10;
/// Longest text of an entry, but for what changed.
const LONGEST: usize = 255;
/// What an entry takes beside its texts, roughly.
const ENTRY: usize = 256;

/// Asks the iam service to keep what happened.
pub struct Audit {
    caller: Caller<AuditRequest, AuditResponse>,
}

impl Audit {
    /// On this process's own account.
    pub fn new(peer: &Peer) -> Self {
        Self {
            caller: Caller::of_system(peer, AUDIT).patient(TIMEOUT),
        }
    }

    /// Keeps a batch, which has a number; twice under the same, it is kept once.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn keep(
        &self,
        source: &str,
        sequence: i64,
        entries: Vec<AuditEntry>,
    ) -> Result<(), Error> {
        let request = AuditRequest {
            operation: "keep-events".to_owned(),
            source: source.to_owned(),
            sequence,
            entries,
            ..AuditRequest::default()
        };
        self.caller.last(&request).await.map(drop)
    }
}

/// What waits to be kept. Bounded in bytes: beyond, it is counted by its kind and said as lost. Refusals, and those of
/// strangers, have bounds of their own: whoever provokes them takes no room of what was done.
#[derive(Debug, Default)]
pub struct AuditBuffer {
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    done: Shelf,
    refusals: Shelf,
    strangers: Shelf,
    /// By kind; there are few.
    lost: HashMap<String, AuditEntry>,
}

#[derive(Debug, Default)]
struct Shelf {
    entries: HashMap<String, AuditEntry>,
    bytes: usize,
}

impl Shelf {
    /// Takes an entry; `false` where there is no room.
    fn put(&mut self, key: String, entry: AuditEntry, most: usize) -> bool {
        if let Some(same) = self.entries.get_mut(&key) {
            same.count += entry.count;
            same.until = same.until.max(entry.until);
            // Of another length: what it takes is what is given back for it.
            let before = size(same);
            same.request_id = entry.request_id;
            self.bytes = self.bytes + size(same) - before;
            return true;
        }
        let bytes = size(&entry) + key.len();
        if self.bytes + bytes > most {
            return false;
        }
        self.bytes += bytes;
        self.entries.insert(key, entry);
        true
    }

    /// Moves entries out, until a batch is full.
    fn take(&mut self, into: &mut Vec<AuditEntry>, bytes: &mut usize) {
        let keys: Vec<String> = self
            .entries
            .iter()
            .take_while(|(_, entry)| {
                let fits = *bytes < BATCH;
                *bytes += size(entry);
                fits
            })
            .map(|(key, _)| key.clone())
            .collect();
        for key in keys {
            if let Some(entry) = self.entries.remove(&key) {
                self.bytes -= size(&entry) + key.len();
                into.push(entry);
            }
        }
    }
}

impl AuditBuffer {
    /// Counts something that happened now.
    pub fn note(&self, entry: AuditEntry) {
        let now = clock::millis();
        let entry = AuditEntry {
            time: now,
            until: now,
            count: 1,
            ..cut(entry)
        };
        let (key, kind) = (key(&entry), entry.kind.clone());
        let mut waiting = self.waiting.lock();
        let put = match kind.as_str() {
            STRANGER => waiting.strangers.put(key, entry, STRANGERS),
            REFUSED => waiting.refusals.put(key, entry, REFUSALS),
            _ => waiting.done.put(key, entry, DONE),
        };
        if put {
            return;
        }
        metrics::counter!("tg_audit_lost_total").increment(1);
        let lost = waiting.lost.entry(kind.clone());
        let lost = lost.or_insert_with(|| AuditEntry {
            time: now,
            kind: LOST.to_owned(),
            operation: kind,
            reason: "no-room".to_owned(),
            ..AuditEntry::default()
        });
        lost.count += 1;
        lost.until = now;
    }

    /// The next batch; empty where nothing waits.
    pub fn take(&self) -> Vec<AuditEntry> {
        let mut waiting = self.waiting.lock();
        let (mut batch, mut bytes) = (Vec::new(), 0);
        batch.extend(waiting.lost.drain().map(|(_, entry)| entry));
        waiting.done.take(&mut batch, &mut bytes);
        waiting.refusals.take(&mut batch, &mut bytes);
        waiting.strangers.take(&mut batch, &mut bytes);
        batch
    }
}

/// What makes two entries the same: everything but when and how often. What changes something is an entry for each request.
pub fn key(entry: &AuditEntry) -> String {
    let request = match entry.kind.as_str() {
        ALLOWED => entry.request_id.as_str(),
        _ => "",
    };
    [
        entry.kind.as_str(),
        &entry.workspace,
        &entry.actor,
        &entry.credential,
        &entry.door,
        &entry.address,
        &entry.operation,
        &entry.target_kind,
        &entry.target,
        &entry.reason,
        request,
    ]
    .join("\u{1f}")
}

/// Bytes of an entry, roughly.
pub fn size(entry: &AuditEntry) -> usize {
    let texts = [
        &entry.kind,
        &entry.workspace,
        &entry.actor,
        &entry.credential,
        &entry.door,
        &entry.address,
        &entry.operation,
        &entry.target_kind,
        &entry.target,
        &entry.reason,
        &entry.request_id,
    ];
    let changes = match entry.changes.is_empty() {
        true => 0,
        false => Value::from(entry.changes.clone()).to_string().len(),
    };
    texts.iter().map(|text| text.len()).sum::<usize>() + changes + ENTRY
}

/// An entry whose texts are no longer than they may be.
pub fn cut(mut entry: AuditEntry) -> AuditEntry {
    for text in [
        &mut entry.kind,
        &mut entry.workspace,
        &mut entry.actor,
        &mut entry.credential,
        &mut entry.door,
        &mut entry.address,
        &mut entry.operation,
        &mut entry.target_kind,
        &mut entry.target,
        &mut entry.reason,
        &mut entry.request_id,
    ] {
        let mut end = text.len().min(LONGEST);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: &str, actor: &str, request: &str) -> AuditEntry {
        AuditEntry {
            kind: kind.into(),
            actor: actor.into(),
            request_id: request.into(),
            ..AuditEntry::default()
        }
    }

    fn all(buffer: &AuditBuffer) -> Vec<AuditEntry> {
        let mut all = Vec::new();
        loop {
            let batch = buffer.take();
            if batch.is_empty() {
                return all;
            }
            assert!(batch.iter().map(size).sum::<usize>() < 2 * BATCH);
            all.extend(batch);
        }
    }

    #[test]
    fn ids_of_another_length_leave_no_room_and_take_none() {
        let buffer = AuditBuffer::default();
        let long = "b".repeat(64);
        for (first, then) in [("a", long.as_str()), (long.as_str(), "a")] {
            buffer.note(entry(READ, "ada", first));
            buffer.note(entry(READ, "ada", then));
            assert_eq!(all(&buffer).len(), 1);
            assert_eq!(buffer.waiting.lock().done.bytes, 0);
        }
    }

    #[test]
    fn the_same_is_one_entry_with_a_count_and_a_change_is_one_for_each_request() {
        let buffer = AuditBuffer::default();
        for request in ["a", "b", "c"] {
            buffer.note(entry(READ, "ada", request));
            buffer.note(entry(ALLOWED, "ada", request));
        }
        buffer.note(entry(READ, "bob", "d"));
        let mut counts: Vec<_> = all(&buffer)
            .into_iter()
            .map(|one| (one.kind, one.actor, one.count))
            .collect();
        counts.sort();
        let one = |kind: &str, actor: &str, count| (kind.to_owned(), actor.to_owned(), count);
        let allowed = one(ALLOWED, "ada", 1);
        assert_eq!(
            counts,
            [
                allowed.clone(),
                allowed.clone(),
                allowed,
                one(READ, "ada", 3),
                one(READ, "bob", 1)
            ]
        );
        assert_eq!(buffer.waiting.lock().done.bytes, 0);
    }

    #[test]
    fn who_floods_takes_no_room_of_those_who_are_known_and_what_is_lost_is_counted() {
        let buffer = AuditBuffer::default();
        let flood = 10_000;
        for at in 0..flood {
            let mut one = entry(STRANGER, "", "");
            one.address = format!("address {at}");
            buffer.note(one);
        }
        buffer.note(entry(ALLOWED, "ada", "a"));
        let all = all(&buffer);
        let count = |kind: &str| -> i64 {
            let some = all.iter().filter(|one| one.kind == kind);
            some.map(|one| one.count).sum()
        };
        assert_eq!(count(ALLOWED), 1);
        assert!(count(LOST) > 0);
        assert_eq!(count(STRANGER) + count(LOST), flood);
        let lost = all.iter().find(|one| one.kind == LOST).unwrap();
        assert_eq!(lost.operation, STRANGER);
    }

    #[test]
    fn long_texts_are_cut_where_a_character_ends() {
        let buffer = AuditBuffer::default();
        buffer.note(entry(READ, &"ü".repeat(1000), ""));
        assert_eq!(all(&buffer)[0].actor, "ü".repeat(127));
    }
}
