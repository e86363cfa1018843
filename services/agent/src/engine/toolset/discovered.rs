//! Tools that an MCP server says it has, for a row of type `mcp-server`. What the server says of them is only a hint: of one of
//! which it does not say that it changes nothing, it is assumed that it does.

use serde_json::{Map, Value};
use tg_schemas::msg::McpTool;

use super::tool::{Kind, Tool};
use crate::engine::arguments::{Argument, Kind as Type};

/// Most characters of an argument's description.
const TOLD: usize = 1_000;

/// What a row says of all tools of its server.
pub(super) struct Of {
    /// Key of the server in config type `mcp`.
    pub(super) server: String,
    /// The only ones that are meant, by their names there; `None`: all.
    pub(super) only: Option<Vec<String>>,
    /// Whether they change something, whatever the server says; `None`: as it says.
    pub(super) writes: Option<bool>,
    /// What else holds for each of them.
    pub(super) like: Tool,
}

impl Of {
    /// How the names of its tools begin.
    pub(super) fn prefix(&self) -> String {
        format!("{}_", self.like.name)
    }
}

/// The tools by a listing, which is JSON. Each name begins with that of the row. The caller leaves out those that also begin with
/// the prefix of a longer row name.
pub(super) fn read(of: &Of, listing: &str) -> Result<Vec<Tool>, String> {
    let listed: Vec<McpTool> = serde_json::from_slice(listing.as_bytes())
        .map_err(|_| "what its server has cannot be read".to_owned())?;
    let meant = |tool: &McpTool| {
        let only = of.only.as_ref();
        only.is_none_or(|only| only.contains(&tool.name))
    };
    Ok(listed
        .into_iter()
        .filter(meant)
        .map(|tool| one(of, tool))
        .collect())
}

fn one(of: &Of, tool: McpTool) -> Tool {
    let writes = of.writes.unwrap_or(!tool.read_only);
    Tool {
        name: of.prefix() + &tool.name,
        description: tool
            .description
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
        arguments: arguments(&tool.schema),
        kind: Kind::Mcp {
            server: Some(of.server.clone()),
            name: tool.name,
            repeatable: tool.idempotent || !writes,
        },
        writes,
        // The row alone decides: a server must not avoid the question by marking its tools as read-only.
        confirm: of.like.confirm && of.writes != Some(false),
        ..of.like.clone()
    }
}

/// What a tool takes by its JSON schema. Of what lies deeper the model is shown the schema.
fn arguments(schema: &str) -> Vec<Argument> {
    let schema: Map<String, Value> = serde_json::from_slice(schema.as_bytes()).unwrap_or_default();
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flatten()
        .map(|(name, of)| Argument {
            name: name.clone(),
            kind: kind(of),
            description: told(of),
            required: required.contains(&name.as_str()),
        })
        .collect()
}

/// The one type of a value; `Any` where there are several or none.
fn kind(of: &Value) -> Type {
    let types: Vec<&str> = match of.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several
            .iter()
            .filter_map(Value::as_str)
            .filter(|one| *one != "null")
            .collect(),
        _ => Vec::new(),
    };
    match types.as_slice() {
        [one] => Type::parse(one).unwrap_or(Type::Any),
        _ => Type::Any,
    }
}

fn told(of: &Value) -> String {
    let described = of.get("description").and_then(Value::as_str);
    let mut parts: Vec<String> = described.map(str::to_owned).into_iter().collect();
    let nested = ["properties", "items", "$ref", "anyOf", "oneOf", "allOf"];
    if nested.iter().any(|name| of.get(name).is_some()) {
        let mut shape = of.clone();
        if let Some(shape) = shape.as_object_mut() {
            shape.remove("description");
        }
        parts.push(format!("JSON schema: {shape}"));
    } else {
        let values = of.get("enum").and_then(Value::as_array);
        parts.extend(values.map(|values| {
            let values: Vec<String> = values.iter().map(Value::to_string).collect();
            format!("one of {}", values.join(", "))
        }));
        parts.extend(of.get("default").map(|value| format!("usually {value}")));
    }
    let text = parts.join("; ");
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(TOLD)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_becomes_arguments() {
        let schema = r#"{"type": "object", "required": ["a", "f"], "properties": {
            "a": {"type": "number", "description": "First\n number", "default": 1},
            "b": {"type": ["string", "null"], "enum": ["x", "y"]},
            "c": {"type": ["string", "number"]},
            "d": {"items": {"type": "string"}, "type": "array", "description": "Which"},
            "e": {},
            "f": {"type": "integer"}, "g": {"type": "boolean"}, "h": {"type": "object"}}}"#;
        let read = arguments(schema);
        let read: Vec<_> = read
            .iter()
            .map(|one| (&*one.name, one.kind, one.required, &*one.description))
            .collect();
        let expected = [
            ("a", Type::Number, true, "First number; usually 1"),
            ("b", Type::String, false, r#"one of "x", "y""#),
            ("c", Type::Any, false, ""),
            (
                "d",
                Type::Array,
                false,
                r#"Which; JSON schema: {"items":{"type":"string"},"type":"array"}"#,
            ),
            ("e", Type::Any, false, ""),
            ("f", Type::Integer, true, ""),
            ("g", Type::Boolean, false, ""),
            ("h", Type::Object, false, ""),
        ];
        assert_eq!(read, expected);
        for nothing in ["", "[]", "{}", r#"{"properties": 1, "required": {}}"#] {
            assert!(arguments(nothing).is_empty());
        }
    }
}
