//! A mesh with fakes and a gateway in front.

use std::time::Duration;

use serde_json::{Value, json};
use std::sync::Arc;
use tg_gateway::{AuthMode, GatewayHandle, GatewayOptions};
use tg_mesh::{Bus, Host, Processor};
use tg_schemas::msg::{
    EmbeddingsRequest, EmbeddingsResponse, OperationRequest, OperationResponse, ThreadsRequest,
    ThreadsResponse,
};
use tg_schemas::processors;
use tg_testkit::fakes::Played;
use tg_testkit::place::Place;
use tg_testkit::socket::Socket;

use crate::fakes::*;
use crate::openai::{chats, totals};
use crate::played_sessions::sessions;
use crate::runs::runs;

/// Longest wait for anything.
pub const BOUND: Duration = Duration::from_secs(60);

/// One system.
pub struct World {
    pub mesh: Host,
    pub fakes: Fakes,
    pub sessions: Arc<Played<OperationRequest, OperationResponse>>,
    pub listeners: Arc<Played<ThreadsRequest, ThreadsResponse>>,
    pub handle: GatewayHandle,
    pub http: reqwest::Client,
}

/// Interfaces of a flow, as a record has them.
pub fn record(workspace: &str, flow: &str, epoch: u64) -> Value {
    let pair = |base: &str| {
        json!({"request": format!("request:tg:{base}:{workspace}:{flow}"),
               "response": format!("response:tg:{base}:{workspace}:{flow}")})
    };
    let input = |base: &str| json!({"flow": format!("flow:tg:{base}:{workspace}:{flow}")});
    json!({
        "description": "d", "blueprint-name": "b", "parameters": {}, "epoch": epoch,
        "interfaces": {
            "agent": pair("agent"), "triples": pair("triples"), "sparql": pair("sparql"), "embeddings": pair("embeddings"),
            "triples-store": input("triples-store"), "text-load": input("text-document-load"),
            "graph-rag": pair("graph-rag"), "graph-embeddings": pair("graph-embeddings"),
            "graph-embeddings-store": input("graph-embeddings-store"),
            "document-embeddings-store": input("document-embeddings-store"),
            "entity-contexts-load": input("entity-contexts-load"),
            "rows-store": input("rows-store"), "rows": pair("rows"),
        }
    })
}

/// Processors of a flow: id, spec, topic base, class.
const PROCESSORS: [(&str, &str, &str, &str); 12] = [
    ("agent-manager", "request", "agent", "request"),
    ("text-completion", "request", "text-completion", "request"),
    ("triples-query", "request", "triples", "request"),
    ("sparql-query", "request", "sparql", "request"),
    ("triples-write", "input", "triples-store", "flow"),
    ("graph-rag", "request", "graph-rag", "request"),
    (
        "graph-embeddings-write",
        "input",
        "graph-embeddings-store",
        "flow",
    ),
    (
        "doc-embeddings-write",
        "input",
        "document-embeddings-store",
        "flow",
    ),
    ("graph-embeddings", "input", "entity-contexts-load", "flow"),
    ("rows-write", "input", "rows-store", "flow"),
    ("rows-query", "request", "rows", "request"),
    (
        "graph-embeddings-query",
        "request",
        "graph-embeddings",
        "request",
    ),
];

/// The config rows of a flow, by type.
fn rows(workspace: &str, flow: &str, epoch: u64) -> Vec<(String, Value)> {
    let mut rows: Vec<_> = PROCESSORS
        .iter()
        .map(|(processor, spec, base, class)| {
            let topic = format!("{class}:tg:{base}:{workspace}:{flow}");
            let value = json!({"topics": {*spec: topic}, "parameters": {}, "epoch": epoch});
            (format!("processor:{processor}"), value)
        })
        .collect();
    rows.push(("flow".to_owned(), record(workspace, flow, epoch)));
    rows
}

