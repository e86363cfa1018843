//! The variables of the `agent-react` prompt.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};
use tg_schemas::msg::{AgentRun, AgentRunCall, AgentRunStep};

use super::arguments::Argument;
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
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let history: Vec<Told<'_>> = shown(run).iter().map(Told::of).collect();
    let mut context = framing(run, additional);
    if !run.summary.is_empty() {
        context.push(format!("What was done so far, summed up:\n{}", run.summary));
    }
    if let Some((reply, fault)) = unread {
        context.push(repair(reply, fault));
    }
    let context = (!context.is_empty()).then(|| context.join("\n\n"));
    // Written as they are: a tree of all tools and of a long history would be many pieces.
    let terms = [
        ("question", text_of(&run.question)),
        ("tools", offers(run, tools)),
        ("tool_names", text_of(&names.join(", "))),
        ("context", text_of(&context)),
        ("history", text_of(&history)),
    ];
    terms.map(|(name, term)| (name.to_owned(), term)).into()
}

/// A value as JSON text.
fn text_of<T: Serialize>(value: &T) -> String {
    // Texts, lists and objects with texts as keys can always be written.
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// A past step, as the model is shown it.
#[derive(Serialize)]
struct Told<'a> {
    thought: &'a str,
    action: &'a str,
    arguments: Value,
    observation: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<String>,
}

impl<'a> Told<'a> {
    fn of(step: &'a AgentRunStep) -> Self {
        Self {
            thought: &step.thought,
            action: &step.action,
            arguments: arguments(&step.arguments),
            observation: &step.observation,
            calls: (!step.calls.is_empty()).then(|| calls(&step.calls)),
        }
    }
}

/// A tool, as the model is offered it.
#[derive(Serialize)]
struct Offered<'a> {
    name: &'a str,
    description: Cow<'a, str>,
    arguments: Vec<Taken<'a>>,
}

/// What a tool takes under one name.
#[derive(Serialize)]
struct Taken<'a> {
    name: &'a str,
    r#type: &'static str,
    description: &'a str,
}

/// Tools with their arguments, as JSON text.
pub(super) fn offers(run: &AgentRun, tools: &[&Tool]) -> String {
    let offered: Vec<Offered<'_>> = tools
        .iter()
        .map(|tool| Offered {
            name: &tool.name,
            description: tool.described(run),
            arguments: tool.arguments.iter().map(Taken::of).collect(),
        })
        .collect();
    text_of(&offered)
}

impl<'a> Taken<'a> {
    fn of(argument: &'a Argument) -> Self {
        Self {
            name: &argument.name,
            r#type: argument.kind.as_str(),
            description: &argument.description,
        }
    }
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

/// What the model is sent once, as four fifths of its steps are taken; not of so few that it would hear of little else.
pub fn nudge(taken: usize, limit: usize) -> Option<String> {
    let due = limit.saturating_mul(4).div_ceil(5);
    (limit >= 10 && taken == due).then(|| {
        let left = limit - taken;
        format!("Only {left} of {limit} steps are left: answer from what is known as soon as that will do.")
    })
}

#[cfg(test)]
mod tests {
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
