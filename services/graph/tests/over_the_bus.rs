//! The processors as others meet them: records in, patterns and SPARQL out, deletions seen in config.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tempfile::TempDir;
use tg_mesh::embedded::EmbeddedBus;
use tg_mesh::{Ask, Cx, Deadline, Host, MeshOptions, Out, Processor, Serve, put_aside};
use tg_provenance::{Extraction, Making, extracted, subgraph_id};
use tg_schemas::msg::{
    CollectionDrop, CollectionDropped, ConfigPush, ConfigRequest, ConfigResponse, ConfigValue,
    Metadata, NEIGHBOURS, NeighbourhoodRequest, NeighbourhoodResponse, RETRACT, Retract, SOURCES,
    SourcesRequest, SourcesResponse, SparqlQueryRequest, SparqlQueryResponse, Triples,
    TriplesQueryRequest, TriplesQueryResponse, drop_topic,
};
use tg_schemas::{Class, Error, ErrorCode, FlowId, Term, Topic, Triple, WorkspaceId};
use tg_storage::Durability;

const SOON: Duration = Duration::from_secs(20);

/// Plays the config service for workspace and flow `default`.
#[derive(Default)]
struct Config {
    rows: Mutex<BTreeMap<(String, String), String>>,
    version: AtomicI64,
}

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
            let rows = self.rows.lock();
            let wanted = rows.iter().filter(|((kind, _), _)| *kind == ask.r#type);
            wanted
                .map(|((kind, key), value)| row("default", kind, key, value))
                .collect()
        };
        out.send(ConfigResponse {
            version: self.version.load(Ordering::SeqCst),
            values,
            ..ConfigResponse::default()
        })
        .await
    }
}

fn topic(class: Class, base: &str) -> Topic {
    let workspace = WorkspaceId::new("default").unwrap();
    let flow = FlowId::new("default").unwrap();
    Topic::flow(class, base, &workspace, &flow)
}

struct System {
    mesh: Host,
    config: Arc<Config>,
    _dir: TempDir,
}

impl System {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bus = Arc::new(EmbeddedBus::in_memory());
        let mesh = tg_runs::start(bus, MeshOptions::default()).await.unwrap();
        let config = Arc::new(Config::default());
        for (processor, spec, at) in [
            (
                "triples-write",
                "input",
                topic(Class::Flow, "triples-store"),
            ),
            ("triples-query", "request", topic(Class::Request, "triples")),
            ("sparql-query", "request", topic(Class::Request, "sparql")),
        ] {
            let row = format!(r#"{{"topics":{{"{spec}":"{at}"}},"parameters":{{}},"epoch":1}}"#);
            let key = (format!("processor:{processor}"), "default".to_owned());
            config.rows.lock().insert(key, row);
        }
        let service = Processor::new("config-svc").serves_system("config", config.clone());
        mesh.host(service).await.unwrap();
        let limits = tg_graph::Limits::default();
        let processors = tg_graph::processors(&mesh, dir.path(), Durability::Process, limits);
        for processor in processors.unwrap() {
            mesh.host(processor).await.unwrap();
        }
        let attached = mesh.presence().until(SOON, |view| {
            let ids = ["triples-write", "triples-query", "sparql-query"];
            ids.iter()
                .all(|id| view.attached(id, "default", "default", 1))
        });
        assert!(attached.await, "the flow attaches");
        Self {
            mesh,
            config,
            _dir: dir,
        }
    }

    fn options(&self) -> Ask {
        Ask {
            deadline: Some(Deadline::after(SOON)),
            epoch: Some(1),
            ..Ask::default()
        }
    }

    async fn write(&self, collection: &str, triples: Vec<Triple>) {
        let metadata = Metadata {
            collection: collection.to_owned(),
            ..Metadata::default()
        };
        let record = Triples {
            metadata: Some(metadata),
            triples,
        };
        let to = topic(Class::Flow, "triples-store");
        self.mesh
            .record(&to, &record, self.options())
            .await
            .unwrap();
    }

