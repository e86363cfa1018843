//! Publishing retractions: to the flow that made what is gone, or to any flow of the workspace that reaches
//! the same stores.

use tg_clients::neighbours::Neighbours;
use tg_mesh::{Ask, Mesh};
use tg_schemas::msg::{Metadata, Retract};
use tg_schemas::{Error, WorkspaceKey};

use crate::config::FLOW;
use crate::engine::flow::Flow;
use crate::engine::{retraction, workspace};
use crate::error::wire;
use crate::librarian::Librarian;
use crate::store::runs::Retraction;

/// Retractions taken at once.
const BATCH: u32 = 64;

impl Librarian {
    /// Publishes what can be published. What finds no flow that runs stays.
    pub(crate) async fn deliver(&self, mesh: &Mesh) -> Result<(), Error> {
        if !Neighbours::of(mesh).take_retractions() {
            // Nobody there would understand it.
            return Ok(());
        }
        let mut after = 0;
        loop {
            let due = self.rows().due_retractions(after, BATCH);
            let due = due.await.map_err(wire)?;
            let Some(last) = due.last() else {
                return Ok(());
            };
            after = last.number;
            for retraction in due {
                let number = retraction.number;
                if publish(mesh, retraction).await? {
                    let removed = self.rows().remove_retraction(number);
                    removed.await.map_err(wire)?;
                }
            }
        }
    }
}

/// `false` if no flow can take it now.
async fn publish(mesh: &Mesh, due: Retraction) -> Result<bool, Error> {
    let target = &due.target;
    let Some((flow, epoch)) = carrier(mesh, &target.workspace, &target.flow) else {
        return Ok(false);
    };
    let options = Ask {
        id: Some(due.record),
        thread: Some(due.thread).filter(|thread| !thread.is_empty()),
        epoch: (epoch > 0).then_some(epoch),
        workspace: Some(workspace::id(&target.workspace)?),
        generation: workspace::generation(&target.workspace),
        ..Ask::default()
    };
    let record = Retract {
        metadata: Some(Metadata {
            id: target.document.clone(),
            root: target.document.clone(),
            collection: target.collection.clone(),
        }),
        chunks: due.chunks,
        triples: due.triples,
        superseded: due.superseded,
    };
    let topic = retraction::topic(&target.workspace, &flow)?;
    match mesh.record(&topic, &record, options).await {
        Ok(()) => Ok(true),
        // Stores of that flow do not listen yet.
        Err(error) if error.code() == tg_schemas::ErrorCode::NobodyServes => Ok(false),
        Err(error) => Err(error),
    }
}

/// The flow itself if it runs, else another one of the workspace.
fn carrier(mesh: &Mesh, workspace: &str, flow: &str) -> Option<(String, u64)> {
    let key = WorkspaceKey::parse(workspace);
    let rows = mesh.config().values(key.name(), FLOW);
    let own = rows.get_key_value(flow);
    let others = rows.iter().filter(|(id, _)| *id != flow);
    own.into_iter().chain(others).find_map(|(id, row)| {
        let read = Flow::read(row).filter(|flow| flow.runs())?;
        let topic = retraction::topic(workspace, id).ok()?;
        // A flow without stores takes it to nobody.
        let reaches = read.queues().any(|queue| queue.topic == topic);
        reaches.then(|| (id.clone(), read.epoch))
    })
}
