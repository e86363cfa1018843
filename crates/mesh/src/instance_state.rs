//! One attached instance of a processor: its scope and its work in progress.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::time::Instant;

use metrics::{Counter, Histogram};
use parking_lot::{Mutex, RwLock};
use tg_schemas::msg::{HostedFlow, HostedProcessor};
use tg_schemas::{Headers, Subscription, WorkspaceId};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::announce;
use crate::erased::Outcome;
use crate::mesh::Mesh;
use crate::middleware::Follow;
use crate::scope::{Cx, InstanceScope};
use tg_bus::TaskKind;
use tg_rpc::deadline::Deadline;
use tg_telemetry::{Span, SpanKind, attributes};

/// An attached instance.
pub(crate) struct InstanceState {
    pub(crate) mesh: Mesh,
    pub(crate) scope: RwLock<Arc<InstanceScope>>,
    busy: AtomicUsize,
    pub(crate) stopping: AtomicBool,
    /// Detached: nothing more is reported of it.
    left: AtomicBool,
    /// Somebody is about to announce how busy it is.
    telling: AtomicBool,
    /// Handled since the flow stops, by subscription.
    done: Mutex<BTreeMap<String, i64>>,
    /// Handled before.
    answered: Mutex<BTreeMap<String, i64>>,
    idle: Notify,
    meters: Meters,
}

/// What counts the messages of an instance. Each is looked up once.
#[derive(Default)]
struct Meters {
    took: OnceLock<Histogram>,
    ok: OnceLock<Counter>,
    failed: OnceLock<Counter>,
}

impl InstanceState {
    pub(crate) fn new(mesh: Mesh, scope: InstanceScope) -> Arc<Self> {
        Arc::new(Self {
            mesh,
            scope: RwLock::new(Arc::new(scope)),
            busy: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            left: AtomicBool::new(false),
            telling: AtomicBool::new(false),
            done: Mutex::default(),
            answered: Mutex::default(),
            idle: Notify::new(),
            meters: Meters::default(),
        })
    }

    /// How presence reports this instance.
    pub(crate) fn hosted(&self) -> HostedProcessor {
        let scope = self.scope.read().clone();
        let flows = match (&scope.workspace, &scope.flow) {
            (Some(workspace), Some(flow)) => vec![HostedFlow {
                workspace: workspace.to_string(),
                flow: flow.to_string(),
                epoch: scope.epoch as i64,
                busy: self.busy.load(Ordering::SeqCst) as i64,
                stopping: self.stopping.load(Ordering::Acquire),
                done: self.done.lock().clone(),
                answered: self.answered.lock().clone(),
            }],
            _ => Vec::new(),
        };
        HostedProcessor {
            id: scope.processor.clone(),
            state: "serving".to_owned(),
            flows,
        }
    }

    /// From now on questions from outside the flow are refused, what is handled is counted as part of the stop,
    /// and becoming idle is announced.
    pub(crate) fn set_stopping(&self, stopping: bool) -> bool {
        self.stopping.swap(stopping, Ordering::AcqRel) != stopping
    }

    /// Messages of this subscription are counted.
    pub(crate) fn counts(&self, subscription: &str) {
        self.done.lock().insert(subscription.to_owned(), 0);
    }

    /// A message of a subscription was handled; say so before it is over.
    pub(crate) fn handled(&self, subscription: &str) {
        let counts = match self.stopping.load(Ordering::Acquire) {
            true => &self.done,
            false => &self.answered,
        };
        let mut counts = counts.lock();
        match counts.get_mut(subscription) {
            Some(count) => *count += 1,
            None => drop(counts.insert(subscription.to_owned(), 1)),
        }
    }

    /// Waits until nothing is in progress, or until `end`.
    pub(crate) async fn wait_idle(&self, end: Instant) {
        let idle = async {
            loop {
                let notified = self.idle.notified();
                if self.busy.load(Ordering::Acquire) == 0 {
                    return;
                }
                notified.await;
            }
        };
        let _ = tokio::time::timeout_at(end, idle).await;
    }

