//! The two doors of `flow-svc` and its queue of put-aside records: decode, have it done, answer.

mod flow;
mod put_aside;
pub(crate) mod reply;

pub(crate) use flow::Handler;
pub(crate) use put_aside::Reading;
