//! SPARQL: a query is inspected, parsed and run on a thread of its own, and its results are handed over
//! in small parts. Rows, time and nesting are limited; dropping the answer stops the query.

mod nesting;
mod run;
mod shape;
mod syntax;

use std::time::Duration;

use oxigraph::sparql::CancellationToken as Stop;
use tg_schemas::{Term, Triple};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::error::GraphError;
use crate::key::DatasetKey;

pub use shape::Form;

/// A query and its limits.
#[derive(Debug, Clone)]
pub struct SparqlAsk {
    /// The text.
    pub query: String,
    /// Most rows or triples.
    pub limit: Option<usize>,
    /// Rows or triples of a part.
    pub batch: usize,
    /// Longest time, within the engine's own limit.
    pub time: Duration,
    /// Stops it.
    pub cancel: CancellationToken,
}

/// Some results.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Rows, aligned with the variables.
    Rows(Vec<Vec<Option<Term>>>),
    /// Triples of a graph.
    Triples(Vec<Triple>),
    /// Yes or no.
    Ask(bool),
}

/// What the query's thread says.
enum Said {
    Open(Form, Vec<String>),
    Part(Part),
    Fault(GraphError),
    End,
}

/// A running query.
pub struct SparqlAnswer {
    /// What kind of query it is.
    pub form: Form,
    /// Variables of a SELECT.
    pub variables: Vec<String>,
    line: Line,
}

impl SparqlAnswer {
    /// The next part; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Part>, GraphError> {
        match self.line.hear().await? {
            Said::Part(part) => Ok(Some(part)),
            Said::Fault(error) => Err(error),
            Said::Open(..) | Said::End => Ok(None),
        }
    }
}

/// The asker's end: gives up at the deadline, on cancel, and when dropped.
struct Line {
    parts: mpsc::Receiver<Said>,
    stop: Stop,
    cancel: CancellationToken,
    until: Instant,
    seconds: u64,
}

impl Line {
    async fn hear(&mut self) -> Result<Said, GraphError> {
        let said = tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(GraphError::Cancelled),
            said = self.parts.recv() => said.ok_or_else(|| {
                GraphError::Evaluation("the query broke off".to_owned())
            }),
            () = tokio::time::sleep_until(self.until) => Err(GraphError::TimeLimit(self.seconds)),
        };
        if said.is_err() {
            self.stop.cancel();
        }
        said
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Starts a query.
pub(crate) async fn start(
    engine: &Engine,
    key: &DatasetKey,
    ask: SparqlAsk,
) -> Result<SparqlAnswer, GraphError> {
    nesting::check(&ask.query)?;
    let time = ask.time.min(engine.limits().query_time);
    let until = Instant::now() + time;
    let seconds = time.as_secs().max(1);
    let prepared = async {
        let permit = Engine::permit(&engine.shared.queries).await?;
        let dataset = engine.dataset(key).await?;
        Ok::<_, GraphError>((permit, dataset))
    };
    let (permit, dataset) = tokio::select! {
        biased;
        () = ask.cancel.cancelled() => return Err(GraphError::Cancelled),
        prepared = prepared => prepared?,
        () = tokio::time::sleep_until(until) => return Err(GraphError::TimeLimit(seconds)),
    };
    let (sender, parts) = mpsc::channel(2);
    let stop = Stop::new();
    let line = Line {
        parts,
        stop: stop.clone(),
        cancel: ask.cancel,
        until,
        seconds,
    };
    let work = run::Work {
        text: ask.query,
        store: dataset.map(|dataset| dataset.store().clone()),
        limit: ask.limit.unwrap_or(usize::MAX),
        batch: ask.batch.max(1),
        stop,
        said: sender,
    };
    on_own_thread(work, permit)?;
    open(line).await
}

async fn open(mut line: Line) -> Result<SparqlAnswer, GraphError> {
    match line.hear().await? {
        Said::Open(form, variables) => Ok(SparqlAnswer {
            form,
            variables,
            line,
        }),
        Said::Fault(error) => Err(error),
        Said::Part(_) | Said::End => Err(GraphError::Evaluation("the query broke off".to_owned())),
    }
}

/// Parser, optimiser and evaluator recurse over the query; what [`nesting`] and [`shape`] let through fits in this.
const STACK: usize = 512 << 20;

fn on_own_thread(work: run::Work, permit: OwnedSemaphorePermit) -> Result<(), GraphError> {
    let body = move || {
        // A query that does not hear its cancellation keeps its place until it ends.
        let _permit = permit;
        work.run();
    };
    let started = std::thread::Builder::new()
        .name("graph-query".to_owned())
        .stack_size(STACK)
        .spawn(body);
    started.map(|_| ()).map_err(|error| {
        tracing::error!(%error, "no thread for a query");
        GraphError::Closed
    })
}

#[cfg(test)]
mod tests;
