//! What the agent keeps: the referee of repeated work. Which run a question began, and what each step decided, saw, or
//! how it ended. It is not the run's memory: that travels in the step records.
//!
//! [`LedgerStore`] is what an adapter does; each method is one transaction, and the second time changes nothing.

mod ledger;
mod lifecycle;
mod sqlite;

#[cfg(test)]
mod conformance;

use std::sync::Arc;

use async_trait::async_trait;
use tg_collections::KnownConfig;
use tg_provenance::Ended;
use tg_schemas::msg::DetachedRun;
use tg_storage::StorageError;

pub use self::ledger::Ledger;
use crate::engine::decision::{Decision, Ending, Observation};

/// Rows are kept this long, in milliseconds: well past any deadline.
const KEEP_MS: i64 = 48 * 3600 * 1000;
/// Ends of runs are kept this long, in milliseconds: five weeks, within which their day can be signed.
const KEEP_ENDS_MS: i64 = 35 * 24 * 3600 * 1000;
/// Rows removed at once.
const PURGE: i64 = 512;
/// Heads of a workspace that are kept: years of them.
const KEEP_HEADS: i64 = 4096;
/// Every so many runs, old rows are removed: where the time of a run's begin is divisible by it.
const PURGE_EVERY: i64 = 256;

/// Whether the workspace of what is written has ended meanwhile. Asked in the transaction that writes: what was purged is
/// not written again.
#[derive(Clone)]
pub struct IsOver(Arc<dyn Fn() -> bool + Send + Sync>);

impl IsOver {
    /// As something else says.
    pub fn when(says: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(says))
    }

    /// Whether it has.
    pub fn holds(&self) -> bool {
        (self.0)()
    }
}

/// A question as it begins a run.
#[derive(Clone)]
pub struct Asked {
    /// Its workspace, in the text form of its key.
    pub workspace: String,
    /// Whether that has ended.
    pub is_over: IsOver,
    /// What makes a repeated question the same.
    pub key: String,
    /// Its text.
    pub text: String,
    /// Who asked; `None` where the run ends with its caller.
    pub detached: Option<Caller>,
}

/// For whom a run goes on without its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The user.
    pub user: String,
    /// Id of the question.
    pub question: String,
    /// The flow that was asked.
    pub flow: String,
    /// Id of the client's request behind it; empty: none.
    pub request: String,
    /// When nobody waits any more.
    pub deadline_ms: i64,
}

/// A run that is written to.
#[derive(Clone)]
pub struct RunKey {
    /// Its id.
    pub run: String,
    /// Whether its workspace has ended.
    pub is_over: IsOver,
}

/// A run and when it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Began {
    /// Its id.
    pub run: String,
    /// Its start, as the trace shows it.
    pub started_at: String,
}

/// How the trace of a run ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunEnd {
    /// Its workspace, in the text form of its key.
    pub workspace: String,
    /// The day in UTC, `YYYY-MM-DD`.
    pub day: String,
    /// Its question, its collection, and the hash of its end; that is empty for a trace without hashes.
    pub ended: Ended,
}

/// A head that was signed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignedHead {
    /// Counts the heads of a workspace from 1.
    pub number: i64,
    /// The day that it is of.
    pub day: String,
    /// What was signed.
    pub text: String,
    /// The signature in base64.
    pub signature: String,
}

/// What was signed before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastHeads {
    /// The last head of the workspace.
    pub last: Option<SignedHead>,
    /// The last head of the day.
    pub of_day: Option<SignedHead>,
}

/// What a piece of a model's text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieceKind {
    /// Of the thought.
    Thought,
    /// Of the thought, and its last.
    ThoughtEnd,
    /// Of the answer.
    Answer,
}

impl PieceKind {
    const ALL: [Self; 3] = [Self::Thought, Self::ThoughtEnd, Self::Answer];
}

/// A piece of a model's text that was passed on before the step was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// What it is.
    pub kind: PieceKind,
    /// The piece.
    pub text: String,
}

/// What is known of a step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepRow {
    /// What was decided.
    pub decision: Option<Decision>,
    /// What the tool returned.
    pub observation: Option<Observation>,
    /// How the run ended here, without an answer.
    pub ending: Option<Ending>,
    /// Everything that follows from this step was done.
    pub done: bool,
    /// A later step of the run was begun: only the trace can still lack this one.
    pub later: bool,
}

