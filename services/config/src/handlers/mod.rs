//! One file per processor: decode, have it done, answer.

mod config;

pub(crate) use config::Handler;
