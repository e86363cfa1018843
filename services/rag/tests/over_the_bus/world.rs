//! A flow in one process: the service under test, and fakes of everything else that count what they are
//! asked. The graph is a store of ours, which is asked for whole frontiers, or one that knows patterns.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tg_mesh::embedded::EmbeddedBus;
use tg_mesh::{Ask, Cx, Deadline, Host, MeshOptions, Out, Processor, Serve};
use tg_schemas::msg::*;
use tg_schemas::{Class, Error, ErrorCode, FlowId, Message, Reply, Topic, Triple, WorkspaceId};
use tokio::sync::Notify;

pub const SOON: Duration = Duration::from_secs(20);

/// What every fake was asked, by name.
#[derive(Default)]
pub struct Counts(Mutex<BTreeMap<&'static str, usize>>);

impl Counts {
    pub fn add(&self, what: &'static str) {
        *self.0.lock().entry(what).or_default() += 1;
    }

    pub fn of(&self, what: &str) -> usize {
        self.0.lock().get(what).copied().unwrap_or(0)
    }

    pub fn all(&self) -> usize {
        self.0.lock().values().sum()
    }
}

/// What the fakes answer.
#[derive(Default)]
pub struct Script {
    /// Replies of prompts by id.
    pub prompts: BTreeMap<&'static str, String>,
    /// Entities near to anything.
    pub entities: Vec<&'static str>,
    /// Chunks near to anything, and their texts in the library.
    pub chunks: Vec<(&'static str, &'static str)>,
    /// Chunks by words.
    pub words: Vec<&'static str>,
    /// Triples of the graph.
    pub graph: Vec<Triple>,
    /// What rows answer.
    pub rows: String,
    /// Who fails.
    pub failing: Vec<&'static str>,
    /// The library answers for one document at a time only.
    pub old_library: bool,
    /// The prompt that says one word and then nothing, until cancelled.
    pub hanging: &'static str,
}

pub struct World {
    pub mesh: Host,
    pub counts: Arc<Counts>,
    pub script: Arc<Mutex<Script>>,
    /// Triples that were stored, in order.
    pub stored: Arc<Mutex<Vec<Triple>>>,
    /// Texts given to the library.
    pub saved: Arc<Mutex<BTreeMap<String, String>>>,
    /// Values that prompts were given.
    pub prompted: Arc<Mutex<Vec<PromptRequest>>>,
    /// Told when a hanging prompt was cancelled.
    pub cancelled: Arc<Notify>,
}

pub struct Fake(pub Arc<State>);

pub struct State {
    pub counts: Arc<Counts>,
    pub script: Arc<Mutex<Script>>,
    pub stored: Arc<Mutex<Vec<Triple>>>,
    pub saved: Arc<Mutex<BTreeMap<String, String>>>,
    pub prompted: Arc<Mutex<Vec<PromptRequest>>>,
    pub cancelled: Arc<Notify>,
}

impl Fake {
    pub fn asked(&self, what: &'static str) -> Result<(), Error> {
        self.0.counts.add(what);
        if self.0.script.lock().failing.contains(&what) {
            return Err(Error::new(ErrorCode::Internal, format!("{what} is broken")));
        }
        Ok(())
    }
}

/// Plays the config service for workspace and flow `default`.
struct Config(BTreeMap<(String, String), String>);

#[async_trait]
impl Serve<ConfigRequest, ConfigResponse> for Config {
    async fn serve(
        &self,
        _: Cx,
        ask: ConfigRequest,
        mut out: Out<ConfigResponse>,
    ) -> Result<(), Error> {
        let row = |workspace: &str, kind: &str, key: &str, value: &str| ConfigValue {
            workspace: workspace.into(),
            r#type: kind.into(),
            key: key.into(),
            value: value.into(),
        };
        let values = if ask.r#type == "workspace" {
            vec![row("__workspaces__", "workspace", "default", "{}")]
        } else {
            let wanted = self.0.iter().filter(|((kind, _), _)| *kind == ask.r#type);
            wanted
                .map(|((kind, key), value)| row("default", kind, key, value))
                .collect()
        };
        out.send(ConfigResponse {
            values,
            ..ConfigResponse::default()
        })
        .await
    }
}

pub fn topic(class: Class, base: &str) -> Topic {
    let workspace = WorkspaceId::new("default").unwrap();
    let flow = FlowId::new("default").unwrap();
    Topic::flow(class, base, &workspace, &flow)
}

/// Who asks whom in the flow: processor, spec, topic.
fn wiring(own_graph: bool) -> Vec<(&'static str, Vec<(&'static str, String)>)> {
    let ask = |base: &str| topic(Class::Request, base).to_string();
    let library = "request:tg:librarian:default".to_owned();
    let store = topic(Class::Flow, "triples-store").to_string();
    let shared = || {
        vec![
            ("embeddings-request", ask("embeddings")),
            ("prompt-request", ask("prompt-rag")),
            ("librarian-request", library.clone()),
            ("reranker-request", ask("reranker")),
            ("explainability", store.clone()),
        ]
    };
    let with = |own: Vec<(&'static str, String)>| shared().into_iter().chain(own).collect();
    let serves = |base: &str| vec![("request", ask(base))];
    let mut all = vec![
        (
            "graph-rag",
            with(vec![
                ("request", ask("graph-rag")),
                ("graph-embeddings-request", ask("graph-embeddings")),
                ("triples-request", ask("triples")),
            ]),
        ),
        (
            "document-rag",
            with(vec![
                ("request", ask("document-rag")),
                ("document-embeddings-request", ask("document-embeddings")),
                ("keyword-index-request", ask("keyword-index")),
            ]),
        ),
        (
            "reranker",
            vec![
                ("request", ask("reranker")),
                ("embeddings-request", ask("embeddings")),
            ],
        ),
        (
            "nlp-query",
            vec![
                ("request", ask("nlp-query")),
                ("prompt-request", ask("prompt-rag")),
            ],
        ),
        (
            "structured-query",
            vec![
                ("request", ask("structured-query")),
                ("nlp-query-request", ask("nlp-query")),
                ("rows-query-request", ask("rows")),
            ],
        ),
        (
            "structured-diag",
            vec![
                ("request", ask("structured-diag")),
                ("prompt-request", ask("prompt-rag")),
            ],
        ),
        ("fake-embeddings", serves("embeddings")),
        ("fake-entities", serves("graph-embeddings")),
        ("fake-chunks", serves("document-embeddings")),
        ("fake-keywords", serves("keyword-index")),
        ("fake-prompts", serves("prompt-rag")),
        ("fake-rows", serves("rows")),
        ("fake-library", vec![("request", library.clone())]),
        ("fake-store", vec![("input", store.clone())]),
    ];
    if own_graph {
        all.push(("triples-query", serves("triples")));
    } else {
        all.push(("fake-triples", serves("triples")));
    }
    all
}

impl World {
    /// A flow with the real graph store, or with one that only knows patterns.
    pub async fn start(own_graph: bool, script: Script) -> Self {
        let bus = Arc::new(EmbeddedBus::in_memory());
        let mesh = Host::start(bus, MeshOptions::default()).await.unwrap();
        let state = Arc::new(State {
            counts: Arc::default(),
            script: Arc::new(Mutex::new(script)),
            stored: Arc::default(),
            saved: Arc::default(),
            prompted: Arc::default(),
            cancelled: Arc::default(),
        });
        let mut rows = BTreeMap::new();
        let wiring = wiring(own_graph);
        for (processor, topics) in &wiring {
            let topics: BTreeMap<_, _> = topics.iter().cloned().collect();
            let row = serde_json::json!({"topics": topics, "parameters": {}, "epoch": 1});
            let key = (format!("processor:{processor}"), "default".to_owned());
            rows.insert(key, row.to_string());
        }
        let schema = r#"{"name": "orders", "description": "What was bought",
            "fields": [{"name": "total", "type": "integer", "primary_key": true}]}"#;
        rows.insert(("schema".into(), "orders".into()), schema.into());
        let config = Processor::new("config-svc").serves_system("config", Arc::new(Config(rows)));
        mesh.host(config).await.unwrap();
        for processor in fakes(&state, own_graph) {
            mesh.host(processor).await.unwrap();
        }
        for processor in tg_rag::processors(&mesh, tg_rag::Options::default()).unwrap() {
            mesh.host(processor).await.unwrap();
        }
        let attached = mesh.presence().until(SOON, |view| {
            let here = |id: &&str| view.attached(id, "default", "default", 1);
            wiring.iter().map(|(id, _)| id).all(here)
        });
        assert!(attached.await, "the flow attaches");
        Self {
            mesh,
            counts: state.counts.clone(),
            script: state.script.clone(),
            stored: state.stored.clone(),
            saved: state.saved.clone(),
            prompted: state.prompted.clone(),
            cancelled: state.cancelled.clone(),
        }
    }

    pub fn options(&self) -> Ask {
        Ask {
            deadline: Some(Deadline::after(SOON)),
            epoch: Some(1),
            ..Ask::default()
        }
    }

    /// All parts of an answer.
    pub async fn ask<Q: Message, R: Reply>(&self, base: &str, question: &Q) -> Vec<R> {
        let to = topic(Class::Request, base);
        let mut answer = self.mesh.ask::<_, R>(&to, question, self.options());
        let mut parts = Vec::new();
        while let Some(part) = answer.next().await {
            parts.push(part.unwrap());
        }
        parts
    }

    /// Waits until a stored triple tells this.
    pub async fn stored(&self, fits: impl Fn(&Triple) -> bool) {
        let there = async {
            while !self.stored.lock().iter().any(&fits) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(SOON, there)
            .await
            .expect("the trace is stored");
    }

    /// The texts given to the library, as soon as there are so many.
    pub async fn saved_texts(&self, count: usize) -> Vec<String> {
        let there = async {
            while self.saved.lock().len() < count {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(SOON, there)
            .await
            .expect("the texts are saved");
        self.saved.lock().values().cloned().collect()
    }
}

fn fakes(state: &Arc<State>, own_graph: bool) -> Vec<Processor> {
    let fake = || Arc::new(Fake(state.clone()));
    let mut all = vec![
        Processor::new("fake-embeddings")
            .serves::<EmbeddingsRequest, EmbeddingsResponse>("request", fake()),
        Processor::new("fake-entities")
            .serves::<GraphEmbeddingsRequest, GraphEmbeddingsResponse>("request", fake()),
        Processor::new("fake-chunks")
            .serves::<DocumentEmbeddingsRequest, DocumentEmbeddingsResponse>("request", fake()),
        Processor::new("fake-keywords")
            .serves::<KeywordIndexRequest, KeywordIndexResponse>("request", fake()),
        Processor::new("fake-prompts").serves::<PromptRequest, PromptResponse>("request", fake()),
        Processor::new("fake-rows")
            .serves::<RowsQueryRequest, RowsQueryResponse>("request", fake()),
        Processor::new("fake-library")
            .serves::<LibrarianRequest, LibrarianResponse>("request", fake()),
        Processor::new("librarian").reads_system::<LibraryTexts>(LIBRARY_TEXTS, fake()),
        Processor::new("fake-store").reads::<Triples>("input", fake()),
    ];
    let id = if own_graph {
        "triples-query"
    } else {
        "fake-triples"
    };
    let triples =
        Processor::new(id).serves::<TriplesQueryRequest, TriplesQueryResponse>("request", fake());
    all.push(if own_graph {
        triples
            .serves_own::<NeighbourhoodRequest, NeighbourhoodResponse>(NEIGHBOURS, fake())
            .serves_own::<SourcesRequest, SourcesResponse>(SOURCES, fake())
    } else {
        triples
    });
    all
}
