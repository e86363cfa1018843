//! What a user sees of a collection that has policies: each thing is judged once a question, by the policies in their order,
//! from the whole collection and what is known of the user.
//!
//! A quad is hidden that names a hidden thing anywhere: as subject, predicate, object or graph, or within a quoted triple;
//! and so are the policies themselves. A policy that fails hides everything, as an error.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use oxigraph::model::{GraphName, NamedNode, NamedOrBlankNode, Quad, Term, Triple};
use oxigraph::sparql::{QueryResults, SparqlEvaluator, Variable};
use oxigraph::store::Store;
use parking_lot::Mutex;
use spargebra::Query;
use tg_schemas::msg::UserContext;
use tg_schemas::vocabulary::{POLICY_GRAPH, RETRIEVAL_GRAPH};

use super::evaluated::Evaluated;
use crate::engine::policy::{Policy, Shows, Verdict, facts, verdict};
use crate::error::GraphError;

/// Verdicts that are remembered; beyond that all are forgotten.
const REMEMBERED: usize = 50_000;
/// Blank nodes that hang on one another at most.
const DEEPEST: usize = 16;
/// Triples that a rule makes at most.
const MADE: usize = 1_000;

/// What one user sees.
pub(crate) struct Sight {
    store: Store,
    policies: Arc<[Policy]>,
    user: Arc<[Triple]>,
    hidden: Mutex<HashMap<NamedOrBlankNode, bool>>,
    /// Says that nobody waits any more.
    over: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
    /// The first thing that went wrong: the evaluator takes an error for a value here and there.
    fault: OnceLock<GraphError>,
}

impl Shows for Sight {
    fn shows(&self, quad: &Quad) -> Result<bool, GraphError> {
        Ok(self.shows_graph(&quad.graph_name)?
            && self.sees_node(&quad.subject)?
            && self.sees_iri(&quad.predicate)?
            && self.sees_term(&quad.object)?)
    }

    fn shows_graph(&self, graph: &GraphName) -> Result<bool, GraphError> {
        match graph {
            GraphName::NamedNode(graph) if is_for_nobody(graph) => Ok(false),
            GraphName::NamedNode(graph) => self.sees_iri(graph),
            GraphName::BlankNode(_) | GraphName::DefaultGraph => Ok(true),
        }
    }
}

/// Policies and traces are nobody's who is held to policies: traces say what others asked.
fn is_for_nobody(graph: &NamedNode) -> bool {
    matches!(graph.as_str(), POLICY_GRAPH | RETRIEVAL_GRAPH)
}

impl Sight {
    pub(super) fn new(store: Store, policies: Arc<[Policy]>, user: &UserContext) -> Self {
        Self {
            store,
            policies,
            user: facts(user).into(),
            hidden: Mutex::default(),
            over: OnceLock::new(),
            fault: OnceLock::new(),
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
        self.sees(node, 0)
    }

    fn sees_iri(&self, iri: &NamedNode) -> Result<bool, GraphError> {
        self.sees(&iri.clone().into(), 0)
    }

    /// A blank node is hidden with what it hangs on to.
    fn sees(&self, node: &NamedOrBlankNode, depth: usize) -> Result<bool, GraphError> {
        if let Some(hidden) = self.hidden.lock().get(node) {
            return Ok(!hidden);
        }
        if self.over.get().is_some_and(|over| over()) {
            return Err(GraphError::Cancelled);
        }
        let hidden = match node {
            NamedOrBlankNode::NamedNode(iri) => self.judge(iri),
            NamedOrBlankNode::BlankNode(_) => self.hangs_on(node, depth),
        };
        let hidden = hidden.inspect_err(|fault| drop(self.fault.set(fault.clone())))?;
        let mut known = self.hidden.lock();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(node.clone(), hidden);
        Ok(!hidden)
    }

    /// Whether something points at a blank node that is hidden. What is deeper than anybody writes is.
    fn hangs_on(&self, node: &NamedOrBlankNode, depth: usize) -> Result<bool, GraphError> {
        if depth >= DEEPEST {
            return Ok(true);
        }
        let object: Term = node.clone().into();
        for quad in self
            .store
            .quads_for_pattern(None, None, Some(object.as_ref()), None)
        {
            let subject = quad?.subject;
            if subject != *node && !self.sees(&subject, depth + 1)? {
                return Ok(true);
            }
        }
        Ok(false)
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
    fn is_about(&self, policy: &Policy, this: &NamedNode) -> Result<bool, String> {
        match self.ask(&policy.target, this)? {
            QueryResults::Solutions(mut rows) => match rows.next() {
                None => Ok(false),
                Some(row) => row.map(|_| true).map_err(|error| error.to_string()),
            },
            _ => Err("sh:select: must be a SELECT query".to_owned()),
        }
    }

    /// What its rule makes of it.
    fn made(&self, policy: &Policy, this: &NamedNode) -> Result<Vec<Triple>, String> {
        match self.ask(&policy.rule, this)? {
            QueryResults::Graph(made) => {
                let made: Result<Vec<_>, _> = made.take(MADE + 1).collect();
                let made = made.map_err(|error| error.to_string())?;
                match made.len() > MADE {
                    true => Err(format!("sh:construct: makes more than {MADE} triples")),
                    false => Ok(made),
                }
            }
            _ => Err("sh:construct: must be a CONSTRUCT query".to_owned()),
        }
    }

    fn ask(&self, query: &Query, this: &NamedNode) -> Result<QueryResults<'static>, String> {
        let bound = SparqlEvaluator::new()
            .for_query(query.clone())
            .substitute_variable(Variable::new_unchecked("this"), this.clone())
            .on_queryable_dataset(Evaluated::judged(&self.store, self.user.clone()));
        bound.execute().map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests;
