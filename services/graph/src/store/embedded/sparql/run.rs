//! The body of a query's thread: parsed, bounded, evaluated, and its results handed over.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::executor::block_on;
use oxigraph::model::NamedOrBlankNode;
use oxigraph::sparql::{
    PreparedSparqlQuery, QueryEvaluationError, QueryResults, QuerySolutionIter, QueryTripleIter,
    SparqlEvaluator,
};
use tokio_util::sync::CancellationToken;

use super::chosen::Chosen;
use super::guard::{Guard, Why, is_ended};
use super::handover::{Giver, Refused};
use super::said::Said;
use super::shape::Shape;
use super::{rewrite, syntax, texts};
use crate::engine::convert;
use crate::engine::steps::Steps;
use crate::error::GraphError;
use crate::options::Limits;
use crate::store::Part;
use crate::store::embedded::dataset::Dataset;
use crate::store::embedded::evaluated::Evaluated;
use crate::store::embedded::permits::{Permit, Permits};
use tg_collections::CollectionKey;

/// Up to so many graphs are listed before the query instead of while it runs: the store's list of
/// graphs is locked against writers as long as somebody walks it.
const LISTED: usize = 64;
/// A part with so many bytes of results is handed over, however few they are: whoever writes, reads or translates one does it at
/// a stretch, on a thread that others wait for.
const FULL: i64 = 64 << 10;

/// A query, and what it is evaluated with.
pub(super) struct Work {
    pub(super) text: String,
    pub(super) chosen: Option<Chosen>,
    pub(super) data: Option<Arc<Dataset>>,
    pub(super) limit: usize,
    pub(super) batch: usize,
    pub(super) guard: Arc<Guard>,
    pub(super) limits: Limits,
    pub(super) place: QueryPermit,
}

/// The place at which a query is evaluated. It is given up while the reader is awaited.
pub(super) struct QueryPermit {
    pub(super) permits: Arc<Permits>,
    pub(super) key: CollectionKey,
    pub(super) permit: Option<Permit>,
    /// The reader went.
    pub(super) gone: CancellationToken,
}

/// Nobody listens any more, or the reader was told why.
struct Gone;

impl Work {
    /// Runs the query and says what comes of it. Returns when the reader has the last word, or has gone.
    pub(super) fn run(self, said: Giver<Said>) {
        let guard = self.guard.clone();
        guard.resume();
        let metered = tg_counted_alloc::metered(guard.clone());
        let mut line = Line {
            said: &said,
            guard: &guard,
            place: self.place,
            stalled: self.limits.stalled,
        };
        let query = Query {
            text: self.text,
            chosen: self.chosen,
            data: self.data,
            limit: self.limit,
            batch: self.batch,
            guard: guard.clone(),
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| query.evaluate(&mut line)));
        drop(line);
        drop(metered);
        guard.pause();
        let ended = guard.fault();
        let last = match outcome {
            Ok(Ok(Ok(()))) => Said::End,
            Ok(Ok(Err(Gone))) => match ended {
                Some(fault) => Said::Error(fault),
                None => return,
            },
            Ok(Err(error)) => Said::Error(ended.unwrap_or(error)),
            Err(payload) if is_ended(&*payload) => {
                Said::Error(ended.unwrap_or(GraphError::Cancelled))
            }
            Err(_) => Said::Error(GraphError::Evaluation(
                "the query was interrupted".to_owned(),
            )),
        };
        said.end(last);
    }
}

/// The way to the reader.
struct Line<'a> {
    said: &'a Giver<Said>,
    guard: &'a Guard,
    place: QueryPermit,
    stalled: std::time::Duration,
}

impl Line<'_> {
    /// Hands over; waits for the reader without a place, and for a place after that.
    fn say(&mut self, said: Said) -> Result<(), Gone> {
        let said = match self.said.give(said) {
            Ok(()) => return Ok(()),
            Err(Refused::Gone) => return Err(Gone),
            Err(Refused::Full(said)) => said,
        };
        self.guard.pause();
        self.place.permit = None;
        match self.said.give_within(said, self.stalled) {
            Ok(()) => {}
            Err(Refused::Gone) => return Err(Gone),
            Err(Refused::Full(_)) => {
                self.guard.end(Why::Stalled);
                return Err(Gone);
            }
        }
        self.place.take().ok_or(Gone)?;
        self.guard.resume();
        Ok(())
    }
}

impl QueryPermit {
    fn take(&mut self) -> Option<()> {
        let place = self.permits.take(self.key.workspace());
        let gone = self.gone.cancelled();
        let taken = block_on(futures::future::select(Box::pin(place), Box::pin(gone)));
        match taken {
            futures::future::Either::Left((permit, _)) => {
                self.permit = Some(permit.ok()?);
                Some(())
            }
            futures::future::Either::Right(_) => None,
        }
    }
}

struct Query {
    text: String,
    chosen: Option<Chosen>,
    data: Option<Arc<Dataset>>,
    limit: usize,
    batch: usize,
    guard: Arc<Guard>,
}

type Outcome = Result<Result<(), Gone>, GraphError>;

