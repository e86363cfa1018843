//! What a process does when it begins to serve: declares again what running flows need, finishes starts
//! and stops that a crash interrupted, and looks after retries.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tg_mesh::bus::Link;
use tg_mesh::{Ask, Deadline, Mesh, TaskKind};
use tg_schemas::msg::{FlowRequest, FlowResponse};
use tg_schemas::processors::flow_svc;
use tg_schemas::{Class, Error, FlowId, Topic, WorkspaceId};

use super::generation::known;
use super::{FlowKey, Service};
use crate::config::{Config, FLOW};
use tg_schemas::flow_record::{Drain, FlowRecord, Status};

/// Internal operation on the system queue: whoever serves takes up what was left.
pub(crate) const RESUME: &str = "resume";

const TIMEOUT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_secs(1);

/// Has whoever serves take up what was left, whenever a process begins to serve and after each
/// reconnect. The question goes over the bus, so it reaches the process that owns the store.
pub(crate) async fn take_up(mesh: Mesh) {
    let mut link = mesh.bus().link();
    let mut presence = mesh.presence().changed();
    let mut asked = None;
    loop {
        presence.borrow_and_update();
        let generation = match *link.borrow_and_update() {
            Link::Up { generation } => Some(generation),
            Link::Down | Link::Blocked => None,
        };
        let serving = mesh.presence().serving(flow_svc::PROCESSOR.id);
        let now = (generation, serving);
        let mut pause = Duration::from_secs(3600);
        if now.0.is_some() && !now.1.is_empty() && asked.as_ref() != Some(&now) {
            match ask(&mesh).await {
                Ok(()) => asked = Some(now),
                Err(error) => {
                    tracing::debug!(%error, "flows are not resumed yet");
                    pause = PAUSE;
                }
            }
        }
        let changed = async {
            tokio::select! {
                changed = link.changed() => changed.is_ok(),
                changed = presence.changed() => changed.is_ok(),
                () = tokio::time::sleep(pause) => true,
            }
        };
        if !changed.await {
            return;
        }
    }
}

async fn ask(mesh: &Mesh) -> Result<(), Error> {
    let request = FlowRequest {
        operation: RESUME.to_owned(),
        ..FlowRequest::default()
    };
    let options = Ask {
        deadline: Some(Deadline::after(TIMEOUT)),
        ..Ask::default()
    };
    let topic = flow_svc::FLOW_OF_SYSTEM.of_system();
    mesh.ask::<_, FlowResponse>(&topic, &request, options)
        .last()
        .await
        .map(|_| ())
}

impl Service {
    /// Takes up what was left, in the background.
    pub(crate) async fn resume(self: &Arc<Self>, mesh: &Mesh) -> Result<FlowResponse, Error> {
        // Until generations are known, nothing that was left is found.
        known(mesh)?;
        let records = Config::new(mesh).everywhere(FLOW).await?;
        let epochs = records
            .iter()
            .filter_map(|(_, _, text)| Some(FlowRecord::read(text)?.epoch));
        self.store()
            .await?
            .raise_epoch(epochs.max().unwrap_or(0))
            .await?;
        if !self.awake.swap(true, Ordering::AcqRel) {
            let (service, inner) = (self.clone(), mesh.clone());
            mesh.spawn(TaskKind::Background, async move {
                service.retry_due(&inner).await
            });
            let (service, inner) = (self.clone(), mesh.clone());
            mesh.spawn(
                TaskKind::Background,
                async move { service.gauge(&inner).await },
            );
        }
        let (service, inner) = (self.clone(), mesh.clone());
        mesh.spawn(TaskKind::Background, async move {
            service.take_up(&inner, records).await
        });
        Ok(FlowResponse::default())
    }

    async fn take_up(self: &Arc<Self>, mesh: &Mesh, records: Vec<(String, String, String)>) {
        for (workspace, flow, text) in records {
            let (Ok(workspace), Ok(flow)) = (WorkspaceId::new(&workspace), FlowId::new(&flow))
            else {
                continue;
            };
            let Some(record) = FlowRecord::read(&text) else {
                continue;
            };
            let key = (workspace, flow);
            let outcome = match record.status {
                Status::Running => self.declare_again(mesh, &record).await,
                Status::Starting => self.take_up_start(mesh, &key, &record).await,
                Status::Stopping => {
                    let (service, inner) = (self.clone(), mesh.clone());
                    mesh.spawn(TaskKind::Background, async move {
                        // The outcome is told to whoever asks, and logged.
                        let _ = service.stop(&inner, &key, None).await;
                    });
                    continue;
                }
            };
            if let Err(error) = outcome {
                tracing::warn!(workspace = %key.0, flow = %key.1, %error, "a flow is not resumed yet");
            }
        }
    }

    /// Exchanges and queues survive in a bus; they are declared again for one that lost them.
    async fn declare_again(&self, mesh: &Mesh, record: &FlowRecord) -> Result<(), Error> {
        let Some(names) = &record.plan else {
            return Ok(());
        };
        let carries = |topic: &&Topic| matches!(topic.class(), Class::Flow | Class::Request);
        let topics: Vec<_> = names.all_topics().filter(carries).cloned().collect();
        let queues: Vec<_> = names.queues.iter().cloned().collect();
        // Not while a stop of the flow takes them away.
        let _names = self.names.read().await;
        Ok(self
            .patiently(mesh, || mesh.bus().declare(&topics, &queues))
            .await?)
    }

    /// A start that cannot be finished is taken back.
    async fn take_up_start(
        self: &Arc<Self>,
        mesh: &Mesh,
        key: &FlowKey,
        record: &FlowRecord,
    ) -> Result<(), Error> {
        match self.finish_start(mesh, key, record).await {
            Err(error) if !error.code().is_transient() => {
                tracing::warn!(workspace = %key.0, flow = %key.1, %error, "a start is rolled back");
                self.stop(mesh, key, Some(Drain::Discard)).await.map(|_| ())
            }
            outcome => outcome,
        }
    }
}
