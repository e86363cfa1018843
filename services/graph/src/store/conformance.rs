//! What every adapter of [`QuadStore`] does. A new one is added by one line at the end.

use std::time::Duration;

use tg_collections::{CollectionKey, CollectionStore, WorkspaceStore, WriteKind};
use tg_schemas::msg::{
    NeighbourhoodRequest, NeighbourhoodResponse, Retract, SourcesRequest, SourcesResponse,
};
use tg_schemas::vocabulary::{SOURCE_GRAPH, prov, tg};
use tg_schemas::{Term, Triple, WorkspaceKey, WorkspaceTombstone};
use tokio_util::sync::CancellationToken;

use super::embedded::tests::open_again;
use super::embedded::{EmbeddedGraph, ONE_WORKSPACE};
use super::{Form, Graphs, Part, QuadStore, SparqlAsk, TriplePattern};
use crate::error::GraphError;
use crate::options::Limits;

/// What the suite needs of an adapter.
trait Graph: QuadStore + CollectionStore<Part = ()> {}

impl<S: QuadStore + CollectionStore<Part = ()>> Graph for S {}

/// Most triples of an answer in one piece in these tests.
const MOST: usize = 50;

fn key(workspace: &str, collection: &str) -> CollectionKey {
    CollectionKey::new(workspace, collection)
}

fn fact(s: &str, o: &str) -> Triple {
    Triple::new(Term::iri(s), Term::iri("urn:p"), Term::literal(o))
}

async fn put(store: &impl Graph, key: &CollectionKey, triples: Vec<Triple>) {
    let count = triples.len();
    let written = store.write(key, triples, WriteKind::Direct).await.unwrap();
    assert_eq!((written.kept, written.refused), (Some(count), Vec::new()));
}

/// Everything of a collection, sorted.
async fn all(store: &impl Graph, key: &CollectionKey) -> Vec<String> {
    let found = store.find(key, None, TriplePattern::default(), None).await;
    let said = |triple: Triple| format!("{:?} {:?} {:?}", triple.s, triple.o, triple.g);
    let mut said: Vec<String> = found.unwrap().into_iter().map(said).collect();
    said.sort();
    said
}

fn about(s: &str) -> TriplePattern {
    TriplePattern {
        s: Some(Term::iri(s)),
        ..TriplePattern::default()
    }
}

async fn what_is_written_is_found_once(store: &impl Graph) {
    let key = key("w", "c");
    assert!(all(store, &key).await.is_empty());
    let named = Triple {
        g: Some("urn:g".to_owned()),
        ..fact("urn:a", "2")
    };
    for _ in 0..2 {
        put(store, &key, vec![fact("urn:a", "1"), named.clone()]).await;
        put(store, &key, vec![fact("urn:b", "1")]).await;
    }
    assert_eq!(all(store, &key).await.len(), 3);
    let find = async |pattern| store.find(&key, None, pattern, None).await.unwrap();
    assert_eq!(find(about("urn:a")).await.len(), 2);
    let in_graph = |g: &str| TriplePattern {
        g: Some(g.to_owned()),
        ..about("urn:a")
    };
    assert_eq!(find(in_graph("urn:g")).await, [named]);
    assert_eq!(find(in_graph("")).await, [fact("urn:a", "1")]);
    assert_eq!(find(in_graph("*")).await.len(), 2);
    let object = TriplePattern {
        o: Some(Term::literal("1")),
        ..TriplePattern::default()
    };
    assert_eq!(find(object).await.len(), 2);
    let limited = store
        .find(&key, None, TriplePattern::default(), Some(2))
        .await;
    assert_eq!(limited.unwrap().len(), 2);
}

async fn what_can_match_nothing_matches_nothing_and_what_is_not_valid_is_told(store: &impl Graph) {
    let key = key("w", "c");
    put(store, &key, vec![fact("urn:a", "1")]).await;
    let literal = TriplePattern {
        s: Some(Term::literal("urn:a")),
        ..TriplePattern::default()
    };
    let found = store.find(&key, None, literal.clone(), None).await;
    assert_eq!(found, Ok(Vec::new()));
    let mut scan = store.scan(&key, None, literal, None).await.unwrap();
    assert_eq!(scan.next_chunk(9).await, Ok(Vec::new()));
    let bad = TriplePattern {
        s: Some(Term::iri("not an iri")),
        ..TriplePattern::default()
    };
    let told = store.find(&key, None, bad.clone(), None).await;
    assert!(matches!(told, Err(GraphError::Term { field, .. }) if field == "s"));
    assert!(store.scan(&key, None, bad, None).await.is_err());
}

