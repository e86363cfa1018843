//! The phases of one stop. Each is stored before it begins.

use std::collections::BTreeMap;

use tg_mesh::Mesh;
use tg_mesh::bus::{Delete, Deleted, Delivery};
use tg_mesh::clock;
use tg_schemas::processors::shared::RETRACT;
use tg_schemas::{Class, Error, ErrorCode, Subscription, WorkspaceKey};

use super::presence::look_at;
use super::{FlowKey, Service};
use crate::config::Config;
use crate::engine::closure::Released;
use crate::engine::receipt::{Counts, Receipt};
use crate::error::conflict;
use crate::store::{NewRecord, Phase, Progress, Reason};
use tg_schemas::flow_record::Drain;
use tg_schemas::flow_record::{Names, RowKey};

/// How often a queue that is to be deleted is emptied again.
const ROUNDS: usize = 100;
/// Records parked in one write, and bytes of them, at least one record.
const BATCH: usize = 128;
const BATCH_BYTES: usize = 8 << 20;

/// A stop under way.
pub(super) struct Stop<'a> {
    pub(super) service: &'a Service,
    pub(super) mesh: &'a Mesh,
    pub(super) key: &'a FlowKey,
    /// What the store keeps of the workspace is under this.
    pub(super) kept_under: WorkspaceKey,
    pub(super) names: Names,
    /// Those that no other flow holds.
    pub(super) released: Released,
    pub(super) drain: Drain,
    pub(super) progress: Progress,
    /// An earlier process began it.
    pub(super) resumed: bool,
    /// Of the start that is stopped.
    pub(super) epoch: u64,
}

