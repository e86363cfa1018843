//! Calls that use something, as the ledger takes them, and the sums that it answers with.

use crate::engine::cost::Price;
use crate::engine::guards::Exhausted;
use crate::engine::guards::budget::Budget;
use crate::engine::usage::{Amount, Scope};

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// A model, by the agent itself.
    Model,
    /// A tool, with the models that it asks.
    Tool,
    /// A model that sums up earlier steps.
    Summary,
}

/// A call of a step of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Id of the run that makes it.
    pub run: String,
    /// The step.
    pub step: u32,
    /// What is called.
    pub kind: CallKind,
    /// Which of those of its kind in the step it is, from 0 on.
    pub nth: u32,
}

/// Whom a call is counted for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// The workspace, in the text form of its key.
    pub workspace: String,
    /// The run: of a subagent, its parent.
    pub run: String,
    /// The conversation; empty: none.
    pub session: String,
    /// Who asked; empty: nobody who is known.
    pub key: String,
    /// The agent that answers; empty: none that has a name.
    pub agent: String,
}

impl Account {
    /// The name that it has in a scope, if it has one.
    pub fn name(&self, scope: Scope) -> Option<&str> {
        let name = match scope {
            Scope::Run => &self.run,
            Scope::Session => &self.session,
            // A ledger is asked within one.
            Scope::Workspace => return Some(""),
            Scope::Key => &self.key,
            Scope::Agent => &self.agent,
            Scope::Model | Scope::Tool => return None,
        };
        Some(name.as_str()).filter(|name| !name.is_empty())
    }
}

/// What a call must not pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// Of what.
    pub scope: Scope,
    /// The first day that counts; empty: all of them.
    pub since: String,
    /// How much.
    pub budget: Budget,
    /// Seconds that are over; else those count that calls took.
    pub seconds: Option<u64>,
    /// Whose it is, for people.
    pub whose: String,
}

/// What is reserved for a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Reservation {
    /// For whom.
    pub account: Account,
    /// What it is likely to take.
    pub amount: Amount,
    /// The model or tool, of whose largest call as much is reserved where others call at the same time; an empty name: any.
    pub like: (Scope, String),
    /// What it must fit.
    pub bounds: Vec<Bound>,
    /// When the call is over at the latest.
    pub expires_ms: i64,
    /// Today.
    pub day: String,
    /// It is asked for again where only what is reserved for others stands in the way: such a refusal is not noted.
    pub waits: bool,
    /// It is committed with what comes before the call, which may never be made: then `LedgerStore::free` ends it. Whoever reserves the
    /// call again, once it begins, makes the reservation last as long as its own.
    pub ahead: bool,
}

/// What a call took.
#[derive(Debug, Clone, PartialEq)]
pub struct Used {
    /// Whom it is counted for.
    pub account: Account,
    /// The model or the tool; an empty name: unknown.
    pub by: (Scope, String),
    /// How much.
    pub amount: Amount,
    /// Today.
    pub day: String,
    /// The model answered and its provider reported no input tokens. At least what was reserved for the call counts then, at this
    /// price: else a provider that reports nothing would have no budget.
    pub unreported: Option<Price>,
}

/// A call and what it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// The call.
    pub call: Call,
    /// What it took.
    pub used: Used,
}

/// What became of a decision that is committed with a reservation for the call that it chose.
#[derive(Debug, Clone, PartialEq)]
pub enum Decided {
    /// The call fits its bounds, and is reserved.
    Fits,
    /// It does not fit.
    Refused(Exhausted),
    /// The workspace has ended: nothing was committed.
    WorkspaceEnded,
}

/// Which usage is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Days {
    /// By what it is summed up.
    pub scope: Scope,
    /// The first day, `YYYY-MM-DD`; empty: all of them.
    pub since: String,
    /// The last day.
    pub until: String,
    /// Each day is summed up by itself, and named instead: of the workspace.
    pub daily: bool,
}
