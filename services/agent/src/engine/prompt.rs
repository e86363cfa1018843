//! The variables of the `agent-react` prompt.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tg_schemas::msg::AgentRun;

use super::parser::ParseError;
use super::toolset::Tool;

/// Id of the prompt.
pub const PROMPT: &str = "agent-react";

/// The prompt's variables, each as JSON text. `unread` is the reply that could not be read, and why.
pub fn terms(
    run: &AgentRun,
    tools: &[&Tool],
    additional: Option<&str>,
    unread: Option<(&str, &ParseError)>,
) -> BTreeMap<String, String> {
    let offered: Vec<Value> = tools.iter().map(|tool| offer(tool)).collect();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let history: Vec<Value> = run
        .history
        .iter()
        .map(|step| {
            json!({
                "thought": step.thought,
                "action": step.action,
                "arguments": arguments(&step.arguments),
                "observation": step.observation,
            })
        })
        .collect();
    let mut context: Vec<String> = [additional.unwrap_or(""), &run.framing]
        .into_iter()
        .filter(|text| !text.trim().is_empty())
        .map(str::to_owned)
        .collect();
    if let Some((reply, fault)) = unread {
        context.push(repair(reply, fault));
    }
    let context = if context.is_empty() {
        Value::Null
    } else {
        context.join("\n\n").into()
    };
    [
        ("question", Value::from(run.question.as_str())),
        ("tools", offered.into()),
        ("tool_names", names.join(", ").into()),
        ("context", context),
        ("history", history.into()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_string()))
    .collect()
}

fn offer(tool: &Tool) -> Value {
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
    json!({"name": tool.name, "description": tool.description, "arguments": arguments})
}

/// Arguments of a past step: templates go over them as pairs, so it is always an object.
fn arguments(text: &str) -> Value {
    let map: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    Value::Object(map)
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

#[cfg(test)]
mod tests {
    use tg_schemas::msg::AgentRunStep;

    use super::*;

    #[test]
    fn every_variable_is_json() {
        let run = AgentRun {
            question: "why \"so\"?".into(),
            history: vec![AgentRunStep {
                thought: "t".into(),
                action: "a".into(),
                arguments: r#"{"x":1}"#.into(),
                observation: "o".into(),
                failed: false,
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