/// Fakes whose configuration has a flow in each of two workspaces.
fn with_flows() -> Fakes {
    let fakes = Fakes {
        store: store(),
        entities: picky(),
        chunks: picky(),
        contexts: picky(),
        rows: picky(),
        ..Fakes::default()
    };
    for workspace in ["default", "acme"] {
        fakes.config.register(workspace);
        for (kind, value) in rows(workspace, "default", 1) {
            let value = value.to_string();
            fakes.config.set(workspace, &kind, "default", &value);
        }
    }
    fakes
}

impl World {
    /// The default system.
    pub async fn start(place: &Place, auth_mode: AuthMode) -> Self {
        Self::with(place, auth_mode, |_| {}).await
    }

    /// With other options.
    pub async fn with(
        place: &Place,
        auth_mode: AuthMode,
        change: impl FnOnce(&mut GatewayOptions),
    ) -> Self {
        Self::on(place.connect().await, auth_mode, change).await
    }

    /// On a bus of the test's.
    pub async fn on(
        bus: Arc<dyn Bus>,
        auth_mode: AuthMode,
        change: impl FnOnce(&mut GatewayOptions),
    ) -> Self {
        install_tls();
        let mesh = tg_testkit::place::host(bus).await;
        let fakes = with_flows();
        let (sessions, listeners) = (sessions(fakes.turns_ended.clone()), listeners());
        let processors = [
            Processor::new(processors::config_svc::PROCESSOR)
                .serves(processors::config_svc::CONFIG, fakes.config.clone())
                .serves(
                    processors::config_svc::CONFIG_OF_WORKSPACE,
                    config_of_workspace(),
                ),
            Processor::new(processors::agent_manager::PROCESSOR)
                .serves(processors::agent_manager::REQUEST, fakes.agent.clone())
                .serves(processors::agent_manager::RUNS, runs(&fakes))
                .serves(processors::agent_manager::USAGE_TOTALS, totals()),
            Processor::new(processors::text_completion::PROCESSOR).serves(
                processors::text_completion::CHAT,
                chats(fakes.chats.clone()),
            ),
            Processor::new(processors::triples_query::PROCESSOR)
                .serves(processors::triples_query::REQUEST, triples()),
            Processor::new(processors::sparql_query::PROCESSOR)
                .serves(processors::sparql_query::REQUEST, long_solution()),
            Processor::new(processors::triples_write::PROCESSOR)
                .reads(processors::triples_write::INPUT, fakes.store.clone()),
            Processor::new(processors::graph_rag::PROCESSOR)
                .serves(processors::graph_rag::REQUEST, graph_rag()),
            Processor::new(processors::graph_embeddings_write::PROCESSOR).reads(
                processors::graph_embeddings_write::INPUT,
                fakes.entities.clone(),
            ),
            Processor::new(processors::doc_embeddings_write::PROCESSOR).reads(
                processors::doc_embeddings_write::INPUT,
                fakes.chunks.clone(),
            ),
            Processor::new(processors::graph_embeddings::PROCESSOR)
                .reads(processors::graph_embeddings::INPUT, fakes.contexts.clone()),
            Processor::new(processors::graph_embeddings_query::PROCESSOR)
                .serves(processors::graph_embeddings_query::REQUEST, entities_near()),
            Processor::new(processors::rows_write::PROCESSOR)
                .reads(processors::rows_write::INPUT, fakes.rows.clone()),
            Processor::new(processors::rows_query::PROCESSOR)
                .serves(processors::rows_query::REQUEST, pages_of_rows()),
            Processor::new(processors::sessions::PROCESSOR)
                .serves(processors::sessions::SESSIONS, sessions.clone()),
            Processor::new(processors::knowledge::PROCESSOR).serves(
                processors::knowledge::KNOWLEDGE,
                knowledge(fakes.put.clone()),
            ),
            Processor::new(processors::threads::PROCESSOR)
                .serves(processors::threads::THREADS, listeners.clone()),
            Processor::new(processors::librarian::PROCESSOR).serves(
                processors::librarian::LIBRARIAN,
                library(fakes.loaded.clone()),
            ),
            Processor::new(processors::iam_svc::PROCESSOR)
                .serves(processors::iam_svc::IAM, fakes.iam.clone())
                .serves(processors::iam_svc::AUDIT, fakes.audit.clone()),
        ];
        for processor in processors.into_iter().chain(tg_gateway::processors(&mesh)) {
            mesh.host(processor).await.unwrap();
        }
        let mut options = GatewayOptions::new("127.0.0.1:0".parse().unwrap(), auth_mode);
        change(&mut options);
        let handle = tg_gateway::serve(mesh.mesh().clone(), options)
            .await
            .unwrap();
        let world = Self {
            mesh,
            fakes,
            sessions,
            listeners,
            handle,
            http: reqwest::Client::new(),
        };
        for workspace in ["default", "acme"] {
            world.attached(workspace, "default", 1).await;
        }
        world
    }