impl Stop<'_> {
    /// Workspace and flow, as the store has them.
    fn ids(&self) -> (&str, &str) {
        (self.kept_under.as_str(), self.key.1.as_str())
    }

    /// Record queues that go with this flow.
    fn queues(&self) -> Vec<Subscription> {
        self.released.queues.iter().cloned().collect()
    }

    fn all_queues(&self) -> Vec<Subscription> {
        self.released
            .queues
            .iter()
            .chain(&self.released.other_queues)
            .cloned()
            .collect()
    }

    /// Finds out what other flows hold now. Call with `names` locked.
    pub(super) async fn look(&mut self) -> Result<(), Error> {
        self.released = self
            .service
            .released(self.mesh, self.key, &self.names)
            .await?;
        Ok(())
    }

    /// Counts what there is to do; with `wait`, lets the processors do it.
    pub(super) async fn drain(&mut self) {
        let queues = self.queues();
        let counts = &mut self.progress.counts;
        counts.before.clear();
        let (workspace, flow) = (self.key.0.as_str(), self.key.1.as_str());
        for (processor, busy) in self.mesh.presence().busy(workspace, flow) {
            let start = format!("{processor}--");
            let own = |queue: &&Subscription| queue.name.starts_with(&start);
            let asked = self.released.other_queues.iter().find(own);
            // What is in progress is counted where questions come in, else where records do, of which
            // those to be forgotten are the fewest.
            let rare = format!("--{}", RETRACT.name);
            let records = self.released.queues.iter().filter(own);
            let records = records.min_by_key(|queue| queue.name.ends_with(&rare));
            if let Some(queue) = asked.or(records) {
                counts.before.insert(queue.name.clone(), busy);
            }
        }
        let mut last = BTreeMap::new();
        let mut seen = |queue: &Subscription, ready: u64| {
            let known = last.insert(queue.name.clone(), ready).unwrap_or(0);
            *counts.before.entry(queue.name.clone()).or_default() += ready.saturating_sub(known);
        };
        if self.drain == Drain::Wait {
            self.service
                .until_idle(self.mesh, self.key, &queues, seen)
                .await;
        } else {
            let states = look_at(self.mesh, &queues).await;
            for (queue, state) in queues.iter().zip(states) {
                if let Ok(Some(state)) = state {
                    seen(queue, state.ready);
                }
            }
        }
    }

    /// Waits end early when the process stops: what follows from them is left to the next start.
    fn go_on(&self) -> Result<(), Error> {
        if self.mesh.stopping().is_cancelled() {
            let text = "the service is stopping; the stop is resumed when it is back";
            return Err(Error::new(ErrorCode::Interrupted, text));
        }
        Ok(())
    }

    /// The rest, from the phase that was stored.
    pub(super) async fn run(mut self) -> Result<Receipt, Error> {
        self.go_on()?;
        if self.progress.phase <= Phase::Detach {
            self.enter(Phase::Detach).await?;
            self.detach().await?;
            self.go_on()?;
        }
        if self.resumed && self.progress.phase >= Phase::Park {
            let (workspace, flow) = self.ids();
            self.service.store().await?.doubt(workspace, flow).await?;
        }
        if self.progress.phase <= Phase::Park {
            if self.progress.phase < Phase::Park {
                self.count_after().await;
                self.enter(Phase::Park).await?;
            }
            self.park().await?;
        }
        self.remove().await
    }

    async fn enter(&mut self, phase: Phase) -> Result<(), Error> {
        let (workspace, flow) = self.ids();
        let store = self.service.store().await?;
        store
            .stop_at(workspace, flow, phase, &self.progress.counts)
            .await?;
        self.progress.phase = phase;
        Ok(())
    }

    async fn detach(&mut self) -> Result<(), Error> {
        let rows: Vec<RowKey> = {
            let _names = self.service.names.write().await;
            self.look().await?;
            let rows: Vec<_> = self.released.rows.iter().cloned().collect();
            let keys = rows.iter().map(|row| (row.kind(), row.variant.clone()));
            Config::new(self.mesh).delete(&self.key.0, keys).await?;
            rows
        };
        let queues = self.all_queues();
        let still = self
            .service
            .until_gone(self.mesh, self.key, &rows, &queues)
            .await;
        if !still.is_empty() {
            tracing::warn!(workspace = %self.key.0, flow = %self.key.1, still = still.join(", "), "processors did not stop");
        }
        self.progress.counts.still_attached = still;
        // They counted for themselves, and told with their departure.
        let (workspace, flow) = (self.key.0.as_str(), self.key.1.as_str());
        let presence = self.mesh.presence();
        let counts = &mut self.progress.counts;
        let number = |(name, count): (String, i64)| (name, count.unsigned_abs());
        let done = presence.done(workspace, flow, self.epoch);
        counts.told.extend(done.into_iter().map(number));
        let answered = presence.answered(workspace, flow, self.epoch);
        counts.answered.extend(answered.into_iter().map(number));
        counts.uncounted = presence.uncounted(workspace, flow, self.epoch);
        counts.all_uncounted |= !self.service.hears_counts(self.mesh, self.epoch);
        Ok(())
    }

    /// What the processors left in their queues.
    async fn count_after(&mut self) {
        let queues = self.queues();
        let states = look_at(self.mesh, &queues).await;
        for (queue, state) in queues.into_iter().zip(states) {
            if let Ok(Some(state)) = state {
                self.progress.counts.after.insert(queue.name, state.ready);
            }
        }
    }

    /// Empties the queues and ends the retries.
    async fn park(&mut self) -> Result<(), Error> {
        // The processors put records aside before they said that they left: all of those are stored now.
        self.service.aside_stored(self.mesh).await;
        // And no kept record goes back to a queue from here on.
        drop(self.service.publishing.write().await);
        let discard = self.drain == Drain::Discard;
        if !discard {
            // What comes in meanwhile is parked once the queue is off its topic: a writer that is faster than
            // this would keep it from ending.
            let queues = self.queues();
            let states = look_at(self.mesh, &queues).await;
            for (queue, state) in queues.iter().zip(states) {
                let ready = state?.map_or(0, |state| state.ready);
                self.park_queue(queue, ready).await?;
            }
        }
        let (store, started) = (self.service.store().await?, self.progress.started);
        let counts = std::mem::take(&mut self.progress.counts);
        let (workspace, flow) = self.ids();
        self.progress.counts = store
            .end_retries(workspace, flow, started, discard, counts)
            .await?;
        self.service.tell_rooms(self.mesh).await?;
        self.progress.phase = Phase::Remove;
        Ok(())
    }

    /// Parks what waits in a queue, at most so many records.
    async fn park_queue(&mut self, queue: &Subscription, most: u64) -> Result<(), Error> {
        let (workspace, flow) = (self.kept_under.to_string(), self.key.1.to_string());
        let mut left = usize::try_from(most).unwrap_or(usize::MAX);
        while left > 0 {
            let mut batch = Batch::default();
            while batch.has_room(left) {
                let next = self
                    .service
                    .patiently(self.mesh, || self.mesh.bus().take(queue))
                    .await?;
                let Some(delivery) = next else {
                    break;
                };
                let size = delivery.envelope.body.len();
                batch.add(delivery, size);
            }
            let taken = batch.taken;
            if taken.is_empty() {
                return Ok(());
            }
            left -= taken.len();
            let since = clock::millis();
            let records = taken
                .iter()
                .map(|delivery| NewRecord {
                    workspace: workspace.clone(),
                    flow: flow.clone(),
                    topic: queue.topic.to_string(),
                    subscription: queue.name.clone(),
                    reason: Reason::Parked,
                    detail: "left when the flow was stopped".to_owned(),
                    kind: String::new(),
                    due: 0,
                    attempt: delivery.envelope.headers.attempt.unwrap_or(0),
                    since,
                    headers: serde_json::to_string(&*delivery.envelope.headers).unwrap_or_default(),
                    content_type: delivery.envelope.content_type.as_str().to_owned(),
                    body: delivery.envelope.body.to_vec(),
                    letter: None,
                })
                .collect();
            let counts = self.progress.counts.clone();
            let store = self.service.store().await?;
            self.progress.counts = store.park(&workspace, &flow, records, counts).await?;
            taken.into_iter().for_each(Delivery::ack);
        }
        Ok(())
    }

    /// Queues, exchanges, record.
    async fn remove(mut self) -> Result<Receipt, Error> {
        let _names = self.service.names.write().await;
        self.look().await?;
        self.remove_queues().await?;
        // Only now: what a crashed process had taken may be back in its queue later than the queues were emptied.
        let (workspace, flow) = self.ids();
        let store = self.service.store().await?;
        store.settle(workspace, flow).await?;
        let topics: Vec<_> = self.released.topics.iter().cloned().collect();
        let removed = self.service.remove_topics(self.mesh, &topics).await?;
        let counts: &mut Counts = &mut self.progress.counts;
        counts.exchanges_removed += removed.exchanges;
        counts.exchanges_left = removed.exchanges_left;
        let receipt = counts.receipt();
        let (workspace, flow) = self.ids();
        let store = self.service.store().await?;
        store
            .stop_at(workspace, flow, Phase::Remove, &self.progress.counts)
            .await?;
        self.service
            .write_record(self.mesh, self.key, None, Vec::new())
            .await?;
        store.end_stop(workspace, flow).await?;
        self.service.starts.lock().remove(&self.epoch);
        let told = serde_json::to_string(&receipt).unwrap_or_default();
        tracing::info!(workspace = %self.key.0, flow, receipt = told, "flow stopped");
        Ok(receipt)
    }

    /// Deletes the queues. What came in after one was emptied is parked too, or counted as thrown away: no
    /// record that a writer was told is queued goes unseen.
    async fn remove_queues(&mut self) -> Result<(), Error> {
        let keeps = self.drain != Drain::Discard;
        let when = move |queue: &Subscription| match queue.topic.class() {
            Class::Flow if keeps => Delete::IfEmpty,
            _ => Delete::Always,
        };
        let mut left = self.all_queues();
        for _ in 0..ROUNDS {
            let outcomes = self.service.delete_queues(self.mesh, &left, when).await?;
            let mut full = Vec::new();
            let counts = &mut self.progress.counts;
            for (queue, outcome) in left.into_iter().zip(outcomes) {
                match outcome {
                    Deleted::Missing => {}
                    Deleted::NotEmpty => full.push(queue),
                    Deleted::Gone { messages } => {
                        counts.queues_removed += 1;
                        if messages > 0 {
                            *counts.discarded.entry(queue.name).or_default() += messages;
                        }
                    }
                }
            }
            if full.is_empty() {
                return Ok(());
            }
            for queue in &full {
                self.park_queue(queue, u64::MAX).await?;
            }
            left = full;
        }
        Err(conflict(
            "flow-id: records keep coming in for this flow; end what writes them and stop it again",
        ))
    }
}

