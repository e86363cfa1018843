//! Handlers: one file per queue.

mod request;
mod step;

pub(crate) use request::Questions;
pub(crate) use step::Steps;
