//! A sink as its publisher reaches it in the same process. A message is handed over before `publish` returns, and no lock is
//! held then.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::bus::{Delivery, Envelope, Sink};

/// A sink that can be turned off.
pub struct Tap {
    sink: Arc<dyn Sink>,
    open: AtomicBool,
    busy: AtomicUsize,
}

impl Tap {
    /// An open tap.
    pub fn new(sink: Arc<dyn Sink>) -> Arc<Self> {
        Arc::new(Self {
            sink,
            open: AtomicBool::new(true),
            busy: AtomicUsize::new(0),
        })
    }

    /// Hands over a delivery. If the tap is shut, it comes back.
    pub(crate) fn deliver(&self, delivery: Delivery) -> Option<Delivery> {
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
    pub fn pass(&self, envelope: Envelope) -> Option<Envelope> {
        let delivery = Delivery {
            envelope,
            redelivered: false,
            settle: None,
        };
        self.deliver(delivery)
            .map(|mut delivery| std::mem::take(&mut delivery.envelope))
    }

    /// Shuts the tap without waiting for deliveries in progress.
    pub fn close(&self) {
        self.open.store(false, Ordering::SeqCst);
    }

    /// Shuts the tap; nothing is delivered once this returns.
    pub async fn shut(&self) {
        self.close();
        while self.busy.load(Ordering::SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
    }

    /// Whether deliveries are still taken.
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }
}
