//! The processors as others meet them: records in, patterns and SPARQL out, deletions seen in config.

use tempfile::TempDir;
use tg_mesh::{Ask, Mesh, Processor};
use tg_provenance::{Extraction, Making, extracted, extraction_id, subgraph_id};
use tg_schemas::msg::{
    CollectionDrop, CollectionDropped, Metadata, NeighbourhoodRequest, NeighbourhoodResponse,
    Retract, SourcesRequest, SourcesResponse, SparqlQueryRequest, SparqlQueryResponse, Superseded,
    Triples, TriplesQueryRequest, TriplesQueryResponse,
};
use tg_schemas::processors::{triples_query, triples_write};
use tg_schemas::workspace_key::{REGISTERED, REGISTRY};
use tg_schemas::{Class, Error, ErrorCode, Term, Triple, WorkspaceKey};
use tg_testkit::config::Config;
use tg_testkit::flow::{TestFlow, Wiring, topic};
use tg_testkit::place::Place;

const WIRING: &[Wiring] = &[
    ("triples-write", &[("input", Class::Flow, "triples-store")]),
    ("triples-query", &[("request", Class::Request, "triples")]),
    ("sparql-query", &[("request", Class::Request, "sparql")]),
];

/// A directory, and the service over it.
fn graph() -> (TempDir, impl FnOnce(&Mesh) -> Vec<Processor>) {
    let dir = tempfile::tempdir().unwrap();
    let options = tg_graph::Options {
        data_dir: dir.path().to_owned(),
        ..tg_graph::Options::default()
    };
    (dir, |mesh| tg_graph::processors(mesh, options))
}

struct System {
    flow: TestFlow,
    _dir: TempDir,
}

impl System {
    async fn start(place: &Place) -> Self {
        let (dir, host) = graph();
        Self {
            flow: TestFlow::start(place, Config::new(), WIRING, host).await,
            _dir: dir,
        }
    }

