//! What whoever starts the service decides: how long things may take and how often they may go round.

use std::time::Duration;

tg_settings::options! {
    /// Options of threads.
    pub struct Options {
        /// How long a listener may take for one message, in seconds.
        reply_seconds: u64 = 600, Whole(1..=86_400);
        /// Messages in a row that a listener may have from itself or from the system before its turn ends.
        iterations: u64 = 50, Whole(1..=10_000);
        /// How long the threads of a message from outside are kept when nothing happens on them, in hours.
        idle_hours: u64 = 24, Whole(1..=8760);
    }
}

impl Options {
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs(self.reply_seconds)
    }

    pub(crate) fn limits(&self) -> tg_threads::Limits {
        tg_threads::Limits {
            idle: self.idle_hours * 3_600_000,
            ..tg_threads::Limits::default()
        }
    }
}
