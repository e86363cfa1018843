//! One hop around a frontier. Where a node has more edges in a direction than are wanted, those come first
//! that share words with the question: what is cut off was at least looked at.

use std::collections::{HashMap, HashSet};

use oxigraph::model::vocab::rdf;
use oxigraph::model::{GraphName, NamedNode, NamedOrBlankNode, Quad, Term as RdfTerm};
use tg_schemas::msg::{LabelledTerm, Neighbour, NeighbourhoodRequest, NeighbourhoodResponse};
use tokio_util::sync::CancellationToken;

use super::labels::{Labels, covers};
use super::look::Graphs;
use crate::engine::convert;
use crate::engine::pattern::Pattern;
use crate::error::GraphError;
use crate::store::embedded::dataset::Dataset;

/// Nodes looked around at most.
const NODES: usize = 2_000;
/// Most edges of one node in one direction, and what is taken when nothing is said.
const LIMIT: usize = 1_000;
const USUAL: usize = 30;
/// Edges in an answer at most.
const EDGES: usize = 20_000;
/// Edges looked at for all nodes together, and of one node in one direction, before the best are taken.
const LOOKED_AT: usize = 16_000;
const POOL: usize = 2_000;
/// Matches passed over for one edge looked at, e.g. of graphs that do not count.
const PASSED_OVER: usize = 50;
/// Bytes of long texts in an answer; edges to further ones are left out.
const TEXT: usize = 2 << 20;
/// A text of more bytes is long.
const LONG: usize = 1_024;

pub(super) fn around(
    data: &Dataset,
    ask: &NeighbourhoodRequest,
    cancel: &CancellationToken,
) -> Result<NeighbourhoodResponse, GraphError> {
    let graphs = Graphs::of(ask);
    let mut walk = Traversal::new(data, ask, &graphs);
    for (at, node) in ask.nodes.iter().take(NODES).enumerate() {
        if cancel.is_cancelled() {
            return Err(GraphError::Cancelled);
        }
        // What is no RDF term is in no edge.
        let Ok(node) = convert::object("nodes", node) else {
            continue;
        };
        if !walk.is_of_type(&node)? {
            continue;
        }
        for pattern in directions(&node) {
            let found = walk.look(pattern)?;
            walk.keep(at, found)?;
        }
        if walk.edges.len() >= EDGES {
            break;
        }
    }
    walk.done()
}

/// The node as subject, as predicate, as object.
fn directions(node: &RdfTerm) -> Vec<Pattern> {
    let mut patterns = Vec::with_capacity(3);
    let open = Pattern::default;
    match node {
        RdfTerm::NamedNode(iri) => {
            patterns.push(Pattern {
                subject: Some(iri.clone().into()),
                ..open()
            });
            patterns.push(Pattern {
                predicate: Some(iri.clone()),
                ..open()
            });
        }
        RdfTerm::BlankNode(blank) => patterns.push(Pattern {
            subject: Some(blank.clone().into()),
            ..open()
        }),
        _ => {}
    }
    patterns.push(Pattern {
        object: Some(node.clone()),
        ..open()
    });
    patterns
}

struct Traversal<'a> {
    data: &'a Dataset,
    ask: &'a NeighbourhoodRequest,
    graphs: &'a Graphs,
    labels: Labels<'a>,
    words: HashSet<&'a str>,
    limit: usize,
    pool: usize,
    places: HashMap<RdfTerm, i64>,
    terms: Vec<RdfTerm>,
    edges: Vec<Neighbour>,
    seen: HashSet<(i64, i64, i64)>,
    examined: usize,
    text: usize,
}

impl<'a> Traversal<'a> {
    fn new(data: &'a Dataset, ask: &'a NeighbourhoodRequest, graphs: &'a Graphs) -> Self {
        let limit = usize::try_from(ask.limit).unwrap_or(0);
        let limit = if limit == 0 { USUAL } else { limit.min(LIMIT) };
        let words: HashSet<&str> = ask.words.iter().map(String::as_str).collect();
        let pool = if words.is_empty() {
            limit
        } else {
            (LOOKED_AT / (3 * ask.nodes.len().max(1))).clamp(limit, POOL.max(limit))
        };
        Self {
            data,
            ask,
            graphs,
            labels: Labels::new(data, graphs, &ask.languages),
            words,
            limit,
            pool,
            places: HashMap::new(),
            terms: Vec::new(),
            edges: Vec::new(),
            seen: HashSet::new(),
            examined: 0,
            text: 0,
        }
    }

    fn is_of_type(&self, node: &RdfTerm) -> Result<bool, GraphError> {
        if self.ask.types.is_empty() {
            return Ok(true);
        }
        let subject: NamedOrBlankNode = match node {
            RdfTerm::NamedNode(node) => node.clone().into(),
            RdfTerm::BlankNode(node) => node.clone().into(),
            _ => return Ok(false),
        };
        let mut is = false;
        for wanted in &self.ask.types {
            let Ok(wanted) = NamedNode::new(wanted) else {
                continue;
            };
            let pattern = Pattern {
                subject: Some(subject.clone()),
                predicate: Some(rdf::TYPE.into_owned()),
                object: Some(wanted.into()),
                graph: None,
            };
            self.graphs.each(self.data, pattern, |_| {
                is = true;
                false
            })?;
        }
        Ok(is)
    }

