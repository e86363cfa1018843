//! The books of runs: which record each reader is to handle, and which it did. A record may be told of
//! before whoever wrote it is; nothing counts twice.

use std::collections::{BTreeMap, HashMap};

use tg_schemas::msg::RunTallyEntry;
use tg_storage::StorageError;
use tg_storage::rusqlite::{OptionalExtension, Transaction, params};

use super::{report, run};
use crate::engine::ids::{self, RecordKey};
use crate::engine::progress::Reading;
use crate::engine::readers::Reader;
use crate::engine::state::{Counts, State};

/// Most faults kept of a run.
const FAULTS: i64 = 1000;
/// Longest text kept of a fault or subject.
const TEXT: usize = 500;
/// Most readers beside the known ones that may tell of a run.
const STRANGERS: usize = 64;

/// How a record ended at a reader.
const OK: i64 = 1;
const FAILED: i64 = 2;

/// The open book of one run.
struct Book {
    number: i64,
    state: State,
    counts: Counts,
    readers: Vec<Reading>,
    /// Readers known from the start; strangers are only listened to.
    known: usize,
    effects: BTreeMap<String, (i64, i64)>,
}

/// Opens the books that entries need, once each.
struct Books<'a, 'b> {
    tx: &'a Transaction<'b>,
    open: HashMap<String, Option<Book>>,
}

/// Enters what was told. Returns the runs it was about.
pub(crate) fn apply(
    tx: &Transaction<'_>,
    entries: &[RunTallyEntry],
    now: i64,
) -> Result<Vec<i64>, StorageError> {
    let mut books = Books {
        tx,
        open: HashMap::new(),
    };
    for entry in entries {
        if let Some(book) = books.open(&entry.run)? {
            book.enter(tx, entry)?;
        }
    }
    let mut touched = Vec::new();
    for book in books.open.into_values().flatten() {
        book.close(tx, now)?;
        touched.push(book.number);
    }
    touched.sort_unstable();
    Ok(touched)
}

/// Expects records of a run's own: of its start, or of what the library writes later.
pub(crate) fn expect<'r>(
    tx: &Transaction<'_>,
    thread: &str,
    records: impl IntoIterator<Item = (&'r str, &'r str)>,
    now: i64,
) -> Result<(), StorageError> {
    let mut books = Books {
        tx,
        open: HashMap::new(),
    };
    let Some(book) = books.open(thread)? else {
        return Ok(());
    };
    for (id, topic) in records {
        book.expect(tx, id, topic)?;
    }
    let book = books.open.remove(thread).flatten();
    book.map_or(Ok(()), |book| book.close(tx, now))
}

/// Notes what the library itself hands on in a run.
pub(crate) fn made(
    tx: &Transaction<'_>,
    number: i64,
    kind: &str,
    count: usize,
) -> Result<(), StorageError> {
    tx.prepare_cached(
        "INSERT INTO run_effect (run, kind, made, stored) VALUES (?1, ?2, ?3, 0)
         ON CONFLICT (run, kind) DO UPDATE SET made = made + ?3",
    )?
    .execute(params![number, kind, count as i64])?;
    Ok(())
}

/// Whether a record is expected of a run.
pub(crate) fn expects(tx: &Transaction<'_>, number: i64, id: &str) -> Result<bool, StorageError> {
    let mut query = tx.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM run_pair WHERE run = ?1 AND record = ?2 AND expected = 1)",
    )?;
    Ok(query.query_row(params![number, ids::record(id)], |row| row.get(0))?)
}

impl Books<'_, '_> {
    fn open(&mut self, thread: &str) -> Result<Option<&mut Book>, StorageError> {
        if !self.open.contains_key(thread) {
            let run = run::by_thread(self.tx, thread)?.filter(|run| run.state.hears());
            let book = match run {
                None => None,
                Some(run) => {
                    let readers = report::readings(self.tx, run.number)?;
                    Some(Book {
                        number: run.number,
                        state: run.state,
                        counts: run.counts,
                        known: readers.len(),
                        readers,
                        effects: BTreeMap::new(),
                    })
                }
            };
            self.open.insert(thread.to_owned(), book);
        }
        Ok(self.open.get_mut(thread).and_then(Option::as_mut))
    }
}

