//! What an import does with each frame, whatever endpoint it came through: read it, cut it into records, write
//! them, count what is safe.
//!
//! Frames are written side by side, within a window: who sends faster than the bus confirms waits.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use serde_json::{Value, json};
use tg_mesh::Ask;
use tg_schemas::msg::Triples;
use tg_schemas::vocabulary::POLICY_GRAPH;
use tg_schemas::{Error, ErrorCode, Topic};
use tokio_util::sync::CancellationToken;

use crate::auth::{Identity, Lapse, Resource};
use crate::budget::Reader;
use crate::engine::scrub::scrub;
use crate::engine::translate::bulk::{BulkKind, Record};
use crate::engine::translate::{Body, error_value};
use crate::flows::Flow;
use crate::registry::Gate;
use crate::state::{App, SocketRoom};

/// Bytes of frames that are not confirmed yet, beyond which no more are read.
const WINDOW: usize = 16 << 20;
/// Faults that are told one by one.
const TOLD: usize = 20;

/// Where the records of an import go, and for whom.
pub(super) struct Way {
    pub(super) _room: SocketRoom,
    pub(super) kind: BulkKind,
    pub(super) topic: Topic,
    pub(super) flow: Arc<Flow>,
    /// Of the workspace, as the caller was let in.
    pub(super) generation: i64,
    pub(super) identity: Identity,
    /// When its caller may not write any more.
    pub(super) lapse: Lapse,
    pub(super) traceparent: Arc<str>,
    pub(super) request_id: Arc<str>,
    /// Each confirmed frame is told.
    pub(super) ack: bool,
    /// Whether a faulty frame is passed over; `None`: as the endpoint does.
    pub(super) skips: Option<bool>,
}

/// What came in and what became of it.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Frames.
    pub(super) received: u64,
    /// Frames whose records are all safe.
    pub(super) stored: u64,
    /// Frames that could not be read or written.
    pub(super) failed: u64,
    /// Items in the stored frames.
    pub(super) items: u64,
    faults: Vec<Value>,
}

/// What became of one frame.
pub(super) struct Outcome {
    frame: u64,
    bytes: usize,
    result: Result<usize, Error>,
}

/// A running import.
pub(super) struct Intake<'a> {
    app: &'a App,
    way: &'a Way,
    waiting: FuturesUnordered<BoxFuture<'a, Outcome>>,
    /// Done with while another frame was read.
    done: VecDeque<Outcome>,
    bytes: usize,
    pub(super) counts: Counts,
}

impl<'a> Intake<'a> {
    pub(super) fn new(app: &'a App, way: &'a Way) -> Self {
        Self {
            app,
            way,
            waiting: FuturesUnordered::new(),
            done: VecDeque::new(),
            bytes: 0,
            counts: Counts::default(),
        }
    }

