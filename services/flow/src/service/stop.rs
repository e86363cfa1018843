//! stop-flow: the plan goes into the record → new questions are refused → processors finish (bounded) →
//! rows go, processors leave → what is left is parked or, only when asked, thrown away → queues →
//! exchanges that nothing listens to → the record.
//!
//! Each phase is stored before it begins, so that the next process can go on where this one crashed. A
//! stop goes on when whoever asked for it has gone; whoever asks again hears the same outcome.

use std::sync::Arc;

use serde_json::{Value, json};
use tg_mesh::deadline::now_millis;
use tg_mesh::{Mesh, TaskKind};
use tg_schemas::msg::{FlowRequest, FlowResponse};
use tg_schemas::{Class, Error, ErrorCode, Subscription, WorkspaceId};
use tokio::sync::watch;

use super::start::flow_id;
use super::{FlowKey, Service, Stopped};
use crate::config::{Config, PROCESSOR};
use crate::engine::closure::Released;
use crate::engine::names::{Names, RowKey};
use crate::engine::receipt::{Counts, QueueReceipt, Receipt};
use crate::engine::record::{Drain, FlowRecord, Status};
use crate::faults::known;
use crate::reply;
use crate::store::{NewRecord, Phase, Progress, Reason};

/// Records parked in one write.
const BATCH: usize = 128;

/// A stop under way.
struct Stop<'a> {
    service: &'a Service,
    mesh: &'a Mesh,
    key: &'a FlowKey,
    names: Names,
    /// Those that no other flow holds.
    released: Released,
    drain: Drain,
    progress: Progress,
    /// An earlier process began it.
    resumed: bool,
}

impl Service {
    pub(crate) async fn stop_flow(
        self: &Arc<Self>,
        mesh: &Mesh,
        workspace: &WorkspaceId,
        request: &FlowRequest,
    ) -> Result<FlowResponse, Error> {
        let flow = flow_id(request).map_err(|error| match request.flow_id.as_str() {
            "" => error,
            _ => known("Flow ID invalid"),
        })?;
        let key = (workspace.clone(), flow);
        let argument = |name: &str| request.parameters.get(name).map_or("", String::as_str);
        let drain = match argument("drain") {
            "" => None,
            text => Some(Drain::parse(text)?),
        };
        let receipt = match argument("dry-run") {
            "" | "false" | "0" | "no" => self.stop(mesh, &key, drain).await?,
            _ => self.preview(mesh, &key, drain.unwrap_or_default()).await?,
        };
        Ok(reply::with("receipt", &receipt))
    }

    /// Stops a flow, or waits for the stop that is under way.
    pub(super) async fn stop(
        self: &Arc<Self>,
        mesh: &Mesh,
        key: &FlowKey,
        drain: Option<Drain>,
    ) -> Result<Value, Error> {
        let (sender, mut outcome) = {
            let mut stopping = self.stopping.lock();
            match stopping.get(key) {
                Some(outcome) => (None, outcome.clone()),
                None => {
                    let (sender, outcome) = watch::channel(None);
                    stopping.insert(key.clone(), outcome.clone());
                    (Some(sender), outcome)
                }
            }
        };
        if let Some(sender) = sender {
            let (service, mesh, key) = (self.clone(), mesh.clone(), key.clone());
            mesh.clone().spawn(TaskKind::Handler, async move {
                service.run_stop(&mesh, &key, drain, &sender).await;
            });
        }
        let stopped = outcome.wait_for(Option::is_some).await;
        let stopped: Stopped = stopped.map(|stopped| stopped.clone()).unwrap_or_default();
        stopped.unwrap_or_else(|| {
            Err(Error::new(
                ErrorCode::Interrupted,
                "the stop was interrupted",
            ))
        })
    }

