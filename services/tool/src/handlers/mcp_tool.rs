//! A tool call comes in: built in, or behind an MCP server of the workspace.

use async_trait::async_trait;
use serde_json::{Map, Value};
use tg_mesh::{Cx, Mesh, RequestHandler, Responder, clock};
use tg_schemas::Error;
use tg_schemas::msg::{ToolRequest, ToolResponse};

use crate::engine;
use crate::error::ToolError;
use crate::mcp::{Server, Servers, USER_TOKENS};
use crate::options::Options;
use crate::wikipedia::Wikipedia;

/// Asks which tools a server has.
const LIST: &str = "list-tools";

/// Serves `request` of `mcp-tool`.
pub(crate) struct ToolCalls {
    servers: Servers,
    wikipedia: Wikipedia,
}

impl ToolCalls {
    pub(crate) fn new(mesh: &Mesh, options: &Options) -> Self {
        Self {
            servers: Servers::new(mesh, options),
            wikipedia: Wikipedia::new(options),
        }
    }

    async fn call(&self, cx: &Cx, request: &ToolRequest) -> Result<ToolResponse, ToolError> {
        match request.operation.as_str() {
            "" => {}
            LIST => return self.list(cx, &request.server).await,
            other => return Err(ToolError::Operation(other.to_owned())),
        }
        let parameters = parameters(&request.parameters)?;
        if !request.server.is_empty() {
            let server = server(cx, &request.server)?.with_tool(&request.name);
            let server = server.ok_or_else(|| ToolError::Unknown(request.name.clone()))?;
            let server = (request.server.as_str(), &server);
            return self.ask(cx, server, parameters, request).await;
        }
        if let Some(result) = engine::call(&request.name, &parameters, clock::now()) {
            count("builtin");
            let text = result.map_err(ToolError::Said)?;
            return Ok(ToolResponse {
                text,
                ..ToolResponse::default()
            });
        }
        let asked = self.wikipedia.call(&request.name, &parameters);
        if let Some(result) = until_over(cx, asked).await? {
            count("wikipedia");
            return Ok(ToolResponse {
                text: result?,
                ..ToolResponse::default()
            });
        }
        let server = server(cx, &request.name)?;
        let server = (request.name.as_str(), &server);
        self.ask(cx, server, parameters, request).await
    }

    async fn ask(
        &self,
        cx: &Cx,
        server: (&str, &Server),
        parameters: Map<String, Value>,
        request: &ToolRequest,
    ) -> Result<ToolResponse, ToolError> {
        count("mcp");
        let asked = (&*cx.id, request.pictures, request.caller_depth);
        let call = self.servers.call(cx.workspace(), server, parameters, asked);
        until_over(cx, call).await?
    }

    /// The tools of a server, or the one that its row is for.
    async fn list(&self, cx: &Cx, key: &str) -> Result<ToolResponse, ToolError> {
        let server = server(cx, key)?;
        let listing = self.servers.list(cx.workspace(), (key, &server));
        let (mut tools, text) = until_over(cx, listing).await??.told();
        tools.retain(|tool| server.has(&tool.name));
        Ok(ToolResponse {
            tools,
            text,
            ..ToolResponse::default()
        })
    }
}

/// The server of a row, for whoever asks.
fn server(cx: &Cx, key: &str) -> Result<Server, ToolError> {
    let unknown = || ToolError::Unknown(key.to_owned());
    let row = cx.config().get(cx.workspace(), "mcp", key);
    let server = Server::read(key, &row.ok_or_else(unknown)?)?;
    match server.is_for(cx.headers.roles.as_deref()) {
        true if server.is_of_users() => of_user(cx, key, server),
        true => Ok(server),
        false => Err(unknown()),
    }
}

/// The server with the token of the user who asks. Nobody else's stands in for it.
fn of_user(cx: &Cx, key: &str, server: Server) -> Result<Server, ToolError> {
    let user = cx.headers.user_id.as_deref();
    // The id ends at the first slash of a key.
    let user = user.filter(|user| !user.is_empty() && !user.contains('/'));
    let row = user.and_then(|user| {
        let own = format!("{user}/{key}");
        cx.config().get(cx.workspace(), USER_TOKENS, &own)
    });
    let own = row.and_then(|row| server.with_token(&row));
    own.ok_or_else(|| ToolError::NoToken(key.to_owned()))
}

/// What comes of a call, unless its asker or its time is gone.
async fn until_over<T>(cx: &Cx, call: impl Future<Output = T>) -> Result<T, ToolError> {
    tokio::select! {
        result = call => Ok(result),
        () = cx.cancel.cancelled() => Err(ToolError::Cancelled),
        () = cx.deadline.reached() => Err(ToolError::Timeout),
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
    serde_json::from_slice(text.as_bytes())
        .map_err(|error| ToolError::Parameters(error.to_string()))
}
