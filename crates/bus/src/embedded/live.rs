//! Delivery of what is not stored: questions, answers, notices, inboxes.
//!
//! A message is handed to its sink by the publisher, before `publish` returns. No lock is held then.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::bus::Envelope;
use crate::tap::Tap;

/// Questions that wait for a server where they do; one more is not taken.
const MOST_WAITING: usize = 10_000;

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
