//! One collection in memory. Knows nothing of the journal: it is told what to apply.

use std::sync::Arc;

use oxigraph::model::vocab::rdfs;
use oxigraph::model::{GraphNameRef, NamedOrBlankNode, Quad};
use oxigraph::store::{QuadIter, Store, Transaction};

use crate::engine::pattern::Pattern;
use crate::engine::single::is_single;
use crate::error::GraphError;
use crate::store::embedded::batch::{Op, Run};
use crate::store::embedded::label_cache::{Label, LabelCache};

/// A dataset in memory: readers see whole changes, each a consistent state.
pub(crate) struct Dataset {
    store: Store,
    labels: LabelCache,
}

impl Dataset {
    pub(crate) fn new() -> Result<Self, GraphError> {
        Ok(Self {
            store: Store::new()?,
            labels: LabelCache::default(),
        })
    }

    /// Applies runs in order as one change.
    pub(crate) fn apply<'a>(
        &self,
        runs: impl Iterator<Item = &'a Run> + Clone,
    ) -> Result<(), GraphError> {
        let mut change = self.store.start_transaction()?;
        for run in runs.clone() {
            match run.op {
                Op::Insert => insert(&mut change, &run.quads)?,
                Op::Delete => run.quads.iter().for_each(|quad| change.remove(quad)),
            }
        }
        change.commit()?;
        self.labels.changed(runs.flat_map(|run| &run.quads));
        Ok(())
    }

    /// Labels of a thing, in all graphs.
    pub(crate) fn labels(&self, thing: &NamedOrBlankNode) -> Result<Arc<[Label]>, GraphError> {
        self.labels.get(thing, || {
            let subject = Some(thing.as_ref());
            let found = self
                .store
                .quads_for_pattern(subject, Some(rdfs::LABEL), None, None);
            found.map(|quad| Ok(quad?))
        })
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

/// Adds quads; of what a thing has only one value, the last counts.
fn insert(change: &mut Transaction<'_>, quads: &[Quad]) -> Result<(), GraphError> {
    for quad in quads {
        if is_single(quad) {
            let (subject, graph) = (quad.subject.as_ref(), quad.graph_name.as_ref());
            let predicate = quad.predicate.as_ref();
            let known = change.quads_for_pattern(Some(subject), Some(predicate), None, Some(graph));
            let known: Vec<Quad> = known.collect::<Result<_, _>>()?;
            let others = known.iter().filter(|known| known.object != quad.object);
            others.for_each(|other| change.remove(other));
        }
        change.insert(quad);
    }
    Ok(())
}
