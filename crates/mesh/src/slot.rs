//! One attached instance of a processor: its scope, its work in progress, and the sinks that feed its
//! handlers. Sinks never wait: they check the envelope and start a handler task, or refuse.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use tg_schemas::msg::{HostedFlow, HostedProcessor};
use tg_schemas::{Class, Error, ErrorCode, Frame, Headers, Subscription, Topic};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::answer::ReplyAddress;
use crate::asker::interrupted;
use crate::bus::{Delivery, Envelope, Mode, Sink};
use crate::deadline::{Deadline, QUESTION, STREAM};
use crate::erased::{ErasedRead, ErasedServe, Outcome};
use crate::holder::{Held, refuse};
use crate::mesh::Mesh;
use crate::processor::ReadFault;
use crate::put_aside::{self, Reason};
use crate::scope::{Cx, Scope};
use crate::task::TaskKind;

/// After its deadline a handler has this long for its last words.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// An attached instance.
pub(crate) struct Slot {
    pub(crate) mesh: Mesh,
    pub(crate) scope: RwLock<Arc<Scope>>,
    busy: AtomicUsize,
    stopping: AtomicBool,
    idle: Notify,
}

impl Slot {
    pub(crate) fn new(mesh: Mesh, scope: Scope) -> Arc<Self> {
        Arc::new(Self {
            mesh,
            scope: RwLock::new(Arc::new(scope)),
            busy: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            idle: Notify::new(),
        })
    }

    /// How this instance is told of in presence.
    pub(crate) fn hosted(&self) -> HostedProcessor {
        let scope = self.scope.read().clone();
        let flows = match (&scope.workspace, &scope.flow) {
            (Some(workspace), Some(flow)) => vec![HostedFlow {
                workspace: workspace.to_string(),
                flow: flow.to_string(),
                epoch: scope.epoch as i64,
                busy: self.busy.load(Ordering::Acquire) as i64,
            }],
            _ => Vec::new(),
        };
        HostedProcessor {
            id: scope.processor.clone(),
            state: "serving".to_owned(),
            flows,
        }
    }

    /// From now on questions from outside the flow are refused, and becoming idle is told.
    pub(crate) fn set_stopping(&self, stopping: bool) -> bool {
        self.stopping.swap(stopping, Ordering::AcqRel) != stopping
    }

    /// Waits until nothing is in progress, at most `bound`.
    pub(crate) async fn wait_idle(&self, bound: Duration) {
        let idle = async {
            loop {
                let notified = self.idle.notified();
                if self.busy.load(Ordering::Acquire) == 0 {
                    return;
                }
                notified.await;
            }
        };
        let _ = tokio::time::timeout(bound, idle).await;
    }

    fn begin(&self) {
        self.busy.fetch_add(1, Ordering::AcqRel);
    }

    fn end(self: &Arc<Self>) {
        if self.busy.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        self.idle.notify_waiters();
        if self.stopping.load(Ordering::Acquire) {
            let slot = self.clone();
            self.mesh.spawn(TaskKind::Handler, async move {
                crate::presence::tell(&slot.mesh, "attached", vec![slot.hosted()]).await;
            });
        }
    }

    fn cx(&self, headers: Headers, deadline: Deadline, cancel: CancellationToken) -> Cx {
        Cx {
            mesh: self.mesh.clone(),
            scope: self.scope.read().clone(),
            id: headers.id.as_deref().unwrap_or_default().into(),
            headers: Arc::new(headers),
            deadline,
            cancel,
        }
    }

    fn of_another_epoch(&self, headers: &Headers) -> bool {
        let epoch = self.scope.read().epoch;
        epoch > 0 && headers.epoch.is_some_and(|sent| sent != epoch)
    }
}

/// Feeds a [`crate::Serve`] handler.
pub(crate) struct ServeSink {
    pub(crate) slot: Arc<Slot>,
    pub(crate) handler: Arc<dyn ErasedServe>,
    pub(crate) limit: usize,
    pub(crate) running: Arc<AtomicUsize>,
    /// Interop: where answers go.
    pub(crate) responses: Topic,
}

impl ServeSink {
    fn refusal(&self, headers: &Headers) -> Option<Error> {
        let refused = |code, text: &str| Some(Error::new(code, text));
        if headers
            .deadline
            .is_some_and(|at| Deadline::from_millis(at).passed())
        {
            return refused(ErrorCode::Timeout, "the deadline has passed");
        }
        if self.slot.of_another_epoch(headers) {
            return refused(
                ErrorCode::FlowStopped,
                "the flow was stopped and started again",
            );
        }
        if self.slot.stopping.load(Ordering::Acquire) && headers.depth.unwrap_or(0) == 0 {
            return refused(ErrorCode::FlowStopped, "the flow is stopping");
        }
        if self.running.load(Ordering::Acquire) >= self.limit {
            return refused(
                ErrorCode::Busy,
                "too many requests in progress, try again later",
            );
        }
        None
    }

    fn address(&self, headers: &Headers, deadline: Deadline) -> Option<ReplyAddress> {
        let foreign = self.slot.mesh.bus().mode() == Mode::Interop;
        Some(ReplyAddress {
            id: headers.id.clone()?,
            reply_to: match &headers.reply_to {
                Some(inbox) if !foreign => inbox.clone(),
                _ if foreign => self.responses.to_string(),
                _ => return None,
            },
            seq: headers.seq.unwrap_or(0),
            deadline: deadline.millis(),
            detach: headers.detach,
            foreign,
        })
    }

