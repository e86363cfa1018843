//! A flow in one process: the service under test, and fakes of everything else that count what they are
//! asked. The graph is a store of ours, which is asked for whole frontiers, or one that knows patterns.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tg_mesh::Processor;
use tg_schemas::msg::*;
use tg_schemas::processors::{self, ProcessorSpec, Serves, Spec};
use tg_schemas::{Class, Error, ErrorCode, Message, Reply, Term, Triple};
use tg_testkit::config::Config;
use tg_testkit::fakes::{Played, RecordingConsumer};
use tg_testkit::flow::{TestFlow, Wiring};
use tg_testkit::place::Place;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::{graphs, services};

/// The sum of what the entities of a trace say by a predicate of the vocabulary.
pub fn summed<'a>(triples: impl IntoIterator<Item = &'a Triple>, predicate: &str) -> i64 {
    let predicate = Some(Term::iri(predicate));
    let told = triples.into_iter().filter(|triple| triple.p == predicate);
    told.map(|triple| match &triple.o {
        Some(Term::Literal { value, .. }) => value.parse::<i64>().unwrap(),
        other => panic!("no number: {other:?}"),
    })
    .sum()
}

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
    /// Who refuses what it is asked: the vectors are of another model.
    pub refusing: Vec<&'static str>,
    /// The model of the vectors that are kept; empty: that of the embeddings.
    pub held: &'static str,
    /// Models that the embeddings service serves beside its own.
    pub served: Vec<&'static str>,
    /// Where chunks stand, as the library knows it.
    pub contexts: Vec<(&'static str, &'static str)>,
    /// The library answers for one document at a time only.
    pub old_library: bool,
    /// The prompt that says one word and then nothing, until cancelled.
    pub hanging: &'static str,
}

pub struct World {
    pub flow: TestFlow,
    pub counts: Arc<Counts>,
    pub script: Arc<Mutex<Script>>,
    /// Records of triples that were stored, in order.
    pub store: Arc<RecordingConsumer<Triples>>,
    /// Texts given to the library.
    pub saved: Arc<RecordingConsumer<LibraryTexts>>,
    /// Plays prompts.
    pub prompts: Arc<Played<PromptRequest, PromptResponse>>,
    /// Plays the ledger of the agent. It refuses calls while `budget` fails.
    pub ledger: Arc<Ledger>,
}

type Ledger = Played<UsageRequest, UsageResponse>;

/// See [`World::ledger`].
fn ledger(script: &Arc<Mutex<Script>>) -> Arc<Ledger> {
    let script = script.clone();
    Played::new(move |_, ask: UsageRequest| {
        let over = script.lock().failing.contains(&"budget");
        let refused = over && ask.operation == "reserve-call";
        Ok(UsageResponse {
            bound: true,
            refused: if refused { "it is used up" } else { "" }.to_owned(),
            ..UsageResponse::default()
        })
    })
}

#[derive(Clone)]
pub struct Fake(pub Arc<State>);

pub struct State {
    pub counts: Arc<Counts>,
    pub script: Arc<Mutex<Script>>,
    pub store: Arc<RecordingConsumer<Triples>>,
    pub saved: Arc<RecordingConsumer<LibraryTexts>>,
}

impl Fake {
    pub fn asked(&self, what: &'static str) -> Result<(), Error> {
        self.0.counts.add(what);
        if self.0.script.lock().failing.contains(&what) {
            return Err(Error::new(ErrorCode::Internal, format!("{what} is broken")));
        }
        if self.0.script.lock().refusing.contains(&what) {
            let text = "the vectors are of another model";
            return Err(Error::new(ErrorCode::Conflict, text));
        }
        Ok(())
    }
}

