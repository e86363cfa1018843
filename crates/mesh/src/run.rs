//! Runs: work that spreads over many records and whose end somebody wants to know.
//!
//! A record whose header `thread` is a [`RunId`] and that has an id is *tracked*: what its handler writes
//! through [`Cx::record`] belongs to the same run and gets an id that is the same each time the record is
//! handled again; when the handler is done, the runtime tells the tally (see [`crate::tally`]) and only then
//! acknowledges. A question asked inside a run carries the run along, so that its handler can see it, but
//! what that handler writes is not part of the run.
//!
//! Nothing here counts anything: the reader of the tally does, and it drops repeats.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tg_schemas::msg::{RunTallyEntry, RunWritten};
use tg_schemas::{Error, ErrorCode, Headers, Message, Subscription, Topic};

use crate::scope::Cx;
use tg_rpc::Ask;

/// Hex digits of a hash in run ids and record ids.
const DIGITS: usize = 32;
/// Longest detail of a failure in a tally entry, in characters.
const DETAIL: usize = 512;
/// Records written while one is handled, of which the tally is told before it is over.
const PART: usize = 4096;

/// Names a run: `run.<incarnation>.<32 hex digits>`. The incarnation is the collection's when the run began.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId {
    text: Arc<str>,
    incarnation: i64,
}

impl RunId {
    /// The run of a processing: the same for the same names. A negative incarnation counts as 0.
    pub fn new(incarnation: i64, workspace: &str, processing: &str) -> Self {
        let incarnation = incarnation.max(0);
        let hash = hash(&[workspace, processing]);
        Self {
            text: format!("run.{incarnation}.{hash}").into(),
            incarnation,
        }
    }

    /// Reads a run id; `None` for any other thread of work.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, hash) = text.strip_prefix("run.")?.split_once('.')?;
        let incarnation: i64 = number.parse().ok()?;
        // One spelling only: what is compared as text must be equal as text.
        let canonical = incarnation >= 0 && incarnation.to_string() == number;
        let hex = hash.len() == DIGITS
            && hash
                .bytes()
                .all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit));
        (canonical && hex).then(|| Self {
            text: text.into(),
            incarnation,
        })
    }

    /// As it stands in the header `thread`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Incarnation of the collection that the run writes to.
    pub fn incarnation(&self) -> i64 {
        self.incarnation
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for RunId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text).ok_or_else(|| Error::new(ErrorCode::BadRequest, "run: not a run id"))
    }
}

/// Id of the `ordinal`-th record that a subscription writes to a topic while it handles `parent`.
fn child_id(subscription: &str, parent: &str, topic: &str, ordinal: u32) -> String {
    hash(&[subscription, parent, topic, &ordinal.to_string()])
}

