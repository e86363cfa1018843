//! `POST /mcp`: the Model Context Protocol, so that editors and other agents use what this system has as their tools. Each
//! tool is an operation of the gateway: it is let in, counted, bounded and written down as at the operation's own
//! endpoint. Of a session this gateway knows the calls that are under way, and from which level on its client hears of logs.

use axum::body::Body as HttpBody;
use axum::extract::{Extension, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures::future::try_join_all;
use rmcp::model::{CallToolResult, RequestId};
use serde::Deserialize;
use serde_json::{Value, json};
use tg_schemas::limits::MCP_MESSAGE;
use tg_schemas::msg::DEFAULT_COLLECTION;
use tg_schemas::{FlowId, WorkspaceId};
use tokio_util::sync::CancellationToken;

use super::mcp_answer::{Answer, Exchange};
use super::mcp_target::target;
use super::read::Sent;
use super::{protected_resource, read, sse};
use crate::auth::{Identity, Resource};
use crate::budget::Reading;
use crate::call::{Call, Leave, Meta};
use crate::calls::Name;
use crate::engine::mcp::about;
use crate::engine::mcp::called::{self, Asked};
use crate::engine::mcp::message::{Message, Request, RpcError, id};
use crate::engine::mcp::revision::{
    CALL, DISCOVER, Header, Headers, INITIALIZE, Revision, takes_several,
};
use crate::engine::mcp::session::Declared;
use crate::engine::mcp::told;
use crate::engine::mcp::tools::{Of, TOOLS, Tool, find};
use crate::engine::mcp::{completion, level, prompts, resources};
use crate::engine::translate::Body;
use crate::error::{RequestError, json_response, json_written};
use crate::running::Running;
use crate::state::Shared;

/// The flow that is asked where none is named.
const FLOW: &str = "default";
const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
/// Longest name of a session.
const SESSION_BYTES: usize = 128;
/// What is not answered.
const CANCELLED: &str = "notifications/cancelled";

/// The query string: what the tools are about where a call says nothing else.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct At {
    pub(super) workspace: Option<String>,
    flow: Option<String>,
    collection: Option<String>,
}

impl At {
    /// The flow and the collection where a call names none.
    fn defaults(&self) -> (&str, &str) {
        fn named<'a>(given: &'a Option<String>, usual: &'a str) -> &'a str {
            let given = given.as_deref().filter(|name| !name.is_empty());
            given.unwrap_or(usual)
        }
        (
            named(&self.flow, FLOW),
            named(&self.collection, DEFAULT_COLLECTION),
        )
    }
}

/// What a body has to be.
const NO_MESSAGE: &str = "must be one message, and an object";

/// One message, or several of them.
pub(crate) async fn post(
    State(app): State<Shared>,
    Query(at): Query<At>,
    Extension(meta): Extension<Meta>,
    uri: Uri,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    let meta = Meta {
        endpoint: "mcp",
        ..meta
    };
    let identity = match app.known(read::key(&headers), &meta).await {
        Ok(identity) => identity,
        Err(fault) => {
            let challenge = protected_resource::challenge(&app, &headers, &uri);
            return unknown(fault, challenge);
        }
    };
    let read = read::messages_of(&app, &headers, body, &identity, MCP_MESSAGE).await;
    let (sent, question) = match read {
        Ok(read) => read,
        Err(RequestError::InvalidJson(detail)) => {
            let error = rmcp::model::ErrorData::parse_error(format!("no JSON: {detail}"), None);
            return refused(RpcError::new(400, error));
        }
        Err(RequestError::NotAnObject) => {
            return refused(RpcError::invalid(NO_MESSAGE));
        }
        Err(fault) => return fault.into_response(),
    };
    let caller = Caller {
        app,
        identity,
        at,
        meta,
        headers,
    };
    let takes_several = takes_several(&self::headers(&caller.headers));
    let answered = match sent {
        Sent::One(body) => caller.answer(body, Some(question)).await,
        Sent::Several(messages) if takes_several => caller.answer_each(messages, question).await,
        Sent::Several(_) => Err(RpcError::invalid(NO_MESSAGE)),
    };
    answered.unwrap_or_else(refused)
}