/// What is parked in one write.
struct Batch<T> {
    taken: Vec<T>,
    bytes: usize,
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self {
            taken: Vec::new(),
            bytes: 0,
        }
    }
}

impl<T> Batch<T> {
    /// Whether another record goes into it, of so many that are left.
    fn has_room(&self, left: usize) -> bool {
        self.taken.len() < BATCH.min(left) && self.bytes < BATCH_BYTES
    }

    fn add(&mut self, one: T, bytes: usize) {
        self.taken.push(one);
        self.bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes of the records of each write.
    fn writes(records: &[usize]) -> Vec<Vec<usize>> {
        let (mut waiting, mut writes) = (records.to_vec(), Vec::new());
        while !waiting.is_empty() {
            let (left, mut batch) = (waiting.len(), Batch::default());
            while !waiting.is_empty() && batch.has_room(left) {
                let size = waiting.remove(0);
                batch.add(size, size);
            }
            writes.push(batch.taken);
        }
        writes
    }

    #[test]
    fn parking_holds_few_bytes_at_once() {
        let mib = 1 << 20;
        for size in [1, mib, 3 * mib, 11 * mib, 100 * mib] {
            let records = [size; 60];
            let writes = writes(&records);
            assert_eq!(writes.concat(), records, "each once, in order");
            for write in writes {
                // The last one is what fills it, however large.
                let before: usize = write[1..].iter().sum();
                assert!(before < BATCH_BYTES, "{write:?}");
            }
        }
        assert_eq!(writes(&[11 * mib; 3]).len(), 3);
        assert_eq!(writes(&[1; 300]).len(), 3);
        assert!(!Batch::<usize>::default().has_room(0));
    }
}
