//! The two endpoints of `flow-svc` and its queue of dead letters: decode, have it done, answer.

mod dead_letter;
mod flow;
pub(crate) mod reply;

pub(crate) use dead_letter::Reading;
pub(crate) use flow::Handler;
