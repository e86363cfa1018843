//! The best of edges that come one by one: each has been scored, few are kept.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use oxigraph::model::{Quad, Triple};

/// At most so many edges, those with the highest score; of equal ones those that came first. A fact that stands in several
/// graphs is kept once.
pub(super) struct Best {
    most: usize,
    came: usize,
    kept: BTreeMap<(Reverse<usize>, usize), Quad>,
    facts: HashSet<Triple>,
}

impl Best {
    pub(super) fn of(most: usize) -> Self {
        Self {
            most,
            came: 0,
            kept: BTreeMap::new(),
            facts: HashSet::new(),
        }
    }

    /// Whether everything that comes is kept so far.
    pub(super) fn has_room(&self) -> bool {
        self.kept.len() < self.most
    }

    pub(super) fn offer(&mut self, score: usize, quad: Quad) {
        self.came += 1;
        if !self.has_room() {
            let worst = self
                .kept
                .last_key_value()
                .map(|((Reverse(score), _), _)| *score);
            if worst.is_none_or(|worst| score <= worst) {
                return;
            }
        }
        // What came first stands: the same fact has the same score.
        if !self.facts.insert(Triple::from(quad.clone())) {
            return;
        }
        self.kept.insert((Reverse(score), self.came), quad);
        if self.kept.len() > self.most
            && let Some((_, gone)) = self.kept.pop_last()
        {
            self.facts.remove(&Triple::from(gone));
        }
    }

    /// Best first.
    pub(super) fn into_edges(self) -> impl Iterator<Item = Quad> {
        self.kept.into_values()
    }
}

#[cfg(test)]
mod tests {
    use oxigraph::model::{GraphName, Literal, NamedNode};

    use super::*;

    fn quad(value: usize, graph: GraphName) -> Quad {
        let iri = |name: &str| NamedNode::new_unchecked(name);
        let value = Literal::new_simple_literal(value.to_string());
        Quad::new(iri("urn:x:s"), iri("urn:x:p"), value, graph)
    }

    #[test]
    fn the_highest_are_kept_each_once_and_no_more() {
        let mut best = Best::of(3);
        for at in 0..10_000 {
            let score = usize::from(at == 7_000) * 2 + usize::from(at == 9_999);
            best.offer(score, quad(at, GraphName::DefaultGraph));
            let elsewhere = NamedNode::new_unchecked("urn:x:g").into();
            best.offer(score, quad(at, elsewhere));
            assert!(best.kept.len() <= 3 && best.facts.len() == best.kept.len());
        }
        let kept: Vec<Quad> = best.into_edges().collect();
        let expected = [7_000, 9_999, 0].map(|at| quad(at, GraphName::DefaultGraph));
        assert_eq!(kept, expected);
    }
}