impl Book {
    fn enter(&mut self, tx: &Transaction<'_>, entry: &RunTallyEntry) -> Result<(), StorageError> {
        if entry.outcome == "part" {
            return self.expect_all(tx, entry);
        }
        let Some(reader) = self.reader(&entry.subscription) else {
            return Ok(());
        };
        let record = ids::record(&entry.record);
        let outcome = if entry.outcome == "failed" {
            FAILED
        } else {
            OK
        };
        let before = self.pair(tx, &record, reader)?;
        let (expected, old) = before.unwrap_or((false, None));
        if old == Some(OK) {
            return Ok(());
        }
        if before.is_none() {
            self.add_pair(tx, &record, reader, false, Some(outcome))?;
        } else if old != Some(outcome) {
            tx.prepare_cached(
                "UPDATE run_pair SET outcome = ?4 WHERE run = ?1 AND record = ?2 AND reader = ?3",
            )?
            .execute(params![self.number, record, reader as i64, outcome])?;
        }
        if expected {
            self.counts.settled += i64::from(old.is_none());
            self.counts.failed += i64::from(outcome == FAILED) - i64::from(old == Some(FAILED));
        }
        let readings = &mut self.readers[reader];
        readings.failed += i64::from(outcome == FAILED) - i64::from(old == Some(FAILED));
        readings.done += i64::from(outcome == OK);
        if old == Some(FAILED) {
            self.drop_fault(tx, &record, reader)?;
        }
        // One that went well may carry a remark.
        if outcome == FAILED || !entry.detail.is_empty() {
            self.note_fault(tx, &record, reader, entry)?;
        }
        if outcome == OK {
            self.note_effects(reader, entry);
        }
        self.expect_all(tx, entry)
    }

    fn expect_all(
        &mut self,
        tx: &Transaction<'_>,
        entry: &RunTallyEntry,
    ) -> Result<(), StorageError> {
        let mut written = entry.written.iter();
        written.try_for_each(|written| self.expect(tx, &written.record, &written.topic))
    }

    fn reader(&mut self, subscription: &str) -> Option<usize> {
        let known = self
            .readers
            .iter()
            .position(|one| one.reader.subscription == subscription);
        if known.is_some() || self.readers.len() >= self.known + STRANGERS {
            return known;
        }
        self.readers.push(Reading {
            reader: Reader {
                subscription: subscription.to_owned(),
                topic: String::new(),
            },
            expected: 0,
            done: 0,
            failed: 0,
        });
        Some(self.readers.len() - 1)
    }

    /// Every reader of the topic is to handle the record.
    fn expect(&mut self, tx: &Transaction<'_>, id: &str, topic: &str) -> Result<(), StorageError> {
        let record = ids::record(id);
        for reader in 0..self.readers.len() {
            if self.readers[reader].reader.topic != topic {
                continue;
            }
            match self.pair(tx, &record, reader)? {
                Some((true, _)) => continue,
                Some((false, outcome)) => {
                    tx.prepare_cached(
                        "UPDATE run_pair SET expected = 1
                         WHERE run = ?1 AND record = ?2 AND reader = ?3",
                    )?
                    .execute(params![self.number, record, reader as i64])?;
                    self.counts.settled += i64::from(outcome.is_some());
                    self.counts.failed += i64::from(outcome == Some(FAILED));
                }
                None => self.add_pair(tx, &record, reader, true, None)?,
            }
            self.counts.expected += 1;
            self.readers[reader].expected += 1;
        }
        Ok(())
    }

