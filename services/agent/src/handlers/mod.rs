//! Handlers: one file per queue.

mod request;
mod runs;
mod step;
mod traces;

pub(crate) use request::Questions;
pub(crate) use runs::Runs;
pub(crate) use step::Steps;
pub(crate) use traces::Traces;
