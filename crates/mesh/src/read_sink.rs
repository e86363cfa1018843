//! Feeds records to a handler: acknowledged after their effect, or put aside.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use tg_schemas::{ErrorCode, Subscription};

use crate::erased::{ErasedRead, Outcome};
use crate::processor::ReadFault;
use crate::put_aside::{self, Reason};
use crate::run::Track;
use crate::slot::{Done, Slot, note};
use tg_bus::TaskKind;
use tg_bus::{Delivery, Mode, Sink};
use tg_rpc::deadline::{Deadline, STREAM};

/// Feeds a [`crate::Read`] handler.
pub(crate) struct ReadSink {
    pub(crate) slot: Arc<Slot>,
    pub(crate) handler: Arc<dyn ErasedRead>,
    pub(crate) subscription: Subscription,
}

impl Sink for ReadSink {
    fn deliver(&self, delivery: Delivery) {
        let (slot, handler) = (self.slot.clone(), self.handler.clone());
        let subscription = self.subscription.clone();
        slot.begin();
        self.slot.mesh.spawn(TaskKind::Handler, async move {
            let done = Done {
                slot: slot.clone(),
                running: Arc::new(AtomicUsize::new(1)),
            };
            read(&slot, &*handler, &subscription, delivery).await;
            drop(done);
        });
    }
}

async fn read(slot: &Arc<Slot>, handler: &dyn ErasedRead, of: &Subscription, delivery: Delivery) {
    let started = Instant::now();
    let headers = delivery.envelope.headers.clone();
    let scope = slot.scope.read().clone();
    let native = slot.mesh.bus().mode() == Mode::Native;
    let track = native.then(|| Track::of_record(&headers, of)).flatten();
    let reason = if slot.of_another_epoch(&headers) {
        Reason::Stale
    } else {
        let deadline = headers
            .deadline
            .map_or_else(|| Deadline::after(STREAM), Deadline::from_millis);
        let cancel = slot.mesh.shutdown().child_token();
        let cx = slot.cx(headers, deadline, cancel, track.clone());
        match handler.run(cx, &delivery.envelope).await {
            Ok(()) => {
                if told(slot, track, Ok(())).await {
                    slot.handled(&of.name);
                    delivery.ack();
                }
                note(scope.processor.clone(), Outcome::Ok, started);
                return;
            }
            Err(ReadFault::Retry { error, after }) => Reason::Retry(error, after),
            Err(ReadFault::Dead(error)) => Reason::Dead(error),
        }
    };
    note(scope.processor.clone(), Outcome::Failed, started);
    match &reason {
        Reason::Retry(error, _) if error.code() == ErrorCode::Busy => {
            tracing::debug!(processor = %scope.processor, %error, "a record comes again later");
        }
        _ => tracing::warn!(processor = %scope.processor, ?reason, "a record was not handled"),
    }
    let aside = if of.topic == put_aside::topic() {
        None
    } else {
        put_aside::put_aside(&slot.mesh, of, &scope, &delivery.envelope, reason)
            .await
            .ok()
    };
    let settled = match aside {
        Some(Some(why)) => told(slot, track, Err(&why)).await,
        Some(None) => true,
        None => false,
    };
    if settled {
        delivery.ack();
    } else {
        // Nothing accepted is lost: it goes back, slowly, until it can be put aside.
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(delivery);
    }
}

/// Tells the tally what became of a record of a run. `false`: it does not know, the record must come again.
async fn told(slot: &Slot, track: Option<Arc<Track>>, outcome: Result<(), &str>) -> bool {
    match track.and_then(|track| track.entry(outcome)) {
        Some(entry) => slot.mesh.tally().add(&slot.mesh, entry).await,
        None => true,
    }
}
