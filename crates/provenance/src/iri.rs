//! Names of the things in an agent's trace.

const BASE: &str = "urn:trustgraph:agent:";

/// The IRI of a run; names everything that happened in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session(String);

impl Session {
    /// From the run's id, normally a UUID.
    pub fn new(id: &str) -> Self {
        Self(format!("{BASE}{id}"))
    }

    /// The session itself.
    pub fn iri(&self) -> &str {
        &self.0
    }

    /// How the run was to be gone about.
    pub fn pattern_decision(&self) -> String {
        format!("{}/pattern-decision", self.0)
    }

    /// The decision of a step, counted from 1.
    pub fn iteration(&self, step: u32) -> String {
        format!("{}/i{step}", self.0)
    }

    /// One of the calls that a step makes side by side, counted from 0; the first is the decision itself.
    pub fn call(&self, step: u32, nth: u32) -> String {
        match nth {
            0 => self.iteration(step),
            nth => format!("{}/i{step}/call/{}", self.0, nth + 1),
        }
    }

    /// What the user was asked before the tool of a call was used.
    pub fn confirmation(&self, step: u32, nth: u32) -> String {
        format!("{}/confirmation", self.call(step, nth))
    }

    /// The thought of a step; also the id of its stored text.
    pub fn thought(&self, step: u32) -> String {
        format!("{}/i{step}/thought", self.0)
    }

    /// What the tool of a step returned; also the id of its stored text.
    pub fn observation(&self, step: u32) -> String {
        format!("{}/i{step}/observation", self.0)
    }

    /// The same of one of several calls.
    pub fn observation_of(&self, step: u32, nth: u32) -> String {
        format!("{}/observation", self.call(step, nth))
    }

    /// The end of the run.
    pub fn conclusion(&self) -> String {
        format!("{}/final", self.0)
    }

    /// One of the answer's citations, by its number.
    pub fn citation(&self, number: usize) -> String {
        format!("{}/citation/{number}", self.0)
    }

    /// A plan: the first, or one that revised it, by how many revisions there were.
    pub fn plan(&self, revision: usize) -> String {
        match revision {
            0 => format!("{}/plan", self.0),
            revision => format!("{}/plan/{revision}", self.0),
        }
    }

    /// What came of a step of a plan, counted from 0 over all plans of the run.
    pub fn step_result(&self, number: usize) -> String {
        format!("{}/step/{number}", self.0)
    }

    /// Id of its stored text.
    pub fn step_document(&self, number: usize) -> String {
        format!("{}/step/{number}/doc", self.0)
    }

    /// How a question was split among subagents.
    pub fn decomposition(&self) -> String {
        format!("{}/decompose", self.0)
    }

    /// What a subagent found, counted from 0 in the order of arrival.
    pub fn finding(&self, number: usize) -> String {
        format!("{}/finding/{number}", self.0)
    }

    /// Id of its stored text.
    pub fn finding_document(&self, number: usize) -> String {
        format!("{}/finding/{number}/doc", self.0)
    }

    /// The answer put together from what steps or subagents found.
    pub fn synthesis(&self) -> String {
        format!("{}/synthesis", self.0)
    }

    /// Id of its stored text.
    pub fn synthesis_document(&self) -> String {
        format!("{}/synthesis/doc", self.0)
    }

    /// Id of the stored answer.
    pub fn answer_document(&self) -> String {
        format!("{}/answer", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_scheme() {
        let session = Session::new("7d0c");
        assert_eq!(session.iteration(1), "urn:trustgraph:agent:7d0c/i1");
        assert_eq!(session.call(1, 0), session.iteration(1));
        assert_eq!(session.observation_of(3, 0), session.observation(3));
        assert_eq!(
            session.confirmation(3, 1),
            "urn:trustgraph:agent:7d0c/i3/call/2/confirmation"
        );
        assert_eq!(session.thought(2), "urn:trustgraph:agent:7d0c/i2/thought");
        assert_eq!(session.conclusion(), "urn:trustgraph:agent:7d0c/final");
        assert_eq!(
            session.answer_document(),
            "urn:trustgraph:agent:7d0c/answer"
        );
        assert_eq!(session.plan(0), "urn:trustgraph:agent:7d0c/plan");
        assert_eq!(session.plan(2), "urn:trustgraph:agent:7d0c/plan/2");
        assert_eq!(
            session.finding_document(0),
            "urn:trustgraph:agent:7d0c/finding/0/doc"
        );
    }
}
