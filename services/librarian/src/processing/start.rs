//! Starting runs, one after the other for each document and collection.

use tg_mesh::{Ask, Mesh, Mode};
use tg_schemas::{Error, Topic};

use super::plan::{self, Labels, Plan};
use crate::config;
use crate::engine::start::{Body, Record};
use crate::engine::state::State;
use crate::service::{Librarian, generation, workspace};
use crate::store::collection;
use crate::store::run::{self, Run};

/// Marks a run whose first records are being published; gone with the mark.
struct Mark<'a>(&'a Librarian, i64);

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        self.0.starting.lock().remove(&self.1);
    }
}

impl Librarian {
    /// Starts a run if it is its turn, or publishes again what a crash may have lost. The same records with
    /// the same ids: whoever has them already knows them.
    pub(crate) async fn advance(&self, mesh: &Mesh, number: i64) -> Result<(), Error> {
        if !self.starting.lock().insert(number) {
            return Ok(());
        }
        let _mark = Mark(self, number);
        let run = self.library.read(move |conn| run::get(conn, number));
        let Some(run) = run.await? else {
            return Ok(());
        };
        let target = &run.target;
        let Some(snapshot) = config::snapshot(mesh, &target.workspace, &target.flow) else {
            return Ok(());
        };
        if !snapshot.flow.runs() {
            return Ok(());
        }
        let tracked = mesh.bus().mode() == Mode::Native;
        let now = now();
        let planned = self
            .library
            .write(move |tx| plan::plan(tx, number, &snapshot, tracked, now));
        let Plan::Publish(run, records, labels) = planned.await? else {
            return Ok(());
        };
        match publish(mesh, &run, records).await {
            Ok(()) => self.started(run, labels, tracked).await,
            Err(error) => self.not_started(run, error).await,
        }
    }

    async fn started(&self, run: Run, labels: Labels, tracked: bool) -> Result<(), Error> {
        let state = if tracked {
            State::Running
        } else {
            State::Submitted
        };
        self.library
            .write(move |tx| {
                let target = &run.target;
                if labels.0 {
                    let (ws, id) = (&target.workspace, &target.collection);
                    collection::set_labelled(tx, ws, id, target.incarnation)?;
                }
                // It may have been taken back meanwhile.
                let now = run::get(tx, run.number)?;
                if now.is_some_and(|now| now.state == State::Starting) {
                    run::set_state(tx, run.number, state, "")?;
                }
                Ok(())
            })
            .await?;
        // What was told meanwhile may have been all.
        self.wake.notify_one();
        Ok(())
    }

    async fn not_started(&self, run: Run, error: Error) -> Result<(), Error> {
        let passes = error.code().is_transient() || error.code() == tg_schemas::ErrorCode::Storage;
        let (state, why) = if passes {
            (State::Starting, format!("waits: {}", error.message))
        } else {
            (State::Stopped, error.message)
        };
        self.library
            .write(move |tx| match run::get(tx, run.number)? {
                Some(now) if now.state == State::Starting => {
                    run::set_state(tx, run.number, state, &why)
                }
                _ => Ok(()),
            })
            .await
    }
}

async fn publish(mesh: &Mesh, run: &Run, records: Vec<Record>) -> Result<(), Error> {
    let space = workspace(&run.target.workspace)?;
    for record in records {
        let topic = Topic::parse(&record.topic)?;
        let options = Ask {
            id: Some(record.id),
            thread: Some(run.thread.clone()),
            epoch: (run.epoch > 0).then_some(run.epoch),
            workspace: Some(space.clone()),
            generation: generation(&run.target.workspace),
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

/// Milliseconds since the Unix epoch.
pub(super) fn now() -> i64 {
    i64::try_from(tg_mesh::deadline::now_millis()).unwrap_or(i64::MAX)
}
