//! What ends, or shortens, work that goes on too long: replies that cannot be read, long observations.

use serde_json::Value;
use tg_schemas::msg::{AgentRun, AgentRunStep, AgentStep};

/// Name under which a reply that cannot be read appears as an action.
pub const PARSE_ERROR: &str = "__parse_error__";
/// Most bytes of an observation that the asker and the library get.
pub const MAX_OBSERVATION: usize = 256 << 10;
/// Most bytes of an observation that the model is shown again in later steps.
pub const MAX_SHOWN: usize = 16 << 10;
/// Most tools that one step uses side by side.
pub const MAX_CALLS: usize = 8;
/// Most earlier steps that a question may bring along.
pub const MAX_PRIOR: usize = 20;
/// So many replies that cannot be read, and the run ends.
pub const MAX_IN_VAIN: usize = 4;

/// Cuts a text at a character boundary, and says so.
pub fn shorten(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut at = limit;
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    format!(
        "{}\n[shortened: {} of {} bytes shown]",
        &text[..at],
        at,
        text.len()
    )
}

/// Steps that this run has taken itself.
pub fn own_steps(run: &AgentRun) -> &[AgentRunStep] {
    let prior = usize::try_from(run.prior)
        .unwrap_or(0)
        .min(run.history.len());
    &run.history[prior..]
}

/// Which of the calls of the run's last step is the last, from 0.
pub fn last_call(run: &AgentRun) -> u32 {
    let calls = own_steps(run).last().map_or(0, |step| step.calls.len());
    u32::try_from(calls.saturating_sub(1)).unwrap_or(0)
}

/// Steps of this run whose reply could not be read.
pub fn unread_before(run: &AgentRun) -> usize {
    let steps = own_steps(run).iter();
    steps.filter(|step| step.action == PARSE_ERROR).count()
}

/// The steps a question brought along, as context for the model: the newest, shortened.
pub fn prior_steps(history: &[AgentStep]) -> Vec<AgentRunStep> {
    let from = history.len().saturating_sub(MAX_PRIOR);
    history[from..]
        .iter()
        .map(|step| {
            let arguments: serde_json::Map<String, Value> = step
                .arguments
                .iter()
                .map(|(key, value)| (key.clone(), Value::from(shorten(value, MAX_SHOWN))))
                .collect();
            AgentRunStep {
                thought: shorten(&step.thought, MAX_SHOWN),
                action: shorten(&step.action, MAX_SHOWN),
                arguments: Value::Object(arguments).to_string(),
                observation: shorten(&step.observation, MAX_SHOWN),
                ..AgentRunStep::default()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortening_keeps_characters_whole_and_says_so() {
        assert_eq!(shorten("abc", 3), "abc");
        let cut = shorten("äöü", 3);
        assert!(cut.starts_with("ä\n[shortened: 2 of 6 bytes"), "{cut}");
    }

    #[test]
    fn replies_that_cannot_be_read_are_counted_in_the_run_alone() {
        let step = |action: &str| AgentRunStep {
            action: action.into(),
            ..AgentRunStep::default()
        };
        let run = AgentRun {
            history: vec![step(PARSE_ERROR), step(PARSE_ERROR), step("find")],
            prior: 1,
            ..AgentRun::default()
        };
        assert_eq!(unread_before(&run), 1);
    }

    #[test]
    fn prior_steps_are_bounded() {
        let history = vec![
            AgentStep {
                thought: "t".into(),
                arguments: [("k".to_owned(), "v".to_owned())].into(),
                ..AgentStep::default()
            };
            50
        ];
        let prior = prior_steps(&history);
        assert_eq!(prior.len(), MAX_PRIOR);
        assert_eq!(prior[0].arguments, r#"{"k":"v"}"#);
    }
}
