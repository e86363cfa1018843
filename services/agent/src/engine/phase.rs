//! What a step of a run is for, and the names that follow from it.

use tg_provenance::{Reason, Session};
use tg_schemas::msg::AgentRun;

/// The pattern of a run that thinks, uses tools and answers, and of what is not routed.
pub const REACT: &str = "react";
/// The pattern of a plan whose steps are taken as soon as those are done that they depend on.
pub const PLAN: &str = "plan-then-execute";
/// The pattern of a question that is split among subagents.
pub const SUPERVISOR: &str = "supervisor";

/// What a step is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// To think, and use a tool or answer.
    React,
    /// To plan, or to revise the plan.
    Plan,
    /// To take the step of the plan at this place, and with it others that wait for nothing.
    Execute(usize),
    /// To answer from what the plan's steps found.
    Conclude,
    /// To split the question among subagents, and wait for them.
    Decompose,
    /// To answer from what they found.
    Merge,
}

impl Phase {
    /// Id of the message that says what was thought; empty: it has none.
    pub fn thought(self, id: &Session, step: u32) -> String {
        match self {
            Self::React | Self::Execute(_) => id.thought(step),
            Self::Plan | Self::Conclude => String::new(),
            Self::Decompose => id.decomposition(),
            Self::Merge => id.synthesis(),
        }
    }

    /// The entity of the answer.
    pub fn answer(self, id: &Session) -> String {
        match self {
            Self::Conclude | Self::Merge => id.synthesis(),
            _ => id.conclusion(),
        }
    }

    /// Id of the answer's text.
    pub fn answer_document(self, id: &Session) -> String {
        match self {
            Self::Conclude | Self::Merge => id.synthesis_document(),
            _ => id.answer_document(),
        }
    }

    /// The entity that a tool's own trace follows from.
    pub fn caller(self, id: &Session, step: u32) -> String {
        match self {
            Self::Execute(at) => id.step_result(at),
            _ => id.iteration(step),
        }
    }

    /// The same of one of several calls, by its number; it takes a step of the plan if it has a place there.
    pub fn caller_of(self, id: &Session, step: u32, (nth, place): (u32, Option<usize>)) -> String {
        match (place, nth) {
            (Some(place), _) => id.step_result(place),
            (None, 0) => self.caller(id, step),
            (None, nth) => id.call(step, nth),
        }
    }

    /// The entity that subagents which a tool calls follow from; it is in the trace before them.
    pub fn gives_work(self, run: &AgentRun, step: u32) -> String {
        let id = Session::new(&run.run);
        match self {
            Self::Execute(_) => id.plan(run.revisions.len()),
            _ => id.iteration(step),
        }
    }

    /// Why a run ends with an answer.
    pub fn reason(self) -> Reason {
        match self {
            Self::Conclude => Reason::PlanComplete,
            Self::Merge => Reason::SubagentsComplete,
            _ => Reason::FinalAnswer,
        }
    }

    /// Whether the model's words are passed on while they grow, where the asker wants that.
    pub fn streams(self) -> bool {
        self == Self::React || self.concludes()
    }

    /// Whether the answer is put together from what was found before.
    pub fn concludes(self) -> bool {
        matches!(self, Self::Conclude | Self::Merge)
    }

    /// Whether what the model thinks is an entity of its own, and the choice of a tool another.
    pub fn is_react(self) -> bool {
        self == Self::React
    }
}
