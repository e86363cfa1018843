//! Calls of tools that a model wrote as text: local models without tool calls of their own often answer with the JSON of
//! one, alone, in a fence or in a tag.

use serde::Deserialize;
use serde_json::Value;
use tg_schemas::msg::{ChatTool, ChatToolCall};

/// What such a text begins with, or with a list.
const OPENINGS: [&str; 3] = ["{", "```", "<tool_call>"];
/// Longest text that is held back for it, in bytes.
const LONGEST: usize = 64 << 10;

/// A call as models write it.
#[derive(Deserialize)]
struct Written {
    #[serde(alias = "tool", alias = "tool_name", alias = "function")]
    name: String,
    #[serde(default, alias = "parameters", alias = "args", alias = "input")]
    arguments: Value,
}

/// Whether a text may still become a call: what is said of it waits until that is known.
pub fn may_be_calls(text: &str) -> bool {
    let text = text.trim_start();
    let begins = |opening: &&str| match text.len() < opening.len() {
        true => opening.starts_with(text),
        false => text.starts_with(*opening),
    };
    let list = text.strip_prefix('[').map(str::trim_start);
    let is_list = list.is_some_and(|rest| rest.is_empty() || rest.starts_with('{'));
    text.len() <= LONGEST && (is_list || OPENINGS.iter().any(begins))
}

/// The calls that a text is, all of tools that there are; `None`: it is a text.
pub fn calls(text: &str, tools: &[ChatTool]) -> Option<Vec<ChatToolCall>> {
    let text = text.trim();
    if text.is_empty() || text.len() > LONGEST {
        return None;
    }
    let mut written = Vec::new();
    match text.strip_prefix("<tool_call>") {
        Some(rest) => {
            // One tag after the other, and nothing beside them.
            for piece in rest.split("<tool_call>") {
                let piece = piece.trim().trim_end_matches("</tool_call>");
                written.extend(read(piece)?);
            }
        }
        None => written = read(unfenced(text))?,
    }
    let known = |call: &Written| tools.iter().any(|tool| tool.name == call.name);
    if written.is_empty() || !written.iter().all(known) {
        return None;
    }
    let call = |(at, call): (usize, Written)| ChatToolCall {
        id: format!("call_{at}"),
        name: call.name,
        arguments: match call.arguments {
            Value::Null => "{}".to_owned(),
            Value::String(text) => text,
            object => object.to_string(),
        },
    };
    Some(written.into_iter().enumerate().map(call).collect())
}

/// What is in a fence, where the text is one.
fn unfenced(text: &str) -> &str {
    let Some(rest) = text.strip_prefix("```") else {
        return text;
    };
    let rest = rest.strip_suffix("```").unwrap_or(rest);
    // The language stands behind the fence.
    rest.split_once('\n').map_or(rest, |(_, inner)| inner)
}

/// One call or a list of them.
fn read(text: &str) -> Option<Vec<Written>> {
    let value: Value = serde_json::from_slice(text.trim().as_bytes()).ok()?;
    let items = match value {
        Value::Array(items) => items,
        // As OpenAI has it: the function is an object of its own.
        Value::Object(mut map) => match map.remove("function") {
            Some(function @ Value::Object(_)) => vec![function],
            Some(name) => {
                map.insert("function".to_owned(), name);
                vec![Value::Object(map)]
            }
            None => vec![Value::Object(map)],
        },
        _ => return None,
    };
    let calls = items.into_iter().map(Written::deserialize);
    calls.collect::<Result<_, _>>().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Option<Vec<(String, String)>> {
        let tool = |name: &str| ChatTool {
            name: name.to_owned(),
            ..ChatTool::default()
        };
        let calls = calls(text, &[tool("add"), tool("now")])?;
        Some(
            calls
                .into_iter()
                .map(|call| (call.name, call.arguments))
                .collect(),
        )
    }

    #[test]
    fn a_call_is_found_however_it_is_written() {
        let add = Some(vec![("add".to_owned(), r#"{"a":1}"#.to_owned())]);
        for text in [
            r#"{"name": "add", "arguments": {"a": 1}}"#,
            r#" {"tool": "add", "parameters": {"a": 1}} "#,
            r#"{"type": "function", "function": {"name": "add", "arguments": "{\"a\":1}"}}"#,
            "```json\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n```",
            "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>",
            r#"[{"function": "add", "args": {"a": 1}}]"#,
        ] {
            assert_eq!(told(text), add, "{text}");
        }
        let both = told(
            "<tool_call>{\"name\": \"now\"}</tool_call><tool_call>{\"name\": \"now\"}</tool_call>",
        );
        assert_eq!(both.map(|calls| calls.len()), Some(2));
    }

    #[test]
    fn a_text_stays_a_text() {
        for text in [
            "",
            "the answer is {\"name\": \"add\"}",
            r#"{"name": "unknown", "arguments": {}}"#,
            r#"{"answer": 42}"#,
            "{\"name\": \"add\"",
            "[]",
            "```\nlet x = 1;\n```",
        ] {
            assert_eq!(told(text), None, "{text}");
        }
        for (text, may) in [
            ("", true),
            ("  ", true),
            ("{", true),
            ("``", true),
            ("<tool", true),
            ("[", true),
            ("[ ", true),
            ("[\n {\"name\"", true),
            ("[1]", false),
            ("<b>", false),
            ("Hello", false),
        ] {
            assert_eq!(may_be_calls(text), may, "{text:?}");
        }
    }
}
