//! Pings on a socket, at a pace.
//!
//! They keep proxies on the way from closing it. Nothing is concluded from an answer that does not come: clients are
//! there that answer none while they work, or between two calls. Who is really gone is found by the system's own
//! keepalive (see `listener.rs`) and by what cannot be written any more.

use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior};

/// Beats at a pace.
pub(super) struct Heart(Interval);

impl Heart {
    /// Begins to beat.
    pub(super) fn new(every: Duration) -> Self {
        let mut pace = tokio::time::interval_at(Instant::now() + every, every);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self(pace)
    }

    /// The next beat: send a ping. Nothing is lost when this is dropped.
    pub(super) async fn beat(&mut self) {
        self.0.tick().await;
    }
}
