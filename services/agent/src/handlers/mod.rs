//! Handlers: one file per queue.

mod day;
mod known;
mod measure;
mod parts;
mod replay;
mod request;
mod runs;
mod step;
mod summaries;
mod traces;
mod usage;
mod why;

pub(crate) use measure::Measure;
pub(crate) use request::Questions;
pub(crate) use runs::Runs;
pub(crate) use step::Steps;
pub(crate) use traces::Traces;
pub(crate) use usage::Usage;
