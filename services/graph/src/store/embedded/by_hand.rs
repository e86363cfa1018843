//! Which quads of a dataset were loaded by somebody, whatever extractions found: those stay when what an extraction found is
//! taken back. Knows quads by a hash that is this process's own; the journal has them as rows of their own kind.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use oxigraph::model::{GraphName, Quad};
use parking_lot::Mutex;
use tg_schemas::vocabulary::{SOURCE_GRAPH, tg};

/// Bytes of memory for a quad that is known here, at most.
pub(crate) const MARK: u64 = 24;

/// Whether it matters that a quad was loaded by hand: facts, and what says that a subgraph holds one.
pub(crate) fn matters(quad: &Quad) -> bool {
    match &quad.graph_name {
        GraphName::DefaultGraph => true,
        GraphName::NamedNode(graph) => {
            graph.as_str() == SOURCE_GRAPH && quad.predicate.as_str() == tg::CONTAINS
        }
        GraphName::BlankNode(_) => false,
    }
}

/// Quads that were loaded by hand. Of two with one hash the other counts as loaded too: then one stays that should have gone,
/// once in 2^64.
#[derive(Debug, Default)]
pub(crate) struct ByHand {
    seed: RandomState,
    /// As many as are in the dataset at most; a reader keeps the state that it began with.
    quads: Mutex<Arc<HashSet<u64>>>,
}

/// A change of it: what was loaded and what went, in this order.
pub(crate) struct Marks {
    seed: RandomState,
    marks: Vec<(u64, bool)>,
}

impl Marks {
    pub(crate) fn loaded(&mut self, quad: &Quad) {
        self.marks.push((self.seed.hash_one(quad), true));
    }

    pub(crate) fn gone(&mut self, quad: &Quad) {
        self.marks.push((self.seed.hash_one(quad), false));
    }
}

/// One state of it.
pub(crate) struct Frozen {
    seed: RandomState,
    quads: Arc<HashSet<u64>>,
}

impl ByHand {
    /// Begins a change, which comes into force by [`Self::change`].
    pub(crate) fn begin(&self) -> Marks {
        Marks {
            seed: self.seed.clone(),
            marks: Vec::new(),
        }
    }

    /// Makes a change.
    pub(crate) fn change(&self, of: Marks) {
        let mut quads = self.quads.lock();
        let loads = of.marks.iter().any(|(_, loaded)| *loaded);
        if !loads && (of.marks.is_empty() || quads.is_empty()) {
            return;
        }
        let quads = Arc::make_mut(&mut quads);
        for (quad, loaded) in of.marks {
            match loaded {
                true => quads.insert(quad),
                false => quads.remove(&quad),
            };
        }
    }

    /// As it is now.
    pub(crate) fn frozen(&self) -> Frozen {
        Frozen {
            seed: self.seed.clone(),
            quads: self.quads.lock().clone(),
        }
    }
}

impl Frozen {
    pub(crate) fn has(&self, quad: &Quad) -> bool {
        !self.quads.is_empty() && self.quads.contains(&self.seed.hash_one(quad))
    }
}
