//! A query that is asked again and again and by whoever reads, as those of policies are: refused when it is too large to plan,
//! and with the steps and the bounds of texts that the queries of users have. Never evaluates anything by itself.

use std::sync::Arc;

use oxigraph::sparql::{PreparedSparqlQuery, SparqlEvaluator};
use spargebra::Query;

use super::shape::Shape;
use super::{rewrite, texts};
use crate::engine::steps::Steps;
use crate::error::GraphError;

/// A query with its bounds.
#[derive(Debug)]
pub(crate) struct Bounded {
    query: Query,
    separators: Vec<String>,
}

impl Bounded {
    /// Puts bounds into a query.
    ///
    /// # Errors
    /// [`GraphError::QuerySyntax`] for one that is too large to plan.
    pub(crate) fn of(query: Query) -> Result<Self, GraphError> {
        Shape::of(&query)?;
        let (query, separators) = rewrite::rewrite(query);
        Ok(Self { query, separators })
    }

    /// Ready to be evaluated: asks at each step whether it may go on, and unwinds the thread if not.
    pub(crate) fn prepared(&self, steps: &Arc<dyn Steps>) -> PreparedSparqlQuery {
        let evaluator = texts::add(SparqlEvaluator::new(), steps, self.separators.clone());
        evaluator.for_query(self.query.clone())
    }
}
