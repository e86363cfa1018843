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

    /// The decision of a step, counted from 1.
    pub fn iteration(&self, step: u32) -> String {
        format!("{}/i{step}", self.0)
    }

    /// The thought of a step; also the id of its stored text.
    pub fn thought(&self, step: u32) -> String {
        format!("{}/i{step}/thought", self.0)
    }

    /// What the tool of a step returned; also the id of its stored text.
    pub fn observation(&self, step: u32) -> String {
        format!("{}/i{step}/observation", self.0)
    }

    /// The end of the run.
    pub fn conclusion(&self) -> String {
        format!("{}/final", self.0)
    }

    /// One of the answer's citations, by its number.
    pub fn citation(&self, number: usize) -> String {
        format!("{}/citation/{number}", self.0)
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
        assert_eq!(session.thought(2), "urn:trustgraph:agent:7d0c/i2/thought");
        assert_eq!(session.conclusion(), "urn:trustgraph:agent:7d0c/final");
        assert_eq!(
            session.answer_document(),
            "urn:trustgraph:agent:7d0c/answer"
        );
    }
}
