//! Processing: sending documents through flows, following them to their end, starting again what failed.

mod add;
mod answer;
mod outbox;
mod plan;
mod remove;
mod retry;
mod settle;
mod start;
mod tally;
mod watch;

pub(crate) use tally::Tally;