    /// Where it goes.
    pub(super) fn way(&self) -> &'a Way {
        self.way
    }

    /// Whether another frame may be read.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() < self.app.options.settings.import_records && self.bytes < WINDOW
    }

    /// Takes a frame, when there is memory to read it. An error says what is wrong with it; it is counted already.
    pub(super) async fn take(&mut self, bytes: Bytes) -> Result<(), Error> {
        self.counts.received += 1;
        let frame = self.counts.received;
        let (kind, size) = (self.way.kind, bytes.len());
        let reader = Reader::known(&self.way.identity);
        let parsed = self
            .app
            .budget
            .read(&reader, bytes, move |bytes| read(kind, bytes));
        // What is under way goes on: it may hold the very memory that this one waits for.
        let mut parsed = std::pin::pin!(parsed);
        let parsed = loop {
            tokio::select! {
                biased;
                Some(done) = self.waiting.next() => self.done.push_back(done),
                parsed = &mut parsed => break parsed,
            }
        };
        let parsed = match parsed {
            Ok((record, reading)) => record.map(|record| (record, reading.sent())),
            Err(fault) => Err(fault.error()),
        };
        let (record, share) = match parsed {
            Ok(parsed) => parsed,
            Err(error) => {
                self.counts.failed += 1;
                self.counts.note(frame, &error);
                return Err(Error::typed(
                    &error.kind,
                    format!("frame {frame}: {}", error.message),
                ));
            }
        };
        self.bytes += size;
        let (app, way) = (self.app, self.way);
        let cancel = self.app.closing.clone();
        self.waiting.push(Box::pin(async move {
            let items = record.items();
            let written = way.write(app, record, cancel).await;
            drop(share);
            Outcome {
                frame,
                bytes: size,
                result: written.map(|()| items).map_err(scrub),
            }
        }));
        Ok(())
    }

    /// The next frame that is done with; `None` if none is under way.
    pub(super) async fn next(&mut self) -> Option<Outcome> {
        match self.done.pop_front() {
            None => self.waiting.next().await,
            done => done,
        }
    }

    /// Counts what became of a frame. An error is why it could not be written.
    pub(super) fn settle(&mut self, outcome: Outcome) -> Result<(), Error> {
        self.bytes = self.bytes.saturating_sub(outcome.bytes);
        match outcome.result {
            Ok(items) => {
                self.counts.stored += 1;
                self.counts.items += items as u64;
                Ok(())
            }
            Err(error) => {
                self.counts.failed += 1;
                self.counts.note(outcome.frame, &error);
                Err(error)
            }
        }
    }
}

impl Counts {
    fn note(&mut self, frame: u64, error: &Error) {
        if self.faults.len() < TOLD {
            let fault = json!({"frame": frame, "error": error_value(error)});
            self.faults.push(fault);
        }
    }

    /// As clients see them.
    pub(super) fn show(&self, kind: BulkKind) -> Body {
        let mut body = Body::new();
        body.insert("received".into(), self.received.into());
        body.insert("stored".into(), self.stored.into());
        body.insert("failed".into(), self.failed.into());
        body.insert(kind.items().into(), self.items.into());
        if !self.faults.is_empty() {
            body.insert("errors".into(), self.faults.clone().into());
        }
        body
    }

    /// The frame that tells them.
    pub(crate) fn status(&self, kind: BulkKind, complete: bool) -> Value {
        json!({"status": self.show(kind), "complete": complete})
    }

    /// The frame that confirms what is safe.
    pub(crate) fn confirmed(&self, kind: BulkKind) -> Value {
        json!({"confirmed": {"frames": self.stored, kind.items(): self.items}})
    }

    /// Counters with a fault, for who looks at the frames only.
    #[cfg(test)]
    pub(crate) fn sample() -> Self {
        let mut counts = Self {
            received: 3,
            stored: 2,
            failed: 1,
            items: 20,
            faults: Vec::new(),
        };
        counts.note(2, &Error::new(ErrorCode::BadRequest, "no"));
        counts
    }

    /// In a few words.
    pub(super) fn text(&self) -> String {
        format!(
            "received {}, stored {}, failed {}",
            self.received, self.stored, self.failed
        )
    }
}

impl Way {
    /// Whether there are policies in a record. They decide what others see, so they are written by who may configure the
    /// workspace.
    async fn holds_policies(&self, app: &App, record: &Triples) -> Result<bool, Error> {
        let mut triples = record.triples.iter();
        let Some(at) = triples.position(|one| one.g.as_deref() == Some(POLICY_GRAPH)) else {
            return Ok(false);
        };
        let of = Resource::workspace(self.flow.workspace.as_str());
        let gate = Gate::Needs("config:write");
        let may = app.auth.authorise(&self.identity, gate, &of).await;
        may.map_err(|fault| {
            let why =
                format!("triples[{at}].g: policies are written with the capability config:write");
            Error::new(fault.error().code(), why)
        })?;
        Ok(true)
    }