    async fn query(&self, ask: TriplesQueryRequest) -> Result<Vec<TriplesQueryResponse>, Error> {
        let to = topic(Class::Request, "triples");
        let mut answer = self
            .mesh
            .ask::<_, TriplesQueryResponse>(&to, &ask, self.options());
        let mut parts = Vec::new();
        while let Some(part) = answer.next().await {
            let part = part?;
            if let Some(error) = part.error {
                return Err(error);
            }
            parts.push(part);
        }
        Ok(parts)
    }

    /// Waits until a collection holds so many triples.
    async fn holds(&self, collection: &str, count: usize) {
        let held = async {
            loop {
                let all = TriplesQueryRequest {
                    collection: collection.to_owned(),
                    ..TriplesQueryRequest::default()
                };
                if self.query(all).await.unwrap()[0].triples.len() == count {
                    return;
                }
            }
        };
        let held = tokio::time::timeout(SOON, held).await;
        held.unwrap_or_else(|_| panic!("{collection} holds {count} triples"));
    }

    async fn sparql(&self, query: &str, streaming: bool) -> Vec<SparqlQueryResponse> {
        let ask = SparqlQueryRequest {
            collection: "c".to_owned(),
            query: query.to_owned(),
            streaming,
            batch_size: 10,
            ..SparqlQueryRequest::default()
        };
        let to = topic(Class::Request, "sparql");
        let mut answer = self
            .mesh
            .ask::<_, SparqlQueryResponse>(&to, &ask, self.options());
        let mut parts = Vec::new();
        while let Some(part) = answer.next().await {
            parts.push(part.unwrap());
        }
        parts
    }

    async fn set_collections(&self, collections: &[(&str, i64)]) {
        {
            let mut rows = self.config.rows.lock();
            rows.retain(|(kind, _), _| kind != "collection");
            for (name, incarnation) in collections {
                rows.insert(
                    ("collection".to_owned(), (*name).to_owned()),
                    format!(r#"{{"incarnation":{incarnation}}}"#),
                );
            }
        }
        let version = self.config.version.fetch_add(1, Ordering::SeqCst) + 1;
        let push = ConfigPush {
            version,
            changes: BTreeMap::from([("collection".to_owned(), vec!["default".to_owned()])]),
            ..ConfigPush::default()
        };
        let notices = Topic::system(Class::Notify, "config");
        self.mesh.notify(&notices, &push).await.unwrap();
        let mut changes = self.mesh.config().changes();
        let known = changes.wait_for(|at| *at >= version);
        tokio::time::timeout(SOON, known).await.unwrap().unwrap();
    }
}

fn triples(count: usize) -> Vec<Triple> {
    let triple = |n: usize| {
        let (s, p) = (Term::iri(format!("urn:s{n}")), Term::iri("urn:p"));
        Triple::new(s, p, Term::literal(n.to_string()))
    };
    (0..count).map(triple).collect()
}

#[tokio::test]
async fn records_become_answers() {
    let system = System::start().await;
    system.write("c", triples(105)).await;
    system.holds("c", 105).await;
    let mut ask = TriplesQueryRequest {
        collection: "c".to_owned(),
        p: Some(Term::iri("urn:p")),
        streaming: true,
        batch_size: 50,
        ..TriplesQueryRequest::default()
    };
    let parts = system.query(ask.clone()).await.unwrap();
    let shape: Vec<_> = parts
        .iter()
        .map(|part| (part.triples.len(), part.is_final))
        .collect();
    assert_eq!(shape, [(50, false), (50, false), (5, true)]);
    ask.limit = 100;
    let parts = system.query(ask.clone()).await.unwrap();
    let shape: Vec<_> = parts
        .iter()
        .map(|part| (part.triples.len(), part.is_final))
        .collect();
    assert_eq!(shape, [(50, false), (50, true)]);
    ask.o = Some(Term::literal("nothing"));
    let parts = system.query(ask.clone()).await.unwrap();
    assert_eq!((parts.len(), parts[0].is_final), (1, true));
    ask.s = Some(Term::iri("no iri"));
    let error = system.query(ask).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::BadRequest);
    assert!(
        error.message.starts_with("s: not an absolute IRI"),
        "{error}"
    );

