//! What the data side of the mesh tells itself: how far a run is, what a store has to forget. Only native
//! processes exchange these.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::lenient::nullable;
use super::message;
use super::metadata::Metadata;
use crate::error::Error;
use crate::rdf::Triple;

/// A record that a handler wrote while it handled another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RunWritten {
    /// Its topic.
    #[serde(deserialize_with = "nullable")]
    pub topic: String,
    /// Its id, the same each time the record that caused it is handled again.
    #[serde(deserialize_with = "nullable")]
    pub record: String,
}

message!(RunWritten);

/// One record of a run was handled by one subscription, for good, or has written much and is still being handled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RunTallyEntry {
    /// The run: header `thread` of the record.
    #[serde(deserialize_with = "nullable")]
    pub run: String,
    /// The record: its header `id`.
    #[serde(deserialize_with = "nullable")]
    pub record: String,
    /// Who handled it: `processor--workspace--flow--spec`.
    #[serde(deserialize_with = "nullable")]
    pub subscription: String,
    /// What the record is about, e.g. a page or chunk.
    #[serde(deserialize_with = "nullable")]
    pub subject: String,
    /// `ok`, or `failed` when it was dead-lettered for good. `part`: it is still being handled, only `written` counts.
    #[serde(deserialize_with = "nullable")]
    pub outcome: String,
    /// Why it failed, or what was left out of one that is `ok`; fit for clients.
    #[serde(deserialize_with = "nullable")]
    pub detail: String,
    /// Wire type of the error of what failed; empty from processors that do not say it.
    #[serde(deserialize_with = "nullable")]
    pub kind: String,
    /// What it wrote.
    #[serde(deserialize_with = "nullable")]
    pub written: Vec<RunWritten>,
    /// What it did, by kind: `pages`, `chunks`, `triples`, `vectors`, `rows`, `model-calls`, ….
    #[serde(deserialize_with = "nullable")]
    pub effects: BTreeMap<String, i64>,
}

message!(RunTallyEntry);

/// Progress of runs, many entries at once, on `flow:tg:run-tally`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RunTally {
    /// In the order they happened.
    #[serde(deserialize_with = "nullable")]
    pub entries: Vec<RunTallyEntry>,
}

message!(RunTally; RECORD);

/// A text that the trace of an answer links to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct LibraryText {
    /// Id of the document, an IRI of the trace.
    #[serde(deserialize_with = "nullable")]
    pub id: String,
    /// Its title.
    #[serde(deserialize_with = "nullable")]
    pub title: String,
    /// When it was written, in seconds since the Unix epoch.
    #[serde(deserialize_with = "nullable")]
    pub time: i64,
    /// The text.
    #[serde(deserialize_with = "nullable")]
    pub text: String,
}

message!(LibraryText);

/// Texts for the library of a workspace, on `flow:tg:library-texts`: thoughts, observations and answers. One
/// whose id the library has stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct LibraryTexts {
    /// Workspace.
    #[serde(deserialize_with = "nullable")]
    pub workspace: String,
    /// The texts.
    #[serde(deserialize_with = "nullable")]
    pub texts: Vec<LibraryText>,
}

message!(LibraryTexts; RECORD);

/// Stores of a flow forget exactly what came from these chunks, on `flow:tg:retract:{workspace}:{id}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Retract {
    /// `root` is the document, `collection` where it was processed to.
    pub metadata: Option<Metadata>,
    /// Ids of the chunks (and pages) that are no more.
    #[serde(deserialize_with = "nullable")]
    pub chunks: Vec<String>,
    /// Exact triples that the graph takes out, whatever they came from: an unloaded core.
    #[serde(deserialize_with = "nullable")]
    pub triples: Vec<Triple>,
    /// What processors made of chunks that stay, where it was made anew.
    #[serde(deserialize_with = "nullable")]
    pub superseded: Vec<Superseded>,
}

message!(Retract, metadata);