    fn take(&self, envelope: Envelope) {
        let mesh = &self.slot.mesh;
        let headers = envelope.headers.clone();
        let deadline = headers
            .deadline
            .map_or_else(|| Deadline::after(QUESTION), Deadline::from_millis);
        let Some(address) = self.address(&headers, deadline) else {
            metrics::counter!("tg_questions_malformed_total").increment(1);
            tracing::warn!("a question without id or reply address was dropped");
            return;
        };
        if mesh.holder().repeat_position(mesh, &address.id) {
            return;
        }
        if let Some(error) = self.refusal(&headers) {
            self.refuse(&headers, &error);
            return;
        }
        self.running.fetch_add(1, Ordering::AcqRel);
        self.slot.begin();
        let (slot, handler, running) = (
            self.slot.clone(),
            self.handler.clone(),
            self.running.clone(),
        );
        let again = headers.seq.is_some_and(|seq| seq > 0);
        mesh.clone().spawn(TaskKind::Handler, async move {
            let done = Done {
                slot: slot.clone(),
                running,
            };
            if again {
                ask_again(&slot, &*handler, headers, deadline).await;
            } else if let Some(held) = slot.mesh.holder().open(&slot.mesh, &address) {
                answer(&slot, &*handler, envelope, deadline, held).await;
            }
            drop(done);
        });
    }

    fn refuse(&self, headers: &Headers, error: &Error) {
        let mesh = &self.slot.mesh;
        metrics::counter!("tg_questions_refused_total", "code" => error.code().as_str())
            .increment(1);
        if mesh.bus().mode() == Mode::Native {
            refuse(mesh, headers, error);
            return;
        }
        // A foreign asker understands only the type's own failure reply.
        let slot = self.slot.clone();
        let handler = self.handler.clone();
        let address = self.address(headers, Deadline::after(QUESTION));
        let error = error.clone();
        mesh.clone().spawn(TaskKind::Handler, async move {
            let held = address.and_then(|address| slot.mesh.holder().open(&slot.mesh, &address));
            if let Some(held) = held {
                handler.fail(&slot.mesh, held, error).await;
            }
        });
    }
}

struct Done {
    slot: Arc<Slot>,
    running: Arc<AtomicUsize>,
}

impl Drop for Done {
    fn drop(&mut self) {
        self.running.fetch_sub(1, Ordering::AcqRel);
        self.slot.end();
    }
}

async fn ask_again(
    slot: &Arc<Slot>,
    handler: &dyn ErasedServe,
    headers: Headers,
    deadline: Deadline,
) {
    let cx = slot.cx(headers.clone(), deadline, slot.mesh.shutdown_child());
    if handler.resumes(&cx).await {
        crate::holder::still_working(&slot.mesh, &headers);
    } else {
        refuse(&slot.mesh, &headers, &interrupted());
    }
}

async fn answer(
    slot: &Arc<Slot>,
    handler: &dyn ErasedServe,
    envelope: Envelope,
    deadline: Deadline,
    held: Arc<Held>,
) {
    let started = Instant::now();
    let cx = slot.cx(envelope.headers.clone(), deadline, held.cancel.clone());
    let processor = cx.scope.processor.clone();
    let outcome = {
        let mut work = std::pin::pin!(handler.run(cx, &envelope, held.clone()));
        tokio::select! {
            outcome = &mut work => outcome,
            () = deadline.reached() => {
                held.cancel.cancel();
                tokio::time::timeout(LAST_WORDS, work).await.unwrap_or(Outcome::Failed)
            }
        }
    };
    if !held.settled() {
        handler
            .fail(
                &slot.mesh,
                held.clone(),
                Error::new(ErrorCode::Timeout, "the deadline has passed"),
            )
            .await;
    }
    note(processor, outcome, started);
}

fn note(processor: String, outcome: Outcome, started: Instant) {
    metrics::histogram!("tg_consumer_request_duration_seconds", "processor" => processor.clone())
        .record(started.elapsed().as_secs_f64());
    metrics::counter!("tg_consumer_processing_total", "processor" => processor, "status" => outcome.label())
        .increment(1);
}

impl Sink for ServeSink {
    fn deliver(&self, mut delivery: Delivery) {
        let envelope = std::mem::take(&mut delivery.envelope);
        delivery.ack();
        let native = self.slot.mesh.bus().mode() == Mode::Native;
        if native && envelope.headers.frame != Some(Frame::Ask) {
            metrics::counter!("tg_questions_malformed_total").increment(1);
            return;
        }
        self.take(envelope);
    }
}

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
    let reason = if slot.of_another_epoch(&headers) {
        Reason::Stale
    } else {
        let deadline = headers
            .deadline
            .map_or_else(|| Deadline::after(STREAM), Deadline::from_millis);
        let cx = slot.cx(headers, deadline, slot.mesh.shutdown_child());
        match handler.run(cx, &delivery.envelope).await {
            Ok(()) => {
                delivery.ack();
                note(scope.processor.clone(), Outcome::Ok, started);
                return;
            }
            Err(ReadFault::Retry { error, after }) => Reason::Retry(error, after),
            Err(ReadFault::Dead(error)) => Reason::Dead(error),
        }
    };
    note(scope.processor.clone(), Outcome::Failed, started);
    tracing::warn!(processor = %scope.processor, ?reason, "a record was not handled");
    let aside = of.topic != put_aside::topic()
        && put_aside::put_aside(&slot.mesh, of, &scope, &delivery.envelope, reason)
            .await
            .is_ok();
    if aside {
        delivery.ack();
    } else {
        // Nothing accepted is lost: it goes back, slowly, until it can be put aside.
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(delivery);
    }
}

/// Response topic of a request topic, unless the flow names another.
pub(crate) fn response_topic(scope: &Scope, spec: &str, request: &Topic) -> Topic {
    let twin = spec.replace("request", "response");
    scope
        .topics
        .get(&twin)
        .filter(|topic| topic.class() == Class::Response)
        .cloned()
        .unwrap_or_else(|| request.with_class(Class::Response))
}
