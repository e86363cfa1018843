//! Records for which a process has no room when the broker hands them out. A body is dropped at once and its tag kept, so that
//! it counts in the prefetch and stays the broker's; as room comes, the first are given back, and come again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use lapin::Acker;
use lapin::message::Delivery;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::settle::{self, Verdict};
use crate::in_hand::{Hand, InHand, Wake};
use crate::task::{Starter, TaskKind};

/// How long what was given back may take to come again. It may have gone to another process: then nobody tells of the room that
/// was kept for it.
const RETURN_TIMEOUT: Duration = Duration::from_millis(100);

/// Those of one consumer.
pub(super) struct Deferred {
    in_hand: Arc<InHand>,
    consumer: u64,
    state: Mutex<State>,
    /// Told when there may be room.
    room: Notify,
}

#[derive(Default)]
struct State {
    /// Tags in the order of their deliveries, with the bytes of their bodies.
    kept: VecDeque<(Acker, usize)>,
    /// Bytes that were given back and did not come yet.
    coming: usize,
    /// Somebody waits for room.
    waited: bool,
}

impl Deferred {
    /// None yet.
    pub(super) fn new(in_hand: Arc<InHand>, consumer: u64) -> Arc<Self> {
        Arc::new(Self {
            in_hand,
            consumer,
            state: Mutex::default(),
            room: Notify::new(),
        })
    }

    /// Counts a record among those in hand; one for which there is no room comes again later.
    pub(super) fn admit(
        self: &Arc<Self>,
        starter: &Starter,
        delivery: Delivery,
    ) -> Option<(Delivery, Hand)> {
        let bytes = delivery.data.len();
        // Held over both: who looks for room finds this one either counted or kept.
        let mut state = self.state.lock();
        if delivery.redelivered {
            state.coming = state.coming.saturating_sub(bytes.max(1));
        }
        let wake = || -> Wake {
            let here = Arc::downgrade(self);
            Box::new(move || {
                if let Some(here) = here.upgrade() {
                    here.room.notify_one();
                }
            })
        };
        if let Some(hand) = self.in_hand.take(self.consumer, bytes, wake) {
            return Some((delivery, hand));
        }
        state.kept.push_back((delivery.acker, bytes));
        if !std::mem::replace(&mut state.waited, true) {
            starter.spawn(TaskKind::Background, self.clone().give_back());
        }
        None
    }

    /// Gives back what there is room for, until nothing is left.
    async fn give_back(self: Arc<Self>) {
        loop {
            let in_time = timeout(RETURN_TIMEOUT, self.room.notified()).await.is_ok();
            let mut state = self.state.lock();
            if !in_time {
                state.coming = 0;
            }
            state.give_back(self.in_hand.room(self.consumer));
            if state.kept.is_empty() {
                state.waited = false;
                return;
            }
        }
    }

    /// Gives all back: the consumer takes nothing more.
    pub(super) fn release(&self) {
        self.state.lock().give_back(usize::MAX);
        self.room.notify_one();
    }
}

impl State {
    fn give_back(&mut self, room: usize) {
        while self.coming < room
            && let Some((acker, bytes)) = self.kept.pop_front()
        {
            if acker.poisoned() {
                // The broker has it already, and has handed it out again.
                continue;
            }
            self.coming = self.coming.saturating_add(bytes.max(1));
            settle::say(&acker, Verdict::Back);
        }
    }
}