/// Each part with its length before it, so that no two lists of parts look the same.
fn hash(parts: &[&str]) -> String {
    let mut sha = Sha256::new();
    for part in parts {
        sha.update((part.len() as u64).to_be_bytes());
        sha.update(part.as_bytes());
    }
    sha.finalize()
        .iter()
        .take(DIGITS / 2)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The run that a message belongs to, and what its handler did for it so far.
#[derive(Debug)]
pub(crate) struct Track {
    run: RunId,
    /// `None` for questions asked inside a run: they are not counted.
    record: Option<Tracked>,
}

#[derive(Debug)]
struct Tracked {
    id: String,
    subscription: String,
    did: Mutex<Did>,
}

#[derive(Debug, Default)]
struct Did {
    subject: String,
    remark: String,
    written: Vec<RunWritten>,
    effects: BTreeMap<String, i64>,
    ordinals: HashMap<Topic, u32>,
}

impl Track {
    /// Of a question.
    pub(crate) fn of_question(headers: &Headers) -> Option<Arc<Self>> {
        let run = RunId::parse(headers.thread.as_deref()?)?;
        Some(Arc::new(Self { run, record: None }))
    }

    /// Of a record; without an id it cannot be counted.
    pub(crate) fn of_record(headers: &Headers, by: &Subscription) -> Option<Arc<Self>> {
        let run = RunId::parse(headers.thread.as_deref()?)?;
        let id = headers.id.clone().filter(|id| !id.is_empty())?;
        let record = Some(Tracked {
            id,
            subscription: by.name.clone(),
            did: Mutex::default(),
        });
        Some(Arc::new(Self { run, record }))
    }

    /// What the tally is told: `Err` with why the record will never be handled.
    pub(crate) fn entry(&self, outcome: Result<(), &str>) -> Option<RunTallyEntry> {
        let record = self.record.as_ref()?;
        let did = std::mem::take(&mut *record.did.lock());
        let detail = outcome.err().unwrap_or(&did.remark);
        Some(RunTallyEntry {
            run: self.run.to_string(),
            record: record.id.clone(),
            subscription: record.subscription.clone(),
            subject: did.subject,
            outcome: if outcome.is_ok() { "ok" } else { "failed" }.to_owned(),
            detail: detail.chars().take(DETAIL).collect(),
            written: did.written,
            effects: did.effects,
        })
    }
}

impl Tracked {
    /// Notes what was written; what the tally is to be told now, if that became much.
    fn wrote(&self, run: &RunId, written: RunWritten) -> Option<RunTallyEntry> {
        let mut did = self.did.lock();
        did.written.push(written);
        (did.written.len() >= PART).then(|| RunTallyEntry {
            run: run.to_string(),
            record: self.id.clone(),
            subscription: self.subscription.clone(),
            outcome: "part".to_owned(),
            written: std::mem::take(&mut did.written),
            ..RunTallyEntry::default()
        })
    }

    fn next_id(&self, topic: &Topic) -> String {
        let mut did = self.did.lock();
        let next = did.ordinals.entry(topic.clone()).or_default();
        let ordinal = *next;
        *next += 1;
        drop(did);
        child_id(&self.subscription, &self.id, &topic.to_string(), ordinal)
    }
}

impl Cx {
    /// The run that the record being handled belongs to, or inside which the question was asked.
    pub fn run(&self) -> Option<&RunId> {
        self.track.as_deref().map(|track| &track.run)
    }

    /// Notes what handling this record did: `count` more of a kind, e.g. `triples`. Without a run nothing
    /// happens. Counts start again at 0 when the record is handled again.
    pub fn effect(&self, kind: &str, count: i64) {
        if let Some(record) = self.tracked() {
            let mut did = record.did.lock();
            let sum = did.effects.entry(kind.to_owned()).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// Notes something that people should know of a record that was handled all the same, e.g. what of it was
    /// left out. The last remark stays; of a failure only its own text is told.
    pub fn remark(&self, text: &str) {
        if let Some(record) = self.tracked() {
            record.did.lock().remark = text.chars().take(DETAIL).collect();
        }
    }

    /// Notes what this record is about, e.g. the id of a page or chunk.
    pub fn subject(&self, id: &str) {
        if let Some(record) = self.tracked() {
            record.did.lock().subject = id.to_owned();
        }
    }

    /// The incarnation under which things of a collection are kept: the run's inside a run (its collection
    /// is the only one it writes to), else the collection's as configuration has it; 0 if it is not
    /// registered.
    pub fn incarnation(&self, collection: &str) -> i64 {
        match self.run() {
            Some(run) => run.incarnation,
            None => self.config().incarnation(self.workspace(), collection),
        }
    }

    /// Whether a collection is still the one that the run of this record began with. `false`: it was deleted
    /// and made again since, what belongs to the old one is to be dropped. Always `true` outside runs. A
    /// collection that is being deleted looks current here: stores also keep to their own marks.
    pub fn is_current(&self, collection: &str) -> bool {
        self.run().is_none_or(|run| {
            run.incarnation >= self.config().incarnation(self.workspace(), collection)
        })
    }

    /// Writes a record to a topic; durable when `Ok`, or dropped where nobody of the flow reads it. Inside a run
    /// it is part of the run: its id follows from the record being handled, the topic and how many were written
    /// there before, so write in the same order each time.
    pub async fn record_on<M: Message>(&self, topic: &Topic, record: &M) -> Result<(), Error> {
        let mut options = self.ask_options();
        options.droppable = self.scope.unread.contains(topic);
        let Some(track) = self.track.as_deref() else {
            return self.mesh.record(topic, record, options).await;
        };
        let Some(tracked) = &track.record else {
            options.thread = None;
            return self.mesh.record(topic, record, options).await;
        };
        let id = tracked.next_id(topic);
        let options = Ask {
            id: Some(id.clone()),
            ..options
        };
        self.mesh.record(topic, record, options).await?;
        let written = RunWritten {
            topic: topic.to_string(),
            record: id,
        };
        if let Some(part) = tracked.wrote(&track.run, written)
            && !self.mesh.tally().add(&self.mesh, part).await
        {
            return Err(Error::new(ErrorCode::Unavailable, "the process stops"));
        }
        Ok(())
    }

    fn tracked(&self) -> Option<&Tracked> {
        self.track.as_deref()?.record.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use tg_schemas::Class;

    use super::*;

    fn record(thread: Option<&str>, id: Option<&str>) -> Headers {
        Headers {
            thread: thread.map(str::to_owned),
            id: id.map(str::to_owned),
            ..Headers::default()
        }
    }

    fn reader(name: &str) -> Subscription {
        Subscription {
            topic: Topic::system(Class::Flow, "in"),
            name: name.to_owned(),
        }
    }

    #[test]
    fn a_run_id_has_one_spelling() {
        let run = RunId::new(3, "default", "p1");
        assert_eq!(RunId::parse(run.as_str()), Some(run.clone()));
        assert_eq!(run.incarnation(), 3);
        assert_eq!(run, RunId::new(3, "default", "p1"));
        assert_ne!(run, RunId::new(3, "defaultp", "1"));
        assert_eq!(RunId::new(-1, "w", "p").incarnation(), 0);
        let hash = "0123456789abcdef0123456789abcdef";
        assert!(RunId::parse(&format!("run.0.{hash}")).is_some());
        for no in [
            format!("run.00.{hash}"),
            format!("run.+1.{hash}"),
            format!("run.-1.{hash}"),
            format!("run..{hash}"),
            format!("run.99999999999999999999.{hash}"),
            format!("run.1.{}", hash.to_uppercase()),
            format!("run.1.{hash}0"),
            "run.1.".to_owned(),
            "run.1".to_owned(),
            "session-1".to_owned(),
            String::new(),
        ] {
            assert_eq!(RunId::parse(&no), None, "{no}");
        }
    }

    #[test]
    fn only_records_of_a_run_with_an_id_are_counted() {
        let run = RunId::new(0, "w", "p");
        let by = reader("a");
        assert!(Track::of_record(&record(None, Some("r")), &by).is_none());
        assert!(Track::of_record(&record(Some("talk"), Some("r")), &by).is_none());
        assert!(Track::of_record(&record(Some(run.as_str()), None), &by).is_none());
        assert!(Track::of_record(&record(Some(run.as_str()), Some("")), &by).is_none());
        let tracked = Track::of_record(&record(Some(run.as_str()), Some("r")), &by).unwrap();
        let entry = tracked.entry(Err("no good")).unwrap();
        assert_eq!(
            (entry.run.as_str(), entry.record.as_str()),
            (run.as_str(), "r")
        );
        assert_eq!(
            (entry.outcome.as_str(), entry.detail.as_str()),
            ("failed", "no good")
        );
        let asked = Track::of_question(&record(Some(run.as_str()), Some("q"))).unwrap();
        assert!(asked.entry(Ok(())).is_none());
    }

    #[test]
    fn children_differ_by_reader_topic_and_place_and_are_the_same_again() {
        let run = RunId::new(0, "w", "p");
        let headers = record(Some(run.as_str()), Some("r"));
        let (one, two) = (
            Topic::system(Class::Flow, "one"),
            Topic::system(Class::Flow, "two"),
        );
        let ids = |by: &str| {
            let track = Track::of_record(&headers, &reader(by)).unwrap();
            let tracked = track.record.as_ref().unwrap();
            [&one, &two, &one].map(|topic| tracked.next_id(topic))
        };
        let first = ids("a");
        assert_eq!(first, ids("a"));
        let mut all: Vec<_> = first.into_iter().chain(ids("b")).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 6);
    }

    #[test]
    fn who_writes_much_tells_of_it_in_parts() {
        let run = RunId::new(0, "w", "p");
        let headers = record(Some(run.as_str()), Some("r"));
        let track = Track::of_record(&headers, &reader("a")).unwrap();
        let tracked = track.record.as_ref().unwrap();
        let wrote = |n: usize| {
            let record = n.to_string();
            tracked.wrote(
                &run,
                RunWritten {
                    topic: "t".to_owned(),
                    record,
                },
            )
        };
        let parts: Vec<_> = (0..PART + 3).filter_map(wrote).collect();
        assert_eq!(parts.len(), 1);
        assert_eq!(
            (parts[0].outcome.as_str(), parts[0].written.len()),
            ("part", PART)
        );
        let last = track.entry(Ok(())).unwrap();
        assert_eq!((last.outcome.as_str(), last.written.len()), ("ok", 3));
    }

    #[test]
    fn a_long_detail_is_cut() {
        let run = RunId::new(0, "w", "p");
        let headers = record(Some(run.as_str()), Some("r"));
        let track = Track::of_record(&headers, &reader("a")).unwrap();
        let detail = track.entry(Err(&"ü".repeat(900))).unwrap().detail;
        assert_eq!(detail, "ü".repeat(512));
    }
}
