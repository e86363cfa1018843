//! What the agent keeps: the referee of repeated work. Which run a question began, and what each step decided, saw, or
//! how it ended. It is not the run's memory: that travels in the step records.
//!
//! [`LedgerStore`] is what an adapter does; each method is one transaction, and the second time changes nothing.

mod asking;
mod calls;
mod ends;
mod ledger;
mod lifecycle;
mod record;
mod sqlite;
mod standing;
pub(crate) mod summaries;
pub(crate) mod tasks;
mod usage;
mod whose;

#[cfg(test)]
mod conformance;

use async_trait::async_trait;
use tg_collections::KnownConfig;
use tg_schemas::msg::DetachedRun;
use tg_storage::StorageError;

pub use self::asking::{Asking, Confirmation, Replied};
pub use self::calls::{CallAt, CallStore};
pub use self::ends::{HeadKey, HeadStore, LastHeads, RunEnd, SignedHead};
pub use self::ledger::Ledger;
pub use self::record::{Added, Facts, Noted, Record};
pub use self::sqlite::ONE_WORKSPACE;
pub use self::standing::RunProgress;
pub use self::summaries::{Remade, SummaryStore};
pub use self::tasks::{Opened, TaskEnd, TaskRow, TaskStatus, TaskStore, TasksOf};
pub use self::usage::{Account, Bound, Call, CallKind, Counted, Days, Decided, Reservation, Used};
pub use self::whose::{IsOver, RunKey, Whose};
use crate::engine::confirmation::Answer;
use crate::engine::decision::{Decision, Ending, Finding, Observation};
use crate::engine::guards::Exhausted;
use crate::engine::router::Route;
use crate::engine::usage::{Amount, Scope};

/// Rows are kept this long, in milliseconds: well past any deadline.
const KEEP_MS: i64 = 48 * 3600 * 1000;
/// Counted calls of no run are kept this long after their deadlines, in milliseconds: until then one counts once however often its
/// process reports it.
const KEEP_CALLS_MS: i64 = 2 * 3600 * 1000;
/// Ends of runs are kept this long, in milliseconds: five weeks, within which their day can be signed.
const KEEP_ENDS_MS: i64 = 35 * 24 * 3600 * 1000;
/// What was used is known this long, in milliseconds: by workspace, key, model and tool more than a year.
const KEEP_USAGE_MS: i64 = 400 * 24 * 3600 * 1000;
/// Rows removed at once.
const PURGE: i64 = 512;
/// Heads of a workspace that are kept: years of them.
const KEEP_HEADS: i64 = 4096;
/// Every so many runs, old rows are removed: where the time of a run's begin is divisible by it.
const PURGE_EVERY: i64 = 256;

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
    /// Who asked; `None` where nobody can ask for it again.
    pub asker: Option<Caller>,
}

/// Who asked for a run, and what becomes of it without them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
    /// It goes on without its caller.
    pub goes_on: bool,
    /// For so long; 0: to its end.
    pub grace_ms: i64,
}

/// A run that somebody asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownRun {
    /// Its id.
    pub run: String,
    /// Its workspace, in the text form of its key.
    pub workspace: String,
    /// Who asked for it, and how.
    pub caller: Caller,
    /// When it began.
    pub started_ms: i64,
    /// It was cancelled.
    pub cancelled: bool,
    /// Nothing more comes.
    pub over: bool,
    /// Since when nobody listens, of one that goes on for some time only.
    pub left_ms: Option<i64>,
    /// Who asked listens no more, whoever else does.
    pub asker_gone: bool,
    /// The number behind its last part, of one that is over.
    pub ends: Option<u64>,
}

/// Parts of a run's answer that are kept to be read again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// Its workspace, in the text form of its key.
    pub workspace: String,
    /// Number of the first.
    pub first: u64,
    /// Each as JSON.
    pub parts: Vec<String>,
    /// Bytes that are kept of the workspace at most; the oldest go.
    pub keep: u64,
}

/// A call of a tool in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// The tool.
    pub tool: String,
    /// What it returned is known; else it may or may not have had its effect.
    pub returned: bool,
    /// It returned an error.
    pub failed: bool,
}

/// What has happened in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Happened {
    /// Steps that were decided.
    pub steps: u32,
    /// Calls of tools, in order.
    pub calls: Vec<ToolCall>,
    /// Tokens that its model was sent.
    pub in_token: i64,
    /// Tokens that it wrote.
    pub out_token: i64,
}

/// A run and when it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Began {
    /// Its id.
    pub run: String,
    /// Its start, as the trace shows it.
    pub started_at: String,
    /// How it is gone about, once that was settled.
    pub route: Option<Route>,
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
    /// A whole part of a subagent that was passed on, as JSON, in the order of passing on.
    Part,
}

impl PieceKind {
    const ALL: [Self; 4] = [Self::Thought, Self::ThoughtEnd, Self::Answer, Self::Part];
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
pub trait LedgerStore: TaskStore + CallStore + SummaryStore + HeadStore {
    /// The run that a question began: `new` unless the same question has one already; `None` in a workspace that has
    /// ended. Now and then also removes some rows that are older than two days.
    async fn begin(
        &self,
        asked: Asked,
        new: Began,
        now_ms: i64,
    ) -> Result<Option<Began>, StorageError>;

