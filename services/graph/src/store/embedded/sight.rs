//! What a user sees of a collection that has policies: each thing is judged once a question, by the policies in their order,
//! from the whole collection and what is known of the user.
//!
//! A quad is hidden that names a hidden thing anywhere: as subject, predicate, object or graph, or within a quoted triple;
//! and so are the policies themselves. A policy that fails, or takes more time or memory than a query may, hides everything,
//! as an error.
//!
//! Each quad is judged by one state of the collection, in which it is: what is withdrawn meanwhile is not shown, and what
//! was judged by another state is judged again.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use oxigraph::model::{BlankNode, GraphName, NamedNode, NamedOrBlankNode, Quad, Term, Triple};
use oxigraph::sparql::{QueryResults, Variable};
use oxigraph::store::Store;
use parking_lot::Mutex;
use tg_schemas::msg::UserContext;
use tg_schemas::vocabulary::{POLICY_GRAPH, RETRIEVAL_GRAPH};
use tokio::time::Instant;

use super::bounds::{Bound, Bounds, Over};
use super::changes::Changes;
use super::evaluated::Evaluated;
use super::sparql::bounded::Bounded;
use crate::engine::policy::{Policy, Shows, Verdict, facts, verdict};
use crate::engine::steps::Steps;
use crate::error::GraphError;

/// Verdicts that are remembered; beyond that all are forgotten.
const REMEMBERED: usize = 50_000;
/// Blank nodes that one hangs on at most. One that hangs on more cannot be judged, which is an error and no verdict.
const HELD_BY: usize = 20_000;
/// States at which one thing is looked at, one after the other, until one of them lasted.
const LOOKS: usize = 100;
/// Triples that a rule makes at most.
const MADE: usize = 1_000;

/// A policy, and its queries with their bounds.
#[derive(Debug)]
pub(crate) struct Rules {
    name: Arc<str>,
    target: Bounded,
    rule: Bounded,
}

impl Rules {
    /// Of a policy.
    ///
    /// # Errors
    /// [`GraphError::Policy`] for one whose queries are too large to plan.
    pub(super) fn of(policy: Policy) -> Result<Self, GraphError> {
        let bounded = |query| {
            Bounded::of(query).map_err(|error| GraphError::Policy {
                name: policy.name.to_string(),
                why: error.to_string(),
            })
        };
        Ok(Self {
            target: bounded(policy.target)?,
            rule: bounded(policy.rule)?,
            name: policy.name,
        })
    }
}

/// What one user sees.
pub(crate) struct Sight {
    store: Store,
    policies: Arc<[Rules]>,
    user: Arc<[Triple]>,
    hidden: Mutex<HashMap<NamedOrBlankNode, bool>>,
    /// Says that nobody waits any more.
    over: Arc<OnceLock<Over>>,
    bounds: Bounds,
    /// Microseconds that policies took since reading began, or went on.
    spent: AtomicU64,
    changes: Arc<Changes>,
    /// State that the view began with, if none was being made.
    began: Option<u64>,
    /// Changes of the policies before the view began.
    of_policies: u64,
    /// State of what is remembered.
    judged_by: Mutex<Option<u64>>,
    /// The first thing that went wrong: the evaluator takes an error for a value here and there.
    fault: OnceLock<GraphError>,
}

impl Shows for Sight {
    fn shows(&self, quad: &Quad) -> Result<bool, GraphError> {
        self.by_one_state(|state| {
            let seen = self.sees_graph(&quad.graph_name)?
                && self.sees_node(&quad.subject)?
                && self.sees_iri(&quad.predicate)?
                && self.sees_term(&quad.object)?;
            Ok(seen && (self.began == Some(state) || self.store.contains(quad)?))
        })
    }

    fn goes_on(&self) -> Result<(), GraphError> {
        match self.over.get().is_some_and(|over| over()) {
            true => Err(GraphError::Cancelled),
            false => Ok(()),
        }
    }

    fn shows_graph(&self, graph: &GraphName) -> Result<bool, GraphError> {
        self.by_one_state(|_| self.sees_graph(graph))
    }
}

fn changed(what: &str) -> GraphError {
    GraphError::Policy {
        name: POLICY_GRAPH.to_owned(),
        why: format!("{what}: ask again"),
    }
}

fn too_long() -> GraphError {
    GraphError::Policy {
        name: POLICY_GRAPH.to_owned(),
        why: format!("a blank node hangs on more than {HELD_BY} others, too many to judge"),
    }
}

/// Policies and traces are nobody's who is held to policies: traces say what others asked.
fn is_for_nobody(graph: &NamedNode) -> bool {
    matches!(graph.as_str(), POLICY_GRAPH | RETRIEVAL_GRAPH)
}