/// Whoever asks is not known, or asks too often.
fn unknown(fault: RequestError, challenge: HeaderValue) -> Response {
    let mut response = fault.into_response();
    if response.status() == StatusCode::UNAUTHORIZED {
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, challenge);
    }
    response
}

/// The gateway turns the request away before its message is read, so the error has no id.
pub(crate) fn turned_away(fault: &RequestError) -> Response {
    let error = RpcError::invalid(fault.error().message);
    refused(match fault {
        RequestError::AccessDenied => error.with(403),
        _ => error,
    })
}

fn refused(fault: RpcError) -> Response {
    let status = StatusCode::from_u16(fault.status).unwrap_or(StatusCode::BAD_REQUEST);
    json_response(status, &fault.body())
}

/// Who sent a message, and what came with it.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) app: Shared,
    pub(super) identity: Identity,
    pub(super) at: At,
    pub(super) meta: Meta,
    pub(super) headers: HeaderMap,
}

impl Caller {
    /// Answers a message. What was read of it counts until then.
    pub(super) async fn answer(
        self,
        body: Body,
        question: Option<Reading>,
    ) -> Result<Response, RpcError> {
        let message = Message::read(body)?;
        let revision = Revision::of(&headers(&self.headers), &message)?;
        let session = match revision {
            Revision::Handshake => session(&self.headers)?,
            Revision::Stateless => None,
        };
        let request = match message {
            Message::Request(request) => request,
            Message::Notification { method, params } => {
                if let (CANCELLED, Some(session)) = (method.as_str(), session) {
                    let of = params.get("requestId").cloned().unwrap_or_default();
                    self.app.calls.cancel(&self.name(session, id(of)?));
                }
                return Ok(StatusCode::ACCEPTED.into_response());
            }
            Message::Reply { id, result } => {
                self.replied(session, id, result).await?;
                return Ok(StatusCode::ACCEPTED.into_response());
            }
        };
        let of = request.id.clone();
        let answered = self.answer_one(request, revision, session, question).await;
        answered.map_err(|fault| {
            let fault = fault.of(&of);
            match revision {
                // There a status that is no success says that the message was not read.
                Revision::Handshake => fault.with(200),
                Revision::Stateless => fault,
            }
        })
    }

    async fn answer_one(
        self,
        request: Request,
        revision: Revision,
        session: Option<String>,
        question: Option<Reading>,
    ) -> Result<Response, RpcError> {
        let offered = self.offered(&request, revision, session.as_deref());
        if let Some(answered) = offered.await {
            return answered;
        }
        let result = match (request.method.as_str(), revision) {
            (INITIALIZE, Revision::Handshake) => {
                let result = about::initialized(request.text("protocolVersion")?);
                let result = self.with_offers(INITIALIZE, result);
                let mut response = json_response(StatusCode::OK, &request.answer(result));
                let declared = request.params.get("capabilities").map(Declared::of);
                let random = uuid::Uuid::new_v4().simple().to_string();
                let name = declared.unwrap_or_default().session(&random);
                if let Ok(name) = HeaderValue::from_str(&name) {
                    response.headers_mut().insert(SESSION, name);
                }
                return Ok(response);
            }
            (DISCOVER, Revision::Stateless) => about::discovered(),
            ("ping", Revision::Handshake) => json!({}),
            (level::SET, Revision::Handshake) => self.set_level(&request, session.as_deref())?,
            (completion::COMPLETE, _) => {
                about::completed(self.completed(&request).await?, revision)
            }
            ("tools/list", _) => {
                if request
                    .params
                    .get("cursor")
                    .is_some_and(|one| !one.is_null())
                {
                    return Err(RpcError::params("cursor: all tools are on one page"));
                }
                let tools = self.tools().await?;
                about::listed(json!({"tools": tools}), revision)
            }
            (resources::LIST, _) => about::listed(self.resources(&request).await?, revision),
            (resources::TEMPLATES, _) => about::listed(resources::templates(), revision),
            (resources::READ, _) => {
                let read = self.resource(&request, revision).await?;
                let read = request.answer(about::listed(read, revision));
                let outlet = self.app.sending.outlet(&self.identity);
                let read = outlet.hold(read.to_string().into()).await;
                return Ok(json_written(StatusCode::OK, read));
            }
            (prompts::LIST, _) => about::listed(prompts::listed(), revision),
            (prompts::GET, _) => about::completed(prompts::text(&request)?, revision),
            (CALL, _) => return self.call(request, revision, session, question).await,
            (other, _) => return Err(RpcError::method(other)),
        };
        let result = self.with_offers(&request.method, result);
        Ok(json_response(StatusCode::OK, &request.answer(result)))
    }

