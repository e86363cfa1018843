//! Replies of models: asked for once, kept by all that determines them.

mod cache;
pub(crate) mod keys;
mod models;

pub(crate) use cache::{BEGINS, Paid, Question, Reply, ReplyCache, TIMEOUT, Tokens};
