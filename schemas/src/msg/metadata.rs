//! Metadata that travels with data records. Field names, order and defaults are the wire contract.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;

/// What a record of the pipeline is about, and where its data goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Metadata {
    #[serde(deserialize_with = "nullable")]
    /// Identifies what the record is of; repeats carry the same one.
    pub id: String,
    #[serde(deserialize_with = "nullable")]
    /// Id of the document at the root of the chain; empty where there is none.
    pub root: String,
    #[serde(deserialize_with = "nullable")]
    /// The collection that the data goes to.
    pub collection: String,
}

message!(Metadata);

/// The collection of what names none.
pub const DEFAULT_COLLECTION: &str = "default";

/// A collection by its name; one that is not said is `default`.
pub fn collection_or_default(name: &str) -> &str {
    match name {
        "" => DEFAULT_COLLECTION,
        named => named,
    }
}

impl Metadata {
    /// The collection by its name; one that is not said is `default`.
    pub fn collection(&self) -> &str {
        collection_or_default(&self.collection)
    }
}