    /// Settles how the run that a question began is gone about; the first route stands and is returned. `None`: there is no
    /// such run.
    async fn route(
        &self,
        question: &str,
        run: &RunKey,
        route: &Route,
    ) -> Result<Option<Route>, StorageError>;

    /// Detached runs of a user that are not over, were not cancelled and may still end in time, in the order of their
    /// questions' ids: so many of those behind an id at most.
    async fn detached(
        &self,
        user: &str,
        after: &str,
        most: usize,
        now_ms: i64,
    ) -> Result<Vec<DetachedRun>, StorageError>;

    /// Runs that are known, under way or over, in the order of their questions' ids: so many of those behind an id at most.
    async fn known(
        &self,
        whose: &Whose,
        after: &str,
        most: usize,
    ) -> Result<Vec<KnownRun>, StorageError>;

    /// The run that a question began, by the question's id.
    async fn of_question(
        &self,
        whose: &Whose,
        question: &str,
    ) -> Result<Option<KnownRun>, StorageError>;

    /// What is known of who asked for a run.
    async fn asker(&self, run: &str) -> Result<Option<KnownRun>, StorageError>;

    /// Notes for good that a run that is not over is to end. `false` if there is none.
    async fn cancel(
        &self,
        whose: &Whose,
        question: &str,
        now_ms: i64,
    ) -> Result<bool, StorageError>;

    /// Notes since when nobody listens to a run; `None`: somebody does. `asker`: who asked does not from now on.
    async fn left(&self, run: &str, since_ms: Option<i64>, asker: bool)
    -> Result<(), StorageError>;

    /// Cancels a run to which nobody has listened since a time that was noted, as [`LedgerStore::cancel`]. `false`: somebody has,
    /// or it is not under way.
    async fn cancel_left(
        &self,
        run: &str,
        since_ms: i64,
        now_ms: i64,
    ) -> Result<bool, StorageError>;

    /// Parts of a run from a number on that are kept, without a gap, and the number of the first of them; it is a later one
    /// where those before are not kept. So many bytes of them, but one at least.
    async fn told(
        &self,
        run: &str,
        from: u64,
        bytes: usize,
    ) -> Result<Option<(u64, Vec<String>)>, StorageError>;

    /// What has happened in a run, and in those of its subagents.
    async fn happened(&self, run: &str) -> Result<Happened, StorageError>;

    /// Where a run stands that began then; behind it, as they began, its subagents that are not over, some of them.
    async fn standing(&self, run: &str, started_ms: i64) -> Result<Vec<RunProgress>, StorageError>;

    /// Notes that the user is asked before a tool is used; what is noted stands and is returned. Where too many
    /// questions of the workspace are open, it is noted that nobody is asked. `None`: the workspace has ended.
    async fn ask_user(
        &self,
        run: &RunKey,
        at: CallAt,
        asking: &Asking,
        now_ms: i64,
    ) -> Result<Option<Confirmation>, StorageError>;

    /// What stands of the question before a call.
    async fn confirmation(
        &self,
        run: &str,
        at: CallAt,
    ) -> Result<Option<Confirmation>, StorageError>;

    /// Answers what a run, by its question's id, or one of its subagents asks: the one with that name, else the only one so far. The
    /// first answer stands, and none after its time.
    async fn answer_user(
        &self,
        whose: &Whose,
        run_and_name: (&str, &str),
        answer_and_user: (Answer, &str),
        now_ms: i64,
    ) -> Result<Replied, StorageError>;

    /// The time for an answer is over; one that came stands.
    async fn close_question(&self, run: &str, at: CallAt) -> Result<(), StorageError>;

    /// The tool that the user allowed is about to be used.
    async fn begin_use(&self, run: &str, at: CallAt) -> Result<(), StorageError>;

    /// Adds to the record of a run, which begins with the entry of that name; one that is there under its name stays as it is.
    /// `false`: nothing is kept of it any more, as it grew too large, or others of its workspace needed the room.
    async fn keep_record(
        &self,
        run: &RunKey,
        added: Added,
        now_ms: i64,
    ) -> Result<bool, StorageError>;

    /// What is kept to replay a run. `None`: it is not recorded.
    async fn record(&self, run: &str) -> Result<Option<Record>, StorageError>;

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

    /// All pieces that are noted of a step, in order.
    async fn said(&self, run: &str, step: u32) -> Result<Vec<Piece>, StorageError>;

    /// Commits what a subagent of a run found; the first finding stands. Returns how many arrived before it. `None`: the
    /// workspace has ended.
    async fn found(
        &self,
        run: &RunKey,
        finding: &Finding,
        now_ms: i64,
    ) -> Result<Option<u32>, StorageError>;

    /// What subagents of a run have found so far, in the order of arrival.
    async fn findings(&self, run: &str) -> Result<Vec<Finding>, StorageError>;

