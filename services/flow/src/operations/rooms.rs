//! Tells the processes which rooms of dead letters are full: what cannot be handled there then stays in its
//! queue, and nobody else's records wait behind it.

use tg_mesh::Mesh;
use tg_schemas::{Error, WorkspaceId};

use super::Service;

/// Full rooms that are told at most.
const ROOMS: u32 = 10_000;

impl Service {
    /// Tells which rooms are full, if that changed.
    pub(super) async fn tell_rooms(&self, mesh: &Mesh) -> Result<(), Error> {
        let mut told = self.full_rooms.lock().await;
        let full = match self.store().await {
            Ok(store) => store.full_rooms(ROOMS).await?,
            // Another process owns the store, and tells.
            Err(_) => Vec::new(),
        };
        if *told == full {
            return Ok(());
        }
        for room in full.iter().filter(|room| !told.contains(room)) {
            tracing::warn!(%room, "the quota of dead letters is full; records that cannot be handled stay in their queues");
        }
        metrics::gauge!("tg_dead_letter_quotas_full").set(full.len() as f64);
        tg_mesh::tell_full_rooms(mesh, full.clone()).await;
        *told = full;
        Ok(())
    }

    /// Room may have been made: told at once where somebody waits for it.
    pub(super) async fn room_made(&self, mesh: &Mesh) -> Result<(), Error> {
        if self.full_rooms.lock().await.is_empty() {
            return Ok(());
        }
        self.tell_rooms(mesh).await
    }

    /// Whether records of a flow have to wait for room.
    pub(super) async fn waits_for_room(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceId,
        flow: &str,
    ) -> bool {
        let workspace = mesh.config().workspace_key(workspace.as_str());
        let own = format!("{workspace}:{flow}");
        let full = self.full_rooms.lock().await;
        full.iter()
            .any(|room| *room == own || room == workspace.as_str())
    }
}
