//! Pings, and whether the other side is still there.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior};

use crate::wire::Life;

/// Beats at a pace.
pub(super) struct Heart {
    life: Arc<Life>,
    pace: Interval,
    every: Duration,
}

/// What a beat is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beat {
    /// Send a ping.
    Ping,
    /// Nothing came back for two beats: the other side is gone.
    Gone,
}

impl Heart {
    /// Of a connection.
    pub(super) fn new(life: Arc<Life>, every: Duration) -> Self {
        let mut pace = tokio::time::interval_at(Instant::now() + every, every);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { life, pace, every }
    }

    /// The next beat. Nothing is lost when this is dropped.
    pub(super) async fn beat(&mut self) -> Beat {
        self.pace.tick().await;
        match self.life.heard().elapsed() > self.every * 2 {
            true => Beat::Gone,
            false => Beat::Ping,
        }
    }
}