    /// Writes a config row and waits until this process sees it.
    pub async fn put(&self, row: (&str, &str, &str), value: Option<Value>) {
        let text = value.map(|value| value.to_string());
        let change = [(row.1, row.2, text.as_deref())];
        self.fakes
            .config
            .apply_all(&self.mesh, row.0, &change)
            .await;
    }

    /// The default flow makes vectors by a model of this name from now on.
    pub async fn embeds(&self, model: &'static str) {
        let played: Arc<Played<EmbeddingsRequest, EmbeddingsResponse>> =
            Played::new(|_, ask: EmbeddingsRequest| {
                Ok(EmbeddingsResponse::new(
                    &vec![[1.0, 0.0]; ask.texts.len()],
                    model.to_owned(),
                    false,
                ))
            });
        let service = Processor::new(processors::embeddings::PROCESSOR)
            .serves(processors::embeddings::REQUEST, played);
        self.mesh.host(service).await.unwrap();
        let topic = "request:tg:embeddings:default:default";
        let row = json!({"topics": {"request": topic}, "parameters": {}, "epoch": 1});
        self.put(("default", "processor:embeddings", "default"), Some(row))
            .await;
        let attached = self.mesh.presence().until(BOUND, |view| {
            view.attached("embeddings", "default", "default", 1)
        });
        assert!(attached.await, "the embeddings did not attach");
    }

    /// Puts processor rows and the record of a flow, and waits until its agent is attached.
    pub async fn start_flow(&self, workspace: &str, flow: &str, epoch: u64) {
        for (kind, value) in rows(workspace, flow, epoch) {
            self.put((workspace, &kind, flow), Some(value)).await;
        }
        self.attached(workspace, flow, epoch).await;
    }

    async fn attached(&self, workspace: &str, flow: &str, epoch: u64) {
        for (processor, ..) in PROCESSORS {
            let attached = self.mesh.presence().until(BOUND, |view| {
                view.attached(processor, workspace, flow, epoch)
            });
            assert!(attached.await, "{processor} did not attach");
        }
    }

    /// Address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.handle.local_addr())
    }

    /// A POST; status and body.
    pub async fn post(&self, path: &str, token: &str, body: Value) -> (u16, Value) {
        let request = self.http.post(self.url(path)).json(&body);
        self.send(request, token).await
    }

    /// A GET; status and body (text as a JSON string).
    pub async fn get(&self, path: &str, token: &str) -> (u16, Value) {
        self.send(self.http.get(self.url(path)), token).await
    }

    async fn send(&self, request: reqwest::RequestBuilder, token: &str) -> (u16, Value) {
        let request = if token.is_empty() {
            request
        } else {
            request.bearer_auth(token)
        };
        let response = request.timeout(BOUND).send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        (status, body)
    }

    /// An authenticated socket.
    pub async fn socket(&self, token: &str) -> Socket {
        Socket::connect(&self.url("/"), token).await.unwrap()
    }

    /// Waits until a counter has reached a value.
    pub async fn reached(&self, counter: &tokio::sync::watch::Sender<usize>, at_least: usize) {
        let mut receiver = counter.subscribe();
        let wait = receiver.wait_for(|n| *n >= at_least);
        tokio::time::timeout(BOUND, wait).await.unwrap().unwrap();
    }
}

/// Clients here speak plain HTTP, but their TLS library wants a provider to exist.
fn install_tls() {
    // An error says that another test was first.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
