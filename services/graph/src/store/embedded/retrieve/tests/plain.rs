//! What is chosen around a frontier, held against the same written plainly: everything collected, every word
//! compared as text, sorted, cut.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashSet;

use oxigraph::model::vocab::rdfs;
use oxigraph::model::{
    BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term as RdfTerm, Triple,
};

use tg_citations::forms::folded;

use super::*;
use crate::store::embedded::retrieve::around::{directions, follows, in_language};
use crate::store::embedded::retrieve::labels::Labels;
use crate::store::embedded::retrieve::look::Graphs;

const TEXTS: [&str; 14] = [
    "bridge",
    "Bridge",
    "HARBOUR",
    "Straße",
    "STRASSE",
    "ΟΔΥΣΣΕΎΣ",
    "\u{212a}elvin",
    "İstanbul",
    "e\u{301}cole",
    "École",
    "市場",
    "canal-side",
    "number_7",
    "castle",
];
const ASKED: [&str; 12] = [
    "bridge",
    "harbour",
    "straße",
    "οδυσσεύς",
    "kelvin",
    "i\u{307}stanbul",
    "école",
    "市場",
    "canal",
    "7",
    "Castle",
    "p",
];

/// A sequence that looks random and is the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % most as u64) as usize
    }

    /// Small numbers much more often than large ones: hubs.
    fn skewed(&mut self, most: usize) -> usize {
        let most = self.below(most) + 1;
        let most = self.below(most) + 1;
        self.below(most)
    }

    fn text(&mut self) -> Literal {
        let words = 1 + self.below(3);
        let words: Vec<&str> = (0..words).map(|_| TEXTS[self.below(TEXTS.len())]).collect();
        let text = words.join(" ");
        match self.below(4) {
            0 => Literal::new_language_tagged_literal_unchecked(text, "de"),
            1 => Literal::new_language_tagged_literal_unchecked(text, "en-gb"),
            _ => Literal::new_simple_literal(text),
        }
    }

    fn node(&mut self) -> NamedOrBlankNode {
        match self.skewed(40) {
            at if at % 5 == 4 => BlankNode::new_unchecked(format!("b{at}")).into(),
            at => NamedNode::new_unchecked(format!("urn:x:bridge-{at}")).into(),
        }
    }

    fn graph(&mut self) -> GraphName {
        let named = |name: &str| NamedNode::new_unchecked(name).into();
        match self.below(6) {
            0 => named("urn:g:1"),
            1 => named("urn:g:2"),
            2 => named("urn:graph:retrieval"),
            _ => GraphName::DefaultGraph,
        }
    }

    fn quad(&mut self) -> Quad {
        let (subject, graph) = (self.node(), self.graph());
        if self.below(8) == 0 {
            return Quad::new(subject, rdfs::LABEL, self.text(), graph);
        }
        let predicate = match self.below(12) {
            // Nodes are predicates too.
            0 => format!("urn:x:bridge-{}", self.below(3)),
            at => format!("urn:p:castle/{}", at % 7),
        };
        let object: RdfTerm = match self.below(3) {
            0 => self.text().into(),
            _ => self.node().into(),
        };
        Quad::new(subject, NamedNode::new_unchecked(predicate), object, graph)
    }

    fn ask(&mut self) -> NeighbourhoodRequest {
        let of =
            |all: &[&str]| -> Vec<String> { all.iter().map(|one| (*one).to_owned()).collect() };
        let mut words: Vec<String> = (0..[0, 0, 61, 200][self.below(4)])
            .map(|at| format!("filler{at}"))
            .collect();
        let more = self.below(ASKED.len() + 1);
        words.extend((0..more).map(|_| ASKED[self.below(ASKED.len())].to_owned()));
        let mut nodes: Vec<Term> = (0..1 + self.below(6))
            .map(|_| convert::from_term(self.node().into()))
            .collect();
        nodes.push(convert::from_term(self.text().into()));
        NeighbourhoodRequest {
            nodes,
            limit: 1 + self.below(9) as i64,
            graphs: [of(&[]), of(&[]), of(&["*"]), of(&["", "urn:g:1"])][self.below(4)].clone(),
            languages: [of(&[]), of(&[]), of(&["de"]), of(&["en", "de"])][self.below(4)].clone(),
            words,
            ..asked(&[])
        }
    }
}

