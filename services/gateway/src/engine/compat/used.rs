//! What a call used, by the names of `chat-completion`. Each API writes it in its own words.

use serde_json::Value;

use crate::engine::translate::Body;

/// Tokens of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Used {
    /// Tokens that the model read.
    pub(crate) input: i64,
    /// Tokens that it wrote.
    pub(crate) output: i64,
    /// Of those that it read, what its provider had kept.
    pub(crate) cache_read: i64,
    /// Tokens that its provider keeps from now on.
    pub(crate) cache_write: i64,
    /// All of them.
    pub(crate) total: i64,
}

impl Used {
    /// As the last part of an answer reports it; nothing where it does not.
    pub(crate) fn of(body: &Body) -> Self {
        let used = body.get("usage").unwrap_or(&Value::Null);
        let count = |key: &str| used[key].as_i64().unwrap_or(0);
        Self {
            input: count("input"),
            output: count("output"),
            cache_read: count("cache_read"),
            cache_write: count("cache_write"),
            total: count("total"),
        }
    }
}