    /// Writes a record, in parts of the size that stores take well.
    pub(super) async fn write(
        &self,
        app: &App,
        record: Record,
        cancel: CancellationToken,
    ) -> Result<(), Error> {
        let mesh = &app.mesh;
        let policies = match &record {
            Record::Triples(record) => self.holds_policies(app, record).await?,
            _ => false,
        };
        let options = Ask {
            epoch: self.flow.epoch,
            workspace: Some(self.flow.workspace.clone()),
            generation: Some(self.generation),
            user_id: Some(self.identity.id.to_string()),
            policies,
            traceparent: Some(self.traceparent.to_string()),
            request_id: Some(self.request_id.to_string()),
            cancel,
            ..Ask::default()
        };
        let topic = &self.topic;
        for part in record.split() {
            let options = options.clone();
            match &part {
                Record::Triples(part) => mesh.record(topic, part, options).await?,
                Record::GraphEmbeddings(part) => mesh.record(topic, part, options).await?,
                Record::DocumentEmbeddings(part) => mesh.record(topic, part, options).await?,
                Record::EntityContexts(part) => mesh.record(topic, part, options).await?,
                Record::Rows(part) => mesh.record(topic, part, options).await?,
            }
        }
        Ok(())
    }
}

pub(super) fn read(kind: BulkKind, bytes: &[u8]) -> Result<Record, Error> {
    let malformed = |why: &str| Error::new(ErrorCode::BadRequest, why.to_owned());
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(body)) => Record::read(kind, &body),
        Ok(_) => Err(malformed("must be an object")),
        Err(detail) => Err(malformed(&format!("invalid JSON: {detail}"))),
    }
}

/// A frame that is no data but asks for something, or closes an export that is read back in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    /// `{"type": "status"}`: the counters now.
    Status,
    /// `{"type": "end"}`: the counters once everything is safe, and the end.
    End,
    /// `{"complete": …}`: the last line of an export.
    Ignored,
}

/// Whether a frame is one of those. Cheap for data, which is never that short.
pub(super) fn control(bytes: &[u8]) -> Option<Control> {
    const LONGEST: usize = 4096;
    if bytes.len() > LONGEST {
        return None;
    }
    let Ok(Value::Object(body)) = serde_json::from_slice(bytes) else {
        return None;
    };
    match body.get("type").and_then(Value::as_str) {
        Some("status") => Some(Control::Status),
        Some("end") => Some(Control::End),
        _ if body.contains_key("complete") && !body.contains_key("metadata") => {
            Some(Control::Ignored)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_no_batch() {
        let fault = |bytes: &[u8]| read(BulkKind::Triples, bytes).unwrap_err().message;
        assert!(fault(b"\xff\xfe").starts_with("invalid JSON"));
        assert_eq!(fault(b"3"), "must be an object");
        assert_eq!(fault(b"{}"), "metadata: is required");
    }

    #[test]
    fn control_frames_are_told_from_data() {
        assert_eq!(control(br#"{"type": "status"}"#), Some(Control::Status));
        assert_eq!(control(br#"{"type": "end"}"#), Some(Control::End));
        assert_eq!(
            control(br#"{"complete": true, "frames": 3}"#),
            Some(Control::Ignored)
        );
        for data in [
            &br#"{"metadata": {}, "triples": []}"#[..],
            br#"{"s": "urn:a", "p": "urn:b", "o": "c"}"#,
            b"[",
            b"",
        ] {
            assert_eq!(control(data), None);
        }
    }

    #[test]
    fn only_the_first_faults_are_told() {
        let mut counts = Counts::default();
        for frame in 0..100 {
            counts.note(frame, &Error::typed("bad-request", "no"));
        }
        let shown = counts.show(BulkKind::Rows);
        assert_eq!(shown["errors"].as_array().unwrap().len(), TOLD);
        assert_eq!(shown["rows"], 0);
    }
}
