//! Waiting for processors: attached, idle, gone. Native ones say so; of foreign ones their queues show it.

use std::time::Duration;

use futures::future::join_all;
use tg_clients::neighbours::Neighbours;
use tg_mesh::bus::QueueState;
use tg_mesh::{BusError, Mesh};
use tg_schemas::{Class, Subscription};
use tokio::time::Instant;

use super::{FlowKey, Service};
use crate::engine::plan::Plan;
use tg_schemas::flow_record::{Names, RowKey};

/// How often queues are looked at while presence says nothing.
const LOOK: Duration = Duration::from_millis(50);
/// Pause before an idle flow is looked at once more.
const QUIET_LOOK: Duration = Duration::from_millis(1);
/// How long processors may take to say that they know of a stop.
const TOLD: Duration = Duration::from_millis(500);

/// Looks at a time.
const LOOKS: usize = 32;

/// Looks at queues, several at a time: what is in each, in order.
pub(super) async fn look_at(
    mesh: &Mesh,
    queues: &[Subscription],
) -> Vec<Result<Option<QueueState>, BusError>> {
    let mut states = Vec::with_capacity(queues.len());
    for some in queues.chunks(LOOKS) {
        let looks = some.iter().map(|queue| mesh.bus().queue_state(queue));
        states.extend(join_all(looks).await);
    }
    states
}

impl Service {
    /// Whether this process has heard what became of all who served a flow since it was started. Foreign ones tell nothing.
    pub(super) fn hears_counts(&self, mesh: &Mesh, epoch: u64) -> bool {
        Neighbours::of(mesh).say_what_they_serve() && self.starts.lock().contains(&epoch)
    }

    /// Waits until the expected processors are attached. Returns those that are not in time.
    pub(super) async fn until_attached(
        &self,
        mesh: &Mesh,
        key: &FlowKey,
        plan: &Plan,
        epoch: u64,
    ) -> Vec<String> {
        let end = Instant::now() + self.waits.attach;
        let workspace = key.0.as_str();
        let absent = |row: &&RowKey| {
            let epoch = if plan.names.shared_rows.contains(*row) {
                0
            } else {
                epoch
            };
            !mesh
                .presence()
                .attached(&row.processor, workspace, &row.variant, epoch)
        };
        loop {
            let mut missing: Vec<&RowKey> = plan.expected.iter().filter(absent).collect();
            if !Neighbours::of(mesh).say_what_they_serve() {
                missing = self.without_consumers(mesh, &plan.names, missing).await;
            }
            let left = end.saturating_duration_since(Instant::now());
            if missing.is_empty() || left.is_zero() || mesh.stopping().is_cancelled() {
                let mut names: Vec<_> = missing
                    .into_iter()
                    .map(|row| row.processor.clone())
                    .collect();
                names.dedup();
                return names;
            }
            let look = if !Neighbours::of(mesh).say_what_they_serve() {
                LOOK.min(left)
            } else {
                left
            };
            tokio::select! {
                _ = mesh.presence().until(look, |_| !missing.iter().any(absent)) => {}
                () = mesh.stopping().cancelled() => {}
            }
        }
    }

    /// Those of the processors whose queues nobody listens to.
    async fn without_consumers<'a>(
        &self,
        mesh: &Mesh,
        names: &Names,
        rows: Vec<&'a RowKey>,
    ) -> Vec<&'a RowKey> {
        let mut missing = Vec::new();
        for row in rows {
            let start = format!("{}--", row.processor);
            let own = |queue: &&Subscription| queue.name.starts_with(&start);
            let queues: Vec<_> = names.all_queues().filter(own).cloned().collect();
            let states = look_at(mesh, &queues).await;
            let served = states.into_iter().flatten().flatten();
            if !served.into_iter().any(|state| state.consumers > 0) {
                missing.push(row);
            }
        }
        missing
    }

    /// Waits until the processors that are attached know that the flow stops: from then on they count.
    pub(super) async fn until_told(&self, mesh: &Mesh, key: &FlowKey) {
        let (workspace, flow) = (key.0.as_str(), key.1.as_str());
        mesh.presence()
            .until(TOLD, |view| view.stopping(workspace, flow))
            .await;
    }

    /// Waits until nothing is in progress and no queue that somebody reads holds anything, at most the
    /// drain bound. Calls `seen` with each look at the queues.
    pub(super) async fn until_idle(
        &self,
        mesh: &Mesh,
        key: &FlowKey,
        queues: &[Subscription],
        mut seen: impl FnMut(&Subscription, u64),
    ) {
        let end = Instant::now() + self.waits.drain;
        let (workspace, flow) = (key.0.as_str(), key.1.as_str());
        let mut quiet = 0;
        loop {
            let mut waiting = 0;
            for (queue, state) in queues.iter().zip(look_at(mesh, queues).await) {
                if let Ok(Some(state)) = state {
                    seen(queue, state.ready);
                    waiting += if state.consumers > 0 { state.ready } else { 0 };
                }
            }
            // Twice in a row: a record may be on its way from one processor to the next.
            quiet = if waiting == 0 && mesh.presence().idle(workspace, flow) {
                quiet + 1
            } else {
                0
            };
            let left = end.saturating_duration_since(Instant::now());
            if quiet >= 2 || left.is_zero() || mesh.stopping().is_cancelled() {
                return;
            }
            if quiet == 0 {
                let idle =
                    |view: &tg_mesh::PresenceView| waiting == 0 && view.idle(workspace, flow);
                mesh.presence().until(LOOK.min(left), idle).await;
            }
            tokio::time::sleep(QUIET_LOOK).await;
        }
    }

    /// Waits until all instances have left. Returns the processors that did not in time.
    pub(super) async fn until_gone(
        &self,
        mesh: &Mesh,
        key: &FlowKey,
        rows: &[RowKey],
        queues: &[Subscription],
    ) -> Vec<String> {
        let end = Instant::now() + self.waits.detach;
        let workspace = key.0.as_str();
        let here = |row: &&RowKey| {
            mesh.presence()
                .attached(&row.processor, workspace, &row.variant, 0)
        };
        loop {
            let left = end.saturating_duration_since(Instant::now());
            tokio::select! {
                _ = mesh.presence().until(left, |_| !rows.iter().any(|row| here(&row))) => {}
                () = mesh.stopping().cancelled() => {}
            }
            let mut still: Vec<String> = rows
                .iter()
                .filter(here)
                .map(|row| row.processor.clone())
                .collect();
            for (queue, state) in queues.iter().zip(look_at(mesh, queues).await) {
                let state = state.ok().flatten();
                // In a native mesh request queues vanish with their last consumer.
                let counts = queue.topic.class() == Class::Flow
                    || !Neighbours::of(mesh).say_what_they_serve();
                if counts && state.is_some_and(|state| state.consumers > 0) {
                    still.push(queue.name.split("--").next().unwrap_or_default().to_owned());
                }
            }
            still.sort();
            still.dedup();
            if still.is_empty() || left.is_zero() || mesh.stopping().is_cancelled() {
                return still;
            }
            tokio::time::sleep(LOOK.min(left)).await;
        }
    }
}
