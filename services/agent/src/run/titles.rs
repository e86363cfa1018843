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

/// Title of an answer that was put together.
pub(super) const SYNTHESIS: &str = "Synthesis";

/// Title of what a subagent found.
pub(super) fn finding(goal: &str) -> String {
    let start: String = goal.chars().take(60).collect();
    format!("Finding: {start}")
}

/// Title of what came of a step of a plan.
pub(super) fn step_result(goal: &str) -> String {
    let start: String = goal.chars().take(60).collect();
    format!("Step result: {start}")
}
