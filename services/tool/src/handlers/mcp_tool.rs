//! A tool call comes in: built in, or behind an MCP server of the workspace.

use async_trait::async_trait;
use serde_json::{Map, Value};
use tg_mesh::{Cx, RequestHandler, Responder, clock};
use tg_schemas::Error;
use tg_schemas::msg::{ToolRequest, ToolResponse};

use crate::engine;
use crate::error::ToolError;
use crate::mcp::{Server, Servers};
use crate::options::Options;

/// Serves `request` of `mcp-tool`.
pub(crate) struct ToolCalls {
    servers: Servers,
}

impl ToolCalls {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            servers: Servers::new(options),
        }
    }

    async fn call(&self, cx: &Cx, request: &ToolRequest) -> Result<ToolResponse, ToolError> {
        let parameters = parameters(&request.parameters)?;
        if let Some(result) = engine::call(&request.name, &parameters, clock::now()) {
            count("builtin");
            let text = result.map_err(ToolError::Said)?;
            return Ok(ToolResponse {
                text,
                ..ToolResponse::default()
            });
        }
        count("mcp");
        let row = cx.config().get(cx.workspace(), "mcp", &request.name);
        let row = row.ok_or_else(|| ToolError::Unknown(request.name.clone()))?;
        let server = Server::read(&request.name, &row)?;
        let call = self
            .servers
            .call(cx.workspace(), &server, parameters, &cx.id);
        tokio::select! {
            result = call => result,
            () = cx.cancel.cancelled() => Err(ToolError::Cancelled),
            () = cx.deadline.reached() => Err(ToolError::Timeout),
        }
    }
}

#[async_trait]
impl RequestHandler<ToolRequest, ToolResponse> for ToolCalls {
    async fn serve(
        &self,
        cx: Cx,
        request: ToolRequest,
        mut out: Responder<ToolResponse>,
    ) -> Result<(), Error> {
        let response = self.call(&cx, &request).await?;
        out.send(response).await
    }
}

fn count(tool: &'static str) {
    metrics::counter!("tg_tool_invocation_total", "tool" => tool).increment(1);
}

/// The parameters: JSON text of an object; nothing at all is no parameters.
fn parameters(text: &str) -> Result<Map<String, Value>, ToolError> {
    if text.trim().is_empty() || text.trim() == "null" {
        return Ok(Map::new());
    }
    serde_json::from_str(text).map_err(|error| ToolError::Parameters(error.to_string()))
}
