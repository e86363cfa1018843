//! The walk through the graph: what to ask for next, which edges are worth scoring, which are kept. One
//! question to the graph a hop, whatever the number of nodes.

use std::collections::HashSet;

use tg_schemas::msg::NeighbourhoodRequest;
use tg_schemas::vocabulary::{POLICY_GRAPH, RETRIEVAL_GRAPH, SOURCE_GRAPH, owl, rdf, rdfs};
use tg_schemas::{Term, Triple};

use super::budget::shorten;
use super::lexical::Texts;
use super::mmr;
use super::plan::GraphPlan;
use super::seeds::Seed;
use tg_citations::forms::folded;
use tg_citations::words::words;

/// Predicates that say how the graph is written, not what it says.
pub const NOT_FOLLOWED: [&str; 3] = [rdf::NAMESPACE, rdfs::NAMESPACE, owl::NAMESPACE];
/// Graphs that hold what is said about knowledge and questions: never searched unless named.
pub const NOT_KNOWLEDGE: [&str; 3] = [RETRIEVAL_GRAPH, SOURCE_GRAPH, POLICY_GRAPH];
/// What an edge's node counts beside its words before edges are scored.
const PRIOR: f64 = 0.15;
/// λ of the choice among scored edges.
const VARIETY: f64 = 0.7;
/// Longest text that the walk goes through from one subject to others, in characters.
const SHARED_TEXT: usize = 64;

/// An edge as it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// The edge, with its typed terms and its graph.
    pub triple: Triple,
    /// Names of subject, predicate and object.
    pub names: [String; 3],
    /// Which node of the frontier led here.
    pub node: usize,
}

/// An edge that may be kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The edge.
    pub edge: Edge,
    /// How it reads.
    pub text: String,
    /// How near the node is that led here, 0 to 1.
    prior: f64,
}

/// A score of a candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// Which candidate.
    pub candidate: usize,
    /// Which of the searches it fits.
    pub search: usize,
    /// How well.
    pub score: f64,
}

/// An edge that is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedEdge {
    /// The edge.
    pub edge: Edge,
    /// How it reads.
    pub text: String,
    /// Which of the searches it fits.
    pub search: usize,
    /// How well.
    pub score: f64,
}

type Key = (Option<Term>, Option<Term>, Option<Term>);

/// A walk under way.
pub struct Traversal<'a> {
    plan: &'a GraphPlan,
    searches: &'a [String],
    frontier: Vec<Seed>,
    visited: HashSet<Term>,
    seen: HashSet<Key>,
    kept: Vec<RankedEdge>,
    hop: usize,
}

impl<'a> Traversal<'a> {
    /// A walk that begins with these.
    pub fn new(plan: &'a GraphPlan, searches: &'a [String], seeds: Vec<Seed>) -> Self {
        Self {
            plan,
            searches,
            frontier: seeds,
            visited: HashSet::new(),
            seen: HashSet::new(),
            kept: Vec::new(),
            hop: 0,
        }
    }

    /// What to ask for next; nothing when the walk is over.
    pub fn next_request(&mut self) -> Option<NeighbourhoodRequest> {
        if self.hop >= self.plan.limits.path || self.frontier.is_empty() {
            return None;
        }
        let nodes: Vec<Term> = self.frontier.iter().map(|seed| seed.term.clone()).collect();
        self.visited.extend(nodes.iter().cloned());
        let step = self.plan.steps.get(self.hop);
        let named = |list: Option<&Vec<String>>| list.cloned().unwrap_or_default();
        let mut graphs = named(step.map(|step| &step.graphs));
        if graphs.is_empty() {
            graphs.extend(self.plan.graph.clone());
        }
        let mut asked: Vec<String> = self.searches.iter().flat_map(|text| plain(text)).collect();
        asked.sort_unstable();
        asked.dedup();
        Some(NeighbourhoodRequest {
            collection: self.plan.collection.clone(),
            nodes,
            limit: self.plan.limits.triples as i64,
            graphs,
            exclude_graphs: NOT_KNOWLEDGE.map(str::to_owned).to_vec(),
            predicates: named(step.map(|step| &step.relationships)),
            exclude_predicates: NOT_FOLLOWED.map(str::to_owned).to_vec(),
            keep_predicates: vec![rdf::TYPE.to_owned()],
            types: named(step.map(|step| &step.types)),
            languages: self.plan.languages.clone(),
            words: asked,
        })
    }

