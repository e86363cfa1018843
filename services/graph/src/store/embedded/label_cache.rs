//! Labels of things that were looked at lately: questions come back to the same hubs, with all that is around
//! them. Bounded; a change of a label is forgotten before anybody is notified of it.

use std::collections::HashMap;
use std::sync::Arc;

use oxigraph::model::vocab::rdfs;
use oxigraph::model::{GraphName, NamedOrBlankNode, Quad, Term};
use parking_lot::Mutex;

use crate::error::GraphError;

/// Bytes of labels kept of a dataset, about; beyond it all are forgotten.
const BYTES: usize = 8 << 20;
/// Bytes that an entry takes beside its texts, about.
const OVERHEAD: usize = 160;
/// Labels of one thing that are read.
const LABELS: usize = 256;
/// Longest label that is passed on, in characters.
const LONGEST: usize = 300;

/// A label of a thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Label {
    /// Its text, shortened.
    pub(crate) text: String,
    /// Language tag.
    pub(crate) language: Option<String>,
    /// Where it stands.
    pub(crate) graph: GraphName,
}

/// The labels of one dataset.
#[derive(Default)]
pub(crate) struct LabelCache {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    known: HashMap<NamedOrBlankNode, Arc<[Label]>>,
    bytes: usize,
    /// Counts changes: what was read before one must not be kept after it.
    changes: u64,
}

impl LabelCache {
    /// The labels of a thing, in all graphs; `scan` reads those that are not known.
    pub(crate) fn get<I>(
        &self,
        thing: &NamedOrBlankNode,
        scan: impl FnOnce() -> I,
    ) -> Result<Arc<[Label]>, GraphError>
    where
        I: Iterator<Item = Result<Quad, GraphError>>,
    {
        let changes = {
            let state = self.state.lock();
            if let Some(labels) = state.known.get(thing) {
                return Ok(labels.clone());
            }
            state.changes
        };
        let mut labels = Vec::new();
        for quad in scan().take(LABELS) {
            let quad = quad?;
            if let Term::Literal(literal) = &quad.object {
                labels.push(Label {
                    text: literal.value().chars().take(LONGEST).collect(),
                    language: literal.language().map(str::to_owned),
                    graph: quad.graph_name,
                });
            }
        }
        let labels: Arc<[Label]> = labels.into();
        let mut state = self.state.lock();
        if state.changes == changes {
            state.keep(thing, &labels);
        }
        Ok(labels)
    }

    /// Forgets the labels of things that a change is about. Call it once the change can be read.
    pub(crate) fn changed<'q>(&self, quads: impl Iterator<Item = &'q Quad>) {
        let mut about = quads
            .filter(|quad| quad.predicate == rdfs::LABEL)
            .peekable();
        if about.peek().is_none() {
            return;
        }
        let mut state = self.state.lock();
        state.changes += 1;
        for quad in about {
            state.known.remove(&quad.subject);
        }
        if state.known.is_empty() {
            state.bytes = 0;
        }
    }
}

impl State {
    fn keep(&mut self, thing: &NamedOrBlankNode, labels: &Arc<[Label]>) {
        let texts: usize = labels.iter().map(|label| label.text.len() + OVERHEAD).sum();
        let name = match thing {
            NamedOrBlankNode::NamedNode(node) => node.as_str().len(),
            NamedOrBlankNode::BlankNode(node) => node.as_str().len(),
        };
        let bytes = texts + name + OVERHEAD;
        if self.bytes + bytes > BYTES {
            self.known.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.known.insert(thing.clone(), labels.clone());
    }
}

#[cfg(test)]
mod tests {
    use oxigraph::model::{Literal, NamedNode};

    use super::*;

    fn labelled(thing: &str, label: &str) -> Quad {
        Quad::new(
            NamedNode::new_unchecked(thing),
            rdfs::LABEL,
            Literal::new_simple_literal(label),
            GraphName::DefaultGraph,
        )
    }

    fn texts(cache: &LabelCache, stored: &Quad) -> Vec<String> {
        let scan = || std::iter::once(Ok(stored.clone()));
        let labels = cache.get(&stored.subject, scan).unwrap();
        labels.iter().map(|label| label.text.clone()).collect()
    }

    #[test]
    fn a_label_is_read_once_until_it_changes() {
        let cache = LabelCache::default();
        let (before, after) = (labelled("urn:a", "before"), labelled("urn:a", "after"));
        assert_eq!(texts(&cache, &before), ["before"]);
        assert_eq!(texts(&cache, &after), ["before"], "not read again");
        let other = Quad {
            predicate: NamedNode::new_unchecked("urn:p"),
            ..after.clone()
        };
        cache.changed([&other].into_iter());
        assert_eq!(texts(&cache, &after), ["before"], "nothing about labels");
        cache.changed([&after].into_iter());
        assert_eq!(texts(&cache, &after), ["after"]);
    }

    #[test]
    fn what_was_read_before_a_change_is_not_kept() {
        let cache = LabelCache::default();
        let (before, after) = (labelled("urn:a", "before"), labelled("urn:a", "after"));
        let scan = || {
            // The change comes while the old state is read.
            cache.changed([&after].into_iter());
            std::iter::once(Ok(before.clone()))
        };
        assert_eq!(cache.get(&before.subject, scan).unwrap()[0].text, "before");
        assert_eq!(texts(&cache, &after), ["after"]);
    }

    #[test]
    fn memory_is_bounded() {
        let cache = LabelCache::default();
        for n in 0..40_000 {
            texts(&cache, &labelled(&format!("urn:{n}"), &"x".repeat(400)));
            assert!(cache.state.lock().bytes <= BYTES);
        }
        assert!(cache.state.lock().known.len() > 1_000);
    }
}