    fn pair(
        &self,
        tx: &Transaction<'_>,
        record: &RecordKey,
        reader: usize,
    ) -> Result<Option<(bool, Option<i64>)>, StorageError> {
        let mut query = tx.prepare_cached(
            "SELECT expected, outcome FROM run_pair WHERE run = ?1 AND record = ?2 AND reader = ?3",
        )?;
        let pair = query.query_row(params![self.number, record, reader as i64], |row| {
            Ok((row.get(0)?, row.get(1)?))
        });
        Ok(pair.optional()?)
    }

    fn add_pair(
        &self,
        tx: &Transaction<'_>,
        record: &RecordKey,
        reader: usize,
        expected: bool,
        outcome: Option<i64>,
    ) -> Result<(), StorageError> {
        tx.prepare_cached(
            "INSERT INTO run_pair (run, record, reader, expected, outcome) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            self.number,
            record,
            reader as i64,
            expected,
            outcome
        ])?;
        Ok(())
    }

    fn note_fault(
        &self,
        tx: &Transaction<'_>,
        record: &RecordKey,
        reader: usize,
        entry: &RunTallyEntry,
    ) -> Result<(), StorageError> {
        tx.prepare_cached(
            "INSERT OR REPLACE INTO run_fault (run, record, reader, subject, processor, message, kind)
             SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?8
             WHERE (SELECT count(*) FROM run_fault WHERE run = ?1) < ?7",
        )?
        .execute(params![
            self.number,
            record,
            reader as i64,
            short(&entry.subject),
            self.readers[reader].reader.processor(),
            short(&entry.detail),
            FAULTS,
            short(&entry.kind)
        ])?;
        Ok(())
    }

    fn drop_fault(
        &self,
        tx: &Transaction<'_>,
        record: &RecordKey,
        reader: usize,
    ) -> Result<(), StorageError> {
        tx.prepare_cached("DELETE FROM run_fault WHERE run = ?1 AND record = ?2 AND reader = ?3")?
            .execute(params![self.number, record, reader as i64])?;
        Ok(())
    }

    fn note_effects(&mut self, reader: usize, entry: &RunTallyEntry) {
        let made = self.readers[reader].reader.hands_on();
        for (kind, number) in &entry.effects {
            let (hands_on, stored) = self.effects.entry(short(kind).to_owned()).or_default();
            if made {
                *hands_on += number;
            } else {
                *stored += number;
            }
        }
    }

    fn close(&self, tx: &Transaction<'_>, now: i64) -> Result<(), StorageError> {
        let counts = self.counts;
        // What failed may be tried again at any time: then the run goes on.
        let state = match self.state {
            State::Failed => State::Running,
            state => state,
        };
        tx.prepare_cached(
            "UPDATE run SET expected = ?2, settled = ?3, failed = ?4, touched = ?5, state = ?6
             WHERE number = ?1",
        )?
        .execute(params![
            self.number,
            counts.expected,
            counts.settled,
            counts.failed,
            now,
            state.as_str()
        ])?;
        let mut readers = tx.prepare_cached(
            "INSERT INTO run_reader (run, number, subscription, topic, expected, done, failed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (run, number) DO UPDATE SET expected = ?5, done = ?6, failed = ?7",
        )?;
        for (at, one) in self.readers.iter().enumerate() {
            readers.execute(params![
                self.number,
                at as i64,
                one.reader.subscription,
                one.reader.topic,
                one.expected,
                one.done,
                one.failed
            ])?;
        }
        let mut effects = tx.prepare_cached(
            "INSERT INTO run_effect (run, kind, made, stored) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (run, kind) DO UPDATE SET made = made + ?3, stored = stored + ?4",
        )?;
        for (kind, (made, stored)) in &self.effects {
            effects.execute(params![self.number, kind, made, stored])?;
        }
        Ok(())
    }
}

pub(super) fn short(text: &str) -> &str {
    let mut end = text.len().min(TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
