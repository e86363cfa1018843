//! `mcp-tool`: one call of a tool.

use serde_json::Value;
use tg_schemas::Error;
use tg_schemas::msg::{ToolRequest, ToolResponse};

use super::fields::{Body, Fields, Reply};
use super::{About, Translate};

/// The `mcp-tool` service.
pub struct Tool;

impl Translate for Tool {
    type Question = ToolRequest;
    type Answer = ToolResponse;

    fn question(body: &Fields<'_>, _about: &About) -> Result<ToolRequest, Error> {
        let parameters = body.map("parameters")?.cloned().unwrap_or_default();
        Ok(ToolRequest {
            name: body.required_text("name")?,
            parameters: Value::Object(parameters).to_string(),
        })
    }

    fn part(part: ToolResponse, _about: &About) -> Body {
        if part.object.is_empty() {
            return Reply::new().put("text", part.text).done();
        }
        let object = serde_json::from_str(&part.object).unwrap_or(Value::String(part.object));
        Reply::new().put("object", object).done()
    }
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
