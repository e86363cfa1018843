//! One hop around a frontier. Where a node has more edges in a direction than are wanted, those come first
//! that share words with the question: all are scored as they come, before anything is cut off, as long as there is time.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use oxigraph::model::vocab::rdf;
use oxigraph::model::{GraphName, NamedNode, NamedOrBlankNode, Quad, Term as RdfTerm};
use tg_schemas::msg::{LabelledTerm, Neighbour, NeighbourhoodRequest, NeighbourhoodResponse};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::best::Best;
use super::labels::{Labels, covers};
use super::look::Graphs;
use super::words::Mask;
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
/// All edges are scored within this time. When it is over, as many as before: of all nodes together, and of one node in one
/// direction.
pub(super) const SCORING: Duration = Duration::from_millis(500);
const LOOKED_AT: usize = 16_000;
const POOL: usize = 2_000;
/// Matches passed over for one edge looked at when time is over, e.g. of graphs that do not count.
const PASSED_OVER: usize = 50;
/// Edges between two looks at the clock and at whether somebody still waits.
const CLOCK: usize = 64;
/// Bytes of long texts in an answer; edges to further ones are left out.
const TEXT: usize = 2 << 20;
/// A text of more bytes is long.
const LONG: usize = 1_024;

pub(super) fn around(
    data: &Dataset,
    ask: &NeighbourhoodRequest,
    cancel: &CancellationToken,
    time: Duration,
) -> Result<NeighbourhoodResponse, GraphError> {
    let graphs = Graphs::of(ask);
    let mut walk = Traversal::new(data, ask, &graphs, cancel, time);
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
        for (end, pattern) in directions(&node) {
            let best = walk.look(end, pattern)?;
            walk.keep(at, best);
        }
        if walk.edges.len() >= EDGES {
            break;
        }
    }
    walk.done()
}

/// Which part of an edge the node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Subject,
    Predicate,
    Object,
}

/// The node as subject, as predicate, as object.
pub(super) fn directions(node: &RdfTerm) -> Vec<(End, Pattern)> {
    let mut patterns = Vec::with_capacity(3);
    let open = Pattern::default;
    let subject = |subject: NamedOrBlankNode| Pattern {
        subject: Some(subject),
        ..open()
    };
    match node {
        RdfTerm::NamedNode(iri) => {
            patterns.push((End::Subject, subject(iri.clone().into())));
            let predicate = Some(iri.clone());
            patterns.push((
                End::Predicate,
                Pattern {
                    predicate,
                    ..open()
                },
            ));
        }
        RdfTerm::BlankNode(blank) => {
            patterns.push((End::Subject, subject(blank.clone().into())));
        }
        _ => {}
    }
    let object = Some(node.clone());
    patterns.push((End::Object, Pattern { object, ..open() }));
    patterns
}

struct Traversal<'a> {
    data: &'a Dataset,
    ask: &'a NeighbourhoodRequest,
    graphs: &'a Graphs,
    labels: Labels<'a>,
    limit: usize,
    pool: usize,
    /// When the scoring of more than a pool ends.
    until: Instant,
    cancel: &'a CancellationToken,
    places: HashMap<RdfTerm, i64>,
    terms: Vec<RdfTerm>,
    edges: Vec<Neighbour>,
    seen: HashSet<(i64, i64, i64)>,
    examined: usize,
    text: usize,
}

impl<'a> Traversal<'a> {
    fn new(
        data: &'a Dataset,
        ask: &'a NeighbourhoodRequest,
        graphs: &'a Graphs,
        cancel: &'a CancellationToken,
        time: Duration,
    ) -> Self {
        let limit = usize::try_from(ask.limit).unwrap_or(0);
        let limit = if limit == 0 { USUAL } else { limit.min(LIMIT) };
        let pool = if ask.words.is_empty() {
            limit
        } else {
            (LOOKED_AT / (3 * ask.nodes.len().max(1))).clamp(limit, POOL.max(limit))
        };
        Self {
            data,
            ask,
            graphs,
            labels: Labels::new(data, graphs, &ask.languages, &ask.words),
            limit,
            pool,
            until: Instant::now() + time,
            cancel,
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

    /// The best of the matches that may be followed. Without words to score by, the first are as good as any.
    fn look(&mut self, end: End, pattern: Pattern) -> Result<Best, GraphError> {
        // Some of them may be known already, or too long.
        let mut best = Best::of(self.limit * 2);
        let (mut fault, mut fixed) = (None, None);
        let (mut scored, mut passed_over, mut since) = (0_usize, 0_usize, 0_usize);
        let (ask, graphs) = (self.ask, self.graphs);
        graphs.each(self.data, pattern, |quad| {
            if follows(ask, quad.predicate.as_str()) && in_language(ask, &quad.object) {
                match self.words_shared(&quad, end, &mut fixed) {
                    Ok(shared) => best.offer(shared, quad),
                    Err(error) => {
                        fault = Some(error);
                        return false;
                    }
                }
                scored += 1;
                if self.labels.words().is_empty() && !best.has_room() {
                    return false;
                }
            } else {
                passed_over += 1;
            }
            since += 1;
            if since < CLOCK {
                return true;
            }
            since = 0;
            let enough = scored >= self.pool || passed_over >= self.pool * PASSED_OVER;
            !(self.cancel.is_cancelled() || enough && Instant::now() >= self.until)
        })?;
        self.examined += scored;
        match fault {
            Some(error) => Err(error),
            None if self.cancel.is_cancelled() => Err(GraphError::Cancelled),
            None => Ok(best),
        }
    }

    /// Keeps the best, each once.
    fn keep(&mut self, node: usize, best: Best) {
        let mut left = self.limit;
        for quad in best.into_edges() {
            if left == 0 || self.edges.len() >= EDGES {
                break;
            }
            if self.add(node, quad) {
                left -= 1;
            }
        }
    }

    /// Words of the question that an edge has; those of the end that all edges of the pattern share are in `fixed` once.
    fn words_shared(
        &mut self,
        quad: &Quad,
        end: End,
        fixed: &mut Option<Mask>,
    ) -> Result<usize, GraphError> {
        if self.labels.words().is_empty() {
            return Ok(0);
        }
        let mut shared = match fixed {
            Some(shared) => shared.clone(),
            None => {
                let mut shared = self.labels.words().none();
                match end {
                    End::Subject => self.labels.mark_thing(&quad.subject, &mut shared)?,
                    End::Predicate => self.labels.mark_named(&quad.predicate, &mut shared)?,
                    End::Object => self.labels.mark_term(&quad.object, &mut shared)?,
                }
                fixed.insert(shared).clone()
            }
        };
        if end != End::Subject {
            self.labels.mark_thing(&quad.subject, &mut shared)?;
        }
        if end != End::Predicate {
            self.labels.mark_named(&quad.predicate, &mut shared)?;
        }
        if end != End::Object {
            self.labels.mark_term(&quad.object, &mut shared)?;
        }
        Ok(shared.count())
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

pub(super) fn follows(ask: &NeighbourhoodRequest, predicate: &str) -> bool {
    if !ask.predicates.is_empty() {
        return ask.predicates.iter().any(|allowed| allowed == predicate);
    }
    let left_out = |start: &String| predicate.starts_with(start.as_str());
    !ask.exclude_predicates.iter().any(left_out)
        || ask.keep_predicates.iter().any(|kept| kept == predicate)
}

pub(super) fn in_language(ask: &NeighbourhoodRequest, object: &RdfTerm) -> bool {
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
