//! What a user sees of a collection that has policies: each thing is judged once a question, by the policies in their order,
//! from the whole collection and what is known of the user.
//!
//! A quad is hidden that names a hidden thing anywhere: as subject, predicate, object or graph, or within a quoted triple;
//! and so are the policies themselves. A policy that fails hides everything, as an error.

use std::collections::HashMap;
use std::sync::Arc;

use oxigraph::model::{GraphName, NamedNode, NamedOrBlankNode, Quad, Term, Triple};
use oxigraph::sparql::{QueryResults, SparqlEvaluator, Variable};
use oxigraph::store::Store;
use parking_lot::Mutex;
use spargebra::Query;
use tg_schemas::msg::UserContext;
use tg_schemas::vocabulary::POLICY_GRAPH;

use super::evaluated::Evaluated;
use crate::engine::policy::{Policy, Verdict, facts, verdict};
use crate::error::GraphError;

/// Verdicts that are remembered; beyond that all are forgotten.
const REMEMBERED: usize = 200_000;

/// What one user sees.
pub(crate) struct Sight {
    store: Store,
    policies: Arc<[Policy]>,
    user: Arc<[Triple]>,
    hidden: Mutex<HashMap<NamedNode, bool>>,
}

impl Sight {
    pub(super) fn new(store: Store, policies: Arc<[Policy]>, user: &UserContext) -> Self {
        Self {
            store,
            policies,
            user: facts(user).into(),
            hidden: Mutex::default(),
        }
    }

    /// Whether a quad may be seen.
    pub(crate) fn sees(&self, quad: &Quad) -> Result<bool, GraphError> {
        Ok(self.sees_graph(&quad.graph_name)?
            && self.sees_node(&quad.subject)?
            && self.sees_iri(&quad.predicate)?
            && self.sees_term(&quad.object)?)
    }

    /// Whether a graph may be seen.
    pub(crate) fn sees_graph(&self, graph: &GraphName) -> Result<bool, GraphError> {
        match graph {
            GraphName::NamedNode(graph) if graph.as_str() == POLICY_GRAPH => Ok(false),
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
            if self.sees_graph(&graph.clone().into())? {
                seen.push(graph);
            }
        }
        Ok(seen)
    }

    fn sees_node(&self, node: &NamedOrBlankNode) -> Result<bool, GraphError> {
        match node {
            NamedOrBlankNode::NamedNode(iri) => self.sees_iri(iri),
            NamedOrBlankNode::BlankNode(_) => Ok(true),
        }
    }

    fn sees_term(&self, term: &Term) -> Result<bool, GraphError> {
        match term {
            Term::NamedNode(iri) => self.sees_iri(iri),
            Term::BlankNode(_) | Term::Literal(_) => Ok(true),
            Term::Triple(triple) => Ok(self.sees_node(&triple.subject)?
                && self.sees_iri(&triple.predicate)?
                && self.sees_term(&triple.object)?),
        }
    }

    fn sees_iri(&self, iri: &NamedNode) -> Result<bool, GraphError> {
        if let Some(hidden) = self.hidden.lock().get(iri) {
            return Ok(!hidden);
        }
        let hidden = self.judge(iri)?;
        let mut known = self.hidden.lock();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(iri.clone(), hidden);
        Ok(!hidden)
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
            _ => Err("sh:select: is no SELECT".to_owned()),
        }
    }

    /// What its rule makes of it.
    fn made(&self, policy: &Policy, this: &NamedNode) -> Result<Vec<Triple>, String> {
        match self.ask(&policy.rule, this)? {
            QueryResults::Graph(made) => {
                let made: Result<_, _> = made.collect();
                made.map_err(|error| error.to_string())
            }
            _ => Err("sh:construct: is no CONSTRUCT".to_owned()),
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
