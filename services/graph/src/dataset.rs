//! One collection in memory. Knows nothing of the journal: it is told what to apply.

use oxigraph::model::GraphNameRef;
use oxigraph::store::{QuadIter, Store};

use crate::batch::{Op, Run};
use crate::error::GraphError;
use crate::pattern::Pattern;

/// A dataset in memory: readers see whole changes, each a consistent state.
pub(crate) struct Dataset {
    store: Store,
}

impl Dataset {
    pub(crate) fn new() -> Result<Self, GraphError> {
        Ok(Self {
            store: Store::new()?,
        })
    }

    /// Applies runs in order as one change.
    pub(crate) fn apply<'a>(&self, runs: impl Iterator<Item = &'a Run>) -> Result<(), GraphError> {
        let mut change = self.store.start_transaction()?;
        for run in runs {
            match run.op {
                Op::Insert => change.extend(&run.quads),
                Op::Delete => run.quads.iter().for_each(|quad| change.remove(quad)),
            }
        }
        Ok(change.commit()?)
    }

    /// The quads that match, from a state that no later change touches.
    pub(crate) fn scan(&self, pattern: &Pattern) -> QuadIter<'static> {
        self.store.quads_for_pattern(
            pattern.subject.as_ref().map(|s| s.as_ref()),
            pattern.predicate.as_ref().map(|p| p.as_ref()),
            pattern.object.as_ref().map(|o| o.as_ref()),
            pattern.graph.as_ref().map(GraphNameRef::from),
        )
    }

    /// Everything, from one state.
    pub(crate) fn all(&self) -> QuadIter<'static> {
        self.store.iter()
    }

    /// For SPARQL.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }
}
