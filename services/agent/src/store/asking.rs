//! Questions to users before the agent uses a tool, as the ledger keeps them.

use crate::engine::confirmation::Answer;

/// A question to a user before the agent uses a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asking {
    /// Workspace of the run, in the text form of its key.
    pub workspace: String,
    /// The user of the run; empty: unknown.
    pub user: String,
    /// Id of the question.
    pub id: String,
    /// Deadline of the answer.
    pub until_ms: i64,
}

/// The state of such a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmation {
    /// Deadline of the answer.
    pub until_ms: i64,
    /// The answer; `None`: it is open.
    pub answer: Option<Answer>,
    /// User who answered; empty: nobody.
    pub by: String,
    /// The agent was about to use the tool.
    pub used: bool,
}

/// The result of answering a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replied {
    /// The ledger keeps the answer.
    Noted,
    /// There is no such run, or it is over.
    NoRun,
    /// The run has no open question.
    NothingAsked,
    /// The run has asked more than once, and the answer names no question.
    Several,
}