async fn one_bad_triple_does_not_hold_up_the_others(store: &impl Graph) {
    let key = key("w", "c");
    let bad = Triple::new(Term::literal("s"), Term::iri("urn:p"), Term::literal("o"));
    let triples = vec![fact("urn:a", "1"), bad.clone(), fact("urn:b", "1"), bad];
    let written = store.write(&key, triples, WriteKind::Direct).await.unwrap();
    assert_eq!(written.kept, Some(2));
    let refused: Vec<String> = written.refused.iter().map(ToString::to_string).collect();
    assert_eq!(
        refused,
        [
            "triples[1].s: a literal cannot be a subject",
            "triples[3].s: a literal cannot be a subject"
        ]
    );
    assert_eq!(all(store, &key).await.len(), 2);
}

async fn a_scan_is_of_one_state_and_comes_in_chunks(store: &impl Graph) {
    let key = key("w", "c");
    let facts = (0..100).map(|n| fact("urn:a", &n.to_string())).collect();
    put(store, &key, facts).await;
    let whole = store.find(&key, None, TriplePattern::default(), None).await;
    assert_eq!(whole, Err(GraphError::TooMany(MOST)));
    let mut scan = store.scan(&key, None, about("urn:a"), None).await.unwrap();
    let mut count = scan.next_chunk(30).await.unwrap().len();
    put(store, &key, vec![fact("urn:a", "later")]).await;
    loop {
        let chunk = scan.next_chunk(30).await.unwrap();
        count += chunk.len();
        if chunk.len() < 30 {
            break;
        }
    }
    assert_eq!(count, 100);
    let mut few = store
        .scan(&key, None, about("urn:a"), Some(7))
        .await
        .unwrap();
    assert_eq!(few.next_chunk(30).await.unwrap().len(), 7);
}

async fn collections_never_meet(store: &impl Graph) {
    let names = ["a", "a:b", "a_b", "ü", "'; DROP TABLE dataset; --"];
    for workspace in names {
        for collection in names {
            let own = fact("urn:a", &format!("{workspace}|{collection}"));
            put(store, &key(workspace, collection), vec![own]).await;
        }
    }
    for workspace in names {
        for collection in names {
            assert_eq!(all(store, &key(workspace, collection)).await.len(), 1);
        }
    }
    let proof = WorkspaceTombstone {
        generation: 0,
        deleted_at: 1,
        purge_after: 1,
    };
    let ended = WorkspaceKey::new("a", 0);
    for _ in 0..2 {
        store.purge(&ended, &proof).await.unwrap();
    }
    assert!(!store.workspaces().await.unwrap().contains(&"a".to_owned()));
    assert!(all(store, &key("a", "a:b")).await.is_empty());
    assert_eq!(all(store, &key("a:b", "a")).await.len(), 1);
}

async fn a_dropped_generation_stays_dead(store: &impl Graph) {
    let generation = |n| key("w", "c").in_generation(n);
    for n in 0..3 {
        put(store, &generation(n), vec![fact("urn:a", "1")]).await;
    }
    for left in [2, 0] {
        assert_eq!(store.drop_collection(&generation(1)).await, Ok(left));
    }
    let late = vec![fact("urn:a", "late")];
    let (first, second) = (generation(1), generation(2));
    let tracked = store.write(&first, late.clone(), WriteKind::Tracked);
    assert_eq!(tracked.await.unwrap().kept, None);
    assert!(all(store, &first).await.is_empty());
    assert_eq!(all(store, &second).await.len(), 1);
    // What comes from anywhere else begins anew.
    put(store, &generation(1), late).await;
    assert_eq!(all(store, &generation(1)).await.len(), 1);
    let what = Retract {
        triples: vec![fact("urn:a", "late")],
        ..Retract::default()
    };
    let retract = store.retract(&first, WriteKind::Tracked, (), what.clone());
    assert_eq!(retract.await, Ok(0), "its run came too late, too");
    let retract = store.retract(&first, WriteKind::Direct, (), what);
    assert_eq!(retract.await, Ok(1));
}

async fn sparql_answers_in_parts(store: &impl Graph) {
    let key = key("w", "c");
    put(
        store,
        &key,
        (0..25).map(|n| fact("urn:a", &n.to_string())).collect(),
    )
    .await;
    let ask = |query: &str| SparqlAsk {
        query: query.to_owned(),
        graphs: Graphs::default(),
        limit: Some(20),
        batch: 8,
        time: Duration::from_secs(20),
        user: None,
        cancel: CancellationToken::new(),
    };
    let select = ask("SELECT ?o WHERE { <urn:a> <urn:p> ?o }");
    let mut answer = store.sparql(&key, select).await.unwrap();
    assert_eq!(answer.form, Form::Select);
    assert_eq!(answer.variables, ["o"]);
    let mut rows = 0;
    while let Some((part, bytes)) = answer.next_sized().await.unwrap() {
        let Part::Rows(part) = part else {
            panic!("{part:?}");
        };
        assert!(part.len() <= 8 && bytes > 0);
        rows += part.len();
    }
    assert_eq!(rows, 20);
    let mut answer = store.sparql(&key, ask("ASK { ?s ?p '24' }")).await.unwrap();
    assert_eq!(answer.next().await, Ok(Some(Part::Ask(true))));
    let refused = store.sparql(&key, ask("SELECT")).await;
    assert!(matches!(refused.err(), Some(GraphError::QuerySyntax(_))));
    let nowhere = CollectionKey::new("w", "nowhere");
    let mut answer = store
        .sparql(&nowhere, ask("ASK { ?s ?p ?o }"))
        .await
        .unwrap();
    assert_eq!(answer.next().await, Ok(Some(Part::Ask(false))));
}

