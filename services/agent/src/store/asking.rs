//! What users are asked before tools are used, as the ledger keeps it.

use crate::engine::confirmation::Answer;

/// What a user is to be asked before a tool is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asking {
    /// Workspace of the run, in the text form of its key.
    pub workspace: String,
    /// Whose run it is; empty: nobody says.
    pub user: String,
    /// What the question is called.
    pub id: String,
    /// Until when it may be answered.
    pub until_ms: i64,
}

/// What stands of such a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmation {
    /// Until when it may be answered.
    pub until_ms: i64,
    /// The answer; `None`: it is open.
    pub answer: Option<Answer>,
    /// User who answered; empty: nobody.
    pub by: String,
    /// The tool was about to be used.
    pub used: bool,
}

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replied {
    /// It stands.
    Noted,
    /// There is no such run, or it is over.
    NoRun,
    /// The run asks nothing now.
    NothingAsked,
    /// Several questions are open, or others were before, and none was named.
    Several,
}
