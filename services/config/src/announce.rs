//! Has the version announced whenever a process begins to serve, after each reconnect, and when a notice
//! could not be sent: whoever missed a notice then reads again. The question goes over the bus, so the
//! process that owns the store answers it, whichever that is.

use std::sync::Arc;
use std::time::Duration;

use tg_clients::config::Config;
use tg_mesh::Mesh;
use tg_mesh::bus::Link;
use tg_schemas::Error;
use tg_schemas::processors::config_svc;
use tokio::sync::Notify;

/// The operation, on the system queue only.
pub(crate) const OPERATION: &str = "announce";

/// One try.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after a try that failed.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Runs as long as the process. `lost` says that a notice was not sent.
pub(crate) async fn run(mesh: Mesh, lost: Arc<Notify>) {
    let mut link = mesh.bus().link();
    let mut presence = mesh.presence().changed();
    let mut announced = None;
    let mut again = false;
    loop {
        presence.borrow_and_update();
        let generation = match *link.borrow_and_update() {
            Link::Up { generation } => Some(generation),
            Link::Down | Link::Blocked => None,
        };
        let serving = mesh.presence().serving(config_svc::PROCESSOR.id);
        let now = (generation, serving);
        if now.0.is_some() && !now.1.is_empty() && announced.as_ref() != Some(&now) {
            let result = announce(&mesh).await;
            again = result.is_err();
            match result {
                Ok(()) => announced = Some(now),
                Err(error) => tracing::debug!(%error, "the config version is not announced yet"),
            }
        }
        let open = tokio::select! {
            changed = link.changed() => changed.is_ok(),
            changed = presence.changed() => changed.is_ok(),
            () = lost.notified() => {
                announced = None;
                tokio::time::sleep(RETRY_DELAY).await;
                true
            }
            () = tokio::time::sleep(RETRY_DELAY), if again => true,
        };
        if !open {
            return;
        }
    }
}

async fn announce(mesh: &Mesh) -> Result<(), Error> {
    Config::new(mesh).patient(TIMEOUT).announce().await
}
