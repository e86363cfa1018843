//! One collection in memory, as it is or as a user sees it. Knows nothing of the journal: it is told what to apply.

use std::borrow::Cow;
use std::sync::Arc;

use oxigraph::model::vocab::{rdfs, xsd};
use oxigraph::model::{GraphName, GraphNameRef, NamedNode, NamedOrBlankNode, Quad, Term};
use oxigraph::store::{QuadIter, Store, Transaction};
use parking_lot::Mutex;
use tg_schemas::msg::UserContext;
use tg_schemas::vocabulary::POLICY_GRAPH;

use crate::engine::pattern::Pattern;
use crate::engine::policy::{self, Shows};
use crate::engine::single::is_single;
use crate::error::GraphError;
use crate::store::embedded::batch::{Op, Run};
use crate::store::embedded::bounds::Bounds;
use crate::store::embedded::by_hand::{self, ByHand, Marks};
use crate::store::embedded::changes::Changes;
use crate::store::embedded::label_cache::{Label, LabelCache};
use crate::store::embedded::sight::{Rules, Sight};

/// Quads in a row that are hidden before a scan pauses.
const HIDDEN: usize = 2_000;

/// A dataset in memory: readers see whole changes, each a consistent state.
pub(crate) struct Dataset {
    store: Store,
    labels: LabelCache,
    /// Its policies, once they were read. A write to them takes them away before anybody is told of it.
    policies: Mutex<Option<Arc<[Rules]>>>,
    changes: Arc<Changes>,
    by_hand: Arc<ByHand>,
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
        if let Some(sight) = &self.sight {
            sight.begin();
        }
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
            changes: Arc::default(),
            by_hand: Arc::default(),
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
        bounds: Bounds,
    ) -> Result<Arc<Self>, GraphError> {
        // Together: a change of them is in what is read, or is one that comes after it.
        let _held = self.changes.hold();
        let of_policies = self.changes.of_policies();
        let policies = self.policies()?;
        if policies.is_empty() {
            return Ok(self.clone());
        }
        let user = user.ok_or(GraphError::NoUserContext)?;
        let changes = (self.changes.clone(), of_policies);
        let sight = Sight::new(self.store.clone(), policies, user, changes, bounds);
        Ok(Arc::new(Self {
            store: self.store.clone(),
            labels: LabelCache::default(),
            policies: Mutex::default(),
            changes: self.changes.clone(),
            by_hand: self.by_hand.clone(),
            sight: Some(Arc::new(sight)),
        }))
    }

    /// Lets go of it: who still looks at it is told so.
    pub(crate) fn retire(&self) {
        self.changes.retire();
    }

    fn policies(&self) -> Result<Arc<[Rules]>, GraphError> {
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
        let read = policy::read(self.scan(&all))?.into_iter().map(Rules::of);
        let read: Arc<[Rules]> = read.collect::<Result<_, _>>()?;
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
        let mut marks = self.by_hand.begin();
        for run in runs.clone() {
            match run.op {
                Op::Insert => insert(&mut change, &run.quads, &mut marks)?,
                Op::Load => {
                    insert(&mut change, &run.quads, &mut marks)?;
                    for quad in &run.quads {
                        marks.loaded(as_kept(&change, quad)?.as_ref());
                    }
                }
                Op::Delete => {
                    for quad in &run.quads {
                        marks.gone(as_kept(&change, quad)?.as_ref());
                        change.remove(quad);
                    }
                }
                Op::Unmark => {
                    for quad in &run.quads {
                        marks.gone(as_kept(&change, quad)?.as_ref());
                    }
                }
            }
        }
        let of_policies = runs.clone().flat_map(|run| &run.quads).any(is_of_policies);
        let committing = self.changes.begin(of_policies);
        change.commit()?;
        self.by_hand.change(marks);
        if of_policies {
            *self.policies.lock() = None;
        }
        drop(committing);
        self.labels.changed(runs.flat_map(|run| &run.quads));
        Ok(())
    }

    /// Labels of a thing, in all graphs.
    pub(crate) fn labels(&self, thing: &NamedOrBlankNode) -> Result<Arc<[Label]>, GraphError> {
        let scan = || {
            self.scan(&Pattern {
                subject: Some(thing.clone()),
                predicate: Some(rdfs::LABEL.into_owned()),
                ..Pattern::default()
            })
        };
        match self.sight {
            // What a user sees is judged each time.
            Some(_) => LabelCache::default().get(thing, scan),
            None => self.labels.get(thing, scan),
        }
    }

    #[cfg(test)]
    pub(super) fn changes(&self) -> &Changes {
        &self.changes
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

    /// What of it was loaded by hand.
    pub(crate) fn by_hand(&self) -> by_hand::Frozen {
        self.by_hand.frozen()
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

/// A quad as the store tells it: numbers and times come in its own form, whatever form they were written in.
fn as_kept<'a>(change: &Transaction<'_>, quad: &'a Quad) -> Result<Cow<'a, Quad>, GraphError> {
    let as_written = match &quad.object {
        Term::Literal(literal) => literal.language().is_some() || literal.datatype() == xsd::STRING,
        Term::Triple(_) => false,
        _ => true,
    };
    if as_written {
        return Ok(Cow::Borrowed(quad));
    }
    let mut kept = change.quads_for_pattern(
        Some(quad.subject.as_ref()),
        Some(quad.predicate.as_ref()),
        Some(quad.object.as_ref()),
        Some(quad.graph_name.as_ref()),
    );
    Ok(match kept.next().transpose()? {
        Some(kept) => Cow::Owned(kept),
        None => Cow::Borrowed(quad),
    })
}

/// Adds quads; of what a thing has only one value, the last counts.
fn insert(
    change: &mut Transaction<'_>,
    quads: &[Quad],
    marks: &mut Marks,
) -> Result<(), GraphError> {
    for quad in quads {
        if is_single(quad) {
            let (subject, graph) = (quad.subject.as_ref(), quad.graph_name.as_ref());
            let predicate = quad.predicate.as_ref();
            let known = change.quads_for_pattern(Some(subject), Some(predicate), None, Some(graph));
            let known: Vec<Quad> = known.collect::<Result<_, _>>()?;
            let others = known.iter().filter(|known| known.object != quad.object);
            others.for_each(|other| {
                change.remove(other);
                marks.gone(other);
            });
        }
        change.insert(quad);
    }
    Ok(())
}