impl Sight {
    pub(super) fn new(
        store: Store,
        policies: Arc<[Rules]>,
        user: &UserContext,
        (changes, of_policies): (Arc<Changes>, u64),
        bounds: Bounds,
    ) -> Self {
        Self {
            began: changes.settled(),
            changes,
            of_policies,
            judged_by: Mutex::default(),
            bounds,
            spent: AtomicU64::new(0),
            store,
            policies,
            user: facts(user).into(),
            hidden: Mutex::default(),
            over: Arc::default(),
            fault: OnceLock::new(),
        }
    }

    /// Another piece of an answer is read from here on.
    pub(super) fn begin(&self) {
        self.spent.store(0, Ordering::Relaxed);
    }

    /// Judges by one state: again where something changed meanwhile. Nobody who commits waits for it.
    fn by_one_state(
        &self,
        judge: impl Fn(u64) -> Result<bool, GraphError>,
    ) -> Result<bool, GraphError> {
        for _ in 0..LOOKS {
            let Some(state) = self.changes.settled() else {
                self.changes.wait();
                continue;
            };
            self.remember_of(state);
            let judged = judge(state);
            if self.changes.settled() == Some(state) {
                return self.still(judged);
            }
        }
        self.still(Err(changed(
            "the collection changes faster than its policies judge",
        )))
    }

    /// What was judged, if the policies are those that judged it.
    fn still(&self, judged: Result<bool, GraphError>) -> Result<bool, GraphError> {
        let fault = if self.changes.of_policies() != self.of_policies {
            Err(changed("the policies were changed meanwhile"))
        } else if !self.changes.is_told() {
            Err(changed("the collection was loaded anew meanwhile"))
        } else {
            judged
        };
        fault.inspect_err(|fault| drop(self.fault.set(fault.clone())))
    }

    /// Forgets what was judged by another state.
    fn remember_of(&self, state: u64) {
        let mut known = self.judged_by.lock();
        if known.replace(state) != Some(state) {
            self.hidden.lock().clear();
        }
    }

    fn sees_graph(&self, graph: &GraphName) -> Result<bool, GraphError> {
        match graph {
            GraphName::NamedNode(graph) if is_for_nobody(graph) => Ok(false),
            GraphName::NamedNode(graph) => self.sees_iri(graph),
            GraphName::BlankNode(_) | GraphName::DefaultGraph => Ok(true),
        }
    }

    /// Those of some graphs that may be seen.
    pub(crate) fn among(
        &self,
        graphs: Vec<NamedOrBlankNode>,
    ) -> Result<Vec<NamedOrBlankNode>, GraphError> {
        let mut seen = Vec::with_capacity(graphs.len());
        for graph in graphs {
            if self.shows_graph(&graph.clone().into())? {
                seen.push(graph);
            }
        }
        Ok(seen)
    }

    /// Ends what is read by it once this says so.
    pub(crate) fn ends_when(&self, over: impl Fn() -> bool + Send + Sync + 'static) {
        let _ = self.over.set(Box::new(over));
    }

    /// What went wrong, if anything did.
    pub(crate) fn fault(&self) -> Result<(), GraphError> {
        match self.fault.get() {
            Some(fault) => Err(fault.clone()),
            None => Ok(()),
        }
    }

    fn sees_node(&self, node: &NamedOrBlankNode) -> Result<bool, GraphError> {
        self.sees(node)
    }

    fn sees_iri(&self, iri: &NamedNode) -> Result<bool, GraphError> {
        self.sees(&iri.clone().into())
    }

    /// A blank node is hidden with what it hangs on to.
    fn sees(&self, node: &NamedOrBlankNode) -> Result<bool, GraphError> {
        if let Some(hidden) = self.known(node) {
            return Ok(!hidden);
        }
        self.goes_on()?;
        let hidden = match node {
            NamedOrBlankNode::NamedNode(iri) => self.judge(iri)?,
            NamedOrBlankNode::BlankNode(blank) => self.hangs_on(blank)?,
        };
        self.remember([node.clone()], hidden);
        Ok(!hidden)
    }

    fn known(&self, node: &NamedOrBlankNode) -> Option<bool> {
        self.hidden.lock().get(node).copied()
    }

    fn remember(&self, nodes: impl IntoIterator<Item = NamedOrBlankNode>, hidden: bool) {
        let mut known = self.hidden.lock();
        for node in nodes {
            if known.len() >= REMEMBERED {
                known.clear();
            }
            known.insert(node, hidden);
        }
    }

