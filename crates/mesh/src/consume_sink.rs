//! Feeds records to a handler: acknowledged after their effect, or dead-lettered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

use parking_lot::Mutex;
use tg_schemas::receipt::Fate;
use tg_schemas::{Error, ErrorCode, Headers, Subscription, WorkspaceKey};

use crate::dead_letter::{self, Reason};
use crate::erased::{ErasedRead, Outcome};
use crate::handler::ConsumeError;
use crate::instance_state::{Done, InstanceState};
use crate::intake::Intake;
use crate::middleware::Follow;
use crate::receipt::RecordReceipt;
use crate::room::{Permit, RecordRoom};
use crate::scope::InstanceScope;
use tg_bus::TaskKind;
use tg_bus::{Delivery, Envelope, Sink};
use tg_rpc::deadline::{Deadline, STREAM};

/// Feeds a [`crate::Read`] handler.
pub(crate) struct ConsumeSink {
    pub(crate) slot: Arc<InstanceState>,
    pub(crate) handler: Arc<dyn ErasedRead>,
    pub(crate) subscription: Subscription,
    /// Reports to writers what became of their records.
    pub(crate) keeps: bool,
    pub(crate) stuck: Arc<Stuck>,
    pub(crate) room: Arc<RecordRoom>,
    pub(crate) intake: Arc<Intake>,
}

/// Since when records of a subscription can be neither handled nor dead-lettered, and when that was seen last.
#[derive(Default)]
pub(crate) struct Stuck(Mutex<Option<(Instant, Instant)>>);

impl Stuck {
    /// The next pause: as long as it has been so, within bounds.
    fn pause(&self) -> Duration {
        let mut seen = self.0.lock();
        let now = Instant::now();
        let since = match *seen {
            Some((since, last)) if now - last < 2 * LONGEST_PAUSE => since,
            _ => now,
        };
        *seen = Some((since, now));
        (now - since).clamp(PAUSE, LONGEST_PAUSE)
    }

    fn over(&self) {
        *self.0.lock() = None;
    }
}

/// First pause before a record that can be neither handled nor dead-lettered goes back to its queue, and the longest.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How often one that pauses looks whether it may go on.
const LOOK: Duration = Duration::from_millis(250);

impl Sink for ConsumeSink {
    fn deliver(&self, delivery: Delivery) {
        let in_hand = self.intake.hold();
        let (slot, handler) = (self.slot.clone(), self.handler.clone());
        let (subscription, stuck) = (self.subscription.clone(), self.stuck.clone());
        let room = self.room.clone();
        let keeps = self.keeps;
        slot.begin();
        self.slot.mesh.spawn(TaskKind::Handler, async move {
            let done = Done {
                slot: slot.clone(),
                running: Arc::new(AtomicUsize::new(1)),
            };
            let permit = room.take(delivery.envelope.body.len()).await;
            let of = Of {
                subscription: &subscription,
                stuck: &stuck,
                receipt: keeps
                    .then(|| RecordReceipt::of(&delivery.envelope.headers))
                    .flatten(),
            };
            read(&slot, &*handler, of, (delivery, permit)).await;
            drop((done, in_hand));
        });
    }
}

/// Where a record comes from, and what is reported to its writer.
struct Of<'a> {
    subscription: &'a Subscription,
    stuck: &'a Stuck,
    receipt: Option<Arc<RecordReceipt>>,
}

impl Of<'_> {
    fn tell(&self, slot: &InstanceState, fate: impl FnOnce() -> Fate) {
        if let Some(receipt) = &self.receipt {
            receipt.tell(&slot.mesh, &fate());
        }
    }
}