    let rows = system
        .sparql("SELECT ?s { ?s <urn:p> ?o } LIMIT 25", true)
        .await;
    let shape: Vec<_> = rows
        .iter()
        .map(|part| (part.bindings.len(), part.is_final))
        .collect();
    assert_eq!(shape, [(10, false), (10, false), (5, true)]);
    assert!(
        rows.iter()
            .all(|part| part.query_type == "select" && part.variables == ["s"])
    );
    let none = system.sparql("SELECT ?s { ?s <urn:none> ?o }", true).await;
    assert_eq!(
        (none.len(), none[0].is_final, none[0].variables.len()),
        (1, true, 1)
    );
    let yes = system.sparql("ASK { <urn:s1> ?p ?o }", false).await;
    assert!(yes[0].ask_result && yes[0].query_type == "ask");
    let graph = system
        .sparql("CONSTRUCT WHERE { <urn:s1> ?p ?o }", false)
        .await;
    assert_eq!(
        (graph[0].triples.len(), graph[0].query_type.as_str()),
        (1, "construct")
    );
    let bad = system.sparql("SELECT", false).await;
    assert_eq!(bad[0].error.as_ref().unwrap().kind, "sparql-parse-error");
}

#[tokio::test]
async fn a_bad_triple_is_put_aside_and_the_others_are_kept() {
    let system = System::start().await;
    let mut record = triples(3);
    record.push(Triple::new(
        Term::literal("x"),
        Term::iri("urn:p"),
        Term::iri("urn:o"),
    ));
    system.write("c", record).await;
    system.holds("c", 3).await;
    let aside = async {
        loop {
            let taken = system.mesh.bus().take(&put_aside::subscription()).await;
            if let Some(delivery) = taken.unwrap() {
                return delivery;
            }
            tokio::task::yield_now().await;
        }
    };
    let aside = tokio::time::timeout(SOON, aside)
        .await
        .expect("the record is put aside");
    let told: tg_schemas::msg::PutAside = aside.envelope.read().unwrap();
    assert_eq!(told.detail, "triples[3].s: a literal cannot be a subject");
    aside.ack();
}

async fn drop_of(
    system: &System,
    workspace: &str,
    collection: &str,
    incarnation: i64,
) -> CollectionDropped {
    let ask = CollectionDrop {
        workspace: workspace.to_owned(),
        collection: collection.to_owned(),
        incarnation,
    };
    let to = Topic::system(Class::Request, &drop_topic("graph"));
    let answer = system
        .mesh
        .ask::<_, CollectionDropped>(&to, &ask, system.options());
    answer.last().await.unwrap()
}

#[tokio::test]
async fn dropped_collections_are_gone_and_others_of_like_names_stay() {
    let system = System::start().await;
    let names = ["docs", "docs_2024", "docs:2024", "d\u{f6}cs"];
    system.set_collections(&names.map(|name| (name, 0))).await;
    for name in names.iter().copied().chain(["unregistered"]) {
        system.write(name, triples(5)).await;
        system.holds(name, 5).await;
    }
    let dropped = drop_of(&system, "default", "docs", 0).await;
    assert_eq!(dropped.removed.get("triples"), Some(&5));
    drop_of(&system, "other", "docs_2024", 9).await;
    system.holds("docs", 0).await;
    for name in &names[1..] {
        system.holds(name, 5).await;
    }
    system.holds("unregistered", 5).await;
    let again = drop_of(&system, "default", "docs", 0).await;
    assert_eq!(again.removed.get("triples"), Some(&0));
    // Made again: the next generation sees nothing of the one before, even of what was never dropped.
    system.set_collections(&[("docs_2024", 1)]).await;
    system.holds("docs_2024", 0).await;
    system.write("docs_2024", triples(2)).await;
    system.holds("docs_2024", 2).await;
    let old = drop_of(&system, "default", "docs_2024", 0).await;
    assert_eq!(old.removed.get("triples"), Some(&5));
    system.holds("docs_2024", 2).await;
}

