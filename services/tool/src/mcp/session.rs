//! One session with an MCP server, over streamable HTTP or with a program. With `listing`, `messages` and `content` the only
//! file that names the MCP library.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::Client;
use rmcp::model::{
    CallToolRequestParams, ClientRequest, CustomResult, ListToolsRequest, ListToolsResult,
    MetaObject, PaginatedRequestParams, RequestMetaObject, ServerResult,
};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient, ServiceError, ServiceExt};
use serde_json::{Map, Value};
use tg_provider_http::Secret;
use tg_schemas::msg::ToolResponse;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::content::{LARGEST, read};
use super::listing::{Listing, mended};
use super::messages::Messages;
use super::process::{InUse, Process};
use crate::error::ToolError;

/// Longest wait for a connection.
pub(super) const CONNECT: Duration = Duration::from_secs(10);
/// Longest wait for a session to be agreed.
pub(super) const OPEN: Duration = Duration::from_secs(30);
/// Name of the call's key in `_meta`, for servers that want to know a call made twice.
const CALL_KEY: &str = "threadgraph/call";
/// Name of the depth in `_meta` that a server says as `SPASS-Caller-Depth` where it asks an agent in its turn.
const DEPTH: &str = "threadgraph/caller-depth";
/// The key of a call, whether pictures are wanted, and the depth of what it asks an agent.
pub(crate) type Asked<'a> = (&'a str, bool, i64);

/// How long a list of tools holds unless each change is reported.
const HOLDS: Duration = Duration::from_secs(60);

/// An open session.
pub(super) struct Session {
    running: RunningService<RoleClient, Heard>,
    heard: Arc<AtomicU64>,
    /// The program that is spoken with, unless there is an address.
    process: Option<Process>,
    listed: Mutex<Option<Listed>>,
}

/// What the server's tools were.
struct Listed {
    listing: Arc<Listing>,
    at: Instant,
    /// How often they had changed before.
    changes: u64,
}

/// Counts how often a server says that its tools have changed. Of what else a server may ask its client, nothing is granted.
struct Heard(Arc<AtomicU64>);

impl ClientHandler for Heard {
    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Session {
    /// With a server at an address.
    pub(super) async fn open(
        http: Client,
        url: &str,
        token: Option<&Secret>,
    ) -> Result<Self, ToolError> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(url)
            .max_sse_event_size(LARGEST)
            .reinit_on_expired_session(true);
        if let Some(token) = token {
            config = config.auth_header(token.expose());
        }
        let transport = StreamableHttpClientTransport::with_client(Messages(http), config);
        let heard = Arc::default();
        let opening = Heard(Arc::clone(&heard)).serve(transport);
        let running = agreed(tokio::time::timeout(OPEN, opening).await)?;
        Ok(Self::of(running, heard, None))
    }

    /// With a program that was started.
    pub(super) async fn with_program(
        (process, reads, writes): (Process, ChildStdout, ChildStdin),
    ) -> Result<Self, ToolError> {
        let transport =
            AsyncRwTransport::<RoleClient, _, _>::new(reads, writes).with_max_line_length(LARGEST);
        let heard = Arc::default();
        // Its input ends with its time, and so does the session.
        let over = process.over().child_token();
        let opening = Heard(Arc::clone(&heard)).serve_with_ct(transport, over);
        let running = agreed(tokio::time::timeout(OPEN, opening).await)?;
        Ok(Self::of(running, heard, Some(process)))
    }

    fn of(
        running: RunningService<RoleClient, Heard>,
        heard: Arc<AtomicU64>,
        process: Option<Process>,
    ) -> Self {
        Self {
            running,
            heard,
            process,
            listed: Mutex::default(),
        }
    }

    /// Whether it cannot be used again.
    pub(super) fn is_closed(&self) -> bool {
        let over = self.process.as_ref().is_some_and(Process::is_over);
        over || self.running.is_closed() || self.running.is_transport_closed()
    }

    /// The program that is spoken with.
    pub(super) fn process(&self) -> Option<&Process> {
        self.process.as_ref()
    }