    fn name(&self, session: String, id: RequestId) -> Name {
        Name {
            user: self.identity.id.clone(),
            session,
            id,
        }
    }

    /// The tools that the caller may use.
    async fn tools(&self) -> Result<Vec<Value>, RpcError> {
        let told = |fault: RequestError| RpcError::internal(fault.error().message);
        let workspace = self.at.workspace.as_deref();
        let workspace = workspace.filter(|name| !name.is_empty());
        let workspace = workspace.unwrap_or(&self.identity.workspace);
        let workspace = WorkspaceId::new(workspace).map_err(|error| told(error.into()))?;
        let flow = FlowId::new(self.at.defaults().0).map_err(|error| told(error.into()))?;
        let looked = TOOLS.iter().map(|tool| {
            let resource = match tool.of {
                Of::Kind(_) => Resource::flow(workspace.as_str(), flow.as_str()),
                Of::Operation(..) => Resource::workspace(workspace.as_str()),
            };
            let workspace = &workspace;
            async move {
                let gate = target(tool, "")?.gate();
                let allowed = self
                    .app
                    .allowed(&self.identity, gate, &resource, workspace)
                    .await;
                match allowed {
                    Ok(_) => Ok(Some(tool)),
                    Err(RequestError::AccessDenied) => Ok(None),
                    Err(fault) => Err(fault),
                }
            }
        });
        let tools = try_join_all(looked).await.map_err(told)?;
        let shown =
            |tool: &Tool| serde_json::to_value(tool.shown(self.at.defaults())).unwrap_or_default();
        Ok(tools.into_iter().flatten().map(shown).collect())
    }

    async fn call(
        self,
        mut request: Request,
        revision: Revision,
        session: Option<String>,
        question: Option<Reading>,
    ) -> Result<Response, RpcError> {
        let name = request.text("name")?;
        let tool = find(name).ok_or_else(|| {
            let shown: String = name.chars().take(64).collect();
            RpcError::params(format!("name: there is no tool {shown}"))
        })?;
        let arguments = called::arguments(request.params.remove("arguments"));
        let arguments =
            arguments.ok_or_else(|| RpcError::params("arguments: must be an object"))?;
        let tells = self.tells(&request, revision, session.as_deref());
        request.params.clear();
        let cancel = CancellationToken::new();
        let known = match session {
            None => None,
            Some(session) => {
                let name = self.name(session, request.id.clone());
                let entered = self.app.calls.enter(name, cancel.clone());
                let entered = entered
                    .ok_or_else(|| RpcError::invalid("id: a request of this id is under way"))?;
                Some(entered)
            }
        };
        let answer = Answer {
            request,
            revision,
            tool,
            document: String::new(),
            offset: 0,
        };
        let told = |result: CallToolResult| json_response(StatusCode::OK, &answer.of(result));
        let asked = match Asked::read(tool, &arguments, self.at.defaults()) {
            Ok(asked) => asked,
            Err(error) => return Ok(told(told::failure(&error))),
        };
        drop(arguments);
        let offset = asked.offset;
        let document = asked.body.get("document-id").and_then(Value::as_str);
        let document = document.unwrap_or_default().to_owned();
        let started = self.start(tool, asked, cancel).await;
        let running = match started {
            Ok(running) => match question {
                Some(question) => running.holding(question),
                None => running,
            },
            Err(fault) => return Ok(told(told::failure(&fault.error()))),
        };
        if tool.finds() {
            return Ok(told(self.found(tool, running).await));
        }
        let answer = Answer {
            document,
            offset,
            ..answer
        };
        let outlet = self.app.sending.outlet(&self.identity);
        let exchange = Exchange::new(answer, running, known);
        match tells.any() && tool.tells() && sse::wanted(&self.headers) {
            true => Ok(exchange.stream(tells, self.app.options.heartbeat, outlet)),
            false => Ok(exchange.whole(&outlet).await),
        }
    }