#[tokio::test]
async fn what_came_from_a_chunk_is_taken_back() {
    let system = System::start().await;
    let of_chunk = |chunk: &str, count: usize| {
        let id = subgraph_id(chunk, "extractor");
        let extraction = Extraction {
            id: &id,
            chunk,
            making: Making {
                component: "extractor",
                version: "1",
                started_at: "2026-01-01T00:00:00Z",
            },
            llm_model: None,
            ontology: None,
            prompt_version: None,
        };
        extracted(&extraction, triples(count))
    };
    system.write("c", of_chunk("urn:chunk:1", 3)).await;
    let one = of_chunk("urn:chunk:1", 3).len();
    system.holds("c", one).await;
    system.write("c", of_chunk("urn:chunk:2", 5)).await;
    let agent = 2;
    system
        .holds("c", one + of_chunk("urn:chunk:2", 5).len() - 3 - agent)
        .await;
    let record = Retract {
        metadata: Some(Metadata {
            collection: "c".to_owned(),
            ..Metadata::default()
        }),
        chunks: vec!["urn:chunk:2".to_owned()],
        triples: Vec::new(),
    };
    let to = topic(Class::Flow, RETRACT);
    for _ in 0..2 {
        system
            .mesh
            .record(&to, &record, system.options())
            .await
            .unwrap();
        system.holds("c", one).await;
    }
}

#[tokio::test]
async fn a_frontier_and_its_sources_are_one_question_each() {
    let system = System::start().await;
    let fact = |s: &str, p: &str, o: Term| Triple::new(Term::iri(s), Term::iri(p), o);
    let built = fact("urn:bridge", "urn:p:built", Term::literal("1429"));
    let derived = "http://www.w3.org/ns/prov#wasDerivedFrom";
    let contains = "https://trustgraph.ai/ns/contains";
    let held = Term::Quoted(Box::new(built.clone()));
    let source = |triple: Triple| triple.in_graph("urn:graph:source");
    system
        .write(
            "c",
            vec![
                built.clone(),
                source(fact("urn:sub", contains, held)),
                source(fact("urn:sub", derived, Term::iri("urn:doc"))),
            ],
        )
        .await;
    system.holds("c", 3).await;
    let around = NeighbourhoodRequest {
        collection: "c".to_owned(),
        nodes: vec![Term::iri("urn:bridge"), Term::literal("1429")],
        exclude_graphs: vec!["urn:graph:source".to_owned()],
        ..NeighbourhoodRequest::default()
    };
    let to = topic(Class::Request, NEIGHBOURS);
    let answer = system
        .mesh
        .ask::<_, NeighbourhoodResponse>(&to, &around, system.options());
    let found = answer.last().await.unwrap();
    assert_eq!((found.edges.len(), found.terms.len()), (1, 3));
    let elsewhere = NeighbourhoodRequest {
        collection: "other".to_owned(),
        ..around
    };
    let answer = system
        .mesh
        .ask::<_, NeighbourhoodResponse>(&to, &elsewhere, system.options());
    assert!(answer.last().await.unwrap().edges.is_empty());
    let of = SourcesRequest {
        collection: "c".to_owned(),
        edges: vec![built],
        ..SourcesRequest::default()
    };
    let to = topic(Class::Request, SOURCES);
    let answer = system
        .mesh
        .ask::<_, SourcesResponse>(&to, &of, system.options());
    let found = answer.last().await.unwrap();
    assert_eq!(found.traced[0].documents, [0]);
    assert_eq!(found.documents[0].uri, "urn:doc");
}
