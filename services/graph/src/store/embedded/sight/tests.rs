//! Each way of reading shows what the policies let a user see, and nothing else.

use tg_collections::{CollectionKey, WriteKind};
use tg_schemas::msg::{NeighbourhoodRequest, SourcesRequest, UserContext};
use tg_schemas::vocabulary::{POLICY_GRAPH, rdf, sh};
use tg_schemas::{Term, Triple};
use tokio_util::sync::CancellationToken;

use crate::error::GraphError;
use crate::options::Limits;
use crate::store::embedded::EmbeddedGraph;
use crate::store::{Graphs, Part, QuadStore, SparqlAsk, TriplePattern};

const SELECT: &str = "SELECT ?this WHERE { ?this a <urn:x:Secret> \
    FILTER NOT EXISTS { ?user <https://trustgraph.ai/ontology/user-context/role> <urn:x:boss> } }";
const CONSTRUCT: &str = "CONSTRUCT { [] a <http://www.w3.org/ns/shacl#ValidationResult> } WHERE { ?this a <urn:x:Secret> }";

fn iri(text: &str) -> Option<Term> {
    Some(Term::Iri(text.to_owned()))
}

fn triple(s: &str, p: &str, o: Term, g: &str) -> Triple {
    Triple {
        s: iri(s),
        p: iri(p),
        o: Some(o),
        g: (!g.is_empty()).then(|| g.to_owned()),
    }
}

fn text(value: &str) -> Term {
    Term::literal(value)
}

fn node(name: &str) -> Term {
    Term::Iri(name.to_owned())
}

/// `urn:x:b` is secret: its facts, what points at it, what is said of such a fact, and its graph.
fn world() -> Vec<Triple> {
    let said = triple("urn:x:a", "urn:x:knows", node("urn:x:b"), "");
    vec![
        triple("urn:x:a", "urn:x:knows", node("urn:x:b"), ""),
        triple("urn:x:a", "urn:x:name", text("Ann"), ""),
        triple("urn:x:b", "urn:x:name", text("Bob"), ""),
        triple("urn:x:b", rdf::TYPE, node("urn:x:Secret"), ""),
        triple("urn:x:a", "urn:x:name", text("Ann elsewhere"), "urn:x:b"),
        triple("urn:x:note", "urn:x:says", Term::Quoted(Box::new(said)), ""),
    ]
}

fn policies() -> Vec<Triple> {
    let of = |s: &str, p: &str, o| triple(s, p, o, POLICY_GRAPH);
    vec![
        of("urn:x:p", rdf::TYPE, node(sh::NODE_SHAPE)),
        of("urn:x:p", sh::TARGET, node("urn:x:t")),
        of("urn:x:t", sh::SELECT, text(SELECT)),
        of("urn:x:p", sh::RULE, node("urn:x:r")),
        of("urn:x:r", sh::CONSTRUCT, text(CONSTRUCT)),
    ]
}

fn user(roles: &[&str]) -> UserContext {
    UserContext {
        user_id: "urn:x:me".into(),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        ..UserContext::default()
    }
}

async fn graph(with: Vec<Triple>) -> (EmbeddedGraph, CollectionKey) {
    let engine = EmbeddedGraph::in_memory(Limits::default()).unwrap();
    let key = CollectionKey::new("w", "c");
    let all = world().into_iter().chain(with).collect();
    QuadStore::write(&engine, &key, all, WriteKind::Direct)
        .await
        .unwrap();
    (engine, key)
}

async fn rows(
    engine: &EmbeddedGraph,
    key: &CollectionKey,
    user: Option<&UserContext>,
    query: &str,
) -> Result<Vec<String>, GraphError> {
    let ask = SparqlAsk {
        query: query.to_owned(),
        graphs: Graphs::default(),
        limit: None,
        batch: 100,
        time: std::time::Duration::from_secs(20),
        user: user.cloned().map(std::sync::Arc::new),
        cancel: CancellationToken::new(),
    };
    let mut answer = QuadStore::sparql(engine, key, ask).await?;
    let mut all = Vec::new();
    while let Some(part) = answer.next().await? {
        match part {
            Part::Rows(rows) => all.extend(rows.iter().map(|row| format!("{row:?}"))),
            Part::Triples(triples) => all.extend(triples.iter().map(|one| format!("{one:?}"))),
            Part::Ask(yes) => all.push(yes.to_string()),
        }
    }
    Ok(all)
}