    /// Counts a message that was handled.
    pub(crate) fn note(&self, outcome: Outcome, started: Instant) {
        let processor = || self.scope.read().processor.clone();
        let took = || metrics::histogram!("tg_consumer_request_duration_seconds", "processor" => processor());
        let took = self.meters.took.get_or_init(took);
        took.record(started.elapsed().as_secs_f64());
        let handled = match outcome {
            Outcome::Ok => &self.meters.ok,
            Outcome::Failed => &self.meters.failed,
        };
        let count = || metrics::counter!("tg_consumer_processing_total", "processor" => processor(), "status" => outcome.label());
        handled.get_or_init(count).increment(1);
    }

    pub(crate) fn begin(&self) {
        self.busy.fetch_add(1, Ordering::AcqRel);
    }

    fn end(self: &Arc<Self>) {
        if self.busy.fetch_sub(1, Ordering::SeqCst) != 1 {
            return;
        }
        self.idle.notify_waiters();
        // Who is about to tell looks only when it is its turn.
        if self.stopping.load(Ordering::Acquire) && !self.telling.swap(true, Ordering::SeqCst) {
            let slot = self.clone();
            self.mesh.spawn(TaskKind::Handler, async move {
                let now = || {
                    slot.telling.swap(false, Ordering::SeqCst);
                    (!slot.left.load(Ordering::Acquire)).then(|| vec![slot.hosted()])
                };
                announce::tell(&slot.mesh, "attached", now).await;
            });
        }
    }

    /// How it was when it left; from now on nothing else is reported of it.
    pub(crate) fn leave(&self) -> HostedProcessor {
        self.left.store(true, Ordering::Release);
        self.hosted()
    }

    pub(crate) fn cx(
        &self,
        headers: Arc<Headers>,
        deadline: Deadline,
        cancel: CancellationToken,
        follow: Option<Arc<dyn Follow>>,
    ) -> Cx {
        Cx {
            follow,
            receipt: None,
            came_with: None,
            mesh: self.mesh.clone(),
            scope: self.scope.read().clone(),
            id: headers.id.as_deref().unwrap_or_default().into(),
            headers,
            deadline,
            cancel,
        }
    }

    /// The span of the work on a message.
    pub(crate) fn span(&self, cx: &Cx, queue: &str) -> Span {
        let processor = &cx.scope.processor;
        let mut span = cx.span(SpanKind::Consumer, || format!("process {processor}"));
        if span.is_recorded() {
            span.say(attributes::MESSAGING_OPERATION, "process");
            span.say(attributes::MESSAGING_DESTINATION, queue);
            span.say(attributes::MESSAGING_MESSAGE_ID, &cx.id);
            span.say(attributes::PROCESSOR, processor);
            span.say(attributes::WORKSPACE, cx.workspace());
            span.say(attributes::FLOW, cx.flow());
            span.say(attributes::REQUEST_ID, cx.request().unwrap_or_default());
        }
        span
    }

    /// What follows a message through its handler; `by` is the subscription of a record.
    pub(crate) fn follow(
        &self,
        headers: &Headers,
        by: Option<&Subscription>,
    ) -> Option<Arc<dyn Follow>> {
        if !self.mesh.rules().reports {
            return None;
        }
        self.mesh.middleware()?.follow(headers, by)
    }

    /// The workspace that a message is of: that of the instance, else what the message says. Empty: of none.
    pub(crate) fn workspace(&self, headers: &Headers) -> String {
        let scope = self.scope.read();
        let own = scope.workspace.as_ref().map(WorkspaceId::as_str);
        let of = own.or(headers.workspace.as_deref());
        of.unwrap_or_default().to_owned()
    }

    pub(crate) fn of_another_epoch(&self, headers: &Headers) -> bool {
        let epoch = self.scope.read().epoch;
        epoch > 0 && headers.epoch.is_some_and(|sent| sent != epoch)
    }
}

/// A message in progress.
pub(crate) struct Done {
    pub(crate) slot: Arc<InstanceState>,
    pub(crate) running: Arc<AtomicUsize>,
}

impl Drop for Done {
    fn drop(&mut self) {
        self.running.fetch_sub(1, Ordering::AcqRel);
        self.slot.end();
    }
}
