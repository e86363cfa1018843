//! `mcp-tool`: one call of a tool, or which tools a server has.

use serde_json::{Value, json};
use tg_schemas::Error;
use tg_schemas::msg::{McpTool, ToolRequest, ToolResponse};

use super::fields::{Body, Fields, Reply};
use super::{About, Translate};

/// Asks which tools a server has.
const LIST: &str = "list-tools";

/// The `mcp-tool` service.
pub struct Tool;

impl Translate for Tool {
    type Question = ToolRequest;
    type Answer = ToolResponse;

    fn question(body: &Fields<'_>, _about: &About) -> Result<ToolRequest, Error> {
        let operation = body.text("operation")?;
        if operation == LIST {
            return Ok(ToolRequest {
                server: body.required_text("server")?,
                operation,
                ..ToolRequest::default()
            });
        }
        let parameters = body.map("parameters")?.cloned().unwrap_or_default();
        Ok(ToolRequest {
            name: body.required_text("name")?,
            parameters: Value::Object(parameters).to_string(),
            server: body.text("server")?,
            operation,
            ..ToolRequest::default()
        })
    }

    fn part(part: ToolResponse, _about: &About) -> Body {
        if !part.tools.is_empty() {
            let tools: Vec<Value> = part.tools.into_iter().map(shown).collect();
            return Reply::new()
                .put("tools", tools)
                .put_truthy("text", part.text)
                .done();
        }
        if part.object.is_empty() {
            return Reply::new().put("text", part.text).done();
        }
        let object =
            serde_json::from_slice(part.object.as_bytes()).unwrap_or(Value::String(part.object));
        Reply::new().put("object", object).done()
    }
}

/// A tool as it is described; a schema that is no JSON is shown as it came.
fn shown(tool: McpTool) -> Value {
    let schema: Option<Value> = serde_json::from_slice(tool.schema.as_bytes()).ok();
    json!({
        "name": tool.name,
        "description": tool.description,
        "schema": schema.unwrap_or(Value::String(tool.schema)),
        "read-only": tool.read_only,
        "idempotent": tool.idempotent,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;
    use serde_json::json;

    #[test]
    fn parameters_travel_as_json_text() {
        let request = question::<Tool>(json!({"name": "t", "parameters": {"a": [1]}}), "").unwrap();
        assert_eq!(request.parameters, "{\"a\":[1]}");
        let request = question::<Tool>(json!({"name": "t", "parameters": null}), "").unwrap();
        assert_eq!(request.parameters, "{}");
    }

    #[test]
    fn tools_of_a_server_are_asked_for_and_called() {
        let ask = json!({"operation": "list-tools", "server": "s", "name": "passed over"});
        let request = question::<Tool>(ask, "").unwrap();
        assert_eq!((&*request.operation, &*request.server), (LIST, "s"));
        assert_eq!(request.name, "");
        let missing = question::<Tool>(json!({"operation": "list-tools"}), "").unwrap_err();
        assert!(missing.message.starts_with("server: "), "{missing}");
        let request = question::<Tool>(json!({"name": "t", "server": "s"}), "").unwrap();
        assert_eq!((&*request.name, &*request.server), ("t", "s"));
        let tool = |schema: &str| McpTool {
            name: "t".into(),
            description: "d".into(),
            schema: schema.into(),
            read_only: true,
            idempotent: false,
        };
        let reply = ToolResponse {
            tools: vec![tool(r#"{"type": "object"}"#), tool("{")],
            text: "1 more".into(),
            ..ToolResponse::default()
        };
        let shown = |schema: Value| json!({"name": "t", "description": "d", "schema": schema, "read-only": true, "idempotent": false});
        let tools = [shown(json!({"type": "object"})), shown(json!("{"))];
        assert_eq!(
            part::<Tool>(reply, ""),
            json!({"tools": tools, "text": "1 more"})
        );
    }

    #[test]
    fn a_reply_is_text_or_object() {
        let text = ToolResponse {
            text: "x".into(),
            ..ToolResponse::default()
        };
        assert_eq!(part::<Tool>(text, ""), json!({"text": "x"}));
        let object = ToolResponse {
            object: "[1,2]".into(),
            ..ToolResponse::default()
        };
        assert_eq!(part::<Tool>(object, ""), json!({"object": [1, 2]}));
    }
}
