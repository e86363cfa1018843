//! One file per processor: decode, have it done, answer.

mod iam;

pub(crate) use iam::Handler;
