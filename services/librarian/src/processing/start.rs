//! Starting runs, one after the other for each document and collection.

use tg_clients::neighbours::Neighbours;
use tg_mesh::{Ask, Mesh, clock};
use tg_schemas::{Error, Retry, Topic};

use crate::config;
use crate::engine::fingerprints::Fingerprints;
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
        if self.waits(mesh, number).await {
            self.wake.notify_one();
        }
    }

    /// Starts a run. Whether it is to be looked at again in a moment.
    pub(super) async fn waits(&self, mesh: &Mesh, number: i64) -> bool {
        self.advance(mesh, number).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "a run is not started yet");
            false
        })
    }

    /// Starts a run if it is its turn, or publishes again what a crash may have lost. The same records with
    /// the same ids: whoever has them already knows them.
    async fn advance(&self, mesh: &Mesh, number: i64) -> Result<bool, Error> {
        if !self.starting.lock().insert(number) {
            return Ok(false);
        }
        let _mark = Mark(self, number);
        let run = self.rows().run(number).await.map_err(wire)?;
        let Some(run) = run else {
            return Ok(false);
        };
        let target = &run.target;
        let Some(snapshot) = config::snapshot(mesh, &target.workspace, &target.flow) else {
            return Ok(false);
        };
        if !snapshot.flow.runs() {
            return Ok(false);
        }
        let tracked = Neighbours::of(mesh).report_runs();
        let fingerprints = match run.state {
            State::Queued => self.models.settled(mesh, &snapshot).await,
            // Noted when it began.
            _ => Some(Fingerprints::default()),
        };
        let Some(fingerprints) = fingerprints else {
            let why = "waits: who makes texts or vectors for this flow does not say by which model";
            let noted = self
                .rows()
                .change_state(number, State::Queued, State::Queued, why);
            noted.await.map_err(wire)?;
            return Ok(true);
        };
        let start = Start {
            fingerprints,
            flow: snapshot.flow,
            wiring: snapshot.wiring,
            tracked,
            now: clock::millis(),
        };
        let planned = self.rows().plan(number, start).await.map_err(wire)?;
        let Plan::Publish(run, records) = planned else {
            return Ok(false);
        };
        match publish(mesh, &run, records).await {
            Ok(()) => self.started(&run, tracked).await?,
            Err(error) => self.not_started(&run, error).await?,
        }
        Ok(false)
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
