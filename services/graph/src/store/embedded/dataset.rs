//! One collection in memory, as it is or as a user sees it. Knows nothing of the journal: it is told what to apply.

use std::sync::Arc;

use oxigraph::model::vocab::rdfs;
use oxigraph::model::{GraphName, GraphNameRef, NamedNode, NamedOrBlankNode, Quad};
use oxigraph::store::{QuadIter, Store, Transaction};
use parking_lot::Mutex;
use tg_schemas::msg::UserContext;
use tg_schemas::vocabulary::POLICY_GRAPH;

use crate::engine::pattern::Pattern;
use crate::engine::policy::{self, Policy, Shows};
use crate::engine::single::is_single;
use crate::error::GraphError;
use crate::store::embedded::batch::{Op, Run};
use crate::store::embedded::label_cache::{Label, LabelCache};
use crate::store::embedded::sight::Sight;

/// Quads in a row that are hidden before a scan pauses.
const HIDDEN: usize = 2_000;

/// A dataset in memory: readers see whole changes, each a consistent state.
pub(crate) struct Dataset {
    store: Store,
    labels: LabelCache,
    /// Its policies, once they were read. A write to them takes them away before anybody is told of it.
    policies: Mutex<Option<Arc<[Policy]>>>,
    /// Whose view it is, where it is not all.
    sight: Option<Arc<Sight>>,
}

/// Quads that match, in no particular order.
pub(crate) struct Quads {
    found: QuadIter<'static>,
    sight: Option<Arc<Sight>>,
    /// Quads that may still be hidden before it pauses.
    patience: usize,
}

impl Quads {
    /// From here on it pauses when too many in a row are hidden: it says that there is nothing, and then whether it
    /// [goes on](Self::goes_on).
    pub(crate) fn begin(&mut self) {
        self.patience = HIDDEN;
    }

    /// Whether it only paused.
    pub(crate) fn goes_on(&self) -> bool {
        self.patience == 0
    }
}

impl Iterator for Quads {
    type Item = Result<Quad, GraphError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let quad = match self.found.next()? {
                Ok(quad) => quad,
                Err(error) => return Some(Err(error.into())),
            };
            let Some(sight) = &self.sight else {
                return Some(Ok(quad));
            };
            match sight.shows(&quad) {
                Ok(true) => return Some(Ok(quad)),
                Ok(false) if self.patience == 1 => {
                    self.patience = 0;
                    return None;
                }
                Ok(false) => self.patience = self.patience.saturating_sub(1),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Dataset {
    pub(crate) fn new() -> Result<Self, GraphError> {
        Ok(Self {
            store: Store::new()?,
            labels: LabelCache::default(),
            policies: Mutex::default(),
            sight: None,
        })
    }

    /// The dataset as a user sees it: all of it where it has no policies. Labels of a view are of that view.
    ///
    /// # Errors
    /// [`GraphError::NoUserContext`] where there are policies and nothing is known of the user; [`GraphError::Policy`] for
    /// one that cannot be read.
    pub(crate) fn seen_by(
        self: &Arc<Self>,
        user: Option<&UserContext>,
    ) -> Result<Arc<Self>, GraphError> {
        let policies = self.policies()?;
        if policies.is_empty() {
            return Ok(self.clone());
        }
        let user = user.ok_or(GraphError::NoUserContext)?;
        let sight = Sight::new(self.store.clone(), policies, user);
        Ok(Arc::new(Self {
            store: self.store.clone(),
            labels: LabelCache::default(),
            policies: Mutex::default(),
            sight: Some(Arc::new(sight)),
        }))
    }

    fn policies(&self) -> Result<Arc<[Policy]>, GraphError> {
        // Held while they are read: a change of them that is committed meanwhile takes away what was read.
        let mut known = self.policies.lock();
        if let Some(known) = &*known {
            return Ok(known.clone());
        }
        let graph = NamedNode::new_unchecked(POLICY_GRAPH);
        let all = Pattern {
            graph: Some(graph.into()),
            ..Pattern::default()
        };
        let read: Arc<[Policy]> = policy::read(self.scan(&all))?.into();
        *known = Some(read.clone());
        Ok(read)
    }

    /// Whose view it is; nothing where it is all there is.
    pub(crate) fn sight(&self) -> Option<&Arc<Sight>> {
        self.sight.as_ref()
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
        if runs.clone().flat_map(|run| &run.quads).any(is_of_policies) {
            *self.policies.lock() = None;
        }
        self.labels.changed(runs.flat_map(|run| &run.quads));
        Ok(())
    }

    /// Labels of a thing, in all graphs.
    pub(crate) fn labels(&self, thing: &NamedOrBlankNode) -> Result<Arc<[Label]>, GraphError> {
        self.labels.get(thing, || {
            self.scan(&Pattern {
                subject: Some(thing.clone()),
                predicate: Some(rdfs::LABEL.into_owned()),
                ..Pattern::default()
            })
        })
    }

    /// The quads that match, from a state that no later change touches.
    pub(crate) fn scan(&self, pattern: &Pattern) -> Quads {
        let found = self.store.quads_for_pattern(
            pattern.subject.as_ref().map(|s| s.as_ref()),
            pattern.predicate.as_ref().map(|p| p.as_ref()),
            pattern.object.as_ref().map(|o| o.as_ref()),
            pattern.graph.as_ref().map(GraphNameRef::from),
        );
        Quads {
            found,
            sight: self.sight.clone(),
            patience: usize::MAX,
        }
    }

    /// Everything, from one state.
    pub(crate) fn all(&self) -> QuadIter<'static> {
        self.store.iter()
    }

    /// All of it, for SPARQL; see [`Self::sight`].
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }
}

fn is_of_policies(quad: &Quad) -> bool {
    matches!(&quad.graph_name, GraphName::NamedNode(graph) if graph.as_str() == POLICY_GRAPH)
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
