//! Tools of type `custom`, which take a text: Codex sends its patches by one. A model is offered a function with one argument in
//! its place, and a call of that is answered as a call of the tool. Nobody here holds the text against the tool's grammar.

use serde_json::{Map, Value, json};
use tg_schemas::Error;

use crate::engine::translate::Fields;

/// The type of such a tool.
pub(super) const KIND: &str = "custom";
/// The one argument.
const INPUT: &str = "input";

/// The function that a model is offered.
///
/// # Errors
/// `bad-request`, with the field that is missing or wrong.
pub(super) fn offered(tool: &Fields<'_>) -> Result<Value, Error> {
    let mut description = tool.text("description")?;
    if let Some(format) = tool.object("format")? {
        let definition = format.text("definition")?;
        if !definition.is_empty() {
            let syntax = format.text("syntax")?;
            description += &format!("\n\n`{INPUT}` fits this grammar ({syntax}):\n{definition}");
        }
    }
    let text = json!({"type": "string", "description": "The whole text that the tool takes."});
    Ok(json!({
        "name": tool.required_text("name")?,
        "description": description,
        "parameters": {"type": "object", "properties": {INPUT: text}, "required": [INPUT]},
    }))
}

/// The arguments of the function, for a text.
pub(super) fn arguments(text: &str) -> String {
    json!({INPUT: text}).to_string()
}

/// The text of a call: its one argument, or what the model wrote in the place of arguments.
fn input(arguments: &str) -> String {
    let read = serde_json::from_slice::<Map<String, Value>>(arguments.as_bytes());
    let read = read.unwrap_or_default();
    let text = read.get(INPUT).or_else(|| match read.len() {
        // Some models name the argument after what it is.
        1 => read.values().next(),
        _ => None,
    });
    let text = text.and_then(Value::as_str);
    text.unwrap_or(arguments).to_owned()
}

/// A call of the tool as an item.
pub(super) fn item(id: &str, call: &Value) -> Value {
    let arguments = call["arguments"].as_str().unwrap_or_default();
    json!({
        "type": "custom_tool_call", "id": format!("ctc_{id}"), "call_id": call["id"],
        "name": call["name"], "input": input(arguments), "status": "completed",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_the_one_argument_of_a_function() {
        let tool = json!({"type": "custom", "name": "apply_patch", "description": "Edits files.",
            "format": {"type": "grammar", "syntax": "lark", "definition": "start: \"a\""}});
        let offered = offered(&Fields::new(tool.as_object().unwrap())).unwrap();
        assert_eq!(offered["name"], "apply_patch");
        assert_eq!(
            offered["description"],
            "Edits files.\n\n`input` fits this grammar (lark):\nstart: \"a\""
        );
        assert_eq!(offered["parameters"]["required"], json!(["input"]));
        let of = |arguments: &str| item("1_0", &json!({"id": "c", "arguments": arguments}));
        assert_eq!(of(&arguments("*** Begin"))["input"], "*** Begin");
        for (written, read) in [
            ("{\"patch\": \"a\"}", "a"),
            (
                "{\"patch\": \"a\", \"b\": 1}",
                "{\"patch\": \"a\", \"b\": 1}",
            ),
            ("*** Begin", "*** Begin"),
            ("", ""),
        ] {
            assert_eq!(of(written)["input"], read);
        }
    }
}
