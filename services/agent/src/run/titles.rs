//! Titles of the texts that a run leaves in the library.

/// Title of a stored thought.
pub(super) fn thought(action: &str) -> String {
    format!("Agent Thought: {action}")
}

/// Title of a stored observation.
pub(super) const OBSERVATION: &str = "Agent Observation";

/// Title of a stored answer.
pub(super) fn answer(question: &str) -> String {
    tg_clients::traces::answer_title("Agent", question)
}
