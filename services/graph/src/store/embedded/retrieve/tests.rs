//! Looking around entities, and from facts back to their documents.

use std::time::Duration;

use tg_schemas::{Term, Triple};

use super::around::text;
use super::*;
use crate::{Limits, convert};

mod plain;

const LABEL: &str = "http://www.w3.org/2000/01/rdf-schema#label";
const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

fn fact(s: &str, p: &str, o: Term) -> Triple {
    Triple::new(Term::iri(s), Term::iri(p), o)
}

fn tagged(value: &str, language: &str) -> Term {
    Term::Literal {
        value: value.into(),
        datatype: String::new(),
        language: language.into(),
    }
}

async fn filled(triples: &[Triple]) -> (EmbeddedGraph, CollectionKey) {
    let engine = EmbeddedGraph::in_memory(Limits::default()).unwrap();
    let key = CollectionKey::new("w", "c");
    let quads = triples
        .iter()
        .map(|triple| convert::quad("", triple).unwrap());
    engine.insert(&key, quads.collect()).await.unwrap();
    (engine, key)
}

fn asked(nodes: &[&str]) -> NeighbourhoodRequest {
    NeighbourhoodRequest {
        nodes: nodes.iter().map(|node| Term::guess(node)).collect(),
        exclude_graphs: vec!["urn:graph:retrieval".into(), "urn:graph:source".into()],
        exclude_predicates: vec!["http://www.w3.org/".into()],
        keep_predicates: vec![TYPE.into()],
        ..NeighbourhoodRequest::default()
    }
}

