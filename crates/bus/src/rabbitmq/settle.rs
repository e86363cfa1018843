//! What becomes of a record that was handed out, on the channel of its delivery. If that is gone, so is the delivery, and nothing
//! happens: the broker hands it out again.

use futures::FutureExt;
use lapin::Acker;
use lapin::options::{BasicAckOptions, BasicRejectOptions};

use crate::bus::Settle;

/// What is said of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The broker may forget it.
    Done,
    /// It goes back to its queue.
    Back,
}

/// Says it.
pub(super) fn say(acker: &Acker, verdict: Verdict) {
    // The first poll puts it into the socket's queue; there is nothing to wait for.
    let _ = match verdict {
        Verdict::Done => acker.ack(BasicAckOptions::default()).now_or_never(),
        Verdict::Back => acker
            .reject(BasicRejectOptions { requeue: true })
            .now_or_never(),
    };
}

/// Settles a delivery that was asked for by itself.
pub(super) struct Ticket(pub(super) Acker);

impl Settle for Ticket {
    fn ack(self: Box<Self>) {
        say(&self.0, Verdict::Done);
    }

    fn give_back(self: Box<Self>) {
        say(&self.0, Verdict::Back);
    }
}