    async fn run_stop(
        &self,
        mesh: &Mesh,
        key: &FlowKey,
        drain: Option<Drain>,
        sender: &watch::Sender<Stopped>,
    ) {
        /// Also a stop that panics is over.
        struct Over<'a>(&'a Service, &'a FlowKey);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.stopping.lock().remove(self.1);
            }
        }
        let outcome = {
            let _over = Over(self, key);
            let _turn = self.turn(key).await;
            self.stop_now(mesh, key, drain).await
        };
        if let Err(error) = &outcome {
            tracing::warn!(workspace = %key.0, flow = %key.1, %error, "a stop is not finished");
        }
        sender.send_replace(Some(outcome.map(|receipt| json!(receipt))));
    }

    async fn stop_now(
        &self,
        mesh: &Mesh,
        key: &FlowKey,
        drain: Option<Drain>,
    ) -> Result<Receipt, Error> {
        let mut record = self
            .record(mesh, key)
            .await?
            .ok_or_else(|| known("Flow ID invalid"))?;
        let names = self.names_of(mesh, key, &record).await?;
        let drain = drain.or(record.drain).unwrap_or_default();
        let now = now_millis() as i64;
        let (progress, resumed) = self
            .store()
            .await?
            .begin_stop(key.0.as_str(), key.1.as_str(), record.epoch, now)
            .await?;
        let never_ran = record.status == Status::Starting;
        record = FlowRecord {
            status: Status::Stopping,
            plan: Some(names.clone()),
            drain: Some(drain),
            ..record
        };
        let told = *mesh.presence().changed().borrow();
        self.write_record(mesh, key, Some(&record), Vec::new())
            .await?;
        let released = Released::default();
        let mut stop = Stop {
            service: self,
            mesh,
            key,
            names,
            released,
            drain,
            progress,
            resumed,
        };
        {
            let _names = self.names.write().await;
            stop.look().await?;
        }
        if !never_ran && stop.progress.phase == Phase::Drain {
            self.until_told(mesh, key, told).await;
            stop.drain().await;
        }
        stop.run().await
    }

    /// The names a flow holds: as its record says, else as its processor rows show.
    pub(super) async fn names_of(
        &self,
        mesh: &Mesh,
        key: &FlowKey,
        record: &FlowRecord,
    ) -> Result<Names, Error> {
        if let Some(names) = &record.plan {
            return Ok(names.clone());
        }
        let config = Config::new(mesh).whole(&key.0).await?;
        let rows = config.iter().filter_map(|(kind, rows)| {
            Some((
                kind.strip_prefix(PROCESSOR)?,
                rows.get(key.1.as_str())?.as_str(),
            ))
        });
        Ok(Names::from_rows(&key.0, &key.1, rows))
    }

    /// What a stop would do.
    async fn preview(&self, mesh: &Mesh, key: &FlowKey, drain: Drain) -> Result<Value, Error> {
        let record = self
            .record(mesh, key)
            .await?
            .ok_or_else(|| known("Flow ID invalid"))?;
        let names = self.names_of(mesh, key, &record).await?;
        let released = {
            let _names = self.names.write().await;
            self.released(mesh, key, &names).await?
        };
        let mut receipt = Receipt {
            dry_run: true,
            ..Receipt::default()
        };
        for queue in released.queues.iter().chain(&released.other_queues) {
            let Some(state) = mesh.bus().queue_state(queue).await? else {
                continue;
            };
            receipt.queues_removed += 1;
            if state.ready == 0 {
                continue;
            }
            let mut line = QueueReceipt {
                subscription: queue.name.clone(),
                ..QueueReceipt::default()
            };
            match drain {
                Drain::Wait if state.consumers > 0 => line.finished = state.ready,
                Drain::Wait | Drain::Park if queue.topic.class() == Class::Flow => {
                    line.parked = state.ready;
                }
                _ => line.discarded = state.ready,
            }
            receipt.queues.push(line);
        }
        let exchange = |class| matches!(class, Class::Flow | Class::Request);
        receipt.exchanges_removed = released
            .topics
            .iter()
            .filter(|topic| exchange(topic.class()))
            .count() as u64;
        Ok(json!(receipt))
    }
}