/// The edges as sorted lines of labels.
async fn lines(
    engine: &EmbeddedGraph,
    key: &CollectionKey,
    ask: NeighbourhoodRequest,
) -> Vec<String> {
    let cancel = CancellationToken::new();
    let found = engine.neighbours(key, None, ask, cancel).await.unwrap();
    let name = |place: i64| text(&found.terms[usize::try_from(place).unwrap()]);
    let mut lines: Vec<String> = found
        .edges
        .iter()
        .map(|edge| [edge.s, edge.p, edge.o].map(name).join(" | "))
        .collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn a_label_that_changes_is_seen_at_once() {
    let label = |text: &str| fact("urn:x:a", LABEL, Term::literal(text));
    let (engine, key) = filled(&[
        label("Bob"),
        fact("urn:x:a", "urn:p:knows", Term::iri("urn:x:b")),
    ])
    .await;
    for (written, shown) in [
        (None, "Bob"),
        (Some("Ada"), "Ada"),
        (Some("Eve"), "Ada"),
        (Some("Aaron"), "Aaron"),
    ] {
        if let Some(text) = written {
            let quad = convert::quad("", &label(text)).unwrap();
            engine.insert(&key, vec![quad]).await.unwrap();
        }
        let found = lines(&engine, &key, asked(&["urn:x:a"])).await;
        assert_eq!(found, [format!("{shown} | knows | b")]);
    }
}

#[tokio::test]
async fn a_frontier_is_looked_around_in_all_directions_with_labels() {
    let (engine, key) = filled(&[
        fact("urn:x:a", "urn:p:knows", Term::iri("urn:x:b")),
        fact("urn:x:c", "urn:p:knows", Term::iri("urn:x:a")),
        fact("urn:x:d", "urn:x:a", Term::literal("as predicate")),
        fact("urn:x:a", LABEL, Term::literal("Ada")),
        fact("urn:x:a", LABEL, tagged("Ade", "de")).in_graph("urn:graph:retrieval"),
        fact("urn:x:a", TYPE, Term::iri("urn:x:Person")),
        fact("urn:x:a", "urn:p:seed", Term::iri("urn:x:t")).in_graph("urn:graph:retrieval"),
        fact("urn:x:a", "urn:p:user", Term::iri("urn:x:u")).in_graph("urn:mine"),
        fact("urn:x:b", "urn:p:far", Term::literal("two hops away")),
    ])
    .await;
    assert_eq!(
        lines(&engine, &key, asked(&["urn:x:a"])).await,
        [
            "Ada | knows | b",
            "Ada | type | Person",
            "Ada | user | u",
            "c | knows | Ada",
            "d | Ada | as predicate",
        ]
    );
    let only = NeighbourhoodRequest {
        graphs: vec!["urn:mine".into()],
        ..asked(&["urn:x:a"])
    };
    assert_eq!(lines(&engine, &key, only).await, ["a | user | u"]);
    let traces = NeighbourhoodRequest {
        graphs: vec!["*".into()],
        predicates: vec!["urn:p:seed".into()],
        ..asked(&["urn:x:a"])
    };
    assert_eq!(lines(&engine, &key, traces).await, ["Ada | seed | t"]);
    let typed = NeighbourhoodRequest {
        types: vec!["urn:x:Person".into()],
        predicates: vec!["urn:p:knows".into(), "urn:p:far".into()],
        ..asked(&["urn:x:a", "urn:x:b"])
    };
    assert_eq!(
        lines(&engine, &key, typed).await,
        ["Ada | knows | b", "c | knows | Ada"]
    );
    assert!(
        lines(
            &engine,
            &CollectionKey::new("w", "other"),
            asked(&["urn:x:a"])
        )
        .await
        .is_empty()
    );
}

#[tokio::test]
async fn languages_choose_texts_and_labels() {
    let (engine, key) = filled(&[
        fact("urn:x:a", "urn:p:says", tagged("colour", "en-GB")),
        fact("urn:x:a", "urn:p:says", tagged("Farbe", "de")),
        fact("urn:x:a", "urn:p:says", Term::literal("plain")),
        fact("urn:x:a", LABEL, tagged("Ding", "de")),
        fact("urn:x:a", LABEL, tagged("thing", "en")),
    ])
    .await;
    let ask = |languages: &[&str]| NeighbourhoodRequest {
        languages: languages.iter().map(|tag| (*tag).to_owned()).collect(),
        ..asked(&["urn:x:a"])
    };
    assert_eq!(
        lines(&engine, &key, ask(&["en"])).await,
        ["thing | says | colour", "thing | says | plain"]
    );
    assert_eq!(
        lines(&engine, &key, ask(&["DE"])).await,
        ["Ding | says | Farbe", "Ding | says | plain"]
    );
    assert_eq!(
        lines(&engine, &key, ask(&["fr"])).await,
        ["a | says | plain"]
    );
    assert_eq!(lines(&engine, &key, ask(&[])).await.len(), 3);
}

#[tokio::test]
async fn of_too_many_edges_those_that_share_words_are_kept() {
    let mut triples: Vec<Triple> = (0..500)
        .map(|at| {
            fact(
                "urn:x:hub",
                "urn:p:has",
                Term::literal(format!("item {at}")),
            )
        })
        .collect();
    triples.insert(
        250,
        fact(
            "urn:x:hub",
            "urn:p:capital",
            Term::literal("Paris, the capital city"),
        ),
    );
    let (engine, key) = filled(&triples).await;
    let ask = NeighbourhoodRequest {
        limit: 5,
        words: vec!["capital".into(), "france".into()],
        ..asked(&["urn:x:hub"])
    };
    let found = lines(&engine, &key, ask).await;
    assert_eq!(found.len(), 5);
    assert!(found.contains(&"hub | capital | Paris, the capital city".to_owned()));
}

#[tokio::test]
async fn no_edge_of_a_hub_is_cut_off_before_it_was_scored() {
    // More than were ever looked at before anything was cut; what fits comes late by each order of an index.
    const HUB: usize = 30_000;
    let mut triples: Vec<Triple> = (0..HUB)
        .map(|at| {
            let value = Term::literal(format!("item {at}"));
            fact("urn:x:hub", &format!("urn:p:has{}", at % 7), value)
        })
        .collect();
    for (at, place) in [1, HUB / 2, HUB - 1].into_iter().enumerate() {
        let value = Term::literal(format!("Paris, capital number {at}"));
        triples.insert(place, fact("urn:x:hub", &format!("urn:p:z{at}"), value));
    }
    let (engine, key) = filled(&triples).await;
    let ask = NeighbourhoodRequest {
        limit: 3,
        words: vec!["capital".into(), "paris".into()],
        ..asked(&["urn:x:hub"])
    };
    let within = |time: Duration| {
        let ask = ask.clone();
        let look = move |data: &Dataset, cancel: &CancellationToken| {
            around::around(data, &ask, cancel, time)
        };
        engine.look(&key, None, CancellationToken::new(), look)
    };
    let hurried = within(Duration::ZERO).await.unwrap();
    assert!(
        (2_000..3_000).contains(&hurried.examined),
        "{}",
        hurried.examined
    );
    let all = within(Duration::from_secs(300)).await.unwrap();
    assert_eq!(all.examined, HUB as i64 + 3, "not all were scored");
    let term = |place: i64| text(&all.terms[usize::try_from(place).unwrap()]);
    let mut found: Vec<String> = all.edges.iter().map(|edge| term(edge.o)).collect();
    found.sort();
    assert_eq!(
        found,
        [0, 1, 2].map(|at| format!("Paris, capital number {at}"))
    );
}

#[tokio::test]
async fn typed_facts_are_traced_to_chunk_and_document() {
    let typed = Term::Literal {
        value: "1429".into(),
        datatype: "http://www.w3.org/2001/XMLSchema#gYear".into(),
        language: String::new(),
    };
    let built = fact("urn:x:bridge", "urn:p:built", typed);
    let source = |s: &str, p: &str, o: Term| fact(s, p, o).in_graph("urn:graph:source");
    let derived = "http://www.w3.org/ns/prov#wasDerivedFrom";
    let ns = |name: &str| format!("https://trustgraph.ai/ns/{name}");
    let (engine, key) = filled(&[
        built.clone(),
        source(
            "urn:sub",
            &ns("contains"),
            Term::Quoted(Box::new(built.clone())),
        ),
        source("urn:sub", derived, Term::iri("urn:chunk:1")),
        source("urn:chunk:1", TYPE, Term::iri(ns("Chunk"))),
        source("urn:chunk:1", derived, Term::iri("urn:page:1")),
        source("urn:page:1", derived, Term::iri("urn:doc")),
        fact("urn:doc", TYPE, Term::iri(ns("Document"))),
        fact("urn:doc", &ns("mimeType"), Term::literal("text/plain")),
        fact(
            "urn:doc",
            "http://purl.org/dc/elements/1.1/title",
            Term::literal("Bridges"),
        ),
        fact(
            "urn:doc",
            "http://purl.org/dc/elements/1.1/creator",
            Term::literal("Ann"),
        ),
    ])
    .await;
    let ask = SourcesRequest {
        edges: vec![
            built.clone().in_graph("urn:whatever"),
            fact("urn:x:bridge", "urn:p:built", Term::literal("1429")),
        ],
        nodes: vec![
            "urn:chunk:1".into(),
            "urn:doc".into(),
            "urn:unknown".into(),
            "no iri".into(),
        ],
        properties: 10,
        ..SourcesRequest::default()
    };
    let cancel = CancellationToken::new();
    let found = engine.sources(&key, None, ask, cancel).await.unwrap();
    let documents: Vec<&[i64]> = found
        .traced
        .iter()
        .map(|t| t.documents.as_slice())
        .collect();
    let none: &[i64] = &[];
    assert_eq!(documents, [&[0], none, &[0], &[0], none, none]);
    assert_eq!(found.traced[0].chunks, ["urn:chunk:1"]);
    assert_eq!(found.documents.len(), 1);
    let document = &found.documents[0];
    assert_eq!(
        (document.uri.as_str(), document.title.as_str()),
        ("urn:doc", "Bridges")
    );
    let told: Vec<String> = document.properties.iter().map(text).collect();
    assert_eq!(told, ["creator", "Ann", "title", "Bridges"]);
}

#[tokio::test]
async fn a_document_comes_before_the_file_that_was_loaded() {
    let built = fact("urn:x:bridge", "urn:p:built", Term::literal("1429"));
    let crosses = fact("urn:x:bridge", "urn:p:crosses", Term::iri("urn:x:sell"));
    let source = |s: &str, p: &str, o: Term| fact(s, p, o).in_graph("urn:graph:source");
    let held = |fact: &Triple| Term::Quoted(Box::new(fact.clone()));
    let (derived, contains) = (
        "http://www.w3.org/ns/prov#wasDerivedFrom",
        "https://trustgraph.ai/ns/contains",
    );
    let (engine, key) = filled(&[
        source("urn:sub:a", contains, held(&built)),
        source("urn:sub:a", contains, held(&crosses)),
        source("urn:sub:a", derived, Term::iri("urn:document:bridges.ttl")),
        source(
            "urn:document:bridges.ttl",
            LABEL,
            Term::literal("bridges.ttl"),
        ),
        source("urn:sub:b", contains, held(&built)),
        source("urn:sub:b", derived, Term::iri("urn:chunk:1")),
        source(
            "urn:chunk:1",
            TYPE,
            Term::iri("https://trustgraph.ai/ns/Chunk"),
        ),
        source("urn:chunk:1", derived, Term::iri("urn:doc:1")),
    ])
    .await;
    let ask = SourcesRequest {
        edges: vec![built, crosses],
        ..SourcesRequest::default()
    };
    let found = engine
        .sources(&key, None, ask, CancellationToken::new())
        .await
        .unwrap();
    let named = |at: usize| -> Vec<&str> {
        let places = found.traced[at].documents.iter();
        let places = places.map(|place| usize::try_from(*place).unwrap());
        places
            .map(|place| found.documents[place].uri.as_str())
            .collect()
    };
    assert_eq!(named(0), ["urn:doc:1", "urn:document:bridges.ttl"]);
    assert_eq!(named(1), ["urn:document:bridges.ttl"]);
    assert_eq!(found.traced[1].chunks, [""; 0]);
    let file = found
        .documents
        .iter()
        .find(|one| one.uri == "urn:document:bridges.ttl");
    assert_eq!(file.unwrap().title, "bridges.ttl");
}
