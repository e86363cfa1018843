//! The two doors: the system queue (workspace in the body) and each workspace's own (from the queue).

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::answer::Out;
use tg_mesh::{Cx, Mesh, Mode, Serve, TaskKind};
use tg_schemas::msg::{ConfigPush, ConfigRequest};
use tg_schemas::{Class, Error, ErrorCode, Topic};
use tokio::sync::oneshot;

use crate::announce;
use crate::engine::{Scope, Write};
use crate::processor::Owned;
use crate::reply::ConfigReply;
use crate::service::{Notices, Service};

/// Answers on both queues.
pub(crate) struct Handler {
    pub(crate) owned: Arc<Owned>,
}

#[async_trait]
impl Serve<ConfigRequest, ConfigReply> for Handler {
    async fn serve(
        &self,
        cx: Cx,
        ask: ConfigRequest,
        mut out: Out<ConfigReply>,
    ) -> Result<(), Error> {
        let service = self.owned.service().await?;
        let named = ask.workspace.clone();
        let scope = match cx.workspace() {
            "" => Scope::System(&named),
            workspace => Scope::Workspace(workspace),
        };
        let reply = if ask.operation == announce::OPERATION && matches!(scope, Scope::System(_)) {
            service.announce(&Bus(cx.mesh.clone())).await;
            ConfigReply::default()
        } else if is_write(&ask.operation) {
            write(&cx.mesh, service, Write::from_request(scope, ask)?).await?;
            ConfigReply::default()
        } else {
            service.read(scope, &ask)?
        };
        out.send(reply).await
    }
}

fn is_write(operation: &str) -> bool {
    matches!(operation, "put" | "delete" | "delete-workspace")
}

/// Runs the write in a task of its own: an asker that gives up must not stop it half-way.
async fn write(mesh: &Mesh, service: Arc<Service>, write: Write) -> Result<(), Error> {
    let (done, result) = oneshot::channel();
    let notices = Bus(mesh.clone());
    mesh.spawn(TaskKind::Handler, async move {
        let _ = done.send(service.write(write, &notices).await);
    });
    result
        .await
        .map_err(|_| Error::new(ErrorCode::Unavailable, "the service is stopping"))?
}

/// Notices over the bus.
pub(crate) struct Bus(pub(crate) Mesh);

#[async_trait]
impl Notices for Bus {
    async fn tell(&self, mut push: ConfigPush) {
        if self.0.bus().mode() == Mode::Interop {
            push.keys.clear();
        }
        if let Err(error) = self
            .0
            .notify(&Topic::system(Class::Notify, "config"), &push)
            .await
        {
            tracing::warn!(%error, version = push.version, "a config notice was not sent");
        }
    }
}