    /// The found edges that are worth scoring: new ones, those first whose words fit the searches and whose
    /// node is near. Everything found is looked at before anything is left out.
    pub fn candidates(&mut self, found: Vec<Edge>) -> Vec<Candidate> {
        let mut all: Vec<Candidate> = Vec::with_capacity(found.len());
        for edge in found {
            let key = (
                edge.triple.s.clone(),
                edge.triple.p.clone(),
                edge.triple.o.clone(),
            );
            if !self.seen.insert(key) {
                continue;
            }
            let prior = self
                .frontier
                .get(edge.node)
                .map_or(0.0, |seed| seed.nearness);
            let text = shorten(&edge.names.join(" "), self.plan.limits.text);
            all.push(Candidate { edge, text, prior });
        }
        if all.len() <= self.plan.limits.reranked {
            return all;
        }
        let texts: Vec<&str> = all
            .iter()
            .map(|candidate| candidate.text.as_str())
            .collect();
        let fits = best_fit(&Texts::new(&texts), self.searches, texts.len());
        let mut order: Vec<usize> = (0..all.len()).collect();
        let value = |at: usize| fits[at] + PRIOR * all[at].prior;
        order.sort_by(|a, b| value(*b).total_cmp(&value(*a)).then(a.cmp(b)));
        order.truncate(self.plan.limits.reranked);
        order.into_iter().map(|at| all[at].clone()).collect()
    }

    /// Keeps the best of the scored and moves on to their ends.
    pub fn keep(&mut self, candidates: Vec<Candidate>, mut scores: Vec<Scored>) {
        scores.retain(|scored| scored.candidate < candidates.len() && scored.score.is_finite());
        let prior = |scored: &Scored| candidates[scored.candidate].prior;
        scores.sort_by(|a, b| {
            let by_score = b.score.total_cmp(&a.score);
            by_score
                .then_with(|| prior(b).total_cmp(&prior(a)))
                .then(a.candidate.cmp(&b.candidate))
        });
        // What fits nothing at all is kept only where nothing fits.
        if scores.first().is_some_and(|best| best.score > 0.0) {
            scores.retain(|scored| scored.score > 0.0);
        }
        let limits = &self.plan.limits;
        scores.truncate(limits.scored.max(limits.edges));
        if scores.len() > limits.edges {
            let texts: Vec<&str> = scores
                .iter()
                .map(|scored| candidates[scored.candidate].text.as_str())
                .collect();
            let relevance: Vec<f64> = scores.iter().map(|scored| scored.score).collect();
            let chosen = mmr::select(&texts, &relevance, VARIETY, limits.edges);
            scores = chosen.into_iter().map(|at| scores[at]).collect();
        }
        let mut next: Vec<Seed> = Vec::new();
        for scored in scores {
            let candidate = &candidates[scored.candidate];
            let triple = &candidate.edge.triple;
            for term in [&triple.s, &triple.o].into_iter().flatten() {
                let known = self.visited.contains(term) || next.iter().any(|s| s.term == *term);
                if !known && leads_on(term) {
                    next.push(Seed {
                        term: term.clone(),
                        nearness: scored.score.clamp(0.0, 1.0),
                    });
                }
            }
            self.kept.push(RankedEdge {
                edge: candidate.edge.clone(),
                text: candidate.text.clone(),
                search: scored.search,
                score: scored.score,
            });
        }
        self.frontier = next;
        self.hop += 1;
    }

    /// What was kept, best first, as much as the model is given.
    pub fn finish(mut self) -> Vec<RankedEdge> {
        self.kept.sort_by(|a, b| b.score.total_cmp(&a.score));
        self.kept.truncate(self.plan.limits.subgraph);
        self.kept
    }
}

/// How well each text fits the search it fits best.
pub fn best_fit(texts: &Texts, searches: &[String], count: usize) -> Vec<f64> {
    let mut best = vec![0.0f64; count];
    for search in searches {
        for (known, score) in best.iter_mut().zip(texts.scores(search)) {
            *known = known.max(score);
        }
    }
    best
}

/// The words as they stand in labels: the graph compares them so.
fn plain(text: &str) -> Vec<String> {
    let telling: HashSet<String> = words(text).into_iter().collect();
    folded(text)
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| words(word).iter().any(|word| telling.contains(word)))
        .map(str::to_lowercase)
        .collect()
}

/// Whether the walk goes on through a term. Numbers, dates and long texts join what has nothing to do with
/// each other.
fn leads_on(term: &Term) -> bool {
    match term {
        Term::Iri(iri) => !iri.is_empty(),
        Term::Blank(_) => true,
        Term::Literal {
            value, datatype, ..
        } => {
            let text = datatype.is_empty() || datatype.ends_with("#string");
            text && value.chars().any(char::is_alphabetic) && value.chars().count() <= SHARED_TEXT
        }
        Term::Quoted(_) => false,
    }
}

#[cfg(test)]
mod tests;
