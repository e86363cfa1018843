//! Dead letters: kept until they are due, replayed or discarded. Only the oldest dead letters go for room.

use async_trait::async_trait;
use tg_storage::StorageError;

use crate::engine::receipt::Counts;

/// Why a record is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// To be tried again when due.
    Retry,
    /// Will never work as it is.
    Dead,
    /// Of another start of its flow.
    Stale,
    /// Left by a stop.
    Parked,
}

impl Reason {
    /// As it is written; unreadable ones are for people to look at.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "retry" => Self::Retry,
            "dead" => Self::Dead,
            "stale" => Self::Stale,
            "parked" => Self::Parked,
            _ => return None,
        })
    }

    /// As it is written.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Dead => "dead",
            Self::Stale => "stale",
            Self::Parked => "parked",
        }
    }
}

/// A record to keep.
#[derive(Debug, Clone)]
pub(crate) struct NewRecord {
    pub(crate) workspace: String,
    pub(crate) flow: String,
    pub(crate) topic: String,
    pub(crate) subscription: String,
    pub(crate) reason: Reason,
    pub(crate) detail: String,
    /// Wire type of the error; empty where there was none, or nobody said.
    pub(crate) kind: String,
    pub(crate) due: i64,
    pub(crate) attempt: u32,
    pub(crate) since: i64,
    pub(crate) headers: String,
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
    /// Idempotency key: id of the dead letter that brought it. One that comes again is kept once.
    pub(crate) letter: Option<String>,
}

/// A record that is kept.
#[derive(Debug, Clone)]
pub(crate) struct StoredRecord {
    pub(crate) id: i64,
    pub(crate) record: NewRecord,
    pub(crate) size: i64,
}

/// What became of the room that a record was kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Dead letters that went for it.
    pub(crate) evicted: usize,
    /// No more must come.
    pub(crate) full: bool,
}

/// Which records.
#[derive(Debug, Clone, Default)]
pub(crate) struct Select {
    pub(crate) workspace: String,
    pub(crate) id: Option<i64>,
    pub(crate) flow: Option<String>,
    pub(crate) reason: Option<Reason>,
    /// Only those after this id.
    pub(crate) after: i64,
    pub(crate) limit: u32,
}

/// How many records of a flow are here for a reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeadLetterCount {
    pub(crate) flow: String,
    pub(crate) reason: String,
    /// What documents or loaded rows lack is why.
    pub(crate) content: bool,
    pub(crate) records: u64,
}

/// How many records of a flow are here for a reason, and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeadLetterBacklog {
    pub(crate) workspace: String,
    pub(crate) flow: String,
    pub(crate) reason: Reason,
    pub(crate) records: u64,
    /// When the oldest came, in milliseconds since the Unix epoch.
    pub(crate) since: i64,
}

/// Retries that are due, and when the next one is.
#[derive(Debug, Clone)]
pub(crate) struct Due {
    /// Without their bodies.
    pub(crate) records: Vec<StoredRecord>,
    /// Milliseconds since the Unix epoch.
    pub(crate) next: Option<i64>,
}

/// Dead letters of all workspaces, with so much room for each of them and each of its flows.
#[async_trait]
pub(crate) trait RecordStore: Send + Sync + 'static {
    /// Keeps a record, once for each call. One that comes while its room is full is kept all the same: those that
    /// follow stay in their queues once the processes know.
    async fn keep(&self, record: NewRecord) -> Result<Outcome, StorageError>;

    /// Keeps records taken from a queue of a stopping flow, together with the stop's counts. The records of the call
    /// before are settled by now; those of a crashed process, which were [doubted](Self::doubt), are known again.
    /// Refuses (conflict) what the room has no place for.
    async fn park(
        &self,
        workspace: &str,
        flow: &str,
        records: Vec<NewRecord>,
        counts: Counts,
    ) -> Result<Counts, StorageError>;

    /// After a crash: records that were kept but perhaps not settled may be taken again.
    async fn doubt(&self, workspace: &str, flow: &str) -> Result<(), StorageError>;

    /// All queues are gone: nothing can come again.
    async fn settle(&self, workspace: &str, flow: &str) -> Result<(), StorageError>;

    /// Retries of a stopping flow become parked, or are thrown away. Adds them to the counts, and what the processors
    /// dead-lettered since the stop began, and stores how far the stop has come.
    async fn end_retries(
        &self,
        workspace: &str,
        flow: &str,
        since: i64,
        discard: bool,
        counts: Counts,
    ) -> Result<Counts, StorageError>;

    /// Records without their bodies, oldest first: a page.
    async fn list(&self, select: Select) -> Result<Vec<StoredRecord>, StorageError>;

    /// One record with its body, or with its beginning.
    async fn whole(
        &self,
        workspace: &str,
        id: i64,
        most: Option<usize>,
    ) -> Result<Option<StoredRecord>, StorageError>;

    /// At most `limit` retries that are due, but for those of some flows (workspace and id).
    async fn due(
        &self,
        now: i64,
        limit: u32,
        except: Vec<(String, String)>,
    ) -> Result<Due, StorageError>;

    /// Forgets records.
    async fn forget(&self, ids: Vec<i64>) -> Result<(), StorageError>;

    /// Gives a record another reason.
    async fn reclassify(&self, id: i64, reason: Reason, detail: &str) -> Result<(), StorageError>;

    /// How many records a workspace, or one of its flows, has by flow and reason; at most so many lines.
    async fn counts(
        &self,
        workspace: &str,
        flow: Option<&str>,
        most: u32,
    ) -> Result<Vec<DeadLetterCount>, StorageError>;

    /// The records of all workspaces by flow and reason; at most so many lines, those with most records first.
    async fn standing(&self, most: u32) -> Result<Vec<DeadLetterBacklog>, StorageError>;

    /// At most `most` rooms that are full of records that must stay: each `workspace:flow`, then each `workspace`.
    async fn full_rooms(&self, most: u32) -> Result<Vec<String>, StorageError>;

    /// Refuses (conflict) if so many more records, of any size, could not be kept for a flow.
    async fn has_room(&self, workspace: &str, flow: &str, records: u64)
    -> Result<(), StorageError>;

    /// At most `most` workspaces that have records or stops under way, sorted, after one.
    async fn workspaces(&self, after: &str, most: u32) -> Result<Vec<String>, StorageError>;

    /// Forgets the records that a workspace had at a time, and stops that were under way.
    async fn purge(&self, workspace: &str, deleted: i64) -> Result<(), StorageError>;
}