    /// Begins to use it; `None`: it is over.
    pub(super) fn begin(&self) -> Option<Option<InUse>> {
        match &self.process {
            Some(process) => process.begin().map(Some),
            None => Some(None),
        }
    }

    /// Calls a tool; dropping the call cancels it at the server.
    pub(super) async fn call(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        (key, pictures, depth): Asked<'_>,
    ) -> Result<ToolResponse, ToolError> {
        let mut params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        if !key.is_empty() {
            let mut meta = Map::from_iter([(CALL_KEY.to_owned(), Value::from(key))]);
            if depth > 0 {
                meta.insert(DEPTH.to_owned(), Value::from(depth));
            }
            params.meta = Some(RequestMetaObject(MetaObject(meta)));
        }
        let result = self.running.peer().call_tool(params).await;
        read(result.map_err(refused)?, pictures)
    }

    /// The server's tools, as they were when they were last said to have changed.
    pub(super) async fn list(&self) -> Result<Arc<Listing>, ToolError> {
        // Who asks at the same time waits for the list that the first one asks for.
        let mut listed = self.listed.lock().await;
        let changes = self.heard.load(Ordering::SeqCst);
        let known = listed.as_ref().filter(|known| {
            known.changes == changes && (self.reports_changes() || known.at.elapsed() < HOLDS)
        });
        if let Some(known) = known {
            return Ok(known.listing.clone());
        }
        let mut listing = Listing::default();
        let mut cursor = None;
        loop {
            let page = self.page(cursor.clone()).await.map_err(refused)?;
            listing.add(page.tools);
            // Some servers name the same page, or an empty text, without end.
            let next = page
                .next_cursor
                .filter(|next| Some(next) != cursor.as_ref());
            cursor = next;
            if cursor.is_none() {
                break;
            }
            if !listing.wants_more() {
                listing.cut();
                break;
            }
        }
        let listing = Arc::new(listing);
        *listed = Some(Listed {
            listing: listing.clone(),
            at: Instant::now(),
            changes,
        });
        Ok(listing)
    }

    /// A page of the server's tools.
    async fn page(&self, cursor: Option<String>) -> Result<ListToolsResult, ServiceError> {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let listed = self.running.peer().list_tools(Some(params.clone())).await;
        let Err(ServiceError::UnexpectedResponse) = listed else {
            return listed;
        };
        // One tool that cannot be read hides all others from the library: it is asked for the page as it is.
        let asked = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        match self.running.peer().send_request(asked).await? {
            ServerResult::ListToolsResult(page) => Ok(page),
            ServerResult::CustomResult(CustomResult(page)) => {
                mended(page).ok_or(ServiceError::UnexpectedResponse)
            }
            _ => Err(ServiceError::UnexpectedResponse),
        }
    }

    /// Whether each change is reported. A server at an address may promise that and have no stream for it, or lose the stream.
    fn reports_changes(&self) -> bool {
        if self.process.is_none() {
            return false;
        }
        let server = self.running.peer().peer_info();
        let tools = server.and_then(|server| server.capabilities.tools.clone());
        tools.is_some_and(|tools| tools.list_changed == Some(true))
    }
}

/// A session that was agreed in time. No log has the text of what was wrong: it holds the address, with the credentials in it.
fn agreed<T, E>(
    opening: Result<Result<T, E>, tokio::time::error::Elapsed>,
) -> Result<T, ToolError> {
    match opening {
        Ok(Ok(running)) => Ok(running),
        Ok(Err(_)) => {
            tracing::debug!("no session with an MCP server");
            Err(ToolError::Unreachable)
        }
        Err(_) => Err(ToolError::Unreachable),
    }
}

fn refused(fault: ServiceError) -> ToolError {
    match fault {
        ServiceError::McpError(fault) => ToolError::said(&fault.message),
        ServiceError::Timeout { .. } => ToolError::ServerTimeout,
        // As above, no log has its text.
        _ => {
            tracing::debug!("an MCP call failed");
            ToolError::Unreachable
        }
    }
}
