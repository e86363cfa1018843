//! Starting a query: it waits for its place, then gets a thread.

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::answer::Line;
use super::chosen::Chosen;
use super::guard::Guard;
use super::handover::{Giver, handover};
use super::nesting;
use super::run::{QueryPermit, Work};
use super::said::Said;
use crate::error::GraphError;
use crate::store::embedded::handle::EmbeddedGraph;
use crate::store::embedded::permits::Permit;
use crate::store::{SparqlAnswer, SparqlAsk};
use tg_collections::CollectionKey;

/// Parser, optimiser and evaluator recurse over the query. What brackets take, of which [`nesting`] bounds the depth ...
const OF_BRACKETS: usize = 64 << 20;
/// ... and what a chain of operators takes for each byte of its text, whose length is bounded too.
const OF_A_BYTE: usize = 8 << 10;
/// How much longer than the evaluator's own limit a part is waited for.
const GRACE: std::time::Duration = std::time::Duration::from_secs(2);

/// Starts a query.
pub(crate) async fn start(
    engine: &EmbeddedGraph,
    key: &CollectionKey,
    ask: SparqlAsk,
) -> Result<SparqlAnswer, GraphError> {
    nesting::check(&ask.query)?;
    let chosen = Chosen::read(&ask.graphs)?;
    let limits = engine.limits();
    let time = ask.time.min(limits.query_time);
    let (began, seconds) = (Instant::now(), time.as_secs().max(1));
    let shared = &engine.shared;
    let prepared = async {
        let open = shared.answers.take(key.workspace()).await?;
        let permit = shared.queries.take(key.workspace()).await?;
        let dataset = engine.seen(key, ask.user.as_deref()).await?;
        Ok::<_, GraphError>((open, permit, dataset))
    };
    let (open, permit, dataset) = tokio::select! {
        biased;
        () = ask.cancel.cancelled() => return Err(GraphError::Cancelled),
        prepared = prepared => prepared?,
        () = tokio::time::sleep_until(began + time) => return Err(GraphError::TimeLimit(seconds)),
    };
    let (said, parts) = handover();
    let share = shared.queries_memory.share(key.workspace());
    let turn = shared.turns.query(key.workspace());
    let guard = Guard::new(time, limits, share, turn);
    let gone = CancellationToken::new();
    let line = Line {
        parts,
        guard: guard.clone(),
        cancel: ask.cancel,
        gone: gone.clone(),
        until: began + ask.time,
        time: ask.time,
        longest: time + GRACE,
    };
    let work = Work {
        text: ask.query,
        chosen,
        data: dataset,
        limit: ask.limit.unwrap_or(usize::MAX),
        batch: ask.batch.max(1),
        guard,
        limits: limits.clone(),
        place: QueryPermit {
            permits: shared.queries.clone(),
            key: key.clone(),
            permit: Some(permit),
            gone,
        },
    };
    on_own_thread(work, said, open)?;
    line.open().await
}

fn on_own_thread(work: Work, said: Giver<Said>, open: Permit) -> Result<(), GraphError> {
    let stack = OF_BRACKETS + work.text.len() * OF_A_BYTE;
    let body = move || {
        // A query that does not hear its cancellation keeps its place until it ends.
        let _open = open;
        work.run(said);
    };
    let started = std::thread::Builder::new()
        .name("graph-query".to_owned())
        .stack_size(stack)
        .spawn(body);
    started.map(|_| ()).map_err(|error| {
        tracing::error!(%error, "no thread for a query");
        GraphError::NoThread(stack >> 20)
    })
}