impl Stop<'_> {
    fn ids(&self) -> (&str, &str) {
        (self.key.0.as_str(), self.key.1.as_str())
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
    async fn look(&mut self) -> Result<(), Error> {
        self.released = self
            .service
            .released(self.mesh, self.key, &self.names)
            .await?;
        Ok(())
    }

    /// Counts what there is to do; with `wait`, lets the processors do it.
    async fn drain(&mut self) {
        let queues = self.queues();
        let counts = &mut self.progress.counts;
        counts.before.clear();
        for (processor, busy) in self.service.busy(self.mesh, self.key) {
            let start = format!("{processor}--");
            let own = |queue: &&Subscription| queue.name.starts_with(&start);
            let asked = self.released.other_queues.iter().find(own);
            // What is in progress is counted where questions come in, else where records do.
            if let Some(queue) = asked.or_else(|| self.released.queues.iter().find(own)) {
                counts.before.insert(queue.name.clone(), busy);
            }
        }
        let mut last = std::collections::BTreeMap::new();
        let mut seen = |queue: &Subscription, ready: u64| {
            let known = last.insert(queue.name.clone(), ready).unwrap_or(0);
            *counts.before.entry(queue.name.clone()).or_default() += ready.saturating_sub(known);
        };
        if self.drain == Drain::Wait {
            self.service
                .until_idle(self.mesh, self.key, &queues, seen)
                .await;
        } else {
            for queue in &queues {
                if let Ok(Some(state)) = self.mesh.bus().queue_state(queue).await {
                    seen(queue, state.ready);
                }
            }
        }
    }

    /// The rest, from the phase that was stored.
    async fn run(mut self) -> Result<Receipt, Error> {
        if self.progress.phase <= Phase::Detach {
            self.enter(Phase::Detach).await?;
            self.detach().await?;
        }
        if self.progress.phase <= Phase::Park {
            if self.progress.phase < Phase::Park {
                self.count_after().await;
                self.enter(Phase::Park).await?;
            } else if self.resumed {
                let (workspace, flow) = self.ids();
                self.service.store().await?.doubt(workspace, flow).await?;
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
            tracing::warn!(workspace = %self.key.0, flow = %self.key.1, ?still, "processors did not leave");
        }
        self.progress.counts.still_attached = still;
        Ok(())
    }

    /// What the processors left in their queues.
    async fn count_after(&mut self) {
        for queue in self.queues() {
            if let Ok(Some(state)) = self.mesh.bus().queue_state(&queue).await {
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
            for queue in self.queues() {
                self.park_queue(&queue).await?;
            }
        }
        let (store, started) = (self.service.store().await?, self.progress.started);
        let counts = std::mem::take(&mut self.progress.counts);
        let (workspace, flow) = self.ids();
        store.settle(workspace, flow).await?;
        self.progress.counts = store
            .end_retries(workspace, flow, started, discard, counts)
            .await?;
        self.progress.phase = Phase::Remove;
        Ok(())
    }

    async fn park_queue(&mut self, queue: &Subscription) -> Result<(), Error> {
        let (workspace, flow) = (self.key.0.to_string(), self.key.1.to_string());
        loop {
            let mut taken = Vec::new();
            while taken.len() < BATCH {
                let next = self
                    .service
                    .patiently(self.mesh, || self.mesh.bus().take(queue))
                    .await?;
                match next {
                    Some(delivery) => taken.push(delivery),
                    None => break,
                }
            }
            if taken.is_empty() {
                return Ok(());
            }
            let since = now_millis() as i64;
            let records = taken
                .iter()
                .map(|delivery| NewRecord {
                    workspace: workspace.clone(),
                    flow: flow.clone(),
                    topic: queue.topic.to_string(),
                    subscription: queue.name.clone(),
                    reason: Reason::Parked,
                    detail: "left when the flow was stopped".to_owned(),
                    due: 0,
                    attempt: delivery.envelope.headers.attempt.unwrap_or(0),
                    since,
                    headers: serde_json::to_string(&delivery.envelope.headers).unwrap_or_default(),
                    content_type: delivery.envelope.content_type.as_str().to_owned(),
                    body: delivery.envelope.body.to_vec(),
                })
                .collect();
            let counts = self.progress.counts.clone();
            let store = self.service.store().await?;
            self.progress.counts = store.park(&workspace, &flow, records, counts).await?;
            taken.into_iter().for_each(tg_mesh::bus::Delivery::ack);
        }
    }

    /// Queues, exchanges, record.
    async fn remove(mut self) -> Result<Receipt, Error> {
        let _names = self.service.names.write().await;
        self.look().await?;
        let queues = self.all_queues();
        for queue in &queues {
            self.last_look(queue).await?;
        }
        let topics: Vec<_> = self.released.topics.iter().cloned().collect();
        let removed = self.service.remove(self.mesh, &queues, &topics).await?;
        let counts: &mut Counts = &mut self.progress.counts;
        counts.queues_removed += removed.queues;
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
        tracing::info!(workspace, flow, ?receipt, "flow stopped");
        Ok(receipt)
    }

    /// What a queue holds just before it is deleted is parked too, or counted as thrown away.
    async fn last_look(&mut self, queue: &Subscription) -> Result<(), Error> {
        let Some(state) = self
            .service
            .patiently(self.mesh, || self.mesh.bus().queue_state(queue))
            .await?
        else {
            return Ok(());
        };
        if state.ready == 0 {
            return Ok(());
        }
        if self.drain != Drain::Discard && queue.topic.class() == Class::Flow {
            return self.park_queue(queue).await;
        }
        *self
            .progress
            .counts
            .discarded
            .entry(queue.name.clone())
            .or_default() += state.ready;
        Ok(())
    }
}
