//! Each way of reading shows what the policies let a user see, and nothing else.

use std::time::{Duration, Instant};

use oxigraph::model::Quad;
use tg_collections::{CollectionKey, WriteKind};
use tg_schemas::msg::{NeighbourhoodRequest, SourcesRequest, UserContext};
use tg_schemas::vocabulary::{POLICY_GRAPH, rdf, sh};
use tg_schemas::{Term, Triple};
use tokio_util::sync::CancellationToken;

use super::super::bounds::Bounds;
use crate::engine::pattern::Pattern;
use crate::error::GraphError;
use crate::options::Limits;
use crate::store::embedded::EmbeddedGraph;
use crate::store::embedded::batch::{Op, Run};
use crate::store::embedded::dataset::{Dataset, Quads};
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
    policy(SELECT, CONSTRUCT)
}

fn policy(select: &str, construct: &str) -> Vec<Triple> {
    let of = |s: &str, p: &str, o| triple(s, p, o, POLICY_GRAPH);
    vec![
        of("urn:x:p", rdf::TYPE, node(sh::NODE_SHAPE)),
        of("urn:x:p", sh::TARGET, node("urn:x:t")),
        of("urn:x:t", sh::SELECT, text(select)),
        of("urn:x:p", sh::RULE, node("urn:x:r")),
        of("urn:x:r", sh::CONSTRUCT, text(construct)),
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

/// Blank nodes, each of which hangs on the one before and the first on a thing.
fn chain(of: &str, name: &str, length: usize) -> Vec<Triple> {
    let blank = |at: usize| Term::Blank(format!("{name}{at}"));
    let first = triple(of, "urn:x:next", blank(0), "");
    let next = |at: usize| Triple {
        s: Some(blank(at)),
        p: iri("urn:x:next"),
        o: Some(blank(at + 1)),
        g: None,
    };
    std::iter::once(first)
        .chain((0..length).map(next))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_hangs_on_blank_nodes_is_judged_however_long_their_chain_is() {
    const LONG: usize = 1_000;
    let mut facts = policies();
    facts.extend(chain("urn:x:a", "seen", LONG));
    facts.extend(chain("urn:x:b", "hidden", LONG));
    // A chain that ends in itself is judged by what else it hangs on.
    let back = |name: &str| Triple {
        s: Some(Term::Blank(format!("{name}{LONG}"))),
        p: iri("urn:x:back"),
        o: Some(Term::Blank(format!("{name}0"))),
        g: None,
    };
    facts.extend([back("seen"), back("hidden")]);
    let (engine, key) = graph(facts).await;
    let clerk = user(&["urn:x:clerk"]);
    for (predicate, facts) in [("next", LONG + 1), ("back", 1)] {
        let query = format!("SELECT * {{ ?s <urn:x:{predicate}> ?o }}");
        let all = rows(&engine, &key, Some(&clerk), &query).await.unwrap();
        assert_eq!(all.len(), facts, "{predicate}");
    }
    let found = rows(
        &engine,
        &key,
        Some(&clerk),
        "SELECT * { <urn:x:a> <urn:x:next>+ ?o }",
    );
    assert_eq!(found.await.unwrap().len(), LONG + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_that_is_too_long_to_judge_is_an_error_and_hides_nothing_in_silence() {
    let mut facts = policies();
    facts.extend(chain("urn:x:a", "seen", super::HELD_BY + 1));
    let (engine, key) = graph(facts).await;
    let clerk = user(&["urn:x:clerk"]);
    let query = "SELECT * { ?s <urn:x:next> ?o } ORDER BY DESC(STR(?o))";
    let told = rows(&engine, &key, Some(&clerk), query).await.unwrap_err();
    assert!(told.to_string().contains("too many to judge"), "{told}");
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

const BOUNDS: Bounds = Bounds {
    time: Duration::from_secs(20),
    memory: 256 << 20,
};

/// What of all quads a view shows, as text.
fn shown(found: Quads) -> Result<String, GraphError> {
    let all: Vec<Quad> = found.collect::<Result<_, _>>()?;
    Ok(format!("{all:?}"))
}

fn deleted(of: &Dataset, is: impl Fn(&Quad) -> bool) -> Run {
    let all = of.all().map(|quad| quad.unwrap());
    Run {
        op: Op::Delete,
        quads: all.filter(is).collect(),
        text: Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_withdrawn_with_its_label_is_not_shown_by_what_was_begun_before() {
    let (engine, key) = graph(policies()).await;
    let clerk = user(&["urn:x:clerk"]);
    let data = engine.dataset(&key).await.unwrap().unwrap();
    let view = data.seen_by(Some(&clerk), BOUNDS).unwrap();
    let begun = view.scan(&Pattern::default());
    let about_b = |quad: &Quad| quad.to_string().contains("<urn:x:b>");
    let run = deleted(&data, about_b);
    data.apply([run].iter()).unwrap();
    let told = shown(begun).unwrap();
    assert!(told.contains("Ann") && !told.contains("Bob"), "{told}");
    assert!(!told.contains("elsewhere"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_policies_ends_what_was_begun_before() {
    let (engine, key) = graph(policies()).await;
    let clerk = user(&["urn:x:clerk"]);
    let data = engine.dataset(&key).await.unwrap().unwrap();
    let view = data.seen_by(Some(&clerk), BOUNDS).unwrap();
    let begun = view.scan(&Pattern::default());
    let run = deleted(&data, |quad| quad.to_string().contains("urn:x:r"));
    data.apply([run].iter()).unwrap();
    let told = shown(begun).unwrap_err().to_string();
    assert!(told.contains("changed meanwhile: ask again"), "{told}");
}

/// A join of everything with everything, ten times, of which nothing can be left out before all of it is there.
fn wide() -> (String, String) {
    let patterns = (0..10).map(|n| format!("?a{n} ?b{n} ?c{n} . ")).collect();
    let all: Vec<String> = (0..10).map(|n| format!("STR(?a{n})")).collect();
    (
        patterns,
        format!("FILTER(CONCAT({}) = \"x\")", all.join(", ")),
    )
}

/// Queries that read little or nothing and take for ever, or more memory than there is; each in what a policy is about, and in
/// its rule.
fn greedy() -> Vec<(&'static str, String, &'static str)> {
    let lists: String = (0..6)
        .map(|list| {
            let values: String = (0..60).map(|n| format!("{n} ")).collect();
            format!("VALUES ?v{list} {{ {values} }} ")
        })
        .collect();
    let doubled: String = (1..40)
        .map(|n| format!("BIND(CONCAT(?a{}, ?a{}) AS ?a{n}) ", n - 1, n - 1))
        .collect();
    let (joined, unlike) = wide();
    vec![
        (
            "reads much",
            format!("{joined}{unlike}"),
            "the time limit of",
        ),
        (
            "reads nothing",
            format!("{{ SELECT (COUNT(*) AS ?n) {{ {lists} }} }}"),
            "the time limit of",
        ),
        (
            "collects",
            format!("{{ SELECT DISTINCT ?a0 ?a3 ?c5 ?c9 {{ {joined} }} ORDER BY ?c9 }}"),
            "needs more memory",
        ),
        (
            "doubles texts",
            format!("BIND(\"0123456789abcdef\" AS ?a0) {doubled} FILTER(STRLEN(?a39) > 0)"),
            "a text that needs more",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_that_take_too_much_are_stopped_and_show_nothing() {
    for (what, pattern, why) in greedy() {
        for (select, construct) in [
            (
                format!("SELECT ?this {{ ?this a ?t {{ {pattern} }} }}"),
                CONSTRUCT.to_owned(),
            ),
            (
                "SELECT ?this { ?this a ?t }".to_owned(),
                format!("CONSTRUCT {{ ?this a ?t }} {{ ?this a ?t {{ {pattern} }} }}"),
            ),
        ] {
            let (engine, key) = graph(policy(&select, &construct)).await;
            let clerk = user(&["urn:x:clerk"]);
            let data = engine.dataset(&key).await.unwrap().unwrap();
            // What is to be stopped by its memory has time, and the other way round.
            let bounds = Bounds {
                time: Duration::from_millis(match why.contains("needs more") {
                    true => 20_000,
                    false => 300,
                }),
                memory: match why.contains("more memory") {
                    true => 4 << 20,
                    false => 256 << 20,
                },
            };
            let began = Instant::now();
            let view = data.seen_by(Some(&clerk), bounds).unwrap();
            let told = shown(view.scan(&Pattern::default())).unwrap_err();
            assert!(
                matches!(told, GraphError::Policy { .. }),
                "{what}: {told:?}"
            );
            assert!(told.to_string().contains(why), "{what}: {told}");
            assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        }
    }
}

#[tokio::test]
async fn a_policy_that_is_too_large_to_plan_is_refused() {
    let patterns = "?a ?b ?c . ".repeat(200);
    let (engine, key) = graph(policy(
        &format!("SELECT ?this {{ ?this a ?t . {patterns} }}"),
        CONSTRUCT,
    ))
    .await;
    let told = seen(&engine, &key, Some(&user(&["urn:x:boss"])))
        .await
        .unwrap_err();
    assert!(
        matches!(&told, GraphError::Policy { name, .. } if name == "urn:x:p"),
        "{told:?}"
    );
    assert!(told.to_string().contains("triple patterns"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_who_writes_waits_for_policies() {
    let (joined, unlike) = wide();
    let slow = format!("{joined}{unlike}");
    let select = format!("SELECT ?this {{ ?this a ?t {{ {slow} }} }}");
    let (engine, key) = graph(policy(&select, CONSTRUCT)).await;
    let clerk = user(&["urn:x:clerk"]);
    let data = engine.dataset(&key).await.unwrap().unwrap();
    let bounds = Bounds {
        time: Duration::from_secs(3),
        ..BOUNDS
    };
    let view = data.seen_by(Some(&clerk), bounds).unwrap();
    let reading = std::thread::spawn(move || shown(view.scan(&Pattern::default())));
    let (mut number, mut meanwhile) = (0_usize, 0_usize);
    while !reading.is_finished() {
        let fact = triple("urn:x:c", "urn:x:n", text(&number.to_string()), "");
        let all = vec![fact];
        QuadStore::write(&engine, &key, all, WriteKind::Direct)
            .await
            .unwrap();
        number += 1;
        meanwhile += usize::from(!reading.is_finished());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The first one or two may be from before the policies judge.
    assert!(meanwhile > 4, "{meanwhile} while policies judge");
    assert!(reading.join().unwrap().is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_begins_before_a_change_of_policies_or_after_it() {
    let (engine, key) = graph(policies()).await;
    let clerk = user(&["urn:x:clerk"]);
    let data = engine.dataset(&key).await.unwrap().unwrap();
    let change = data.changes().begin(true);
    let (of, who) = (data.clone(), clerk.clone());
    let beginning = std::thread::spawn(move || {
        of.seen_by(Some(&who), BOUNDS)
            .map(|view| shown(view.scan(&Pattern::default())))
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!beginning.is_finished(), "the change is being committed");
    drop(change);
    let told = beginning.join().unwrap().unwrap().unwrap();
    assert!(told.contains("Ann") && !told.contains("Bob"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_begun_before_the_collection_was_let_go_of_ends() {
    let (engine, key) = graph(policies()).await;
    let clerk = user(&["urn:x:clerk"]);
    let data = engine.dataset(&key).await.unwrap().unwrap();
    let begun = data
        .seen_by(Some(&clerk), BOUNDS)
        .unwrap()
        .scan(&Pattern::default());
    engine.shared.forget();
    let told = shown(begun).unwrap_err().to_string();
    assert!(told.contains("loaded anew meanwhile: ask again"), "{told}");
    let again = seen(&engine, &key, Some(&clerk)).await.unwrap();
    assert!(!format!("{again:?}").contains("Bob"));
}
