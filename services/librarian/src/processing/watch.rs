//! Looking after runs: those whose flow went, those that wait, those that a crash left half started.

use std::collections::HashMap;

use tg_clients::neighbours::Neighbours;
use tg_mesh::{Mesh, clock};
use tg_schemas::{Error, WorkspaceKey};

use crate::config::{Config, FLOW};
use crate::engine::flow::Flow;
use crate::engine::state::State;
use crate::error::wire;
use crate::librarian::Librarian;
use crate::store::runs::Run;

/// A cancelled run of which nothing was told for so long is forgotten, in milliseconds.
const FORGOTTEN: i64 = 10 * 60 * 1000;
/// Runs looked after in one step.
const BATCH: u32 = 500;

impl Librarian {
    /// One round over all runs in which something may still happen. Whether one is to be looked at again in a moment.
    pub(crate) async fn follow(&self, mesh: &Mesh) -> Result<bool, Error> {
        let (mut after, mut waits) = (0, false);
        loop {
            let live = self.rows().live_runs(after, BATCH);
            let live = live.await.map_err(wire)?;
            let Some(last) = live.last() else {
                return Ok(waits);
            };
            after = last.number;
            waits |= self.follow_all(mesh, live).await?;
        }
    }

    async fn follow_all(&self, mesh: &Mesh, live: Vec<Run>) -> Result<bool, Error> {
        let mut waits = false;
        let stopped = self.stopped(mesh, &live).await?;
        for run in live {
            if stopped.contains(&run.number) {
                continue;
            }
            match run.state {
                State::Queued | State::Starting => {
                    waits |= self.waits(mesh, run.number).await;
                }
                State::Cancelled => self.forget_cancelled(run).await?,
                _ if run.counts.is_still() => {
                    let settled = self.rows().settle(run.number, clock::millis());
                    settled.await.map_err(wire)?;
                }
                _ => {}
            }
        }
        Ok(waits)
    }

    /// Stops runs whose flow is gone or was started anew. Returns their numbers. The view may lag, so who
    /// keeps the configuration is asked before a run is stopped.
    async fn stopped(&self, mesh: &Mesh, live: &[Run]) -> Result<Vec<i64>, Error> {
        if !Neighbours::of(mesh).report_runs() {
            return Ok(Vec::new());
        }
        // Each flow is read once for all its runs: its record names all its queues. As many as there are runs in a step.
        let mut seen: HashMap<(&str, &str), Option<Flow>> = HashMap::new();
        let mut certain: HashMap<&str, HashMap<String, Flow>> = HashMap::new();
        let mut stopped = Vec::new();
        for run in live.iter().filter(|run| run.state != State::Cancelled) {
            let target = &run.target;
            let place = (target.workspace.as_str(), target.flow.as_str());
            let now = seen.entry(place).or_insert_with(|| {
                let key = WorkspaceKey::parse(&target.workspace);
                let row = mesh.config().get(key.name(), FLOW, &target.flow);
                row.and_then(|row| Flow::read(&row))
            });
            if goes_on(run, now.as_ref()) {
                continue;
            }
            if !certain.contains_key(target.workspace.as_str()) {
                let flows = flows(mesh, &target.workspace).await?;
                certain.insert(&target.workspace, flows);
            }
            let flows = certain.get(target.workspace.as_str());
            let flow = flows.and_then(|flows| flows.get(&target.flow));
            if goes_on(run, flow) {
                continue;
            }
            let why = match flow {
                None => "the flow was stopped",
                Some(_) => "the flow was started anew",
            };
            let changed = self
                .rows()
                .change_state(run.number, run.state, State::Stopped, why);
            changed.await.map_err(wire)?;
            stopped.push(run.number);
        }
        Ok(stopped)
    }

    async fn forget_cancelled(&self, run: Run) -> Result<(), Error> {
        if !run.counts.is_still() && clock::millis() - run.touched < FORGOTTEN {
            return Ok(());
        }
        let deleted = self.rows().delete_run(run.number);
        deleted.await.map_err(wire)?;
        self.wake.notify_one();
        Ok(())
    }
}

async fn flows(mesh: &Mesh, of: &str) -> Result<HashMap<String, Flow>, Error> {
    let now = mesh.config().workspace_key(WorkspaceKey::parse(of).name());
    let rows = Config::new(mesh, &now)?.values(FLOW).await?;
    let flows = rows
        .into_iter()
        .filter_map(|(id, row)| Some((id, Flow::read(&row)?)));
    Ok(flows.collect())
}

/// Whether a flow is the one a run started under.
fn goes_on(run: &Run, flow: Option<&Flow>) -> bool {
    match (run.state, flow) {
        (_, None) => false,
        (State::Queued, Some(_)) => true,
        (_, Some(flow)) => flow.is_start(run.epoch),
    }
}