/// Everything that can be read, as text.
async fn seen(
    engine: &EmbeddedGraph,
    key: &CollectionKey,
    user: Option<&UserContext>,
) -> Result<Vec<(&'static str, String)>, GraphError> {
    let mut seen = Vec::new();
    let all = TriplePattern::default();
    let found = QuadStore::find(engine, key, user, all.clone(), None).await?;
    seen.push(("find", format!("{found:?}")));
    let mut scan = QuadStore::scan(engine, key, user, all, None).await?;
    seen.push(("scan", format!("{:?}", scan.next_chunk(100).await?)));
    for query in [
        "SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }",
        "SELECT ?g { GRAPH ?g {} }",
        "SELECT * FROM <urn:x:b> FROM <urn:graph:policy> { ?s ?p ?o }",
        "SELECT (COUNT(*) AS ?n) (GROUP_CONCAT(STR(?o)) AS ?all) { ?s ?p ?o }",
        "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }",
        "DESCRIBE <urn:x:a> <urn:x:b>",
        "SELECT * { <urn:x:a> <urn:x:knows>+ ?o }",
        "SELECT * { ?note <urn:x:says> << <urn:x:a> <urn:x:knows> ?whom >> }",
    ] {
        seen.push((query, rows(engine, key, user, query).await?.join("\n")));
    }
    let ask = NeighbourhoodRequest {
        nodes: vec![node("urn:x:a"), node("urn:x:b"), node("urn:x:note")],
        graphs: vec!["*".into()],
        ..NeighbourhoodRequest::default()
    };
    let around = QuadStore::neighbours(engine, key, user, ask, CancellationToken::new()).await?;
    seen.push(("neighbours", format!("{around:?}")));
    let ask = SourcesRequest {
        nodes: vec!["urn:x:a".into()],
        properties: 10,
        ..SourcesRequest::default()
    };
    let sources = QuadStore::sources(engine, key, user, ask, CancellationToken::new()).await?;
    seen.push(("sources", format!("{sources:?}")));
    Ok(seen)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_way_of_reading_hides_what_a_policy_hides() {
    let (engine, key) = graph(policies()).await;
    let clerk = user(&["urn:x:clerk"]);
    for (way, text) in seen(&engine, &key, Some(&clerk)).await.unwrap() {
        // What was asked for by name may be said again, as a node without anything.
        let text = text.replace("urn:x:bob", "");
        for hidden in [
            "Bob",
            "elsewhere",
            "Baker",
            "Secret",
            "urn:x:knows",
            "urn:x:says",
            "sh:",
            "shacl",
            "urn:x:b\"",
        ] {
            assert!(!text.contains(hidden), "{way} shows {hidden}: {text}");
        }
        if ["find", "scan", "neighbours"].contains(&way) {
            assert!(text.contains("Ann"), "{way}: {text}");
        }
    }
    let yes = rows(&engine, &key, Some(&clerk), "ASK { ?s <urn:x:name> 'Bob' }").await;
    assert_eq!(yes.unwrap(), ["false"]);
    // Whom the policy lets pass sees all but the policies.
    let boss = user(&["urn:x:boss"]);
    let all = seen(&engine, &key, Some(&boss)).await.unwrap();
    assert!(
        all[0].1.contains("Bob") && all[0].1.contains("elsewhere"),
        "{}",
        all[0].1
    );
    for (way, text) in all {
        assert!(!text.contains("shacl"), "{way}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_shown_where_nothing_is_known_of_the_user() {
    let (engine, key) = graph(Vec::new()).await;
    assert!(
        seen(&engine, &key, None).await.unwrap()[0]
            .1
            .contains("Bob")
    );
    // The policies count from the moment at which they are written.
    QuadStore::write(&engine, &key, policies(), WriteKind::Direct)
        .await
        .unwrap();
    let told = seen(&engine, &key, None).await;
    assert_eq!(told.unwrap_err(), GraphError::NoUserContext);
    let clerk = user(&[]);
    let own = QuadStore::find(&engine, &key, Some(&clerk), TriplePattern::default(), None);
    assert!(!format!("{:?}", own.await.unwrap()).contains("Bob"));
    // Another collection of the workspace has none.
    let other = CollectionKey::new("w", "d");
    QuadStore::write(&engine, &other, world(), WriteKind::Direct)
        .await
        .unwrap();
    assert!(
        seen(&engine, &other, None).await.unwrap()[0]
            .1
            .contains("Bob")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_fails_hides_everything() {
    let without_rule = policies().into_iter().take(3).collect();
    let (engine, key) = graph(without_rule).await;
    let boss = user(&["urn:x:boss"]);
    let told = seen(&engine, &key, Some(&boss)).await.unwrap_err();
    let why = "policy urn:x:p: sh:rule with sh:construct is required";
    assert_eq!(told.to_string(), why);
    assert_eq!(told.to_wire("x").kind, "triples-query-policy-error");
    assert_eq!(
        GraphError::NoUserContext.to_wire("x").kind,
        "policy-enforcement-error"
    );
}
