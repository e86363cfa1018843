//! One record of a run on its way through its handler: what it wrote, and what is reported of it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tg_mesh::middleware::Follow;
use tg_rpc::{Ask, Peer};
use tg_schemas::msg::{RunTallyEntry, RunWritten};
use tg_schemas::{Error, ErrorCode, Headers, Subscription, Topic, limits};

use crate::report::Reports;
use crate::run_id::{JobId, hash};

/// Longest detail of a failure in a report, in characters.
const DETAIL: usize = 512;
/// Records written while one is handled, of which is reported before it is over.
const PART: usize = 4096;

/// Id of the `ordinal`-th record that a subscription writes to a topic while it handles `parent`.
fn child_id(subscription: &str, parent: &str, topic: &str, ordinal: u32) -> String {
    hash(&[subscription, parent, topic, &ordinal.to_string()])
}

/// The run that a message belongs to, and what its handler did for it so far.
pub struct Track {
    pub(crate) run: JobId,
    reports: Arc<Reports>,
    /// `None` for questions asked inside a run: they are not counted.
    record: Option<Tracked>,
}

struct Tracked {
    id: String,
    subscription: String,
    did: Mutex<Did>,
}

#[derive(Debug, Default)]
pub(crate) struct Did {
    subject: String,
    remark: String,
    written: Vec<RunWritten>,
    effects: BTreeMap<String, i64>,
    ordinals: HashMap<Topic, u32>,
}

impl Track {
    /// Of a message whose thread is a run; a record (`by`: its subscription) without an id cannot be counted.
    pub(crate) fn of(
        reports: &Arc<Reports>,
        headers: &Headers,
        by: Option<&Subscription>,
    ) -> Option<Self> {
        let run = JobId::parse(headers.thread.as_deref()?)?;
        let record = match by {
            None => None,
            Some(by) => Some(Tracked {
                id: headers.id.clone().filter(|id| !id.is_empty())?,
                subscription: by.name.clone(),
                did: Mutex::default(),
            }),
        };
        Some(Self {
            run,
            reports: reports.clone(),
            record,
        })
    }

    /// Notes what handling the record did; nothing for a question.
    pub(crate) fn note(&self, what: impl FnOnce(&mut Did)) {
        if let Some(record) = &self.record {
            what(&mut record.did.lock());
        }
    }

    /// What is reported: `Err` with why the record will never be handled.
    pub(crate) fn entry(&self, outcome: Result<(), &Error>) -> Option<RunTallyEntry> {
        let record = self.record.as_ref()?;
        let did = std::mem::take(&mut *record.did.lock());
        let (detail, kind) = match outcome {
            Ok(()) => (&did.remark, ""),
            Err(error) => (&error.message, error.kind.as_str()),
        };
        Some(RunTallyEntry {
            run: self.run.to_string(),
            record: record.id.clone(),
            subscription: record.subscription.clone(),
            subject: did.subject,
            outcome: if outcome.is_ok() { "ok" } else { "failed" }.to_owned(),
            detail: detail.chars().take(DETAIL).collect(),
            kind: kind.chars().take(limits::ERROR_KIND).collect(),
            written: did.written,
            effects: did.effects,
        })
    }
}

impl Did {
    pub(crate) fn effect(&mut self, kind: &str, count: i64) {
        let sum = self.effects.entry(kind.to_owned()).or_default();
        *sum = sum.saturating_add(count);
    }

    pub(crate) fn remark(&mut self, text: &str) {
        self.remark = text.chars().take(DETAIL).collect();
    }

    pub(crate) fn subject(&mut self, id: &str) {
        id.clone_into(&mut self.subject);
    }
}

#[async_trait]
impl Follow for Track {
    fn stamp(&self, topic: &Topic, options: Ask) -> Ask {
        match &self.record {
            Some(record) => Ask {
                id: Some(record.next_id(topic)),
                ..options
            },
            // What the handler of a question writes is not part of the run.
            None => Ask {
                thread: None,
                ..options
            },
        }
    }

    async fn wrote(&self, peer: &Peer, topic: &Topic, id: Option<String>) -> Result<(), Error> {
        let (Some(record), Some(id)) = (&self.record, id) else {
            return Ok(());
        };
        let written = RunWritten {
            topic: topic.to_string(),
            record: id,
        };
        if let Some(part) = record.wrote(&self.run, written)
            && !self.reports.add(peer, part).await
        {
            return Err(Error::new(ErrorCode::Unavailable, "the process stops"));
        }
        Ok(())
    }

    async fn ended(&self, peer: &Peer, outcome: Result<(), &Error>) -> bool {
        match self.entry(outcome) {
            Some(entry) => self.reports.add(peer, entry).await,
            None => true,
        }
    }
}

impl Tracked {
    /// Notes what was written; what is to be reported now, if that became much.
    fn wrote(&self, run: &JobId, written: RunWritten) -> Option<RunTallyEntry> {
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
    fn only_records_of_a_run_with_an_id_are_counted() {
        let run = JobId::new(0, "w", "p");
        let by = reader("a");
        let of = |headers: &Headers| Track::of(&Arc::default(), headers, Some(&by));
        assert!(of(&record(None, Some("r"))).is_none());
        assert!(of(&record(Some("talk"), Some("r"))).is_none());
        assert!(of(&record(Some(run.as_str()), None)).is_none());
        assert!(of(&record(Some(run.as_str()), Some(""))).is_none());
        let tracked = of(&record(Some(run.as_str()), Some("r"))).unwrap();
        let entry = tracked.entry(Err(&Error::typed("odd", "no good"))).unwrap();
        assert_eq!(
            (entry.run.as_str(), entry.record.as_str()),
            (run.as_str(), "r")
        );
        assert_eq!(
            (
                entry.outcome.as_str(),
                entry.detail.as_str(),
                entry.kind.as_str()
            ),
            ("failed", "no good", "odd")
        );
        let asked = Track::of(
            &Arc::default(),
            &record(Some(run.as_str()), Some("q")),
            None,
        )
        .unwrap();
        assert!(asked.entry(Ok(())).is_none());
    }

    #[test]
    fn children_differ_by_reader_topic_and_place_and_are_the_same_again() {
        let run = JobId::new(0, "w", "p");
        let headers = record(Some(run.as_str()), Some("r"));
        let (one, two) = (
            Topic::system(Class::Flow, "one"),
            Topic::system(Class::Flow, "two"),
        );
        let ids = |by: &str| {
            let track = Track::of(&Arc::default(), &headers, Some(&reader(by))).unwrap();
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
        let run = JobId::new(0, "w", "p");
        let headers = record(Some(run.as_str()), Some("r"));
        let track = Track::of(&Arc::default(), &headers, Some(&reader("a"))).unwrap();
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
        let run = JobId::new(0, "w", "p");
        let headers = record(Some(run.as_str()), Some("r"));
        let track = Track::of(&Arc::default(), &headers, Some(&reader("a"))).unwrap();
        let long = Error::typed("", "ü".repeat(900));
        let detail = track.entry(Err(&long)).unwrap().detail;
        assert_eq!(detail, "ü".repeat(512));
    }
}
