//! stop-flow: the plan goes into the record → new questions are refused → processors finish (bounded) →
//! rows go, processors leave → what is left is parked or, only when asked, thrown away → queues →
//! exchanges that nothing listens to → the record.
//!
//! Each phase is stored before it begins, so that the next process can go on where this one crashed. A
//! stop goes on when whoever asked for it has gone; whoever asks again hears the same outcome.

use std::sync::Arc;

use serde_json::{Value, json};
use tg_mesh::clock;
use tg_mesh::{Mesh, TaskKind};
use tg_schemas::msg::{FlowRequest, FlowResponse};
use tg_schemas::{Class, Error, ErrorCode, WorkspaceId};
use tokio::sync::watch;

use super::generation::present;
use super::presence::look_at;
use super::start::flow_id;
use super::stopping::Stop;
use super::{FlowKey, Service, Stopped};
use crate::config::{Config, PROCESSOR};
use crate::engine::closure::Released;
use crate::engine::receipt::{QueueReceipt, Receipt};
use crate::error::known;
use crate::handlers::reply;
use crate::store::Phase;
use tg_schemas::flow_record::Names;
use tg_schemas::flow_record::{Drain, FlowRecord, Status};

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
        if record.status == Status::Running && drain != Drain::Discard {
            self.check_room(mesh, key, &names, drain).await?;
        }
        let now = clock::millis();
        let kept_under = present(mesh, key.0.as_str())?;
        let (progress, resumed) = self
            .store()
            .await?
            .begin_stop(&kept_under, key.1.as_str(), record.epoch, now)
            .await?;
        let never_ran = record.status == Status::Starting;
        record = FlowRecord {
            status: Status::Stopping,
            plan: Some(names.clone()),
            drain: Some(drain),
            ..record
        };
        self.write_record(mesh, key, Some(&record), Vec::new())
            .await?;
        let released = Released::default();
        let mut stop = Stop {
            service: self,
            mesh,
            key,
            kept_under,
            names,
            released,
            drain,
            progress,
            resumed,
            epoch: record.epoch,
        };
        {
            let _names = self.names.write().await;
            stop.look().await?;
        }
        if !never_ran && stop.progress.phase == Phase::Drain {
            self.until_told(mesh, key).await;
            stop.drain().await;
        }
        stop.run().await
    }

    /// Whether what waits can be parked; asked before anything is done, so that the flow runs on if not.
    async fn check_room(
        &self,
        mesh: &Mesh,
        key: &FlowKey,
        names: &Names,
        drain: Drain,
    ) -> Result<(), Error> {
        let released = {
            let _names = self.names.write().await;
            self.released(mesh, key, names).await?
        };
        let queues: Vec<_> = released.queues.iter().cloned().collect();
        let states = look_at(mesh, &queues).await.into_iter().flatten().flatten();
        let waiting: u64 = states.map(|state| state.ready).sum();
        // What processors may still finish is not known to be left over.
        let parked = match drain {
            Drain::Park => waiting,
            _ => waiting.min(1),
        };
        if parked == 0 {
            return Ok(());
        }
        let store = self.store().await?;
        let kept_under = present(mesh, key.0.as_str())?;
        let room = store.has_room(kept_under.as_str(), key.1.as_str(), parked);
        Ok(room.await?)
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
            line.sent = state.ready;
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