async fn read(
    slot: &Arc<InstanceState>,
    handler: &dyn ErasedRead,
    source: Of<'_>,
    (delivery, permit): (Delivery, Option<Permit>),
) {
    let of = source.subscription;
    let started = Instant::now();
    let scope = slot.scope.read().clone();
    let follow = slot.follow(&delivery.envelope.headers, Some(of));
    if slot.mesh.rules().tombstones && has_ended(slot, &delivery.envelope.headers) {
        metrics::counter!("tg_records_of_ended_workspaces_total").increment(1);
        slot.handled(&of.name);
        delivery.ack();
        source.tell(slot, || refused("its workspace was deleted"));
        return;
    }
    let reason = if slot.of_another_epoch(&delivery.envelope.headers) {
        Reason::Stale
    } else {
        let headers = delivery.envelope.headers.clone();
        let deadline = headers
            .deadline
            .map_or_else(|| Deadline::after(STREAM), Deadline::from_millis);
        let cancel = slot.mesh.shutdown().child_token();
        let mut cx = slot.cx(headers, deadline, cancel, follow.clone());
        cx.receipt.clone_from(&source.receipt);
        let mut span = slot.span(&cx, &of.name);
        let handled = handler.run(cx.within(&span), &delivery.envelope).await;
        if let Err(ConsumeError::Retry { error, .. } | ConsumeError::Dead(error)) = &handled {
            span.fail(error.code().as_str());
        }
        drop(span);
        let failed = match handled {
            Ok(()) => {
                if told(slot, follow.as_deref(), Ok(())).await {
                    slot.handled(&of.name);
                    delivery.ack();
                    if let Some(receipt) = &source.receipt {
                        receipt.handled(&slot.mesh);
                    }
                }
                slot.note(Outcome::Ok, started);
                return;
            }
            Err(failed) => failed,
        };
        match failed {
            ConsumeError::Retry { error, after } => Reason::Retry(error, after),
            ConsumeError::Dead(error) => Reason::Dead(error),
        }
    };
    slot.note(Outcome::Failed, started);
    // On a full disk no write succeeds: one line a minute stands in the log for all that come again.
    let quiet = slot.mesh.presence().disk_full();
    tell(&scope, of, handler, &delivery.envelope, (&reason, quiet));
    let fate = source.receipt.is_some().then(|| reason.fate());
    let aside = if of.topic == dead_letter::topic() {
        Err(None)
    } else {
        let aside = dead_letter::dead_letter(&slot.mesh, of, &scope, &delivery.envelope, reason);
        aside.await.map_err(Some)
    };
    let settled = match &aside {
        Ok(Some(why)) => told(slot, follow.as_deref(), Err(why)).await,
        Ok(None) => true,
        Err(None) => false,
        Err(Some(error)) => {
            tracing::debug!(processor = %scope.processor, %error, "a record cannot be dead-lettered now");
            false
        }
    };
    if settled {
        source.stuck.over();
        delivery.ack();
        if let Some(mut fate) = fate {
            // What was tried often enough is tried no more.
            if let (Fate::Later(_), Ok(Some(why))) = (&fate, aside) {
                fate = Fate::Refused(why);
            }
            source.tell(slot, || fate);
        }
    } else {
        // Nothing accepted is lost: it goes back, slowly, until it can be dead-lettered.
        if let Some(Fate::Refused(error) | Fate::Later(error)) = fate {
            source.tell(slot, || Fate::Later(error));
        }
        let full = matches!(&aside, Err(Some(error)) if error.code() == ErrorCode::Busy);
        drop(permit);
        wait(slot, source.stuck.pause(), full).await;
        drop(delivery);
    }
}

fn refused(why: &str) -> Fate {
    Fate::Refused(Error::new(ErrorCode::Conflict, why))
}

impl Reason {
    /// What becomes of a record that is dead-lettered for it.
    fn fate(&self) -> Fate {
        match self {
            Self::Retry(error, _) => Fate::Later(error.clone()),
            Self::Dead(error) => Fate::Refused(error.clone()),
            Self::Stale => refused(
                "its flow was started anew before it was stored; it is kept as a dead letter",
            ),
        }
    }
}

/// Writes a line about a record that was not handled: what will be done with it, and by which ids people know it. While it is
/// `quiet`, what comes again gets a line of detail only.
fn tell(
    scope: &InstanceScope,
    of: &Subscription,
    handler: &dyn ErasedRead,
    record: &Envelope,
    (reason, quiet): (&Reason, bool),
) {
    let (outcome, error) = match reason {
        Reason::Retry(error, _) if quiet || error.code() == ErrorCode::Busy => {
            tracing::debug!(processor = %scope.processor, %error, "a record comes again later");
            return;
        }
        Reason::Retry(error, _) => ("it is tried again", Some(error)),
        Reason::Dead(error) => ("it is kept as a dead letter", Some(error)),
        Reason::Stale => (
            "it is of another start of its flow and kept as a dead letter",
            None,
        ),
    };
    tracing::warn!(
        processor = %scope.processor,
        workspace = scope.workspace.as_ref().map(tracing::field::display),
        flow = scope.flow.as_ref().map(tracing::field::display),
        document = handler.document(record),
        record = record.headers.id,
        run = record.headers.thread,
        request = record.headers.request_id,
        queue = of.name,
        error = error.map(tracing::field::display),
        "a record was not handled; {outcome}"
    );
}

/// Pauses before a record goes back; ends early when its flow or the process stops, or where it waits for room.
async fn wait(slot: &InstanceState, pause: Duration, full: bool) {
    tokio::time::sleep(PAUSE).await;
    let scope = slot.scope.read().clone();
    let workspace = scope.workspace.as_ref().map_or("", |id| id.as_str());
    let workspace = slot.mesh.config().workspace_key(workspace);
    let flow = scope.flow.as_ref().map_or("", |id| id.as_str());
    let end = Instant::now() + pause.saturating_sub(PAUSE);
    while Instant::now() < end {
        let over = slot.stopping.load(Ordering::Acquire)
            || slot.mesh.stopping().is_cancelled()
            || (full && !slot.mesh.presence().room_full(workspace.as_str(), flow));
        if over {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Whether a message was sent in a generation of its workspace that has ended. Deciding it in the sinks keeps every
/// store from it.
pub(crate) fn has_ended(slot: &InstanceState, headers: &Headers) -> bool {
    let (Some(workspace), Some(generation)) = (&headers.workspace, headers.generation) else {
        return false;
    };
    let sent_in = WorkspaceKey::new(workspace, generation);
    slot.mesh.config().is_over(&sent_in)
}

/// Says what became of a record to what follows it. `false`: that is not noted, the record must come again.
async fn told(
    slot: &InstanceState,
    follow: Option<&dyn Follow>,
    outcome: Result<(), &Error>,
) -> bool {
    match follow {
        Some(follow) => follow.ended(&slot.mesh, outcome).await,
        None => true,
    }
}
