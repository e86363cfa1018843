//! Tasks as the ledger keeps them: work that a run gave to another agent and does not wait for. What a task does is a run of the
//! ledger like any other; here stands who gave it, and what came of it.

use async_trait::async_trait;
use tg_storage::StorageError;

use super::whose::{IsOver, Whose};

/// A task that is over is kept this long, in milliseconds.
pub(crate) const KEEP_TASKS_MS: i64 = 3600 * 1000;
/// Tasks of a workspace that are kept; the oldest that are over go.
pub(crate) const MOST_TASKS: i64 = 1000;
/// Tasks of a workspace that may wait or be under way.
pub(crate) const MOST_OPEN: i64 = 100;
/// The error of a task whose process is gone.
pub(crate) const INTERRUPTED: &str = "interrupted by restart";

/// How far a task is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TaskStatus {
    /// It waits for a place.
    #[default]
    Pending,
    /// It is under way.
    Running,
    /// It is over, with a result.
    Success,
    /// It is over without one.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl TaskStatus {
    const ALL: [Self; 5] = [
        Self::Pending,
        Self::Running,
        Self::Success,
        Self::Failed,
        Self::Cancelled,
    ];

    /// As it is reported and kept.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether more comes of it.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Running)
    }

    pub(super) fn read(text: &str) -> Self {
        let known = Self::ALL.into_iter().find(|one| one.as_str() == text);
        known.unwrap_or(Self::Failed)
    }
}

/// A task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskRow {
    /// Its workspace, in the text form of its key.
    pub workspace: String,
    /// Its id there.
    pub id: String,
    /// `delegate` or `dispatch`.
    pub kind: String,
    /// Id of the agent that does it; of a graph, name of the tool.
    pub agent: String,
    /// Session in which that agent does it.
    pub session: String,
    /// Session of the run that all began with.
    pub tree: String,
    /// Whose run gave it.
    pub user: String,
    /// Its run; empty: it has not begun.
    pub run: String,
    /// The begin of the agent's message.
    pub message: String,
    /// How far it is.
    pub status: TaskStatus,
    /// The begin of what came of it.
    pub result: String,
    /// What went wrong.
    pub error: String,
    /// When it was given.
    pub created_ms: i64,
    /// When it began; 0: it has not.
    pub started_ms: i64,
    /// When it was over; 0: it is not.
    pub completed_ms: i64,
}

/// How a task ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskEnd {
    /// How.
    pub status: TaskStatus,
    /// The begin of what came of it.
    pub result: String,
    /// What went wrong.
    pub error: String,
}

/// Whether a task was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// Just now.
    New,
    /// Before.
    Known,
    /// Too many of the workspace are open.
    TooMany,
    /// The workspace has ended.
    NoWorkspace,
}

/// Which tasks are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TasksOf {
    /// Those that runs of somebody gave.
    Whose(Whose),
    /// Those of a session and all that began in it, of one user in a workspace.
    Tree {
        /// The workspace, in the text form of its key.
        workspace: String,
        /// The user.
        user: String,
        /// The session that all began with.
        tree: String,
    },
}

/// Tasks of the ledger. `owner` names the process that works on a task: those of another are interrupted, as only one process has
/// the ledger. A task that is over stays as it is.
///
/// # Errors
/// Every method: when the store failed; nothing is changed then.
#[async_trait]
pub trait TaskStore: Send + Sync + 'static {
    /// Opens a task, unless it is there.
    async fn open_task(
        &self,
        task: &TaskRow,
        owner: &str,
        is_over: &IsOver,
    ) -> Result<Opened, StorageError>;

    /// A task that waits is under way from now on, as this run. `false`: it does not wait.
    async fn start_task(
        &self,
        workspace: &str,
        id: &str,
        run: &str,
        now_ms: i64,
    ) -> Result<bool, StorageError>;

    /// Ends a task that is open. `false`: it is over already, or not there.
    async fn end_task(
        &self,
        workspace: &str,
        id: &str,
        end: &TaskEnd,
        now_ms: i64,
    ) -> Result<bool, StorageError>;

    /// Tasks in the order in which they were given: so many behind a place at most, which [`TaskRow::place`] names.
    async fn tasks(
        &self,
        of: &TasksOf,
        owner: &str,
        (after, most): (&str, usize),
        now_ms: i64,
    ) -> Result<Vec<TaskRow>, StorageError>;

    /// Removes what is over for too long.
    async fn prune_tasks(&self, owner: &str, now_ms: i64) -> Result<(), StorageError>;
}

impl TaskRow {
    /// Where it stands in a list.
    pub fn place(&self) -> String {
        format!("{:016}/{}", self.created_ms, self.id)
    }
}