    /// Starts what a call asks for: from here on it is a request as any other.
    async fn start(
        &self,
        tool: &Tool,
        asked: Asked,
        cancel: CancellationToken,
    ) -> Result<Running, RequestError> {
        let mut body = asked.body;
        if let Of::Operation(_, operation) = tool.of {
            body.insert("operation".to_owned(), operation.into());
        }
        let call = Call {
            target: target(tool, &asked.flow)?,
            body,
            workspace: self.at.workspace.clone(),
            timeout: read::timeout(&self.headers)?,
            leave: Leave::Cancel,
            whole: true,
            meta: self.meta.clone(),
        };
        self.app.start(&self.identity, call, cancel).await
    }
}

/// The headers of the protocol.
fn headers(all: &HeaderMap) -> Headers {
    let of = |name: &str| {
        let mut values = all.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => Header::Absent,
            (Some(value), None) => match value.to_str() {
                Ok(text) => Header::Text(text.to_owned()),
                Err(_) => Header::Unclear,
            },
            (Some(_), Some(_)) => Header::Unclear,
        }
    };
    Headers {
        version: repeated(all, VERSION).unwrap_or_else(|| of(VERSION)),
        method: of("mcp-method"),
        name: of("mcp-name"),
    }
}

/// The text of a header that says the same once or several times. Claude Code says its revision twice, which its library writes into
/// one header.
fn repeated(all: &HeaderMap, name: &str) -> Option<Header> {
    let mut texts = Vec::new();
    for value in all.get_all(name) {
        texts.extend(value.to_str().ok()?.split(',').map(str::trim));
    }
    let first = *texts.first()?;
    let same = texts.iter().all(|text| *text == first);
    same.then(|| Header::Text(first.to_owned()))
}

/// The name of the session, if it has one.
fn session(headers: &HeaderMap) -> Result<Option<String>, RpcError> {
    let Some(value) = headers.get(SESSION) else {
        return Ok(None);
    };
    let name = value
        .to_str()
        .ok()
        .filter(|name| name.len() <= SESSION_BYTES);
    match name {
        Some(name) => Ok(Some(name.to_owned())),
        None => {
            let why = format!("{SESSION}: must be at most {SESSION_BYTES} visible characters");
            Err(RpcError::invalid(why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_come_twice_are_told_from_those_that_come_once() {
        let mut all = HeaderMap::new();
        all.append(
            "mcp-protocol-version",
            HeaderValue::from_static("2026-07-28"),
        );
        all.append("mcp-method", HeaderValue::from_static("ping"));
        all.append("mcp-method", HeaderValue::from_static("ping"));
        let read = headers(&all);
        assert_eq!(read.version, Header::Text("2026-07-28".to_owned()));
        assert_eq!((read.method, read.name), (Header::Unclear, Header::Absent));
        all.append(
            "mcp-protocol-version",
            HeaderValue::from_static("2026-07-28,2026-07-28"),
        );
        assert_eq!(headers(&all).version, read.version);
        all.append(
            "mcp-protocol-version",
            HeaderValue::from_static("2025-11-25"),
        );
        assert_eq!(headers(&all).version, Header::Unclear);
        assert_eq!(session(&all).ok(), Some(None));
        all.insert(SESSION, HeaderValue::from_static("s"));
        assert_eq!(session(&all).ok(), Some(Some("s".to_owned())));
        let long = HeaderValue::from_str(&"s".repeat(SESSION_BYTES + 1)).unwrap();
        all.insert(SESSION, long);
        assert!(session(&all).is_err());
    }

    #[test]
    fn each_tool_needs_what_its_operation_needs() {
        use crate::registry::Gate;
        let gate = |name: &str| target(find(name).unwrap(), "f").unwrap().gate();
        assert_eq!(gate("ask_agent"), Gate::Needs("agent"));
        assert_eq!(gate("sparql_query"), Gate::Needs("sparql:read"));
        assert_eq!(gate("add_document"), Gate::Needs("documents:write"));
        assert_eq!(gate("list_flows"), Gate::Needs("flows:read"));
    }
}
