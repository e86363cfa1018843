//! What processes share about backends: who failed and for how long it is left alone, and who answers again. It is a
//! hint: who misses one notices by itself.

use std::sync::Arc;
use std::time::Duration;

use tg_mesh::tg_bus::pause::doubled;
use tg_mesh::{Mesh, Tap, TaskKind};
use tg_schemas::msg::ModelRest;
use tg_schemas::{Class, Topic};
use tokio::sync::mpsc;

use super::Router;

/// Notes that wait to be told.
const WAITING: usize = 64;
/// Pause before it is listened again, at first and at most.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);

fn topic() -> Topic {
    Topic::system(Class::Notify, "model-rests")
}

/// Has a router tell the other processes, and hear them, until this one stops.
pub(crate) fn share(mesh: &Mesh, router: &Arc<Router>) {
    let (teller, mut own) = mpsc::channel(WAITING);
    if router.teller.set(teller).is_err() {
        return;
    }
    let (with, router) = (mesh.clone(), router.clone());
    mesh.spawn(TaskKind::Background, async move {
        let stopping = with.stopping().clone();
        let mut pause = FIRST;
        let shared = async {
            loop {
                if let Ok(mut tap) = with.tap::<ModelRest>(&topic()).await {
                    pause = FIRST;
                    passed_on(&with, &router, &mut own, &mut tap).await;
                }
                // The bus is away.
                tokio::time::sleep(pause).await;
                pause = doubled(pause, LONGEST);
            }
        };
        stopping.run_until_cancelled(shared).await;
    });
}

/// Passes on what is told here and there, as long as the bus lets it hear.
async fn passed_on(
    mesh: &Mesh,
    router: &Router,
    own: &mut mpsc::Receiver<ModelRest>,
    tap: &mut Tap<ModelRest>,
) {
    loop {
        tokio::select! {
            told = tap.next() => match told {
                None => return,
                Some(Ok(told)) if told.process != mesh.inbox() => router.heard(&told),
                Some(_) => {}
            },
            Some(note) = own.recv() => {
                let note = ModelRest { process: mesh.inbox().to_owned(), ..note };
                if let Err(error) = mesh.notify(&topic(), &note).await {
                    tracing::debug!(%error.message, "the rest of a model backend was not told");
                }
            }
        }
    }
}
