//! The variables of the `agent-react` prompt.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tg_schemas::msg::{AgentRun, AgentRunCall};

use super::compacting::shown;
use super::parser::ParseError;
use super::toolset::Tool;

/// Id of the prompt.
pub const PROMPT: &str = "agent-react";

/// Variables of a prompt, each as JSON text.
pub type Terms = BTreeMap<String, String>;

/// Values as variables.
pub(super) fn terms_of<const N: usize>(values: [(&str, Value); N]) -> Terms {
    let values = values.into_iter();
    values
        .map(|(name, value)| (name.to_owned(), value.to_string()))
        .collect()
}

/// What a workspace adds to each prompt, and what the run knows of its field.
pub(super) fn framing(run: &AgentRun, additional: Option<&str>) -> Vec<String> {
    [additional.unwrap_or(""), &run.framing]
        .into_iter()
        .filter(|text| !text.trim().is_empty())
        .map(str::to_owned)
        .collect()
}

/// The prompt's variables. `unread` is the reply that could not be read, and why.
pub fn terms(
    run: &AgentRun,
    tools: &[&Tool],
    additional: Option<&str>,
    unread: Option<(&str, &ParseError)>,
) -> Terms {
    let offered: Vec<Value> = tools.iter().map(|tool| offer(run, tool)).collect();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let history: Vec<Value> = shown(run)
        .iter()
        .map(|step| {
            let mut told = json!({
                "thought": step.thought,
                "action": step.action,
                "arguments": arguments(&step.arguments),
                "observation": step.observation,
            });
            if !step.calls.is_empty() {
                told["calls"] = calls(&step.calls).into();
            }
            told
        })
        .collect();
    let mut context = framing(run, additional);
    if !run.summary.is_empty() {
        context.push(format!("What was done so far, summed up:\n{}", run.summary));
    }
    if let Some((reply, fault)) = unread {
        context.push(repair(reply, fault));
    }
    let context = if context.is_empty() {
        Value::Null
    } else {
        context.join("\n\n").into()
    };
    terms_of([
        ("question", Value::from(run.question.as_str())),
        ("tools", offered.into()),
        ("tool_names", names.join(", ").into()),
        ("context", context),
        ("history", history.into()),
    ])
}

/// A tool with its arguments.
pub(super) fn offer(run: &AgentRun, tool: &Tool) -> Value {
    let arguments: Vec<Value> = tool
        .arguments
        .iter()
        .map(|argument| {
            json!({
                "name": argument.name,
                "type": argument.kind.as_str(),
                "description": argument.description,
            })
        })
        .collect();
    json!({"name": tool.name, "description": tool.described(run), "arguments": arguments})
}

/// Arguments of a past step: templates go over them as pairs, so it is always an object.
fn arguments(text: &str) -> Value {
    let map: Map<String, Value> = serde_json::from_slice(text.as_bytes()).unwrap_or_default();
    Value::Object(map)
}

/// Several calls of a step as the model wrote them.
fn calls(calls: &[AgentRunCall]) -> String {
    let calls = calls.iter();
    let calls =
        calls.map(|call| json!({"name": call.action, "arguments": arguments(&call.arguments)}));
    Value::from_iter(calls).to_string()
}

/// Longest part of an unreadable reply that is shown again.
const SHOWN: usize = 600;

fn repair(reply: &str, fault: &ParseError) -> String {
    let shown = super::bounds::shorten(reply.trim(), SHOWN);
    format!(
        "Your last reply could not be used: {fault}. It was:\n\"\"\"\n{shown}\n\"\"\"\nReply again, in exactly \
         the form that is asked for."
    )
}

/// What the model is told once, as four fifths of its steps are taken; not of so few that it would hear of little else.
pub fn nudge(taken: usize, limit: usize) -> Option<String> {
    let due = limit.saturating_mul(4).div_ceil(5);
    (limit >= 10 && taken == due).then(|| {
        let left = limit - taken;
        format!("Only {left} of {limit} steps are left: answer from what is known as soon as that will do.")
    })
}

#[cfg(test)]
mod tests {
    use tg_schemas::msg::AgentRunStep;

    use super::*;

    #[test]
    fn the_model_is_told_once_that_its_steps_run_out() {
        let told: Vec<usize> = (0..20).filter(|n| nudge(*n, 20).is_some()).collect();
        assert_eq!(told, [16]);
        assert!(nudge(8, 10).unwrap().starts_with("Only 2 of 10 steps"));
        assert!((0..9).all(|n| nudge(n, 9).is_none()));
    }

    #[test]
    fn every_variable_is_json() {
        let run = AgentRun {
            question: "why \"so\"?".into(),
            history: vec![AgentRunStep {
                thought: "t".into(),
                action: "a".into(),
                arguments: r#"{"x":1}"#.into(),
                observation: "o".into(),
                ..AgentRunStep::default()
            }],
            ..AgentRun::default()
        };
        let terms = terms(&run, &[], None, None);
        let read = |name: &str| serde_json::from_str::<Value>(&terms[name]).unwrap();
        assert_eq!(read("question"), json!("why \"so\"?"));
        assert_eq!(read("context"), Value::Null);
        assert_eq!(
            read("history"),
            json!([{"thought": "t", "action": "a", "arguments": {"x": 1}, "observation": "o"}])
        );
        assert_eq!(read("tools"), json!([]));
    }

    #[test]
    fn calls_that_were_made_side_by_side_are_shown_as_they_were_written() {
        let call = |action: &str, arguments: &str| AgentRunCall {
            action: action.into(),
            arguments: arguments.into(),
        };
        let run = AgentRun {
            history: vec![AgentRunStep {
                action: "a, b".into(),
                calls: vec![call("a", r#"{"x":1}"#), call("b", "{}")],
                ..AgentRunStep::default()
            }],
            ..AgentRun::default()
        };
        let history: Value =
            serde_json::from_str(&terms(&run, &[], None, None)["history"]).unwrap();
        let written = history[0]["calls"].as_str().unwrap();
        let written: Value = serde_json::from_str(written).unwrap();
        let expected = json!([
            {"name": "a", "arguments": {"x": 1}},
            {"name": "b", "arguments": {}},
        ]);
        assert_eq!(written, expected);
    }

    #[test]
    fn a_second_try_explains_the_first() {
        let run = AgentRun {
            framing: "About bridges.".into(),
            ..AgentRun::default()
        };
        let terms = terms(
            &run,
            &[],
            Some("House rules."),
            Some(("It is 4.", &ParseError::Unlabelled)),
        );
        let context: String = serde_json::from_str(&terms["context"]).unwrap();
        for part in [
            "House rules.",
            "About bridges.",
            "neither an Action",
            "It is 4.",
        ] {
            assert!(context.contains(part), "{context}");
        }
    }
}
