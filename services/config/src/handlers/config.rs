//! The two queues of `config-svc`: the system queue (workspace in the body) and each workspace's own (from the queue).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tg_mesh::Responder;
use tg_mesh::{Cx, LeasedStore, Mesh, RequestHandler, TaskKind};
use tg_schemas::msg::{ConfigPush, ConfigRequest};
use tg_schemas::{Error, ErrorCode};
use tokio::sync::{Notify, oneshot};

use crate::announce;
use crate::cached::{CachedConfig, Notices};
use crate::engine::{ConfigReply, ReadScope, Write};

/// How long a write waits for its notice to leave; writes are told one after the other.
const TELL: Duration = Duration::from_secs(2);

/// Answers on both queues.
pub(crate) struct Handler {
    pub(crate) store: Arc<LeasedStore<CachedConfig>>,
    /// Told when a notice was not sent.
    pub(crate) lost: Arc<Notify>,
}

#[async_trait]
impl RequestHandler<ConfigRequest, ConfigReply> for Handler {
    async fn serve(
        &self,
        cx: Cx,
        ask: ConfigRequest,
        mut out: Responder<ConfigReply>,
    ) -> Result<(), Error> {
        let service = self.store.get().await?;
        let named = ask.workspace.clone();
        let scope = match cx.workspace() {
            "" => ReadScope::System(&named),
            workspace => ReadScope::Workspace(workspace),
        };
        let reply = if ask.operation == announce::OPERATION && matches!(scope, ReadScope::System(_))
        {
            service.announce(&self.notices(&cx)).await;
            ConfigReply::default()
        } else if is_write(&ask.operation) {
            let write = Write::from_request(scope, ask)?;
            let version = detached(&cx.mesh, service, write, self.notices(&cx)).await?;
            ConfigReply {
                version,
                ..ConfigReply::default()
            }
        } else {
            service.read(scope, &ask)?
        };
        out.send(reply).await
    }
}

fn is_write(operation: &str) -> bool {
    matches!(
        operation,
        "put" | "delete" | "delete-workspace" | "restore-workspace"
    )
}

impl Handler {
    fn notices(&self, cx: &Cx) -> Bus {
        Bus {
            mesh: cx.mesh.clone(),
            lost: self.lost.clone(),
        }
    }
}

/// Runs the write in a task of its own: an asker that gives up must not stop it half-way.
async fn detached(
    mesh: &Mesh,
    service: Arc<CachedConfig>,
    write: Write,
    notices: Bus,
) -> Result<i64, Error> {
    let (done, result) = oneshot::channel();
    mesh.spawn(TaskKind::Handler, async move {
        let _ = done.send(service.write(write, &notices).await);
    });
    result
        .await
        .map_err(|_| Error::new(ErrorCode::Unavailable, "the service is stopping"))?
}

/// Notices over the bus.
struct Bus {
    mesh: Mesh,
    lost: Arc<Notify>,
}

#[async_trait]
impl Notices for Bus {
    async fn tell(&self, push: ConfigPush) {
        let version = push.version;
        let sent = tg_clients::config::announce(&self.mesh, push);
        if !matches!(tokio::time::timeout(TELL, sent).await, Ok(Ok(()))) {
            tracing::warn!(version, "a config notice was not sent");
            self.lost.notify_one();
        }
    }
}