/// The ledger, where it lasts. Times are milliseconds since the Unix epoch.
///
/// # Errors
/// Every method: when the store failed; nothing is changed then.
#[async_trait]
pub trait LedgerStore: Send + Sync + 'static {
    /// The run that a question began: `new` unless the same question has one already; `None` in a workspace that has
    /// ended. Now and then also removes some rows that are older than two days.
    async fn begin(
        &self,
        asked: Asked,
        new: Began,
        now_ms: i64,
    ) -> Result<Option<Began>, StorageError>;

    /// Detached runs of a user that are not over, were not cancelled and may still end in time, in the order of their
    /// questions' ids: so many of those behind an id at most.
    async fn detached(
        &self,
        user: &str,
        after: &str,
        most: usize,
        now_ms: i64,
    ) -> Result<Vec<DetachedRun>, StorageError>;

    /// Notes for good that a detached run of a user, which is not over, is to end. `false` if there is none.
    async fn cancel(&self, user: &str, question: &str, now_ms: i64) -> Result<bool, StorageError>;

    /// Whether that was noted of a run.
    async fn is_cancelled(&self, run: &str) -> Result<bool, StorageError>;

    /// Whether a question, by its key, has begun a run that is not over.
    async fn is_open(&self, question: String) -> Result<bool, StorageError>;

    /// What is known of a step.
    async fn load(&self, run: String, step: u32) -> Result<StepRow, StorageError>;

    /// Notes pieces that are about to be passed on as the parts from `seq` on, for a run that goes on whatever happens
    /// to this process. `false`: its workspace has ended, nothing is noted.
    async fn say(
        &self,
        run: &RunKey,
        step: u32,
        seq: u64,
        pieces: Vec<Piece>,
        now_ms: i64,
    ) -> Result<bool, StorageError>;

    /// Pieces of an undecided step that were passed on as the parts from `from` to before `until`; later ones are
    /// forgotten. `None` if one of them is not known.
    async fn heard(
        &self,
        run: &str,
        step: u32,
        from: u64,
        until: u64,
    ) -> Result<Option<Vec<Piece>>, StorageError>;

    /// Commits a decision; the first one stands. The pieces that were noted before it are forgotten. `false`: as
    /// [`LedgerStore::say`].
    async fn decide(
        &self,
        run: &RunKey,
        step: u32,
        decision: &Decision,
        now_ms: i64,
    ) -> Result<bool, StorageError>;

    /// Commits what a tool returned; the first observation of a step that was decided stands.
    async fn observe(
        &self,
        run: &str,
        step: u32,
        observation: &Observation,
    ) -> Result<(), StorageError>;

    /// Commits that the run ends here without an answer; the first ending stands. `false`: as [`LedgerStore::say`].
    async fn end(
        &self,
        run: &RunKey,
        step: u32,
        ending: &Ending,
        now_ms: i64,
    ) -> Result<bool, StorageError>;

    /// Notes that everything that follows from a step was done.
    async fn finish_step(&self, run: &str, step: u32) -> Result<(), StorageError>;

    /// Notes that everything that follows from a run's last step was done, and how its trace ended; the first end stands.
    /// Of a workspace that has ended, or of a trace without a hash, no end is noted.
    async fn finish_run(
        &self,
        run: &RunKey,
        step: u32,
        end: &RunEnd,
        now_ms: i64,
    ) -> Result<(), StorageError>;

    /// How runs of a workspace ended on a day, in that order: so many of those behind a number at most, which counts from 1
    /// each day. They are kept for five weeks.
    async fn ended(
        &self,
        workspace: &str,
        day: &str,
        after: i64,
        most: usize,
    ) -> Result<Vec<Ended>, StorageError>;

    /// The last head that was signed in a workspace, and the last one of a day.
    async fn heads(&self, workspace: &str, day: &str) -> Result<LastHeads, StorageError>;

    /// Keeps a head. `false`: its number is taken, or the workspace has ended. Of those before it some thousand are kept.
    async fn keep_head(
        &self,
        workspace: &str,
        is_over: &IsOver,
        head: &SignedHead,
    ) -> Result<bool, StorageError>;

    /// The key that signs heads: the one that is kept, else this one, which is kept from now on.
    async fn head_key(&self, new: Vec<u8>) -> Result<Vec<u8>, StorageError>;

    /// Every workspace that a run is kept for, in the text form of its key.
    async fn workspaces(&self) -> Result<Vec<String>, StorageError>;

    /// Purges some runs of a workspace with all that they said. `false` when none is left.
    async fn purge_some(&self, workspace: &str) -> Result<bool, StorageError>;

    /// Where it remembers which configuration it has known.
    fn known_config(&self) -> &dyn KnownConfig;
}
