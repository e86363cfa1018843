//! What becomes of a record that was handed out, on the channel of its delivery. If that is gone, so is the delivery, and nothing
//! happens: the broker hands it out again.

use futures::FutureExt;
use lapin::Acker;
use lapin::options::{BasicAckOptions, BasicRejectOptions};

use crate::bus::Settle;
use crate::in_hand::Hand;

/// Gives a record back to its queue.
pub(super) fn give_back(acker: &Acker) {
    // The first poll puts it into the socket's queue; there is nothing to wait for.
    let _ = acker
        .reject(BasicRejectOptions { requeue: true })
        .now_or_never();
}

/// Settles a delivery.
pub(super) struct Ticket {
    acker: Acker,
    _hand: Option<Hand>,
}

impl Ticket {
    /// With its place among the records in hand.
    pub(super) fn new(acker: Acker, hand: Option<Hand>) -> Self {
        Self { acker, _hand: hand }
    }
}

impl Settle for Ticket {
    fn ack(self: Box<Self>) {
        let _ = self.acker.ack(BasicAckOptions::default()).now_or_never();
    }

    fn give_back(self: Box<Self>) {
        give_back(&self.acker);
    }
}