fn score(data: &Dataset, graphs: &Graphs, ask: &NeighbourhoodRequest, quad: &Quad) -> usize {
    let mut shared: HashSet<Cow<'_, str>> = HashSet::new();
    let parts: [RdfTerm; 3] = [
        quad.subject.clone().into(),
        quad.predicate.clone().into(),
        quad.object.clone(),
    ];
    for part in parts {
        let text = match &part {
            RdfTerm::Literal(literal) => literal.value().to_owned(),
            _ => name(data, graphs, ask, &part),
        };
        let words = folded(&text);
        let words = words
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty());
        for word in words.take(200) {
            let word = word.to_lowercase();
            let asked = ask.words.iter().map(|asked| folded(asked));
            shared.extend(asked.into_iter().find(|asked| **asked == word));
        }
    }
    shared.len()
}

fn name(data: &Dataset, graphs: &Graphs, ask: &NeighbourhoodRequest, term: &RdfTerm) -> String {
    let mut labels = Labels::new(data, graphs, &ask.languages, &[]);
    labels.of(term).unwrap()
}

type Named = ([(Term, String); 3], i64, Option<String>);

/// What is chosen, and how many edges there were to choose from.
fn plainly(data: &Dataset, ask: &NeighbourhoodRequest) -> (Vec<Named>, i64) {
    let graphs = Graphs::of(ask);
    let limit = usize::try_from(ask.limit).unwrap();
    let (mut chosen, mut seen, mut looked_at) = (Vec::new(), HashSet::new(), 0);
    for (at, node) in ask.nodes.iter().enumerate() {
        for (_, pattern) in directions(&convert::object("nodes", node).unwrap()) {
            let mut found: Vec<(usize, Quad)> = Vec::new();
            let take = |quad: Quad| {
                if follows(ask, quad.predicate.as_str()) && in_language(ask, &quad.object) {
                    found.push((score(data, &graphs, ask, &quad), quad));
                }
                true
            };
            graphs.each(data, pattern, take).unwrap();
            looked_at += found.len() as i64;
            found.sort_by_key(|(score, _)| Reverse(*score));
            let mut facts = HashSet::new();
            found.retain(|(_, quad)| facts.insert(Triple::from(quad.clone())));
            found.truncate(limit * 2);
            let new = found
                .into_iter()
                .filter(|(_, quad)| seen.insert(Triple::from(quad.clone())));
            let new: Vec<Quad> = new.map(|(_, quad)| quad).take(limit).collect();
            for quad in new {
                let parts: [RdfTerm; 3] = [quad.subject.into(), quad.predicate.into(), quad.object];
                let named = parts.map(|part| {
                    let label = name(data, &graphs, ask, &part);
                    (convert::from_term(part), label)
                });
                let graph = match quad.graph_name {
                    GraphName::NamedNode(graph) => Some(graph.into_string()),
                    _ => None,
                };
                chosen.push((named, at as i64, graph));
            }
        }
    }
    (chosen, looked_at)
}

fn told(found: &NeighbourhoodResponse) -> Vec<Named> {
    let term = |at: i64| {
        let term = &found.terms[usize::try_from(at).unwrap()];
        (term.term.clone().unwrap(), term.label.clone())
    };
    let edge = |edge: &tg_schemas::msg::Neighbour| {
        let parts = [edge.s, edge.p, edge.o].map(term);
        (parts, edge.node, edge.graph.clone())
    };
    found.edges.iter().map(edge).collect()
}

#[tokio::test]
async fn what_is_chosen_is_what_a_plain_search_chooses() {
    let mut chosen = 0;
    for seed in 0..24 {
        let mut dice = Dice(seed);
        let size = 50 + dice.below(500);
        let quads: Vec<Quad> = (0..size).map(|_| dice.quad()).collect();
        let engine = EmbeddedGraph::in_memory(Limits::default()).unwrap();
        let key = CollectionKey::new("w", "c");
        engine.insert(&key, quads).await.unwrap();
        for _ in 0..6 {
            let ask = dice.ask();
            let look = move |data: &Dataset, cancel: &CancellationToken| {
                let found = around::around(data, &ask, cancel, Duration::from_secs(300))?;
                let (plain, looked_at) = plainly(data, &ask);
                assert_eq!(told(&found), plain, "{seed}: {ask:?}");
                if !ask.words.is_empty() {
                    assert_eq!(found.examined, looked_at, "{seed}: {ask:?}");
                }
                Ok(plain.len())
            };
            chosen += engine
                .look(&key, None, CancellationToken::new(), look)
                .await
                .unwrap();
        }
    }
    assert!(chosen > 1_000, "{chosen}");
}