/// Who asks whom in the flow, but for the graph.
const WIRING: &[Wiring] = &[
    (
        "graph-rag",
        &[
            ("embeddings-request", Class::Request, "embeddings"),
            ("prompt-request", Class::Request, "prompt-rag"),
            ("librarian-request", Class::Request, "librarian"),
            ("reranker-request", Class::Request, "reranker"),
            ("explainability", Class::Flow, "triples-store"),
            ("request", Class::Request, "graph-rag"),
            (
                "graph-embeddings-request",
                Class::Request,
                "graph-embeddings",
            ),
            ("triples-request", Class::Request, "triples"),
        ],
    ),
    (
        "document-rag",
        &[
            ("embeddings-request", Class::Request, "embeddings"),
            ("prompt-request", Class::Request, "prompt-rag"),
            ("librarian-request", Class::Request, "librarian"),
            ("reranker-request", Class::Request, "reranker"),
            ("explainability", Class::Flow, "triples-store"),
            ("request", Class::Request, "document-rag"),
            (
                "document-embeddings-request",
                Class::Request,
                "document-embeddings",
            ),
            ("keyword-index-request", Class::Request, "keyword-index"),
        ],
    ),
    (
        "reranker",
        &[
            ("request", Class::Request, "reranker"),
            ("embeddings-request", Class::Request, "embeddings"),
        ],
    ),
    (
        "nlp-query",
        &[
            ("request", Class::Request, "nlp-query"),
            ("prompt-request", Class::Request, "prompt-rag"),
        ],
    ),
    (
        "structured-query",
        &[
            ("request", Class::Request, "structured-query"),
            ("nlp-query-request", Class::Request, "nlp-query"),
            ("rows-query-request", Class::Request, "rows"),
        ],
    ),
    (
        "structured-diag",
        &[
            ("request", Class::Request, "structured-diag"),
            ("prompt-request", Class::Request, "prompt-rag"),
        ],
    ),
    (
        "fake-embeddings",
        &[("request", Class::Request, "embeddings")],
    ),
    (
        "fake-entities",
        &[("request", Class::Request, "graph-embeddings")],
    ),
    (
        "fake-chunks",
        &[("request", Class::Request, "document-embeddings")],
    ),
    (
        "fake-keywords",
        &[("request", Class::Request, "keyword-index")],
    ),
    ("fake-prompts", &[("request", Class::Request, "prompt-rag")]),
    ("fake-rows", &[("request", Class::Request, "rows")]),
    ("fake-library", &[("request", Class::Request, "librarian")]),
    ("fake-store", &[("input", Class::Flow, "triples-store")]),
];
/// A store of ours, and one that knows patterns.
/// The library as a flow wires it.
const SHELF: Spec<Serves<LibrarianRequest, LibrarianResponse>> = Spec::new("request");
const OWN: Wiring = ("triples-query", &[("request", Class::Request, "triples")]);
const FOREIGN: Wiring = ("fake-triples", &[("request", Class::Request, "triples")]);

impl World {
    /// A flow with the real graph store, or with one that only knows patterns.
    pub async fn start(place: &Place, own_graph: bool, script: Script) -> Self {
        Self::with(place, own_graph, script, tg_rag::Options::default()).await
    }