    /// Matches that may be followed, at most a pool of them.
    fn look(&mut self, pattern: Pattern) -> Result<Vec<Quad>, GraphError> {
        let mut found = Vec::new();
        let mut passed_over = self.pool.saturating_mul(PASSED_OVER);
        let ask = self.ask;
        let pool = self.pool;
        self.graphs.each(self.data, pattern, |quad| {
            if follows(ask, quad.predicate.as_str()) && in_language(ask, &quad.object) {
                found.push(quad);
            } else {
                passed_over = passed_over.saturating_sub(1);
            }
            found.len() < pool && passed_over > 0
        })?;
        self.examined += found.len();
        Ok(found)
    }

    /// Keeps the best, each once.
    fn keep(&mut self, node: usize, mut found: Vec<Quad>) -> Result<(), GraphError> {
        if found.len() > self.limit {
            let mut ranked = Vec::with_capacity(found.len());
            for quad in found {
                ranked.push((self.words_shared(&quad)?, quad));
            }
            // Stable: of equal ones those that were found first.
            ranked.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
            found = ranked.into_iter().map(|(_, quad)| quad).collect();
        }
        let mut left = self.limit;
        for quad in found {
            if left == 0 || self.edges.len() >= EDGES {
                break;
            }
            if self.add(node, quad) {
                left -= 1;
            }
        }
        Ok(())
    }

    fn words_shared(&mut self, quad: &Quad) -> Result<usize, GraphError> {
        let mut shared: HashSet<&str> = HashSet::new();
        let parts: [RdfTerm; 3] = [
            quad.subject.clone().into(),
            quad.predicate.clone().into(),
            quad.object.clone(),
        ];
        for part in parts {
            let label = self.labels.of(&part)?;
            let text = match &part {
                RdfTerm::Literal(literal) => literal.value(),
                _ => label.as_str(),
            };
            let words = text
                .split(|c: char| !c.is_alphanumeric())
                .filter(|word| !word.is_empty())
                .take(200);
            for word in words {
                let word = word.to_lowercase();
                if let Some(word) = self.words.get(word.as_str()) {
                    shared.insert(word);
                }
            }
        }
        Ok(shared.len())
    }

    /// Whether the edge is a new one.
    fn add(&mut self, node: usize, quad: Quad) -> bool {
        if let RdfTerm::Literal(literal) = &quad.object
            && literal.value().len() > LONG
            && !self.places.contains_key(&quad.object)
        {
            if self.text + literal.value().len() > TEXT {
                return false;
            }
            self.text += literal.value().len();
        }
        let s = self.place(quad.subject.into());
        let p = self.place(quad.predicate.into());
        let o = self.place(quad.object);
        if !self.seen.insert((s, p, o)) {
            return false;
        }
        self.edges.push(Neighbour {
            s,
            p,
            o,
            node: node as i64,
            graph: match quad.graph_name {
                GraphName::NamedNode(graph) => Some(graph.into_string()),
                _ => None,
            },
        });
        true
    }

    fn place(&mut self, term: RdfTerm) -> i64 {
        if let Some(place) = self.places.get(&term) {
            return *place;
        }
        let place = self.terms.len() as i64;
        self.terms.push(term.clone());
        self.places.insert(term, place);
        place
    }

    fn done(mut self) -> Result<NeighbourhoodResponse, GraphError> {
        let mut terms = Vec::with_capacity(self.terms.len());
        for term in std::mem::take(&mut self.terms) {
            let label = self.labels.of(&term)?;
            terms.push(LabelledTerm {
                term: Some(convert::from_term(term)),
                label,
            });
        }
        Ok(NeighbourhoodResponse {
            error: None,
            terms,
            edges: self.edges,
            examined: self.examined as i64,
        })
    }
}

fn follows(ask: &NeighbourhoodRequest, predicate: &str) -> bool {
    if !ask.predicates.is_empty() {
        return ask.predicates.iter().any(|allowed| allowed == predicate);
    }
    let left_out = |start: &String| predicate.starts_with(start.as_str());
    !ask.exclude_predicates.iter().any(left_out)
        || ask.keep_predicates.iter().any(|kept| kept == predicate)
}

fn in_language(ask: &NeighbourhoodRequest, object: &RdfTerm) -> bool {
    if ask.languages.is_empty() {
        return true;
    }
    let RdfTerm::Literal(literal) = object else {
        return true;
    };
    let Some(tag) = literal.language() else {
        return true;
    };
    ask.languages.iter().any(|range| covers(range, tag))
}

/// A term of the contract as text, for tests.
#[cfg(test)]
pub(super) fn text(term: &LabelledTerm) -> String {
    match &term.term {
        Some(tg_schemas::Term::Literal { value, .. }) => value.clone(),
        _ => term.label.clone(),
    }
}
