//! One session with an MCP server over streamable HTTP. The only file that names the MCP library.

use std::time::Duration;

use reqwest::Client;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ContentBlock, MetaObject, RequestMetaObject,
    ResourceContents,
};
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceError, ServiceExt};
use serde_json::{Map, Value};
use tg_schemas::msg::ToolResponse;

use super::row::Server;
use crate::error::ToolError;

/// Longest wait for a connection.
pub(super) const CONNECT: Duration = Duration::from_secs(10);
/// Longest wait for a session to be agreed.
const OPEN: Duration = Duration::from_secs(30);
/// Most bytes of a result.
const MAX_RESULT: usize = 1 << 20;
/// Name of the call's key in `_meta`, for servers that want to know a call made twice.
const CALL_KEY: &str = "threadgraph/call";

/// An open session.
pub(super) struct Session {
    running: RunningService<RoleClient, ()>,
}

impl Session {
    pub(super) async fn open(http: Client, server: &Server) -> Result<Self, ToolError> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str())
            .max_sse_event_size(4 * MAX_RESULT)
            .reinit_on_expired_session(true);
        if let Some(token) = &server.token {
            config = config.auth_header(token.expose());
        }
        let transport = StreamableHttpClientTransport::with_client(http, config);
        let opening = tokio::time::timeout(OPEN, ().serve(transport)).await;
        match opening {
            Ok(Ok(running)) => Ok(Self { running }),
            Ok(Err(fault)) => {
                tracing::debug!(%fault, "no session with an MCP server");
                Err(ToolError::Unreachable)
            }
            Err(_) => Err(ToolError::Unreachable),
        }
    }

    /// Whether it cannot be used again.
    pub(super) fn is_closed(&self) -> bool {
        self.running.is_closed() || self.running.is_transport_closed()
    }

    /// Calls a tool; dropping the call cancels it at the server.
    pub(super) async fn call(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        key: &str,
    ) -> Result<ToolResponse, ToolError> {
        let mut params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        if !key.is_empty() {
            let meta = Map::from_iter([(CALL_KEY.to_owned(), Value::from(key))]);
            params.meta = Some(RequestMetaObject(MetaObject(meta)));
        }
        match self.running.peer().call_tool(params).await {
            Ok(result) => read(result),
            Err(ServiceError::McpError(fault)) => Err(ToolError::said(&fault.message)),
            Err(ServiceError::Timeout { .. }) => Err(ToolError::ServerTimeout),
            Err(fault) => {
                tracing::debug!(%fault, "an MCP call failed");
                Err(ToolError::Unreachable)
            }
        }
    }
}

/// Structured content if there is any, else the texts; other content is named.
pub(super) fn read(result: CallToolResult) -> Result<ToolResponse, ToolError> {
    let text: Vec<String> = result.content.iter().map(show).collect();
    let text = bounded(text.join("\n"));
    if result.is_error == Some(true) {
        return Err(ToolError::said(&text));
    }
    let structured = result.structured_content.filter(|value| match value {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        _ => true,
    });
    Ok(match structured {
        Some(value) => ToolResponse {
            object: bounded(value.to_string()),
            ..ToolResponse::default()
        },
        None => ToolResponse {
            text,
            ..ToolResponse::default()
        },
    })
}

fn show(part: &ContentBlock) -> String {
    match part {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[image, {}]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[audio, {}]", audio.mime_type),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            ResourceContents::BlobResourceContents { uri, .. } => format!("[resource {uri}]"),
            _ => "[resource]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[resource {}]", link.uri),
        _ => "[content of another kind]".to_owned(),
    }
}

fn bounded(mut text: String) -> String {
    if text.len() > MAX_RESULT {
        let mut at = MAX_RESULT;
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        text.truncate(at);
        text.push_str("\n[shortened]");
    }
    text
}
