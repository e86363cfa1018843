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
/// More than an entry takes that says nothing of what changed, as none does that waits here, with its key.
const MOST_OF_ENTRY: usize = 2 * 12 * (LONGEST + 1) + ENTRY;
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

    /// Whether somebody keeps it: no foreign iam service does.
    pub fn is_kept(&self) -> bool {
        self.caller.neighbours().keep_audit()
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
    /// Of each by whom they are.
    of: HashMap<String, usize>,
}

impl Shelf {
    /// Takes an entry. Where there is no room, whoever has most makes some, which may be who did this; what went is
    /// returned.
    fn put(&mut self, key: String, entry: AuditEntry, most: usize) -> Vec<AuditEntry> {
        let by = whose(&entry);
        if let Some(same) = self.entries.get_mut(&key) {
            same.count += entry.count;
            same.until = same.until.max(entry.until);
            // Of another length: what it takes is what is given back for it.
            let before = size(same);
            same.request_id = entry.request_id;
            same.client_request_id = entry.client_request_id;
            let after = size(same);
            self.bytes = self.bytes + after - before;
            if let Some(own) = self.of.get_mut(&by) {
                *own = *own + after - before;
            }
            return Vec::new();
        }
        let bytes = size(&entry) + key.len();
        let mut gone = Vec::new();
        if self.bytes + bytes > most {
            let own = self.of.get(&by).copied().unwrap_or(0);
            gone = self.of_the_fullest(own + bytes);
            if self.bytes + bytes > most {
                gone.push(entry);
                return gone;
            }
        }
        self.bytes += bytes;
        *self.of.entry(by).or_default() += bytes;
        self.entries.insert(key, entry);
        gone
    }

    /// Some of what whoever has most has, if that is more than this. Not one by one: each time all are looked at.
    fn of_the_fullest(&mut self, than: usize) -> Vec<AuditEntry> {
        let fullest = self.of.iter().max_by_key(|(_, bytes)| **bytes);
        let Some((by, bytes)) = fullest.filter(|(_, bytes)| **bytes > than) else {
            return Vec::new();
        };
        let (by, mut excess) = (by.clone(), (bytes / 16).max(MOST_OF_ENTRY) as i64);
        let keys: Vec<String> = self
            .entries
            .iter()
            .filter(|(_, entry)| whose(entry) == by)
            .take_while(|(key, entry)| {
                let more = excess > 0;
                excess -= (size(entry) + key.len()) as i64;
                more
            })
            .map(|(key, _)| key.clone())
            .collect();
        let gone = keys.iter().filter_map(|key| self.remove(key));
        gone.collect()
    }

    fn remove(&mut self, key: &str) -> Option<AuditEntry> {
        let entry = self.entries.remove(key)?;
        let bytes = size(&entry) + key.len();
        self.bytes -= bytes;
        let by = whose(&entry);
        if let Some(own) = self.of.get_mut(&by) {
            *own -= bytes;
            if *own == 0 {
                self.of.remove(&by);
            }
        }
        Some(entry)
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
        into.extend(keys.iter().filter_map(|key| self.remove(key)));
    }
}

impl Waiting {
    fn lose(&mut self, gone: AuditEntry, reason: &str) {
        metrics::counter!("tg_audit_lost_total").increment(gone.count.unsigned_abs());
        let lost = self.lost.entry(gone.kind.clone());
        let lost = lost.or_insert_with(|| AuditEntry {
            time: gone.time,
            kind: LOST.to_owned(),
            operation: gone.kind,
            reason: reason.to_owned(),
            ..AuditEntry::default()
        });
        lost.count += gone.count;
        lost.time = lost.time.min(gone.time);
        lost.until = lost.until.max(gone.until);
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
        let gone = match kind.as_str() {
            STRANGER => waiting.strangers.put(key, entry, STRANGERS),
            REFUSED => waiting.refusals.put(key, entry, REFUSALS),
            _ => waiting.done.put(key, entry, DONE),
        };
        gone.into_iter()
            .for_each(|one| waiting.lose(one, "no-room"));
    }

    /// Counts what nobody will keep, as it is not what may be kept.
    pub fn refused(&self, entries: Vec<AuditEntry>) {
        let mut waiting = self.waiting.lock();
        let told = entries.into_iter().filter(|one| one.kind != LOST);
        told.for_each(|one| waiting.lose(one, "refused"));
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

/// By whom an entry is: by which key of which user, or from where. Who floods takes the room of their own first.
pub fn whose(entry: &AuditEntry) -> String {
    match entry.kind.as_str() {
        STRANGER => entry.address.clone(),
        _ => format!("{}\u{1f}{}", entry.actor, entry.credential),
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
        &entry.client_request_id,
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
        &mut entry.client_request_id,
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
    fn one_writer_pushes_out_no_other_keys_entries() {
        let buffer = AuditBuffer::default();
        let by = |credential: &str, at: usize| AuditEntry {
            credential: credential.into(),
            ..entry(ALLOWED, "ada", &format!("request {at}"))
        };
        let early = 5;
        (0..early).for_each(|at| buffer.note(by("key:quiet", at)));
        let flood = 40_000;
        (0..flood).for_each(|at| buffer.note(by("key:loud", at)));
        (early..2 * early).for_each(|at| buffer.note(by("key:quiet", at)));
        buffer.note(entry(READ, "bob", ""));
        assert!(buffer.waiting.lock().done.bytes <= DONE);
        let all = all(&buffer);
        let count = |credential: &str| {
            all.iter()
                .filter(|one| one.credential == credential)
                .count()
        };
        assert_eq!(count("key:quiet"), 2 * early);
        assert!(all.iter().any(|one| one.actor == "bob"));
        let lost: i64 = all
            .iter()
            .filter(|one| one.kind == LOST)
            .map(|one| one.count)
            .sum();
        assert!(lost > 0);
        assert_eq!(count("key:loud") as i64 + lost, flood as i64);
        let done = &buffer.waiting.lock().done;
        assert!(done.bytes == 0 && done.of.is_empty());
    }

    #[test]
    fn what_is_refused_is_counted_as_lost() {
        let buffer = AuditBuffer::default();
        buffer.refused(vec![
            entry(LOST, "", ""),
            AuditEntry {
                count: 3,
                ..entry(READ, "ada", "")
            },
        ]);
        let all = all(&buffer);
        assert_eq!(all.len(), 1);
        assert_eq!(
            (
                all[0].operation.as_str(),
                all[0].reason.as_str(),
                all[0].count
            ),
            (READ, "refused", 3)
        );
    }

    #[test]
    fn long_texts_are_cut_where_a_character_ends() {
        let buffer = AuditBuffer::default();
        buffer.note(entry(READ, &"ü".repeat(1000), ""));
        assert_eq!(all(&buffer)[0].actor, "ü".repeat(127));
    }
}
