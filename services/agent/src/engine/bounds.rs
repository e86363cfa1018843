//! What ends, or shortens, work that goes on too long: iterations, repeated calls, long observations.

use serde_json::Value;
use tg_schemas::msg::{AgentRun, AgentRunStep, AgentStep};

/// Most bytes of an observation that the asker and the library get.
pub const MAX_OBSERVATION: usize = 256 << 10;
/// Most bytes of an observation that the model is shown again in later steps.
pub const MAX_SHOWN: usize = 16 << 10;
/// Most earlier steps that a question may bring along.
pub const MAX_PRIOR: usize = 20;
/// The same call is made at most this often; after that the model is told.
pub const MAX_SAME: usize = 2;
/// So many calls in vain, and the run ends.
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

/// How often the same call was made before.
pub fn calls_before(run: &AgentRun, name: &str, arguments: &str) -> usize {
    let wanted = canonical(arguments);
    own_steps(run)
        .iter()
        .filter(|step| step.action == name && canonical(&step.arguments) == wanted)
        .count()
}

/// JSON text with its keys in order.
fn canonical(arguments: &str) -> String {
    fn sorted(value: Value) -> Value {
        match value {
            Value::Object(map) => {
                let mut pairs: Vec<_> = map.into_iter().collect();
                pairs.sort_by(|a, b| a.0.cmp(&b.0));
                pairs
                    .into_iter()
                    .map(|(key, value)| (key, sorted(value)))
                    .collect()
            }
            Value::Array(items) => items.into_iter().map(sorted).collect(),
            other => other,
        }
    }
    serde_json::from_str(arguments)
        .map_or_else(|_| arguments.to_owned(), |value| sorted(value).to_string())
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
                failed: false,
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
    fn the_same_call_is_recognised_whatever_the_order_of_arguments() {
        let step = |arguments: &str| AgentRunStep {
            action: "find".into(),
            arguments: arguments.into(),
            ..AgentRunStep::default()
        };
        let run = AgentRun {
            history: vec![
                step(r#"{"a":1,"b":{"x":1,"y":2}}"#),
                step(r#"{"b":{"y":2,"x":1},"a":1}"#),
                step(r#"{"a":2}"#),
            ],
            prior: 1,
            ..AgentRun::default()
        };
        assert_eq!(
            calls_before(&run, "find", r#"{"a": 1, "b": {"x": 1, "y": 2}}"#),
            1
        );
        assert_eq!(calls_before(&run, "look", r#"{"a":2}"#), 0);
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
