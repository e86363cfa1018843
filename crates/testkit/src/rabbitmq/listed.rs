//! What a broker lists: queues, exchanges and bindings.

use serde::Deserialize;
use serde_json::Value;

/// A queue as the broker knows it.
#[derive(Debug, Clone, Deserialize)]
pub struct QueueInfo {
    /// Name.
    pub name: String,
    /// Survives a restart of the broker.
    pub durable: bool,
    /// Goes with its last consumer.
    pub auto_delete: bool,
    /// Belongs to one connection.
    pub exclusive: bool,
    /// Declared arguments, as the broker prints them.
    pub arguments: Value,
    /// Messages, handed out or not.
    pub messages: u64,
    /// Consumers.
    pub consumers: u64,
}

/// An exchange as the broker knows it.
#[derive(Debug, Clone, Deserialize)]
pub struct ExchangeInfo {
    /// Name.
    pub name: String,
    /// `fanout`, `direct` …
    #[serde(rename = "type")]
    pub kind: String,
    /// Survives a restart of the broker.
    pub durable: bool,
    /// Goes with its last binding.
    pub auto_delete: bool,
    /// Declared arguments, as the broker prints them.
    pub arguments: Value,
}

/// A binding as the broker knows it.
#[derive(Debug, Clone, Deserialize)]
pub struct BindingInfo {
    /// Exchange.
    pub source_name: String,
    /// Queue.
    pub destination_name: String,
    /// Key.
    pub routing_key: String,
}
