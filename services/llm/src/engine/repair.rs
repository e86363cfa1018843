//! Calls of tools that a model wrote as text, of tools that it was offered.

use serde_json::Value;
use tg_replies::Call;
use tg_schemas::msg::{ChatTool, ChatToolCall};

/// The calls that a text is, all of tools that there are; `None`: it is a text.
pub fn calls(text: &str, tools: &[ChatTool]) -> Option<Vec<ChatToolCall>> {
    let written = tg_replies::calls(text)?;
    let known = |call: &Call| tools.iter().any(|tool| tool.name == call.name);
    if !written.iter().all(known) {
        return None;
    }
    let call = |(at, call): (usize, Call)| ChatToolCall {
        id: format!("call_{at}"),
        name: call.name,
        arguments: match call.arguments {
            None | Some(Value::Null) => "{}".to_owned(),
            Some(Value::String(text)) => text,
            Some(object) => object.to_string(),
        },
    };
    Some(written.into_iter().enumerate().map(call).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tools_that_there_are_are_called() {
        let tool = |name: &str| ChatTool {
            name: name.to_owned(),
            ..ChatTool::default()
        };
        let tools = [tool("add"), tool("now")];
        let told = |text: &str| {
            let calls = calls(text, &tools)?;
            let told = calls.into_iter().map(|call| (call.name, call.arguments));
            Some(told.collect::<Vec<_>>())
        };
        let add = vec![("add".to_owned(), r#"{"a":1}"#.to_owned())];
        for text in [
            r#"{"name": "add", "arguments": {"a": 1}}"#,
            r#"{"type": "function", "function": {"name": "add", "arguments": "{\"a\":1}"}}"#,
            "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>",
        ] {
            assert_eq!(told(text), Some(add.clone()), "{text}");
        }
        assert_eq!(
            told("{\"name\": \"now\"}\n{\"name\": \"now\", \"arguments\": null}"),
            Some(vec![("now".to_owned(), "{}".to_owned()); 2])
        );
        for text in [
            r#"{"name": "unknown", "arguments": {}}"#,
            r#"[{"name": "add"}, {"name": "unknown"}]"#,
            "{\"name\": \"add\"",
        ] {
            assert_eq!(told(text), None, "{text}");
        }
    }
}
