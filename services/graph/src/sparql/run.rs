//! The body of a query's thread.

use oxigraph::model::NamedOrBlankNode;
use oxigraph::sparql::{
    CancellationToken, PreparedSparqlQuery, QueryEvaluationError, QueryResults, QuerySolutionIter,
    QueryTripleIter, SparqlEvaluator,
};
use oxigraph::store::Store;
use tokio::sync::mpsc;

use super::shape::Shape;
use super::{Part, Said, syntax};
use crate::convert;
use crate::error::GraphError;

/// Up to so many graphs are listed before the query instead of while it runs: the store's list of
/// graphs is locked against writers as long as somebody walks it.
const LISTED: usize = 64;

pub(super) struct Work {
    pub(super) text: String,
    pub(super) store: Option<Store>,
    pub(super) limit: usize,
    pub(super) batch: usize,
    pub(super) stop: CancellationToken,
    pub(super) said: mpsc::Sender<Said>,
}

/// Nobody listens any more.
struct Gone;

impl Work {
    pub(super) fn run(self) {
        let last = match self.evaluate() {
            Ok(Ok(())) => Said::End,
            Ok(Err(Gone)) => return,
            Err(error) => Said::Fault(error),
        };
        let _ = self.said.blocking_send(last);
    }

    fn evaluate(&self) -> Result<Result<(), Gone>, GraphError> {
        let store = match &self.store {
            Some(store) => store.clone(),
            None => Store::new()?,
        };
        let parsed = syntax::parse(&self.text)?;
        let shape = Shape::of(&parsed)?;
        let mut query = SparqlEvaluator::new()
            .with_cancellation_token(self.stop.clone())
            .for_query(parsed);
        if shape.names_graphs {
            list_graphs(&store, &mut query)?;
        }
        let results = query.on_store(&store).execute().map_err(failed)?;
        let variables = match &results {
            QueryResults::Solutions(rows) => rows.variables(),
            _ => &[],
        };
        let variables = variables.iter().map(|name| name.as_str().to_owned());
        if self
            .say(Said::Open(shape.form, variables.collect()))
            .is_err()
        {
            return Ok(Err(Gone));
        }
        match results {
            QueryResults::Solutions(rows) => self.rows(rows),
            QueryResults::Graph(triples) => self.triples(triples),
            QueryResults::Boolean(yes) => Ok(self.say(Said::Part(Part::Ask(yes)))),
        }
    }

    fn rows(&self, rows: QuerySolutionIter<'_>) -> Result<Result<(), Gone>, GraphError> {
        let rows = rows.map(|row| {
            let row = row.map_err(failed)?;
            let values = row.values().iter();
            Ok(values
                .map(|value| value.clone().map(convert::from_term))
                .collect())
        });
        self.batches(rows, Part::Rows)
    }

    fn triples(&self, triples: QueryTripleIter<'_>) -> Result<Result<(), Gone>, GraphError> {
        let triples = triples.map(|triple| triple.map(convert::from_triple).map_err(failed));
        self.batches(triples, Part::Triples)
    }

    fn batches<T>(
        &self,
        items: impl Iterator<Item = Result<T, GraphError>>,
        part: impl Fn(Vec<T>) -> Part,
    ) -> Result<Result<(), Gone>, GraphError> {
        let mut batch = Vec::new();
        for item in items.take(self.limit) {
            batch.push(item?);
            if batch.len() >= self.batch
                && self
                    .say(Said::Part(part(std::mem::take(&mut batch))))
                    .is_err()
            {
                return Ok(Err(Gone));
            }
        }
        if batch.is_empty() {
            return Ok(Ok(()));
        }
        Ok(self.say(Said::Part(part(batch))))
    }

    fn say(&self, said: Said) -> Result<(), Gone> {
        self.said.blocking_send(said).map_err(|_| Gone)
    }
}

fn list_graphs(store: &Store, query: &mut PreparedSparqlQuery) -> Result<(), GraphError> {
    if query.dataset().available_named_graphs().is_some() {
        return Ok(());
    }
    let graphs: Result<Vec<NamedOrBlankNode>, _> = store.named_graphs().take(LISTED + 1).collect();
    let graphs = graphs?;
    if graphs.len() <= LISTED {
        query.dataset_mut().set_available_named_graphs(graphs);
    }
    Ok(())
}

fn failed(error: QueryEvaluationError) -> GraphError {
    match error {
        QueryEvaluationError::Cancelled => GraphError::Cancelled,
        QueryEvaluationError::Dataset(error) => {
            tracing::error!(%error, "the store in memory failed");
            GraphError::Evaluation("the graph store failed".to_owned())
        }
        other => GraphError::Evaluation(other.to_string()),
    }
}
