//! One file per queue: decode, have it done, answer.

mod audit;
mod iam;

pub(crate) use audit::Handler as Audit;
pub(crate) use iam::Handler;
