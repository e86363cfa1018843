//! How long a frontier and its sources take: `cargo run --release -p tg-graph --example retrieve_bench [triples]`.
//!
//! The graph has as many labelled entities as a tenth of its triples, links by a power law (some nodes have
//! thousands of edges), and a source for every hundredth fact.

use std::time::{Duration, Instant};

use oxigraph::model::{GraphName, Literal, NamedNode, Quad, Term as RdfTerm, Triple as RdfTriple};
use tg_graph::{CollectionKey, EmbeddedGraph, Limits, oxigraph};
use tg_schemas::msg::{NeighbourhoodRequest, SourcesRequest};
use tg_schemas::{Term, Triple};
use tg_testkit::bench::headline;
use tokio_util::sync::CancellationToken;

const WORDS: [&str; 12] = [
    "bridge", "harbour", "castle", "river", "tower", "market", "canal", "garden", "museum",
    "island", "station", "library",
];

fn entity(at: u64) -> NamedNode {
    NamedNode::new_unchecked(format!("http://example.org/e/{at}"))
}

/// A cheap sequence that looks random and is the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most.max(1)
    }

    /// Small numbers much more often than large ones.
    fn skewed(&mut self, most: u64) -> u64 {
        let part = self.below(1_000_000) as f64 / 1_000_000.0;
        (part.powi(4) * most as f64) as u64
    }
}

fn quads(count: u64) -> Vec<Quad> {
    let mut dice = Dice(7);
    let entities = count / 10;
    let label = NamedNode::new_unchecked("http://www.w3.org/2000/01/rdf-schema#label");
    let contains = NamedNode::new_unchecked("https://trustgraph.ai/ns/contains");
    let derived = NamedNode::new_unchecked("http://www.w3.org/ns/prov#wasDerivedFrom");
    let source = NamedNode::new_unchecked("urn:graph:source");
    let mut quads = Vec::with_capacity(count as usize + 1);
    for at in 0..entities {
        let word = WORDS[dice.below(WORDS.len() as u64) as usize];
        let name = Literal::from(format!("{word} number {at}"));
        quads.push(Quad::new(
            entity(at),
            label.clone(),
            name,
            GraphName::DefaultGraph,
        ));
    }
    while (quads.len() as u64) < count {
        let (s, o) = (entity(dice.below(entities)), entity(dice.skewed(entities)));
        let p = NamedNode::new_unchecked(format!("http://example.org/p/{}", dice.below(40)));
        if dice.below(100) == 0 {
            let fact = RdfTriple::new(s.clone(), p.clone(), o.clone());
            let sub = NamedNode::new_unchecked(format!("urn:sub:{}", quads.len()));
            let chunk = NamedNode::new_unchecked(format!("urn:chunk:{}", dice.below(5_000)));
            let held = RdfTerm::Triple(Box::new(fact));
            quads.push(Quad::new(
                sub.clone(),
                contains.clone(),
                held,
                source.clone(),
            ));
            quads.push(Quad::new(sub, derived.clone(), chunk, source.clone()));
        }
        quads.push(Quad::new(s, p, o, GraphName::DefaultGraph));
    }
    quads
}

fn told(what: &str, mut took: Vec<Duration>) {
    took.sort();
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    println!(
        "{what}: p50 {:?}, p95 {:?}, worst {:?}",
        at(0.5),
        at(0.95),
        at(1.0)
    );
}

#[tokio::main]
async fn main() {
    println!("{}", headline(1));
    let count: u64 = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(1_000_000);
    let engine = EmbeddedGraph::in_memory(Limits::default()).expect("an engine");
    let key = CollectionKey::new("w", "c");
    let started = Instant::now();
    for part in quads(count).chunks(50_000) {
        engine.insert(&key, part.to_vec()).await.expect("inserted");
    }
    println!("{count} triples written in {:?}", started.elapsed());
    let mut dice = Dice(99);
    let (mut first, mut second, mut traced) = (Vec::new(), Vec::new(), Vec::new());
    let mut edges = 0;
    for round in 0..100 {
        let ask = |nodes: Vec<Term>| NeighbourhoodRequest {
            nodes,
            limit: 30,
            exclude_graphs: vec!["urn:graph:retrieval".into(), "urn:graph:source".into()],
            exclude_predicates: vec!["http://www.w3.org/".into()],
            words: vec!["bridge".into(), "castle".into(), "number".into()],
            ..NeighbourhoodRequest::default()
        };
        let nodes = |dice: &mut Dice| -> Vec<Term> {
            let one = |at: u64| Term::iri(entity(at).into_string());
            (0..50).map(|_| one(dice.skewed(count / 10))).collect()
        };
        let cancel = CancellationToken::new;
        let started = Instant::now();
        let found = engine
            .neighbours(&key, None, ask(nodes(&mut dice)), cancel())
            .await
            .expect("found");
        if round > 0 {
            first.push(started.elapsed());
        }
        edges += found.edges.len();
        let term = |place: i64| found.terms[place as usize].term.clone();
        let ends = found.edges.iter().take(25).filter_map(|edge| term(edge.o));
        let started = Instant::now();
        engine
            .neighbours(&key, None, ask(ends.collect()), cancel())
            .await
            .expect("found");
        second.push(started.elapsed());
        let facts = found.edges.iter().take(50).map(|edge| Triple {
            s: term(edge.s),
            p: term(edge.p),
            o: term(edge.o),
            g: None,
        });
        let of = SourcesRequest {
            edges: facts.collect(),
            properties: 20,
            ..SourcesRequest::default()
        };
        let started = Instant::now();
        engine
            .sources(&key, None, of, cancel())
            .await
            .expect("traced");
        traced.push(started.elapsed());
    }
    println!("{} edges a frontier", edges / 100);
    told("first hop, 50 nodes", first);
    told("second hop", second);
    told("sources of 50 facts", traced);
}