    /// Commits a decision; the first one stands. In the same transaction it counts what the calls for it took, as
    /// [`LedgerStore::settle`] does, and forgets the pieces that were noted before it. `false`: as [`LedgerStore::say`].
    async fn decide(
        &self,
        run: &RunKey,
        step: u32,
        decision: &Decision,
        counted: &[Counted],
        now_ms: i64,
    ) -> Result<bool, StorageError>;

    /// Commits a decision as [`LedgerStore::decide`] does, and in the same transaction reserves what the call that it chose is
    /// likely to take, as [`LedgerStore::reserve`] does.
    async fn decide_and_reserve(
        &self,
        run: &RunKey,
        step: u32,
        decision: &Decision,
        counted: &[Counted],
        next: &(Call, Reservation),
        now_ms: i64,
    ) -> Result<Decided, StorageError>;

    /// Commits what a tool returned; the first observation of a step that was decided stands. The same transaction keeps what
    /// the run has told up to here, and counts what the calls took, as [`LedgerStore::settle`] does.
    async fn observe(
        &self,
        run: &RunKey,
        step: u32,
        observation: &Observation,
        told: Told,
        counted: &[Counted],
        now_ms: i64,
    ) -> Result<(), StorageError>;

    /// Commits what a tool returned as [`LedgerStore::observe`] does, and in the same transaction reserves what the next call is
    /// likely to take, as [`LedgerStore::reserve`] does. Whether that is reserved.
    async fn observe_and_reserve(
        &self,
        run: &RunKey,
        step: u32,
        observation: &Observation,
        told: Told,
        counted_and_next: (&[Counted], &(Call, Reservation)),
        now_ms: i64,
    ) -> Result<bool, StorageError>;

    /// Commits that the run ends here without an answer; the first ending stands. `false`: as [`LedgerStore::say`].
    async fn end(
        &self,
        run: &RunKey,
        step: u32,
        ending: &Ending,
        now_ms: i64,
    ) -> Result<bool, StorageError>;

    /// Notes that everything that follows from a step was done. The pieces that were noted of it are forgotten.
    async fn finish_step(&self, run: &str, step: u32) -> Result<(), StorageError>;

    /// Notes that everything that follows from a run's last step was done, and from those before if the end says so, and how its
    /// trace ended; the first end stands.
    /// Of a workspace that has ended, or of a trace without a hash, no end is noted. With it goes what the run has told to
    /// its end.
    async fn finish_run(
        &self,
        run: &RunKey,
        step: u32,
        end: &RunEnd,
        told: Told,
        now_ms: i64,
    ) -> Result<(), StorageError>;

    /// Reserves what a call is likely to take, unless it is beyond a bound together with what was used and what is reserved for
    /// others: then nothing is, and it is said why. What was said of a call stands, unless it waits for the others: who takes its
    /// step up again hears the same, but for what was reserved ahead and has expired. What is reserved ends with the call, with its
    /// run, or when it expires. The end of a run counts an open call as what was reserved for it, but for one of a step after its last:
    /// nobody began that.
    async fn reserve(
        &self,
        call: &Call,
        next: &Reservation,
        now_ms: i64,
    ) -> Result<Option<Exhausted>, StorageError>;

    /// A call that was reserved ahead has begun: its reservation lasts until `expires_ms` at least.
    async fn renew(&self, call: &Call, expires_ms: i64) -> Result<(), StorageError>;

    /// A call that was reserved ahead is not made: nothing is reserved for it, and it can be reserved and counted as if it never was.
    async fn free(&self, call: &Call) -> Result<(), StorageError>;

    /// Counts what a call took, once. In a workspace that has ended nothing is.
    async fn settle(
        &self,
        run: &RunKey,
        call: &Call,
        used: &Used,
        now_ms: i64,
    ) -> Result<(), StorageError>;

    /// As [`Self::settle`], for several calls together.
    async fn settle_all(
        &self,
        run: &RunKey,
        counted: &[Counted],
        now_ms: i64,
    ) -> Result<(), StorageError>;

    /// Counts what a session or an agent used anew: what was counted until now, if anything was.
    async fn clear_usage(
        &self,
        workspace: &str,
        of: (Scope, &str),
    ) -> Result<Option<Amount>, StorageError>;

    /// What was used on some days, summed up by name and in the order of the names: so many of those behind one at most.
    async fn usage(
        &self,
        workspace: &str,
        days: &Days,
        after: &str,
        most: usize,
    ) -> Result<Vec<(String, Amount)>, StorageError>;

    /// Every workspace that a run is kept for, in the text form of its key.
    async fn workspaces(&self) -> Result<Vec<String>, StorageError>;

    /// Purges some runs of a workspace with all their parts. `false` when none is left.
    async fn purge_some(&self, workspace: &str) -> Result<bool, StorageError>;

    /// Removes some of what is too old: of runs two days, of their ends and what they used five weeks, of other usage more than
    /// a year. Whether there is more.
    async fn forget(&self, now_ms: i64) -> Result<bool, StorageError>;

    /// Where it remembers which configuration it has known.
    fn known_config(&self) -> &dyn KnownConfig;
}
