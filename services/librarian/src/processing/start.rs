//! Starting runs, one after the other for each document and collection.

use tg_clients::neighbours::Neighbours;
use tg_mesh::{Ask, Mesh, clock};
use tg_schemas::{Error, Retry, Topic};

use crate::config;
use crate::engine::start::{Body, Record};
use crate::engine::state::State;
use crate::engine::workspace;
use crate::error::wire;
use crate::librarian::Librarian;
use crate::store::runs::{Plan, Run, Start};

/// Marks a run whose first records are being published; gone with the mark.
struct Mark<'a>(&'a Librarian, i64);

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        self.0.starting.lock().remove(&self.1);
    }
}

impl Librarian {
    /// Starts a run, or leaves it to the next round over all runs.
    pub(super) async fn start_or_later(&self, mesh: &Mesh, number: i64) {
        if let Err(error) = self.advance(mesh, number).await {
            tracing::warn!(%error, "a run is not started yet");
        }
    }

    /// Starts a run if it is its turn, or publishes again what a crash may have lost. The same records with
    /// the same ids: whoever has them already knows them.
    async fn advance(&self, mesh: &Mesh, number: i64) -> Result<(), Error> {
        if !self.starting.lock().insert(number) {
            return Ok(());
        }
        let _mark = Mark(self, number);
        let run = self.rows().run(number).await.map_err(wire)?;
        let Some(run) = run else {
            return Ok(());
        };
        let target = &run.target;
        let Some(snapshot) = config::snapshot(mesh, &target.workspace, &target.flow) else {
            return Ok(());
        };
        if !snapshot.flow.runs() {
            return Ok(());
        }
        let tracked = Neighbours::of(mesh).report_runs();
        let fingerprints = self.models.fingerprints(mesh, &snapshot).await;
        let start = Start {
            fingerprints,
            flow: snapshot.flow,
            wiring: snapshot.wiring,
            tracked,
            now: clock::millis(),
        };
        let planned = self.rows().plan(number, start).await.map_err(wire)?;
        let Plan::Publish(run, records) = planned else {
            return Ok(());
        };
        match publish(mesh, &run, records).await {
            Ok(()) => self.started(&run, tracked).await,
            Err(error) => self.not_started(&run, error).await,
        }
    }

    async fn started(&self, run: &Run, tracked: bool) -> Result<(), Error> {
        let state = match tracked {
            true => State::Running,
            false => State::Submitted,
        };
        let started = self.rows().started(run, state);
        started.await.map_err(wire)?;
        // What was told meanwhile may have been all.
        self.wake.notify_one();
        Ok(())
    }

    async fn not_started(&self, run: &Run, error: Error) -> Result<(), Error> {
        let (state, why) = if error.code().retry() == Retry::Passes {
            (State::Starting, format!("waits: {}", error.message))
        } else {
            (State::Stopped, error.message)
        };
        let noted = self
            .rows()
            .change_state(run.number, State::Starting, state, &why);
        noted.await.map_err(wire)
    }
}

async fn publish(mesh: &Mesh, run: &Run, records: Vec<Record>) -> Result<(), Error> {
    let space = workspace::id(&run.target.workspace)?;
    for record in records {
        let topic = Topic::parse(&record.topic)?;
        let options = Ask {
            id: Some(record.id),
            thread: Some(run.thread.clone()),
            epoch: (run.epoch > 0).then_some(run.epoch),
            workspace: Some(space.clone()),
            generation: workspace::generation(&run.target.workspace),
            ..Ask::default()
        };
        match record.body {
            Body::Triples(body) => mesh.record(&topic, &body, options).await?,
            Body::Text(body) => mesh.record(&topic, &body, options).await?,
            Body::Document(body) => mesh.record(&topic, &body, options).await?,
        }
    }
    Ok(())
}