/// What one processor made of chunks goes: what it made under the fingerprints that are named, or all but for those that are
/// kept. Named, it takes nothing from a later run, however late it is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Superseded {
    /// Id of the processor; empty: what is kept under no processor's name, as earlier releases kept it.
    #[serde(deserialize_with = "nullable")]
    pub processor: String,
    /// Fingerprints of what stays, whatever goes.
    #[serde(deserialize_with = "nullable")]
    pub kept: Vec<String>,
    /// Fingerprints of what goes; empty: of what does not stay.
    #[serde(deserialize_with = "nullable")]
    pub gone: Vec<String>,
    /// Ids of the chunks.
    #[serde(deserialize_with = "nullable")]
    pub chunks: Vec<String>,
}

message!(Superseded);

impl Superseded {
    /// Whether what somebody made goes, by how [`super::made_by`] says who it was.
    pub fn takes(&self, made_by: &str) -> bool {
        let own = made_by.strip_prefix(self.processor.as_str());
        let Some(fingerprint) = own.and_then(|rest| rest.strip_prefix('@')) else {
            return false;
        };
        let among = |all: &[String]| all.iter().any(|one| one == fingerprint);
        !among(&self.kept) && (self.gone.is_empty() || among(&self.gone))
    }
}

/// A store drops everything it holds of a collection up to a generation. Idempotent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct CollectionDrop {
    /// Workspace.
    #[serde(deserialize_with = "nullable")]
    pub workspace: String,
    /// Collection id.
    #[serde(deserialize_with = "nullable")]
    pub collection: String,
    /// The last generation to drop; the next one is another collection of the same name.
    #[serde(rename = "incarnation", deserialize_with = "nullable")]
    pub generation: i64,
}

message!(CollectionDrop);

/// What a store dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct CollectionDropped {
    /// Why it did not.
    pub error: Option<Error>,
    /// Counts by kind, e.g. `triples`.
    #[serde(deserialize_with = "nullable")]
    pub removed: BTreeMap<String, i64>,
}

message!(CollectionDropped);

/// The vectors of a collection are to be made again by another model, on `request:tg:reembed-vectors`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ReembedRequest {
    /// `begin`, `show` or `abandon`.
    #[serde(deserialize_with = "nullable")]
    pub operation: String,
    /// Workspace.
    #[serde(deserialize_with = "nullable")]
    pub workspace: String,
    /// Collection id.
    #[serde(deserialize_with = "nullable")]
    pub collection: String,
    /// Its generation.
    #[serde(deserialize_with = "nullable")]
    pub generation: i64,
    /// `begin`: the model, as the embeddings service names it.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
    /// `begin`: the topic of the embeddings service that serves it.
    #[serde(deserialize_with = "nullable")]
    pub topic: String,
    /// `begin`: vectors whose text is not known or refused go with the old model, instead of holding up the end.
    #[serde(deserialize_with = "nullable")]
    pub leave_out: bool,
}

message!(ReembedRequest);

/// How far the vectors of a collection are made again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Reembedding {
    /// `nothing` to do, `running`, `waiting` for texts, `switched` or `abandoned`.
    #[serde(deserialize_with = "nullable")]
    pub state: String,
    /// The new model.
    #[serde(deserialize_with = "nullable")]
    pub model: String,
    /// Models whose vectors answer questions now.
    #[serde(deserialize_with = "nullable")]
    pub serving: Vec<String>,
    /// Vectors that were made again.
    #[serde(deserialize_with = "nullable")]
    pub done: i64,
    /// Vectors that were there at the start, and came since.
    #[serde(deserialize_with = "nullable")]
    pub total: i64,
    /// Vectors whose text is not known and of which the new model has none yet; beyond 1,000 they are not counted. After the
    /// switch: those that went.
    #[serde(deserialize_with = "nullable")]
    pub textless: i64,
    /// Vectors whose text the new model refuses, counted in the same way.
    #[serde(deserialize_with = "nullable")]
    pub refused: i64,
    /// Whose text the first of them is, and why it is refused.
    #[serde(deserialize_with = "nullable")]
    pub refusal: String,
    /// Why it does not go on now; empty: it does.
    #[serde(deserialize_with = "nullable")]
    pub reason: String,
}

message!(Reembedding);

/// How it stands with a collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ReembedResponse {
    /// Why this is unknown.
    pub error: Option<Error>,
    /// How far it is.
    pub reembedding: Option<Reembedding>,
}

message!(ReembedResponse);
