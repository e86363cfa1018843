//! The walk from entities along edges: what is asked, scored and kept.

use tg_schemas::msg::{GraphRagQuery, TraversalStep};

use super::*;
use crate::options::Options;

fn plan(change: impl FnOnce(&mut GraphRagQuery)) -> GraphPlan {
    let mut ask = GraphRagQuery {
        query: "When was the old bridge built?".into(),
        ..GraphRagQuery::default()
    };
    change(&mut ask);
    GraphPlan::new(&ask, &Options::default()).unwrap()
}

fn seed(iri: &str, nearness: f64) -> Seed {
    Seed {
        term: Term::iri(iri),
        nearness,
    }
}

fn edge(s: &str, p: &str, o: Term, node: usize) -> Edge {
    let name = |term: &Term| match term {
        Term::Iri(iri) => iri.rsplit(':').next().unwrap().to_owned(),
        Term::Literal { value, .. } => value.clone(),
        _ => String::new(),
    };
    let (s, p) = (Term::iri(s), Term::iri(p));
    Edge {
        names: [name(&s), name(&p), name(&o)],
        triple: Triple::new(s, p, o),
        node,
    }
}

fn searches() -> Vec<String> {
    vec!["When was the old bridge built?".into(), "old bridge".into()]
}

fn all(candidates: &[Candidate], score: impl Fn(usize) -> f64) -> Vec<Scored> {
    (0..candidates.len())
        .map(|candidate| Scored {
            candidate,
            search: 0,
            score: score(candidate),
        })
        .collect()
}

#[test]
fn late_edges_that_fit_are_scored() {
    let plan = plan(|ask| ask.max_reranker_input = 10);
    let searches = searches();
    let mut walk = Traversal::new(
        &plan,
        &searches,
        vec![seed("urn:a", 1.0), seed("urn:b", 0.1)],
    );
    walk.next_request().unwrap();
    let mut found: Vec<Edge> = (0..500)
        .map(|n| edge("urn:a", "urn:p:has", Term::literal(format!("item {n}")), 0))
        .collect();
    found.push(edge("urn:b", "urn:p:built", Term::literal("1429"), 1));
    let candidates = walk.candidates(found);
    assert_eq!(candidates.len(), 10);
    assert_eq!(candidates[0].text, "b built 1429");
}

#[test]
fn each_hop_asks_once_with_its_own_restrictions() {
    let plan = plan(|ask| {
        ask.max_path_length = 3;
        ask.graph = Some("urn:mine".into());
        ask.languages = vec!["en".into()];
        ask.traversal_instructions = vec![
            TraversalStep {
                types: vec!["urn:T".into()],
                ..TraversalStep::default()
            },
            TraversalStep {
                relationships: vec!["urn:p:knows".into()],
                graphs: vec!["urn:theirs".into()],
                ..TraversalStep::default()
            },
        ];
    });
    let searches = searches();
    let mut walk = Traversal::new(&plan, &searches, vec![seed("urn:a", 1.0)]);
    let first = walk.next_request().unwrap();
    assert_eq!(
        (first.types, first.graphs),
        (vec!["urn:T".to_owned()], vec!["urn:mine".to_owned()])
    );
    assert_eq!(first.languages, ["en"]);
    assert_eq!(first.exclude_graphs, NOT_KNOWLEDGE);
    assert_eq!(first.words, ["bridge", "built", "old"]);
    let found = walk.candidates(vec![
        edge("urn:a", "urn:p:knows", Term::iri("urn:b"), 0),
        edge("urn:a", "urn:p:year", Term::literal("1429"), 0),
        edge("urn:a", "urn:p:in", Term::literal("Ham"), 0),
    ]);
    let scores = all(&found, |at| 1.0 - at as f64 / 10.0);
    walk.keep(found, scores);
    let second = walk.next_request().unwrap();
    assert_eq!(second.nodes, [Term::iri("urn:b"), Term::literal("Ham")]);
    assert_eq!(second.predicates, ["urn:p:knows"]);
    assert_eq!(second.graphs, ["urn:theirs"]);
    // What was seen is no candidate again.
    let found = walk.candidates(vec![edge("urn:a", "urn:p:knows", Term::iri("urn:b"), 0)]);
    assert!(found.is_empty());
    walk.keep(found, Vec::new());
    assert!(walk.next_request().is_none(), "nothing leads on");
    assert_eq!(walk.finish().len(), 3);
}

#[test]
fn the_best_are_kept_and_repeats_give_way() {
    let plan = plan(|ask| {
        ask.edge_limit = 2;
        ask.edge_score_limit = 4;
        ask.max_path_length = 1;
        ask.max_subgraph_size = 1;
    });
    let searches = searches();
    let mut walk = Traversal::new(&plan, &searches, vec![seed("urn:a", 1.0)]);
    walk.next_request().unwrap();
    let found = walk.candidates(vec![
        edge("urn:a", "urn:p:low", Term::literal("hardly fits"), 0),
        edge(
            "urn:a",
            "urn:p:built",
            Term::literal("long ago by many hands"),
            0,
        ),
        edge(
            "urn:x:a",
            "urn:p:built",
            Term::literal("long ago by many hands"),
            0,
        ),
        edge("urn:a", "urn:p:stands", Term::literal("in Ham"), 0),
    ]);
    let scores = all(&found, |at| [0.1, 0.9, 0.89, 0.88][at]);
    walk.keep(found, scores);
    assert_eq!(walk.kept.len(), 2);
    assert_eq!(walk.kept[1].text, "a stands in Ham");
    assert!(walk.next_request().is_none());
    let kept = walk.finish();
    assert_eq!((kept.len(), kept[0].score), (1, 0.9));
}

#[test]
fn without_words_in_common_the_nearest_come_first() {
    let plan = plan(|ask| ask.edge_limit = 1);
    let searches = vec!["zzz".to_owned()];
    let mut walk = Traversal::new(
        &plan,
        &searches,
        vec![seed("urn:a", 0.2), seed("urn:b", 1.0)],
    );
    walk.next_request().unwrap();
    let found = walk.candidates(vec![
        edge("urn:a", "urn:p:x", Term::literal("one"), 0),
        edge("urn:b", "urn:p:x", Term::literal("two"), 1),
    ]);
    let scores = all(&found, |_| 0.0);
    walk.keep(found, scores);
    assert_eq!(walk.finish()[0].text, "b x two");
}
