//! Who reads a chunk again, under which fingerprint, and what is processed again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;

/// Who made something of a chunk, and how: a processor with its fingerprint; empty where nobody says.
pub fn made_by(processor: &str, fingerprint: &str) -> String {
    match fingerprint {
        "" => String::new(),
        fingerprint => format!("{processor}@{fingerprint}"),
    }
}

/// Who is to read chunks. Ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ChunkReaders {
    /// Ids of the chunks.
    #[serde(deserialize_with = "nullable")]
    pub chunks: Vec<String>,
    /// Processors, each with the fingerprint of what it does with chunks.
    #[serde(deserialize_with = "nullable")]
    pub readers: BTreeMap<String, String>,
}

message!(ChunkReaders);

/// A document that was processed, and what has changed since. Ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Reindexed {
    /// The document.
    #[serde(deserialize_with = "nullable")]
    pub document_id: String,
    /// The flow that it was processed with.
    #[serde(deserialize_with = "nullable")]
    pub flow: String,
    /// The collection that it was processed into.
    #[serde(deserialize_with = "nullable")]
    pub collection: String,
    /// `unchanged`, `due` (of a dry run), `begun`, `under-way`, or `not-possible`.
    #[serde(deserialize_with = "nullable")]
    pub outcome: String,
    /// Why it is not possible; else empty.
    #[serde(deserialize_with = "nullable")]
    pub why: String,
    /// The processing that does it; empty if none does.
    #[serde(deserialize_with = "nullable")]
    pub processing_id: String,
    /// Chunks that it was cut into.
    #[serde(deserialize_with = "nullable")]
    pub chunks: i64,
    /// Of these: those of which something is made anew, as far as that is known before it is cut again.
    #[serde(deserialize_with = "nullable")]
    pub chunks_due: i64,
    /// What changed: by processor, the parts of its fingerprint.
    #[serde(deserialize_with = "nullable")]
    pub changes: BTreeMap<String, Vec<String>>,
}

message!(Reindexed);
