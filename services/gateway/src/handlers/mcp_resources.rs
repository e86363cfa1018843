//! What clients of the Model Context Protocol read without calling a tool: documents of the library, as resources. It is the
//! library's own operations that are asked, so it is let in, bounded and written down as there.

use rmcp::model::{CallToolResult, ErrorData};
use serde_json::{Value, json};
use tg_schemas::{Error, ErrorCode};
use tokio_util::sync::CancellationToken;

use super::mcp::Caller;
use super::read;
use super::whole::Whole;
use crate::call::{Call, Leave, Meta, Target};
use crate::engine::mcp::connector;
use crate::engine::mcp::message::{Request, RpcError};
use crate::engine::mcp::resources;
use crate::engine::mcp::revision::Revision;
use crate::engine::mcp::told;
use crate::engine::mcp::tools::Tool;
use crate::engine::translate::Body;
use crate::error::RequestError;
use crate::running::Running;

impl Caller {
    /// A page of them. Whoever may read none has none.
    pub(super) async fn resources(&self, request: &Request) -> Result<Value, RpcError> {
        let cursor = match request.params.get("cursor") {
            None | Some(Value::Null) => None,
            Some(Value::String(cursor)) => Some(cursor.as_str()),
            Some(_) => return Err(RpcError::params("cursor: must be a string")),
        };
        let page = resources::page(cursor);
        let page = page.ok_or_else(|| RpcError::params("cursor: is not one of this server"))?;
        match self.of_library(resources::LISTS, page).await {
            Ok(body) => Ok(resources::listed(&body)),
            Err(RequestError::AccessDenied) => Ok(resources::listed(&Body::new())),
            Err(fault) => Err(RpcError::internal(fault.error().message)),
        }
    }

    /// One of them.
    pub(super) async fn resource(
        &self,
        request: &Request,
        revision: Revision,
    ) -> Result<Value, RpcError> {
        let address = request.text("uri")?;
        let unknown = || {
            let (why, data) = ("uri: there is no such resource", json!({"uri": address}));
            let error = match revision {
                Revision::Handshake => ErrorData::resource_not_found(why, Some(data)),
                Revision::Stateless => ErrorData::invalid_params(why, Some(data)),
            };
            RpcError::new(400, error)
        };
        let id = resources::id(address).ok_or_else(unknown)?;
        let mut body = Body::new();
        body.insert("document-id".to_owned(), id.into());
        let read = self.of_library(resources::READS, body).await;
        let read = read.map_err(|fault| match fault.error().code() {
            ErrorCode::NotFound => unknown(),
            _ => RpcError::internal(fault.error().message),
        })?;
        let contents = resources::contents(address, &read);
        contents.map_err(|error| RpcError::internal(error.message))
    }

    /// What a search found, with how the passages begin where the caller may read them.
    pub(super) async fn found(&self, tool: &Tool, mut running: Running) -> CallToolResult {
        let body = match Whole::Last.collect(&mut running).await {
            Ok(body) => body,
            Err(fault) => return told::failure(&fault.error()),
        };
        let ids = connector::ids(&body);
        if ids.is_empty() {
            return told::result(tool, &body, ("", 0));
        }
        let mut wanted = Body::new();
        wanted.insert("document-ids".to_owned(), json!(ids));
        // Each is a question of its own.
        let caller = Self {
            meta: Meta {
                number: uuid::Uuid::new_v4().to_string().into(),
                ..self.meta.clone()
            },
            ..self.clone()
        };
        let library = caller.of_library(connector::READS, wanted).await;
        told::data(connector::found(&ids, &library.unwrap_or_default()))
    }

    /// What the library answers.
    pub(super) async fn of_library(
        &self,
        operation: &str,
        mut body: Body,
    ) -> Result<Body, RequestError> {
        body.insert("operation".to_owned(), operation.into());
        let call = Call {
            target: Target::service(resources::SERVICE, &body)?,
            body,
            workspace: self.at.workspace.clone(),
            timeout: read::timeout(&self.headers)?,
            leave: Leave::Cancel,
            whole: true,
            meta: self.meta.clone(),
        };
        let running = self
            .app
            .start(&self.identity, call, CancellationToken::new());
        let body = Whole::Last.collect(&mut running.await?).await?;
        match body.get("error").filter(|error| !error.is_null()) {
            None => Ok(body),
            Some(error) => {
                let text = |key: &str| error[key].as_str().unwrap_or_default();
                Err(Error::typed(text("type"), text("message")).into())
            }
        }
    }
}
