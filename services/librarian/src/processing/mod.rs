//! Processing: sending documents through flows, following them to their end, starting again what failed.

mod add;
mod answer;
mod estimate;
mod models;
mod outbox;
mod reindex;
mod remove;
mod retry;
mod start;
mod watch;

pub(crate) use models::KnownModels;
