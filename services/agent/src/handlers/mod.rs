//! Handlers: one file per queue.

mod request;
mod runs;
mod step;

pub(crate) use request::Questions;
pub(crate) use runs::Runs;
pub(crate) use step::Steps;