async fn what_is_around_a_node_is_told(store: &impl Graph) {
    let key = key("w", "c");
    let around = async || {
        let ask = NeighbourhoodRequest {
            nodes: vec![Term::iri("urn:a")],
            limit: 10,
            ..NeighbourhoodRequest::default()
        };
        let found = store.neighbours(&key, None, ask, CancellationToken::new());
        found.await.unwrap()
    };
    let sources = async || {
        let ask = SourcesRequest {
            edges: vec![fact("urn:a", "1")],
            properties: 10,
            ..SourcesRequest::default()
        };
        let found = store.sources(&key, None, ask, CancellationToken::new());
        found.await.unwrap()
    };
    assert_eq!(around().await, NeighbourhoodResponse::default());
    assert_eq!(sources().await, SourcesResponse::default());
    put(store, &key, vec![fact("urn:a", "1")]).await;
    assert_ne!(around().await, NeighbourhoodResponse::default());
    assert_eq!(sources().await.traced.len(), 1);
}

async fn what_is_loaded_by_hand_stays_when_what_was_found_goes(store: &impl Graph) {
    let key = key("w", "c");
    let (mine, theirs) = (fact("urn:a", "1"), fact("urn:b", "1"));
    let of = |s: &str, p: &str, o: Term| {
        Triple::new(Term::iri(s), Term::iri(p), o).in_graph(SOURCE_GRAPH)
    };
    let holds = |fact: &Triple| Term::Quoted(Box::new(fact.clone()));
    let class = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
    let found = vec![
        mine.clone(),
        theirs.clone(),
        of("urn:sub", class, Term::iri(tg::SUBGRAPH)),
        of("urn:sub", prov::WAS_DERIVED_FROM, Term::iri("urn:chunk")),
        of("urn:sub", tg::CONTAINS, holds(&mine)),
        of("urn:sub", tg::CONTAINS, holds(&theirs)),
    ];
    let bad = Triple::new(Term::literal("s"), Term::iri("urn:p"), Term::literal("o"));
    let loaded = store.load(&key, vec![mine.clone(), bad], WriteKind::Direct);
    let loaded = loaded.await.unwrap();
    assert_eq!(loaded.kept, Some(1));
    assert_eq!(loaded.refused.len(), 1);
    put(store, &key, found).await;
    assert_eq!(all(store, &key).await.len(), 6, "marks are not seen");
    let what = Retract {
        chunks: vec!["urn:chunk".to_owned()],
        ..Retract::default()
    };
    let gone = store.retract(&key, WriteKind::Direct, (), what).await;
    assert_eq!(gone, Ok(5));
    let left = store.find(&key, None, TriplePattern::default(), None).await;
    assert_eq!(left, Ok(vec![mine]));
}

/// Holds an adapter to all of it.
macro_rules! conformance {
    ($adapter:ident, $make:expr) => {
        conformance!($adapter, $make;
            what_is_written_is_found_once,
            what_can_match_nothing_matches_nothing_and_what_is_not_valid_is_told,
            one_bad_triple_does_not_hold_up_the_others,
            what_is_loaded_by_hand_stays_when_what_was_found_goes,
            a_scan_is_of_one_state_and_comes_in_chunks,
            collections_never_meet,
            a_dropped_generation_stays_dead,
            sparql_answers_in_parts,
            what_is_around_a_node_is_told);
    };
    ($adapter:ident, $make:expr; $($promise:ident),*) => {
        mod $adapter {
            use super::*;

            $(#[tokio::test]
            async fn $promise() {
                super::$promise(&$make).await;
            })*
        }
    };
}

conformance!(
    embedded,
    EmbeddedGraph::in_memory(Limits {
        single_answer: MOST,
        ..Limits::default()
    })
    .unwrap()
);

#[tokio::test]
async fn a_backup_of_one_workspace_has_the_same_triples() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("graph.sqlite");
    let open = || open_again(&file, &Limits::default());
    let store = open();
    for workspace in ["other", "acme#7"] {
        put(&store, &key(workspace, "c"), vec![fact("urn:a", workspace)]).await;
    }
    drop(store);
    ONE_WORKSPACE
        .keep(&file, &WorkspaceKey::new("acme", 7))
        .unwrap();
    let store = open();
    assert_eq!(store.workspaces().await.unwrap(), ["acme#7"]);
    assert_eq!(all(&store, &key("acme#7", "c")).await.len(), 1);
    assert!(all(&store, &key("other", "c")).await.is_empty());
}
