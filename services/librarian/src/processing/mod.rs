//! Processing: sending documents through flows, following them to their end, starting again what failed.

mod add;
mod answer;
mod outbox;
mod remove;
mod retry;
mod start;
mod watch;