    async fn start_among_foreign(place: &Place, config: Config) -> Self {
        let (dir, host) = graph();
        Self {
            flow: TestFlow::start_among_foreign(place, config, WIRING, host).await,
            _dir: dir,
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
        self.flow.write("triples-store", &record).await;
    }

    async fn query(&self, ask: TriplesQueryRequest) -> Result<Vec<TriplesQueryResponse>, Error> {
        let parts: Vec<TriplesQueryResponse> = self.flow.parts("triples", &ask).await?;
        match parts.iter().find_map(|part| part.error.clone()) {
            Some(error) => Err(error),
            None => Ok(parts),
        }
    }

    /// Waits until a collection holds so many triples.
    async fn holds(&self, collection: &str, count: usize) {
        let held = async || {
            let all = TriplesQueryRequest {
                collection: collection.to_owned(),
                ..TriplesQueryRequest::default()
            };
            self.query(all).await.unwrap()[0].triples.len() == count
        };
        self.flow.until(held).await;
    }

    async fn sparql(&self, query: &str, streaming: bool) -> Vec<SparqlQueryResponse> {
        let ask = SparqlQueryRequest {
            collection: "c".to_owned(),
            query: query.to_owned(),
            streaming,
            batch_size: 10,
            ..SparqlQueryRequest::default()
        };
        self.flow.parts("sparql", &ask).await.unwrap()
    }

    async fn set_collections(&self, collections: &[(&str, i64)]) {
        let config = &self.flow.config;
        let known = config.keys("default", "collection");
        let gone = known.iter().map(|name| ("collection", name.as_str(), None));
        let rows: Vec<String> = collections
            .iter()
            .map(|(_, generation)| format!(r#"{{"incarnation":{generation}}}"#))
            .collect();
        let made = collections.iter().zip(&rows);
        let made = made.map(|((name, _), row)| ("collection", *name, Some(row.as_str())));
        let changes: Vec<_> = gone.chain(made).collect();
        config.apply_all(&self.flow.mesh, "default", &changes).await;
    }
}

fn triples(count: usize) -> Vec<Triple> {
    let triple = |n: usize| {
        let (s, p) = (Term::iri(format!("urn:s{n}")), Term::iri("urn:p"));
        Triple::new(s, p, Term::literal(n.to_string()))
    };
    (0..count).map(triple).collect()
}

async fn records_become_answers(place: Place) {
    let system = System::start(&place).await;
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

async fn a_bad_triple_is_dead_letter_and_the_others_are_kept(place: Place) {
    let system = System::start(&place).await;
    let mut record = triples(3);
    record.push(Triple::new(
        Term::literal("x"),
        Term::iri("urn:p"),
        Term::iri("urn:o"),
    ));
    system.write("c", record).await;
    system.holds("c", 3).await;
    let told = system.flow.dead_letter().await;
    assert_eq!(told.detail, "triples[3].s: a literal cannot be a subject");
}

async fn drop_of(
    system: &System,
    workspace: &str,
    collection: &str,
    generation: i64,
) -> CollectionDropped {
    let ask = CollectionDrop {
        workspace: workspace.to_owned(),
        collection: collection.to_owned(),
        generation,
    };
    let to = triples_write::DROP.of_system();
    let answer = system
        .flow
        .mesh
        .ask::<_, CollectionDropped>(&to, &ask, system.flow.options());
    answer.last().await.unwrap()
}

async fn dropped_collections_are_gone_and_others_of_like_names_stay(place: Place) {
    let system = System::start(&place).await;
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

/// A configuration that lost a row looks like one that deleted it: only who asks for it purges.
async fn among_foreign_processors_a_row_that_goes_takes_nothing_with_it(place: Place) {
    let config = Config::new();
    let made = r#"{"enabled": true, "generation": 7}"#;
    config.set(REGISTRY, REGISTERED, "default", made);
    let system = System::start_among_foreign(&place, config).await;
    let (all, left) = ([("a", 0), ("b", 2), ("stays", 0)], [("stays", 0)]);
    system.set_collections(&all).await;
    for (name, _) in all {
        system.write(name, triples(5)).await;
        system.holds(name, 5).await;
    }
    for rows in [&left[..], &[]] {
        system.set_collections(rows).await;
        // A write that is seen: whoever followed the rows has had its turn.
        system.write("stays", triples(5)).await;
        system.holds("stays", 5).await;
        // Who has no row is read in the first generation, which is the one that it was in.
        system.holds("a", 5).await;
    }
    system.set_collections(&all).await;
    for (name, _) in all {
        system.holds(name, 5).await;
    }
    let workspace = WorkspaceKey::new("default", 7);
    let dropped = drop_of(&system, workspace.as_str(), "b", 2).await;
    assert_eq!(dropped.removed.get("triples"), Some(&5));
    system.holds("b", 0).await;
    system.holds("a", 5).await;
}

async fn what_came_from_a_chunk_is_taken_back(place: Place) {
    let system = System::start(&place).await;
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
        ..Retract::default()
    };
    let to = topic(Class::Flow, triples_write::RETRACT.name);
    for _ in 0..2 {
        system
            .flow
            .mesh
            .record(&to, &record, system.flow.options())
            .await
            .unwrap();
        system.holds("c", one).await;
    }
}

/// What names what made it names what makes the same once more: it is done once, however often it is delivered.
async fn a_retraction_that_comes_again_takes_nothing_of_a_later_run(place: Place) {
    let system = System::start(&place).await;
    let made = |chunk: &str, count: usize| {
        let id = extraction_id(chunk, "extractor", "former");
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
    let retract = async |id: &str, chunk: &str| {
        let record = Retract {
            metadata: Some(Metadata {
                collection: "c".to_owned(),
                ..Metadata::default()
            }),
            superseded: vec![Superseded {
                processor: "extractor".to_owned(),
                kept: Vec::new(),
                gone: vec!["former".to_owned()],
                chunks: vec![chunk.to_owned()],
            }],
            ..Retract::default()
        };
        let options = Ask {
            id: Some(id.to_owned()),
            ..system.flow.options()
        };
        let to = topic(Class::Flow, triples_write::RETRACT.name);
        let sent = system.flow.mesh.record(&to, &record, options).await;
        sent.unwrap();
    };
    let agent = 2;
    let (one, all) = ("urn:chunk:1", made("urn:chunk:1", 3).len());
    system.write("c", made(one, 3)).await;
    system.holds("c", all).await;
    retract("r1", one).await;
    system.holds("c", agent).await;
    // A later run goes back to the former prompt, and the store, which died before its receipt, hears of the first again.
    system.write("c", made(one, 3)).await;
    system.holds("c", all).await;
    retract("r1", one).await;
    // Read behind it.
    system.write("c", made("urn:chunk:2", 3)).await;
    let more = made("urn:chunk:2", 3).len() - 3 - agent;
    system.holds("c", all + more).await;
    retract("r2", "urn:chunk:2").await;
    system.holds("c", all).await;
}

/// What somebody loads stays, loaded before it was found or after; what they load among what was found is theirs alone.
async fn what_was_loaded_by_hand_stays(place: Place) {
    let system = System::start(&place).await;
    let all = triples(3);
    let id = subgraph_id("urn:chunk:1", "extractor");
    let extraction = Extraction {
        id: &id,
        chunk: "urn:chunk:1",
        making: Making {
            component: "extractor",
            version: "1",
            started_at: "2026-01-01T00:00:00Z",
        },
        llm_model: None,
        ontology: None,
        prompt_version: None,
    };
    let found = extracted(&extraction, all.clone());
    let load = async |one: &Triple| {
        let record = Triples {
            metadata: Some(Metadata {
                collection: "c".to_owned(),
                ..Metadata::default()
            }),
            triples: vec![one.clone()],
        };
        let options = Ask {
            by_hand: true,
            ..system.flow.options()
        };
        system
            .flow
            .write_as("triples-store", &record, options)
            .await;
    };
    load(&all[0]).await;
    system.holds("c", 1).await;
    system.write("c", found.clone()).await;
    system.holds("c", found.len()).await;
    load(&all[1]).await;
    load(&triples(4)[3]).await;
    system.holds("c", found.len() + 1).await;
    let record = Retract {
        metadata: Some(Metadata {
            collection: "c".to_owned(),
            ..Metadata::default()
        }),
        chunks: vec!["urn:chunk:1".to_owned()],
        ..Retract::default()
    };
    let to = topic(Class::Flow, triples_write::RETRACT.name);
    let retracted = system.flow.mesh.record(&to, &record, system.flow.options());
    retracted.await.unwrap();
    let agent = 2;
    system.holds("c", 3 + agent).await;
    let held = system.query(TriplesQueryRequest {
        collection: "c".to_owned(),
        ..TriplesQueryRequest::default()
    });
    let held = held.await.unwrap().remove(0).triples;
    let there = |n: usize| held.contains(&triples(4)[n]);
    assert!(there(0) && there(1) && there(3) && !there(2), "{held:?}");
}

async fn a_frontier_and_its_sources_are_one_question_each(place: Place) {
    let system = System::start(&place).await;
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
    let to = topic(Class::Request, triples_query::NEIGHBOURS.name);
    let answer =
        system
            .flow
            .mesh
            .ask::<_, NeighbourhoodResponse>(&to, &around, system.flow.options());
    let found = answer.last().await.unwrap();
    assert_eq!((found.edges.len(), found.terms.len()), (1, 3));
    let elsewhere = NeighbourhoodRequest {
        collection: "other".to_owned(),
        ..around
    };
    let answer =
        system
            .flow
            .mesh
            .ask::<_, NeighbourhoodResponse>(&to, &elsewhere, system.flow.options());
    assert!(answer.last().await.unwrap().edges.is_empty());
    let of = SourcesRequest {
        collection: "c".to_owned(),
        edges: vec![built],
        ..SourcesRequest::default()
    };
    let to = topic(Class::Request, triples_query::SOURCES.name);
    let answer = system
        .flow
        .mesh
        .ask::<_, SourcesResponse>(&to, &of, system.flow.options());
    let found = answer.last().await.unwrap();
    assert_eq!(found.traced[0].documents, [0]);
    assert_eq!(found.documents[0].uri, "urn:doc");
}

tg_testkit::on_both_buses!(
    records_become_answers,
    a_bad_triple_is_dead_letter_and_the_others_are_kept,
    dropped_collections_are_gone_and_others_of_like_names_stay,
    among_foreign_processors_a_row_that_goes_takes_nothing_with_it,
    what_came_from_a_chunk_is_taken_back,
    a_retraction_that_comes_again_takes_nothing_of_a_later_run,
    what_was_loaded_by_hand_stays,
    a_frontier_and_its_sources_are_one_question_each,
);