    /// The same, with a reranking model elsewhere that turns everybody away.
    pub async fn without_reranker(place: &Place, script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/rerank", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let mut request = vec![0; 64 << 10];
                let _ = socket.read(&mut request).await;
                let refusal =
                    b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                let _ = socket.write_all(refusal).await;
            }
        });
        let options = tg_rag::Options {
            reranker_url: Some(url),
            ..tg_rag::Options::default()
        };
        Self::with(place, true, script, options).await
    }

    /// The same with other options.
    pub async fn with(
        place: &Place,
        own_graph: bool,
        script: Script,
        options: tg_rag::Options,
    ) -> Self {
        let state = Arc::new(State {
            counts: Arc::default(),
            script: Arc::new(Mutex::new(script)),
            store: Arc::default(),
            saved: Arc::default(),
        });
        let prompts = services::prompts(Fake(state.clone()));
        let ledger = ledger(&state.script);
        let config = Config::new();
        let schema = r#"{"name": "orders", "description": "What was bought",
            "fields": [{"name": "total", "type": "integer", "primary_key": true}]}"#;
        config.put("schema", "orders", schema);
        let mut wiring = WIRING.to_vec();
        wiring.push(if own_graph { OWN } else { FOREIGN });
        let host = |mesh: &_| {
            let mut all = fakes(&state, &prompts, own_graph);
            let agent = Processor::new(processors::agent_manager::PROCESSOR);
            all.push(agent.serves(processors::agent_manager::USAGE_TOTALS, ledger.clone()));
            all.extend(tg_rag::processors(mesh, options).unwrap());
            all
        };
        let flow = TestFlow::start(place, config, &wiring, host).await;
        Self {
            flow,
            counts: state.counts.clone(),
            script: state.script.clone(),
            store: state.store.clone(),
            saved: state.saved.clone(),
            prompts,
            ledger,
        }
    }

    /// All parts of an answer.
    pub async fn ask<Q: Message, R: Reply>(&self, base: &str, question: &Q) -> Vec<R> {
        self.flow.parts(base, question).await.unwrap()
    }

    /// Waits until a stored triple tells this.
    pub async fn stored(&self, fits: impl Fn(&Triple) -> bool) {
        let told = |records: &[Triples]| records.iter().flat_map(|one| &one.triples).any(&fits);
        self.store.until(told).await;
    }

    /// The texts given to the library, as soon as there are so many.
    pub async fn saved_texts(&self, count: usize) -> Vec<String> {
        let texts = |records: &[LibraryTexts]| -> BTreeMap<String, String> {
            assert!(records.iter().all(|one| one.workspace == "default"));
            let texts = records.iter().flat_map(|one| one.texts.clone());
            texts.map(|text| (text.id, text.text)).collect()
        };
        let saved = self.saved.until(|records| texts(records).len() >= count);
        texts(&saved.await).into_values().collect()
    }
}

fn fakes(
    state: &Arc<State>,
    prompts: &Arc<Played<PromptRequest, PromptResponse>>,
    own_graph: bool,
) -> Vec<Processor> {
    let fake = || Fake(state.clone());
    let mut all = vec![
        Processor::new(ProcessorSpec::unlisted("fake-embeddings")).serves(
            processors::embeddings::REQUEST,
            services::embeddings(fake()),
        ),
        Processor::new(ProcessorSpec::unlisted("fake-entities")).serves(
            processors::graph_embeddings_query::REQUEST,
            services::entities(fake()),
        ),
        Processor::new(ProcessorSpec::unlisted("fake-chunks")).serves(
            processors::doc_embeddings_query::REQUEST,
            services::chunks(fake()),
        ),
        Processor::new(ProcessorSpec::unlisted("fake-keywords"))
            .serves(processors::kw_index::REQUEST, services::keywords(fake())),
        Processor::new(ProcessorSpec::unlisted("fake-prompts"))
            .serves(processors::prompt_rag::REQUEST, prompts.clone()),
        Processor::new(ProcessorSpec::unlisted("fake-rows"))
            .serves(processors::rows_query::REQUEST, services::rows(fake())),
        Processor::new(ProcessorSpec::unlisted("fake-library"))
            .serves(SHELF, services::library(fake())),
        Processor::new(ProcessorSpec::unlisted("library"))
            .reads(processors::librarian::LIBRARY_TEXTS, state.saved.clone()),
        Processor::new(ProcessorSpec::unlisted("fake-store"))
            .reads(processors::triples_write::INPUT, state.store.clone()),
    ];
    let of = match own_graph {
        true => processors::triples_query::PROCESSOR,
        false => ProcessorSpec::unlisted("fake-triples"),
    };
    let triples =
        Processor::new(of).serves(processors::triples_query::REQUEST, graphs::triples(fake()));
    all.push(if own_graph {
        triples
            .serves(
                processors::triples_query::NEIGHBOURS,
                graphs::neighbours(fake()),
            )
            .serves(processors::triples_query::SOURCES, graphs::sources(fake()))
    } else {
        triples
    });
    all
}