    /// Whether something that points at a blank node is hidden, or at one that does, and so on: however long the chain is, and
    /// where it ends in itself.
    fn hangs_on(&self, blank: &BlankNode) -> Result<bool, GraphError> {
        // What hangs on each that was met: if that one is hidden, all these are.
        let mut met = HashMap::from([(blank.clone(), None)]);
        let mut ahead = vec![blank.clone()];
        while let Some(held) = ahead.pop() {
            self.goes_on()?;
            let object: Term = held.clone().into();
            let holders = self
                .store
                .quads_for_pattern(None, None, Some(object.as_ref()), None);
            for quad in holders {
                let holder = quad?.subject;
                let blank = match (&holder, self.known(&holder)) {
                    (_, Some(false)) => continue,
                    (_, Some(true)) => return Ok(self.all_hidden(&met, held)),
                    (NamedOrBlankNode::NamedNode(_), None) => match self.sees(&holder)? {
                        true => continue,
                        false => return Ok(self.all_hidden(&met, held)),
                    },
                    (NamedOrBlankNode::BlankNode(blank), None) => blank,
                };
                if met.contains_key(blank) {
                    continue;
                }
                if met.len() >= HELD_BY {
                    return Err(too_long());
                }
                met.insert(blank.clone(), Some(held.clone()));
                ahead.push(blank.clone());
            }
        }
        // All that it hangs on is seen, and so is each of those by itself.
        let met = met.into_keys().map(NamedOrBlankNode::BlankNode);
        self.remember(met, false);
        Ok(false)
    }

    /// A node hangs on something hidden, and so does all that hangs on it.
    fn all_hidden(&self, met: &HashMap<BlankNode, Option<BlankNode>>, node: BlankNode) -> bool {
        let path = std::iter::successors(Some(&node), |node| met.get(*node)?.as_ref());
        self.remember(path.cloned().map(NamedOrBlankNode::BlankNode), true);
        true
    }

    fn sees_term(&self, term: &Term) -> Result<bool, GraphError> {
        match term {
            Term::NamedNode(iri) => self.sees_iri(iri),
            Term::BlankNode(node) => self.sees_node(&node.clone().into()),
            Term::Literal(_) => Ok(true),
            Term::Triple(triple) => Ok(self.sees_node(&triple.subject)?
                && self.sees_iri(&triple.predicate)?
                && self.sees_term(&triple.object)?),
        }
    }

    /// The first policy that says something of a thing decides.
    fn judge(&self, iri: &NamedNode) -> Result<bool, GraphError> {
        for policy in self.policies.iter() {
            let fault = |why: String| GraphError::Policy {
                name: policy.name.to_string(),
                why,
            };
            if !self.is_about(policy, iri).map_err(fault)? {
                continue;
            }
            let made = self.made(policy, iri).map_err(fault)?;
            match verdict(&made) {
                Verdict::Silent => {}
                Verdict::Shown => return Ok(false),
                Verdict::Hidden => {
                    metrics::counter!("tg_graph_policy_hidden_total").increment(1);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether a policy is about a thing.
    fn is_about(&self, policy: &Rules, this: &NamedNode) -> Result<bool, String> {
        self.within(|bound| match self.ask(&policy.target, this, bound)? {
            QueryResults::Solutions(mut rows) => match rows.next() {
                None => Ok(false),
                Some(row) => row.map(|_| true).map_err(|error| error.to_string()),
            },
            _ => Err("sh:select: must be a SELECT query".to_owned()),
        })
    }

    /// What its rule makes of it.
    fn made(&self, policy: &Rules, this: &NamedNode) -> Result<Vec<Triple>, String> {
        self.within(|bound| match self.ask(&policy.rule, this, bound)? {
            QueryResults::Graph(made) => {
                let made: Result<Vec<_>, _> = made.take(MADE + 1).collect();
                let made = made.map_err(|error| error.to_string())?;
                match made.len() > MADE {
                    true => Err(format!("sh:construct: makes more than {MADE} triples")),
                    false => Ok(made),
                }
            }
            _ => Err("sh:construct: must be a CONSTRUCT query".to_owned()),
        })
    }

    /// Asks within what policies may take. What took too much is unwound and says nothing, whatever the evaluator made of that.
    fn within<T>(&self, ask: impl FnOnce(&Arc<Bound>) -> Result<T, String>) -> Result<T, String> {
        let begun = Instant::now();
        let spent = Duration::from_micros(self.spent.load(Ordering::Relaxed));
        let bound = Arc::new(Bound {
            end: begun + self.bounds.time.saturating_sub(spent),
            time: self.bounds.time,
            held: tg_counted_alloc::held(),
            memory: self.bounds.memory,
            over: self.over.clone(),
            fault: OnceLock::new(),
        });
        let asked = catch_unwind(AssertUnwindSafe(|| ask(&bound)));
        let took = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.spent.fetch_add(took, Ordering::Relaxed);
        bound.check().map_err(|fault| fault.to_string())?;
        asked.unwrap_or_else(|payload| resume_unwind(payload))
    }

    fn ask(
        &self,
        query: &Bounded,
        this: &NamedNode,
        bound: &Arc<Bound>,
    ) -> Result<QueryResults<'static>, String> {
        let steps: Arc<dyn Steps> = bound.clone();
        let bound = query
            .prepared(&steps)
            .substitute_variable(Variable::new_unchecked("this"), this.clone())
            .on_queryable_dataset(Evaluated::judged(
                &self.store,
                self.user.clone(),
                bound.clone(),
            ));
        bound.execute().map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests;