impl Query {
    fn evaluate(&self, line: &mut Line<'_>) -> Outcome {
        // It may have been ended while it waited for its turn.
        if self.guard.why().is_some() {
            return Ok(Err(Gone));
        }
        let data = match &self.data {
            Some(data) => data.clone(),
            None => Arc::new(Dataset::new()?),
        };
        let parsed = syntax::parse(&self.text)?;
        let shape = Shape::of(&parsed)?;
        let (bounded, separators) = rewrite::rewrite(parsed);
        let evaluator = SparqlEvaluator::new().with_cancellation_token(self.guard.token());
        let steps: Arc<dyn Steps> = self.guard.clone();
        let evaluator = texts::add(evaluator, &steps, separators);
        let mut query = evaluator.for_query(bounded);
        if let Some(chosen) = &self.chosen {
            chosen.put(&mut query);
        } else if shape.names_graphs {
            list_graphs(&data, &mut query)?;
        }
        self.guard.step();
        let store = data.store();
        let results = match data.sight() {
            None => query.on_store(store).execute(),
            Some(sight) => {
                let token = self.guard.token();
                sight.ends_when(move || token.is_cancelled());
                let seen = Evaluated::seen(store, sight.clone());
                query.on_queryable_dataset(seen).execute()
            }
        };
        let results = results.map_err(failed)?;
        let variables = match &results {
            QueryResults::Solutions(rows) => rows.variables(),
            _ => &[],
        };
        let variables = variables.iter().map(|name| name.as_str().to_owned());
        let open = Said::Open(shape.form, variables.collect());
        if line.say(open).is_err() {
            return Ok(Err(Gone));
        }
        match results {
            QueryResults::Solutions(rows) => self.rows(rows, line),
            QueryResults::Graph(triples) => self.triples(triples, line),
            QueryResults::Boolean(yes) => {
                self.judged()?;
                Ok(line.say(Said::Part(Part::Ask(yes), 0)))
            }
        }
    }

    /// Whether all that was read could be judged.
    fn judged(&self) -> Result<(), GraphError> {
        match self.data.as_ref().and_then(|data| data.sight()) {
            Some(sight) => sight.fault(),
            None => Ok(()),
        }
    }

    fn rows(&self, rows: QuerySolutionIter<'_>, line: &mut Line<'_>) -> Outcome {
        let row = |row: Result<oxigraph::sparql::QuerySolution, _>| {
            let row: oxigraph::sparql::QuerySolution = row.map_err(failed)?;
            Ok(Own::of(|| {
                let values = row.values().iter();
                let terms = values.map(|value| value.clone().map(convert::from_term));
                terms.collect()
            }))
        };
        self.batches(rows.map(row), Part::Rows, line)
    }

    fn triples(&self, triples: QueryTripleIter<'_>, line: &mut Line<'_>) -> Outcome {
        let triple = |triple: Result<oxigraph::model::Triple, _>| {
            let triple = triple.map_err(failed)?;
            Ok(Own::of(|| convert::from_triple(triple.clone())))
        };
        self.batches(triples.map(triple), Part::Triples, line)
    }

    fn batches<T>(
        &self,
        items: impl Iterator<Item = Result<Own<T>, GraphError>>,
        part: impl Fn(Vec<T>) -> Part,
        line: &mut Line<'_>,
    ) -> Outcome {
        let mut batch = Batch::default();
        for item in items.take(self.limit) {
            self.guard.step();
            self.judged()?;
            batch.add(item?);
            if (batch.items.len() >= self.batch || batch.bytes >= FULL)
                && line.say(batch.hand_over(&part)).is_err()
            {
                return Ok(Err(Gone));
            }
        }
        self.judged()?;
        if batch.items.is_empty() {
            return Ok(Ok(()));
        }
        Ok(line.say(batch.hand_over(&part)))
    }
}

/// A result, and how much memory it takes: it will be the reader's.
struct Own<T> {
    item: T,
    bytes: i64,
}

impl<T> Own<T> {
    /// What the closure makes and does not share with the evaluator.
    fn of(make: impl FnOnce() -> T) -> Self {
        let before = tg_counted_alloc::held();
        let item = make();
        Self {
            item,
            bytes: tg_counted_alloc::held() - before,
        }
    }
}

/// Results of the next part.
struct Batch<T> {
    items: Vec<T>,
    bytes: i64,
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            bytes: 0,
        }
    }
}

impl<T> Batch<T> {
    fn add(&mut self, own: Own<T>) {
        let before = tg_counted_alloc::held();
        self.items.push(own.item);
        self.bytes += own.bytes + tg_counted_alloc::held() - before;
    }

    /// From here on this memory is the reader's.
    fn hand_over(&mut self, part: impl Fn(Vec<T>) -> Part) -> Said {
        let Self { items, bytes } = std::mem::take(self);
        tg_counted_alloc::forgive(bytes);
        Said::Part(part(items), usize::try_from(bytes).unwrap_or(0))
    }
}

fn list_graphs(data: &Dataset, query: &mut PreparedSparqlQuery) -> Result<(), GraphError> {
    if query.dataset().available_named_graphs().is_some() {
        return Ok(());
    }
    let graphs = data.store().named_graphs().take(LISTED + 1);
    let graphs: Vec<NamedOrBlankNode> = graphs.collect::<Result<_, _>>()?;
    if graphs.len() <= LISTED {
        let graphs = match data.sight() {
            None => graphs,
            Some(sight) => sight.among(graphs)?,
        };
        query.dataset_mut().set_available_named_graphs(graphs);
    }
    Ok(())
}

fn failed(error: QueryEvaluationError) -> GraphError {
    match error {
        QueryEvaluationError::Cancelled => GraphError::Cancelled,
        QueryEvaluationError::Dataset(error) => {
            // What a user sees is judged while it is read.
            if let Some(fault) = error.downcast_ref::<GraphError>() {
                return fault.clone();
            }
            tracing::error!(%error, "the store in memory failed");
            GraphError::Evaluation("the graph store failed".to_owned())
        }
        other => GraphError::Evaluation(other.to_string()),
    }
}
