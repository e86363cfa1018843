//! Calls of tools that a model wrote as text: models without tool calls of their own often answer with the JSON of one, alone, in
//! a fence or in a tag. A text that says more than calls is a text.

use serde_json::{Map, Value};

use crate::values::{Budget, fences};

/// What such a text begins with, or with a list.
const OPENINGS: [&str; 6] = [
    "{",
    "```",
    "<tool_call>",
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "<function=",
];
/// What may stand before, between and after calls.
const AROUND: [&str; 5] = [
    "<tool_call>",
    "</tool_call>",
    "[TOOL_CALLS]",
    "<|python_tag|>",
    "</function>",
];
/// Longest text that is held back for it, in bytes.
const LONGEST: usize = 64 << 10;
/// Names of the members, as models write them.
const NAME: [&str; 5] = ["name", "tool", "tool_name", "function", "action"];
const ARGUMENTS: [&str; 6] = [
    "arguments",
    "parameters",
    "args",
    "input",
    "action_input",
    "tool_input",
];

/// A call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Name of the tool, as written.
    pub name: String,
    /// What it is given; `None`: nothing is said of that.
    pub arguments: Option<Value>,
}

impl Call {
    /// Reads one from a value, with the function beside its members or as an object of its own.
    pub fn of(value: Value) -> Option<Self> {
        let Value::Object(mut map) = value else {
            return None;
        };
        if let Some(inner @ Value::Object(_)) = map.get_mut("function") {
            return Self::of(inner.take());
        }
        let name = NAME
            .iter()
            .find_map(|name| map.get(*name).and_then(Value::as_str).map(str::to_owned))?;
        let arguments = ARGUMENTS.iter().find_map(|name| map.remove(*name));
        Some(Self { name, arguments })
    }

    /// The arguments as an object, which some models write as text; `None`: they are none.
    pub fn object(self) -> Option<Map<String, Value>> {
        match self.arguments {
            None | Some(Value::Null) => Some(Map::new()),
            Some(Value::Object(map)) => Some(map),
            Some(Value::String(text)) if text.trim().is_empty() => Some(Map::new()),
            Some(Value::String(text)) => crate::object(&text).ok(),
            Some(_) => None,
        }
    }
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

/// The calls that a text is; `None`: it is a text.
pub fn calls(text: &str) -> Option<Vec<Call>> {
    let text = text.trim();
    if text.is_empty() || text.len() > LONGEST {
        return None;
    }
    let fenced = fences(text);
    let mut rest = match (text.starts_with("```"), &fenced[..]) {
        (true, [only]) => only.trim(),
        (true, _) => return None,
        (false, _) => text,
    };
    let mut budget = Budget::of(rest);
    let mut found = Vec::new();
    loop {
        rest = around(rest);
        if rest.is_empty() {
            break;
        }
        let tagged = rest
            .strip_prefix("<function=")
            .and_then(|rest| rest.split_once('>'));
        if let Some((name, inner)) = tagged {
            let arguments = inner.trim_start();
            let (arguments, length) = match arguments.starts_with('<') {
                true => elements(arguments)?,
                false => budget.container(arguments)?,
            };
            found.push(Call {
                name: name.trim_matches(['"', ' ']).to_owned(),
                arguments: Some(arguments),
            });
            rest = &inner.trim_start()[length..];
            continue;
        }
        if !rest.starts_with(['{', '[']) {
            return None;
        }
        let (value, length) = budget.container(rest)?;
        let items = match value {
            Value::Array(items) => items,
            value => vec![value],
        };
        for item in items {
            found.push(Call::of(item)?);
        }
        rest = &rest[length..];
    }
    (!found.is_empty()).then_some(found)
}

/// Arguments that are elements, each with a name and a text, and how long they are: so do Qwen3-Coder and its kin write them. What
/// can be read as another value than a text is one.
fn elements(text: &str) -> Option<(Value, usize)> {
    let mut arguments = Map::new();
    let mut rest = text;
    while let Some(element) = rest.strip_prefix("<parameter=") {
        let (name, inner) = element.split_once('>')?;
        let (said, after) = inner.split_once("</parameter>")?;
        let said = said.trim_matches(['\r', '\n']);
        let value = match serde_json::from_slice(said.trim().as_bytes()) {
            Ok(Value::String(_)) | Err(_) => said.into(),
            Ok(value) => value,
        };
        arguments.insert(name.trim_matches(['"', ' ']).to_owned(), value);
        rest = after.trim_start();
    }
    let length = text.len() - rest.len();
    rest.starts_with("</function>")
        .then_some((Value::Object(arguments), length))
}

/// A text without the tags and separators that it begins with.
fn around(mut text: &str) -> &str {
    loop {
        text = text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
        match AROUND.iter().find_map(|tag| text.strip_prefix(*tag)) {
            Some(rest) => text = rest,
            None => return text,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_found_however_it_is_written() {
        let add = Some(vec![Call {
            name: "add".to_owned(),
            arguments: Some(json!({"a": 1})),
        }]);
        for text in [
            r#"{"name": "add", "arguments": {"a": 1}}"#,
            r#" {"tool": "add", "parameters": {"a": 1}} "#,
            r#"{"type": "function", "function": {"name": "add", "arguments": {"a": 1}}}"#,
            "```json\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n```",
            "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>",
            "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1,}}\n",
            r#"[{"function": "add", "args": {"a": 1}}]"#,
            r#"[TOOL_CALLS][{"name": "add", "arguments": {"a": 1}}]"#,
            r#"<|python_tag|>{"name": "add", "parameters": {"a": 1}}"#,
            r#"<function=add>{"a": 1}</function>"#,
            "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
            r#"{'action': 'add', 'action_input': {'a': 1}}"#,
        ] {
            assert_eq!(calls(text), add, "{text}");
            assert!(may_be_calls(text), "{text}");
        }
        let both = "<tool_call>{\"name\": \"now\"}</tool_call>\n<tool_call>{\"name\": \"now\"}</tool_call>";
        assert_eq!(calls(both).map(|calls| calls.len()), Some(2));
        let two = "<tool_call>\n<function=write>\n<parameter=path>\na b.md\n</parameter>\n<parameter=lines>\n[\"x\", \"y\"]\n\
                   </parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>";
        let told = calls(two).unwrap_or_default();
        let told: Vec<_> = told
            .into_iter()
            .map(|call| (call.name, call.arguments.unwrap_or_default()))
            .collect();
        assert_eq!(
            told,
            [
                (
                    "write".to_owned(),
                    json!({"path": "a b.md", "lines": ["x", "y"]})
                ),
                ("now".to_owned(), json!({})),
            ]
        );
        let written = Call {
            name: String::new(),
            arguments: Some(json!("{\"a\": 1}")),
        };
        assert_eq!(written.object(), json!({"a": 1}).as_object().cloned());
    }

    #[test]
    fn a_text_stays_a_text() {
        for text in [
            "",
            "the answer is {\"name\": \"add\"}",
            "{\"name\": \"add\"} is the answer",
            r#"{"answer": 42}"#,
            "{\"name\": \"add\"",
            "[]",
            "[1]",
            "```\nlet x = 1;\n```",
            "```\n{\"name\": \"add\"}\n```\n```\n{\"name\": \"add\"}\n```",
            "<function=add>",
            "<function=add>\n<parameter=a>\n1\n",
            "<function=add>\n<parameter=a>\n1\n</parameter>\nas I said</function>",
        ] {
            assert_eq!(calls(text), None, "{text}");
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
