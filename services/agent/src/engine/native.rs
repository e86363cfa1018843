//! The tools of a step as the API of a model takes them.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tg_schemas::msg::ChatTool;

use super::prompt::Terms;

/// Longest name of a tool that all of these APIs take.
const NAME: usize = 64;

/// A tool as the prompt describes it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Offer {
    name: String,
    description: String,
    arguments: Vec<Argument>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Argument {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    description: String,
}

/// The tools of a prompt by its variables. None where one of them has a name that the APIs do not take: the prompt offers all of
/// them then.
pub fn offered(terms: &Terms) -> Vec<ChatTool> {
    let told = terms.get("tools").map_or("", String::as_str);
    let offers: Vec<Offer> = serde_json::from_slice(told.as_bytes()).unwrap_or_default();
    match offers.iter().all(|offer| is_taken(&offer.name)) {
        true => offers.into_iter().map(tool).collect(),
        false => Vec::new(),
    }
}

fn is_taken(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=NAME).contains(&name.len()) && name.bytes().all(plain)
}

fn tool(offer: Offer) -> ChatTool {
    let properties = offer.arguments.into_iter().map(|argument| {
        let mut about = json!({"description": argument.description});
        if argument.kind == "array" {
            // OpenAI refuses a list that says nothing of its items.
            about["items"] = json!({});
        }
        if argument.kind != "any" {
            about["type"] = argument.kind.into();
        }
        (argument.name, about)
    });
    let properties: Map<String, Value> = properties.collect();
    let parameters = [
        ("type".to_owned(), Value::from("object")),
        ("properties".to_owned(), Value::Object(properties)),
    ];
    ChatTool {
        name: offer.name,
        description: offer.description,
        parameters: Some(parameters.into_iter().collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tools: &Value) -> Vec<ChatTool> {
        offered(&Terms::from([("tools".to_owned(), tools.to_string())]))
    }

    #[test]
    fn tools_have_a_schema_of_their_arguments() {
        let add = json!({"name": "add", "description": "Adds.", "arguments": [
            {"name": "a", "type": "integer", "description": "One."},
            {"name": "b", "type": "any", "description": ""},
            {"name": "c", "type": "array", "description": "Which."}]});
        let tools = of(&json!([add]));
        assert_eq!((&*tools[0].name, &*tools[0].description), ("add", "Adds."));
        assert_eq!(
            Value::from(tools[0].parameters.clone()),
            json!({"type": "object", "properties": {
                "a": {"description": "One.", "type": "integer"}, "b": {"description": ""},
                "c": {"description": "Which.", "type": "array", "items": {}}}})
        );
        let odd = json!({"name": "add two", "description": "", "arguments": []});
        assert_eq!(of(&json!([add, odd])), []);
        assert_eq!(offered(&Terms::new()), []);
    }
}
