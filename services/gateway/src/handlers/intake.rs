//! What an import does with each frame, whatever endpoint it came through: read it, cut it into records, write
//! them, count what is safe.
//!
//! Frames are written side by side, within a window: who sends faster than the bus confirms waits. Where the client wants to
//! know what the stores did, a frame that is on the bus waits for their word in a window of its own.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use serde_json::Value;
use tg_mesh::Ask;
use tg_schemas::msg::Triples;
use tg_schemas::vocabulary::POLICY_GRAPH;
use tg_schemas::{Error, ErrorCode, Topic, limits};
use tokio_util::sync::CancellationToken;

use super::counts::Counts;
use crate::auth::{Identity, Lapse, Resource};
use crate::budget::Reader;
use crate::engine::scrub::scrub;
use crate::engine::translate::bulk::{BulkKind, Record};
use crate::flows::Flow;
use crate::receipts::{Unsettled, Verdict};
use crate::registry::Gate;
use crate::state::{App, SocketRoom};

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
    /// The stores are waited for.
    pub(super) settled: bool,
    /// Whether a faulty frame is passed over; `None`: as the endpoint does.
    pub(super) skips: Option<bool>,
}

/// What became of one frame.
pub(super) struct Outcome {
    frame: u64,
    /// Bytes of the window that it gives back.
    bytes: usize,
    result: Result<Step, Error>,
}

/// How far a frame has come.
enum Step {
    /// Its records are on the bus.
    Sent {
        items: usize,
        unsettled: Option<Unsettled>,
    },
    /// The stores were waited for.
    Settled { items: usize, verdict: Verdict },
}

/// What there is to say of a frame.
#[derive(Debug, Default)]
pub(super) struct News {
    /// To a client that wants to be told of each.
    pub(super) tell: Option<Value>,
    /// Why it was not stored, or not even written.
    pub(super) fault: Option<Error>,
    /// It is a store that refused it.
    refused: bool,
}

/// A running import.
pub(super) struct Intake<'a> {
    app: &'a App,
    way: &'a Way,
    waiting: FuturesUnordered<BoxFuture<'a, Outcome>>,
    /// Done with while another frame was read.
    done: VecDeque<Outcome>,
    bytes: usize,
    /// Frames that wait for the stores.
    unsettled: usize,
    /// The stores are waited for no longer.
    enough: CancellationToken,
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
            unsettled: 0,
            enough: app.closing.child_token(),
            counts: Counts::new(way.settled),
        }
    }

    /// Where it goes.
    pub(super) fn way(&self) -> &'a Way {
        self.way
    }

    /// Whether another frame may be read.
    pub(super) fn has_room(&self) -> bool {
        let settings = &self.app.options.settings;
        let writing = self.waiting.len().saturating_sub(self.unsettled);
        writing < settings.import_records
            && self.bytes < limits::IMPORT_WINDOW
            && self.waiting.len() < settings.import_unsettled.max(settings.import_records)
    }

    /// Nobody hears any more what the stores say.
    pub(super) fn stop_waiting(&self) {
        self.enough.cancel();
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
                self.counts.failed(frame, &error);
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
                result: written
                    .map(|unsettled| Step::Sent { items, unsettled })
                    .map_err(scrub),
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

    /// Counts what became of a frame. One that is on the bus waits for the stores from now on, if they are waited for.
    pub(super) fn settle(&mut self, outcome: Outcome) -> News {
        let Outcome {
            frame,
            bytes,
            result,
        } = outcome;
        self.bytes = self.bytes.saturating_sub(bytes);
        let (items, verdict) = match result {
            Err(error) => {
                self.counts.failed(frame, &error);
                return News {
                    fault: Some(error),
                    ..News::default()
                };
            }
            Ok(Step::Sent { items, unsettled }) => {
                self.counts.sent(items);
                let Some(unsettled) = unsettled else {
                    return self.confirmed();
                };
                self.unsettled += 1;
                let enough = self.enough.clone();
                self.waiting.push(Box::pin(async move {
                    let verdict = unsettled.verdict(enough).await;
                    Outcome {
                        frame,
                        bytes: 0,
                        result: Ok(Step::Settled { items, verdict }),
                    }
                }));
                return News::default();
            }
            Ok(Step::Settled { items, verdict }) => (items, verdict),
        };
        self.unsettled = self.unsettled.saturating_sub(1);
        match verdict {
            Verdict::Stored => {
                self.counts.stored(items);
                self.confirmed()
            }
            Verdict::Refused(refused) => {
                let (tell, fault) = self.counts.refused(frame, refused);
                News {
                    tell: Some(tell),
                    fault,
                    refused: true,
                }
            }
            Verdict::Unconfirmed(why) => News {
                tell: Some(self.counts.unconfirmed(frame, why)),
                ..News::default()
            },
        }
    }

    fn confirmed(&self) -> News {
        News {
            tell: Some(self.counts.confirmed(self.way.kind)),
            ..News::default()
        }
    }

    /// Why the import goes no further after this. A faulty frame ends it unless it is to be passed over (`skips`: where the
    /// client does not say); what a store refused only where the client says so, for much may have been sent since.
    pub(super) fn stops(&self, news: News, skips: bool) -> Option<Error> {
        let skips = match self.way.skips {
            Some(skips) => skips,
            None => skips || news.refused,
        };
        news.fault.filter(|_| !skips)
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

    /// Writes a record, in parts of the size that stores take well. What comes back waits for the stores, where they are
    /// waited for.
    pub(super) async fn write(
        &self,
        app: &App,
        record: Record,
        cancel: CancellationToken,
    ) -> Result<Option<Unsettled>, Error> {
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
            by_hand: matches!(record, Record::Triples(_)),
            traceparent: Some(self.traceparent.to_string()),
            request_id: Some(self.request_id.to_string()),
            cancel,
            ..Ask::default()
        };
        let topic = &self.topic;
        let parts = record.split();
        let mut unsettled = match self.settled {
            true => self.unsettled(app, &parts).await?,
            false => None,
        };
        for (at, part) in parts.into_iter().enumerate() {
            let mut options = options.clone();
            options.receipt = unsettled.as_ref().map(|unsettled| unsettled.slip(at));
            match &part {
                Record::Triples(part) => mesh.record(topic, part, options).await?,
                Record::GraphEmbeddings(part) => mesh.record(topic, part, options).await?,
                Record::DocumentEmbeddings(part) => mesh.record(topic, part, options).await?,
                Record::EntityContexts(part) => mesh.record(topic, part, options).await?,
                Record::Rows(part) => mesh.record(topic, part, options).await?,
            }
        }
        if let Some(unsettled) = &mut unsettled {
            unsettled.sent();
        }
        Ok(unsettled)
    }

    /// Room for what the stores are to say of the parts of a record.
    async fn unsettled(&self, app: &App, parts: &[Record]) -> Result<Option<Unsettled>, Error> {
        let items = parts.iter().map(Record::items);
        let workspace = self.flow.workspace.as_str();
        let room = app.receipts.open(&app.mesh, workspace, self.kind, items);
        tokio::select! {
            biased;
            room = room => room,
            () = app.closing.cancelled() => {
                Err(Error::new(ErrorCode::Unavailable, "the gateway is closing"))
            }
        }
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
}
