//! Publishes the pieces of a core and waits for what the stores say of them.

use std::time::Duration;
use tg_runs::JobId;

use tg_mesh::tg_bus::pause::after;
use tg_mesh::{Ask, Cx, Tap};
use tg_schemas::msg::{Retract, RunTally};
use tg_schemas::{Error, Topic};
use tokio::time::Instant;

use super::counts::Counts;
use super::in_flight::{Heard, InFlight, Sent};
use crate::engine::piece::{Carried, Part, Piece};
use crate::error;
use crate::store::{Cores, Stored};

/// Pieces on their way at most.
const PIECES: usize = 256;
/// Bytes of them, as they are stored.
const BYTES: usize = 8 << 20;
/// How long nothing may be confirmed before what is on its way is published again; doubled each time.
const STALL: Duration = Duration::from_secs(10);
/// The longest of these times.
const STALL_LONGEST: Duration = Duration::from_secs(80);
/// How often that happens.
const TRIES: u32 = 3;

/// What is published.
pub(super) enum Record {
    Piece(Carried),
    Retract(Retract),
}

/// One pass over a core.
pub(super) struct Pump<'a> {
    pub(super) cx: &'a Cx,
    pub(super) cores: &'a Cores,
    /// Number of the core.
    pub(super) core: i64,
    pub(super) run: JobId,
    pub(super) epoch: Option<u64>,
    /// Whether the stores report completion.
    pub(super) confirmed: bool,
}

impl Pump<'_> {
    /// Publishes what `make` makes of each piece. Returns when all of it is confirmed.
    pub(super) async fn run(
        &self,
        parts: &[Part],
        make: impl Fn(&Piece) -> Result<Option<(Topic, Record)>, Error>,
    ) -> Result<Counts, Error> {
        // Open before the first record, so that no word of one is missed.
        let mut tap = match self.confirmed {
            true => Some(
                self.cx
                    .mesh
                    .tap::<RunTally>(&tg_runs::report::topic())
                    .await?,
            ),
            false => None,
        };
        let mut counts = Counts::from([("records".to_owned(), 0)]);
        let mut sent = InFlight::default();
        for part in parts {
            let mut after = 0;
            loop {
                let page = self.cores.page(self.core, *part, after).await?;
                let Some(last) = page.last() else { break };
                after = last.id;
                for Stored { id, piece } in page {
                    let Some((topic, record)) = make(&piece)? else {
                        continue;
                    };
                    self.publish(id, &topic, record).await?;
                    let one = Sent::of(id, &piece);
                    match &mut tap {
                        Some(tap) => {
                            sent.add(self.record_id(id), one);
                            while sent.len() >= PIECES || sent.bytes() >= BYTES {
                                self.settle(tap, &mut sent, &mut counts, &make).await?;
                            }
                        }
                        None => count(&mut counts, one),
                    }
                }
            }
        }
        if let Some(tap) = &mut tap {
            while !sent.is_empty() {
                self.settle(tap, &mut sent, &mut counts, &make).await?;
            }
        }
        match sent.failed() {
            None => Ok(counts),
            Some((failed, why)) => {
                let of = counts.get("records").copied().unwrap_or(0) + failed as i64;
                let text = format!("{failed} of {of} records were refused; the first: {why}");
                Err(error::load(text))
            }
        }
    }

    /// Waits until something is confirmed.
    async fn settle(
        &self,
        tap: &mut Tap<RunTally>,
        sent: &mut InFlight,
        counts: &mut Counts,
        make: &impl Fn(&Piece) -> Result<Option<(Topic, Record)>, Error>,
    ) -> Result<(), Error> {
        let (mut until, mut tries) = (Instant::now() + STALL, 0);
        loop {
            let heard = tokio::select! {
                heard = tap.next() => heard,
                () = tokio::time::sleep_until(until) => {
                    if tries == TRIES {
                        let text = format!(
                            "{} records are not confirmed yet; what is there stays there, so ask again",
                            sent.len()
                        );
                        return Err(Error::new(tg_schemas::ErrorCode::Timeout, text));
                    }
                    tries += 1;
                    until = Instant::now() + after(STALL, tries, STALL_LONGEST);
                    self.publish_again(sent, make).await?;
                    continue;
                }
                () = self.cx.cancel.cancelled() => {
                    let text = "the load was given up; what is there stays there";
                    return Err(Error::new(tg_schemas::ErrorCode::Cancelled, text));
                }
            };
            let told = match heard {
                Some(Ok(told)) => told,
                // One batch that cannot be read: what it said is asked for again.
                Some(Err(_)) => continue,
                None => {
                    let text = "the stores cannot be heard";
                    return Err(Error::new(tg_schemas::ErrorCode::Unavailable, text));
                }
            };
            let mut any = false;
            for entry in &told.entries {
                if entry.run != self.run.as_str() {
                    continue;
                }
                match sent.hear(entry) {
                    Heard::Nothing => {}
                    Heard::Kept(one) => {
                        count(counts, one);
                        any = true;
                    }
                    Heard::Failed => any = true,
                }
            }
            if any {
                return Ok(());
            }
        }
    }

    async fn publish_again(
        &self,
        sent: &InFlight,
        make: &impl Fn(&Piece) -> Result<Option<(Topic, Record)>, Error>,
    ) -> Result<(), Error> {
        for one in sent.all() {
            let piece = self.cores.piece(self.core, one.id).await?;
            let piece = piece.ok_or_else(error::no_such_core)?;
            if let Some((topic, record)) = make(&piece)? {
                self.publish(one.id, &topic, record).await?;
            }
        }
        Ok(())
    }

    async fn publish(&self, id: i64, topic: &Topic, record: Record) -> Result<(), Error> {
        let options = Ask {
            id: Some(self.record_id(id)),
            thread: Some(self.run.to_string()),
            epoch: self.epoch,
            workspace: self.cx.scope.workspace.clone(),
            cancel: self.cx.cancel.clone(),
            user_id: self.cx.headers.user_id.clone(),
            user_context: self.cx.headers.user_context.clone(),
            traceparent: self.cx.headers.traceparent.clone(),
            request_id: self.cx.headers.request_id.clone(),
            ..Ask::default()
        };
        let mesh = &self.cx.mesh;
        match record {
            Record::Piece(Carried::Triples(one)) => mesh.record(topic, &one, options).await,
            Record::Piece(Carried::Entities(one)) => mesh.record(topic, &one, options).await,
            Record::Piece(Carried::Chunks(one)) => mesh.record(topic, &one, options).await,
            Record::Retract(one) => mesh.record(topic, &one, options).await,
        }
    }

    /// The same each time the piece is published in this run.
    fn record_id(&self, piece: i64) -> String {
        format!("{}.{piece}", self.run)
    }
}

fn count(counts: &mut Counts, one: Sent) {
    for (kind, more) in [("records", 1), (one.part.as_str(), one.items as i64)] {
        *counts.entry(kind.to_owned()).or_default() += more;
    }
}
