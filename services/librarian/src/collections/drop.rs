//! Having stores drop what was deleted, until each confirmed.

use std::time::Duration;

use futures::future::join_all;
use tg_mesh::{Ask, Deadline, Mesh};
use tg_schemas::msg::{CollectionDrop, CollectionDropped};
use tg_schemas::processors::{collection_stores, drop_topic};
use tg_schemas::{Error, ErrorCode, WorkspaceKey};

use crate::error::wire;
use crate::librarian::Librarian;
use crate::store::collections::Tombstone;

/// How long a store may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Deletions asked of a store in one round.
const BATCH: u32 = 64;

/// Processors that speak for a store: while one is there, the store is.
fn keepers(store: &str) -> &'static [&'static str] {
    match store {
        "graph" => &["triples-write", "triples-query"],
        "vectors" => &[
            "graph-embeddings-write",
            "doc-embeddings-write",
            "row-embeddings-write",
        ],
        "keywords" => &["kw-index"],
        "rows" => &["rows-write", "rows-query"],
        "sessions" => &["sessions"],
        _ => &[],
    }
}

fn is_there(mesh: &Mesh, store: &str) -> bool {
    keepers(store)
        .iter()
        .any(|processor| mesh.presence().hosted(processor))
}

impl Librarian {
    /// Asks all stores that are there to drop a deleted collection. Fails, naming it, if one did not.
    pub(super) async fn drop_everywhere(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceKey,
        id: &str,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let stones = self.rows().tombstones_of(workspace.as_str(), id);
        let mut stones = stones.await.map_err(wire)?;
        stones.retain(|stone| is_there(mesh, &stone.store));
        let asked = stones.iter().map(|stone| ask(mesh, stone, deadline));
        let outcomes = join_all(asked).await;
        let mut left = Vec::new();
        for (stone, outcome) in stones.into_iter().zip(outcomes) {
            match outcome {
                Ok(()) => self.rows().confirm(&stone).await.map_err(wire)?,
                Err(error) => {
                    tracing::warn!(store = stone.store, %error, "a deletion is not confirmed yet");
                    left.push(stone.store);
                }
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        left.sort();
        let text = format!(
            "Failed to delete collection: not confirmed yet by {}; it goes on in the background",
            left.join(", ")
        );
        Err(Error::new(ErrorCode::Unavailable, text))
    }

    /// One round over all deletions that are not confirmed. `true` if something is left to do soon.
    pub(crate) async fn drop_pending(&self, mesh: &Mesh) -> Result<bool, Error> {
        let mut soon = false;
        for store in collection_stores() {
            if !is_there(mesh, store) {
                continue;
            }
            let stones = self.rows().pending_tombstones(store, BATCH);
            for stone in stones.await.map_err(wire)? {
                let _alone = self.alone(&stone.workspace, &stone.collection).await;
                let Some(stone) = self.still(stone).await? else {
                    continue;
                };
                // Not the row of a workspace that has the name now.
                let workspace = WorkspaceKey::parse(&stone.workspace);
                if mesh.config().workspace_key(workspace.name()) == workspace {
                    // A crash may have come between the note and the row's end.
                    let (id, generation) = (&stone.collection, stone.generation);
                    self.take_row_away(mesh, &workspace, id, generation).await?;
                }
                match ask(mesh, &stone, Deadline::after(TIMEOUT)).await {
                    Ok(()) => self.rows().confirm(&stone).await.map_err(wire)?,
                    Err(error) => {
                        tracing::debug!(store, %error, "a deletion is not confirmed yet");
                        soon = true;
                        break;
                    }
                }
            }
        }
        Ok(soon)
    }

    /// A deletion as it stands now: it may have been confirmed to who asked for it.
    async fn still(&self, stone: Tombstone) -> Result<Option<Tombstone>, Error> {
        let stones = self
            .rows()
            .tombstones_of(&stone.workspace, &stone.collection);
        let mut stones = stones.await.map_err(wire)?.into_iter();
        Ok(stones.find(|now| now.store == stone.store))
    }
}

async fn ask(mesh: &Mesh, stone: &Tombstone, deadline: Deadline) -> Result<(), Error> {
    let question = CollectionDrop {
        workspace: stone.workspace.clone(),
        collection: stone.collection.clone(),
        generation: stone.generation,
    };
    let options = Ask {
        deadline: Some(deadline),
        ..Ask::default()
    };
    let topic = drop_topic(&stone.store);
    let asked = mesh.ask::<_, CollectionDropped>(&topic, &question, options);
    let answer = tokio::time::timeout(TIMEOUT, asked.last()).await;
    answer
        .unwrap_or_else(|_| Err(Error::new(ErrorCode::Timeout, "the store does not answer")))
        .map(|_| ())
}
