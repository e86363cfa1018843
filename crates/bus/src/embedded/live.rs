//! Delivery of what is not stored: questions, answers, notices, inboxes.
//!
//! A message is handed to its sink by the publisher, before `publish` returns. No lock is held then.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::bus::{Delivery, Envelope, Sink};

/// Questions that wait for a server where they do; one more is not taken.
const MOST_WAITING: usize = 10_000;

/// A sink that can be turned off.
pub(super) struct Tap {
    sink: Arc<dyn Sink>,
    open: AtomicBool,
    busy: AtomicUsize,
}

impl Tap {
    /// An open tap.
    pub(super) fn new(sink: Arc<dyn Sink>) -> Arc<Self> {
        Arc::new(Self {
            sink,
            open: AtomicBool::new(true),
            busy: AtomicUsize::new(0),
        })
    }

    /// Hands over a delivery. If the tap is shut, it comes back.
    pub(super) fn deliver(&self, delivery: Delivery) -> Option<Delivery> {
        self.busy.fetch_add(1, Ordering::SeqCst);
        let result = if self.open.load(Ordering::SeqCst) {
            // A faulty sink must not take the publisher with it.
            if catch_unwind(AssertUnwindSafe(|| self.sink.deliver(delivery))).is_err() {
                tracing::error!("a consumer panicked while it handled a message");
            }
            None
        } else {
            Some(delivery)
        };
        self.busy.fetch_sub(1, Ordering::SeqCst);
        result
    }

    /// Hands over a message that needs no settling. If the tap is shut, it comes back.
    pub(super) fn pass(&self, envelope: Envelope) -> Option<Envelope> {
        let delivery = Delivery {
            envelope,
            redelivered: false,
            settle: None,
        };
        self.deliver(delivery)
            .map(|mut delivery| std::mem::take(&mut delivery.envelope))
    }

    /// Shuts the tap without waiting for deliveries in progress.
    pub(super) fn close(&self) {
        self.open.store(false, Ordering::SeqCst);
    }

    /// Shuts the tap; nothing is delivered once this returns.
    pub(super) async fn shut(&self) {
        self.close();
        while self.busy.load(Ordering::SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
    }

    /// Whether deliveries are still taken.
    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }
}

/// The servers of one request subscription: they compete.
#[derive(Default)]
pub(super) struct Group {
    taps: RwLock<Vec<Arc<Tap>>>,
    next: AtomicUsize,
    /// Where questions do not come back: they wait for a server, as they would in a broker's queue.
    waiting: Option<Mutex<VecDeque<Envelope>>>,
}

impl Group {
    /// A group; with `waits`, questions wait while there is no server.
    pub(super) fn new(waits: bool) -> Self {
        Self {
            waiting: waits.then(Mutex::default),
            ..Self::default()
        }
    }

    /// Gives a question to one server, in turn. `false` if there is none.
    pub(super) fn offer(&self, mut envelope: Envelope) -> bool {
        loop {
            match self.pick() {
                Some(tap) => match tap.pass(envelope) {
                    None => return true,
                    Some(back) => envelope = back,
                },
                None => {
                    let Some(waiting) = &self.waiting else {
                        return false;
                    };
                    let mut waiting = waiting.lock();
                    if self.taps.read().is_empty() {
                        if waiting.len() >= MOST_WAITING {
                            return false;
                        }
                        waiting.push_back(envelope);
                        return true;
                    }
                }
            }
        }
    }

    /// Adds a server.
    pub(super) fn enter(&self, tap: Arc<Tap>) {
        self.taps.write().push(tap);
    }

    /// Gives a new server what waits.
    pub(super) fn serve_waiting(&self, tap: &Tap) {
        while let Some(envelope) = self.take() {
            if let Some(back) = tap.pass(envelope) {
                self.offer(back);
                return;
            }
        }
    }

    /// Removes a server; `true` if it was the last.
    pub(super) fn leave(&self, tap: &Arc<Tap>) -> bool {
        let mut taps = self.taps.write();
        taps.retain(|other| !Arc::ptr_eq(other, tap));
        taps.is_empty()
    }

    /// Takes a waiting question.
    pub(super) fn take(&self) -> Option<Envelope> {
        self.waiting.as_ref()?.lock().pop_front()
    }

    /// Waiting questions and servers.
    pub(super) fn counts(&self) -> (usize, usize) {
        let waiting = self.waiting.as_ref().map_or(0, |w| w.lock().len());
        (waiting, self.taps.read().len())
    }

    fn pick(&self) -> Option<Arc<Tap>> {
        let taps = self.taps.read();
        let start = self.next.fetch_add(1, Ordering::Relaxed);
        (0..taps.len())
            .map(|step| &taps[(start.wrapping_add(step)) % taps.len()])
            .find(|tap| tap.is_open())
            .cloned()
    }
}
