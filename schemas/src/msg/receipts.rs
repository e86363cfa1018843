//! What became of records whose writer asked. Only native processes exchange these.

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;

/// What became of some records; their keeper sends it to the inbox of their writer. Lost ones are not sent again: their
/// writer knows nothing of those records then, and says so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Receipts {
    /// In the order in which it happened.
    #[serde(deserialize_with = "nullable")]
    pub receipts: Vec<Receipt>,
}

message!(Receipts);

/// What became of one record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Receipt {
    /// Number that its writer gave to what the record is a part of.
    #[serde(deserialize_with = "nullable")]
    pub of: i64,
    /// Which part of it.
    #[serde(deserialize_with = "nullable")]
    pub part: i64,
    /// It is of a record that somebody made of the writer's.
    #[serde(deserialize_with = "nullable")]
    pub derived: bool,
    /// `stored`, `refused`, `later` (it failed and is tried again) or `passed-on` (a record was made of it, which has the
    /// last word). The text form of [`crate::receipt::Fate`].
    #[serde(deserialize_with = "nullable")]
    pub fate: String,
    /// Wire type of the error.
    #[serde(deserialize_with = "nullable")]
    pub kind: String,
    /// Why, in words for who wrote the record.
    #[serde(deserialize_with = "nullable")]
    pub detail: String,
}

message!(Receipt);
