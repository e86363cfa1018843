//! Making, changing and deleting collections. What happens to one happens in turn.

use tg_mesh::{Deadline, Mesh};
use tg_schemas::msg::CollectionMetadata;
use tg_schemas::{Error, WorkspaceKey};

use crate::config::{self, COLLECTION, Config};
use crate::engine::collection as rules;
use crate::error::wire;
use crate::librarian::Librarian;
use crate::store::collections::Life;

impl Librarian {
    pub(crate) async fn list_collections(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceKey,
    ) -> Result<Vec<CollectionMetadata>, Error> {
        let rows = Config::new(mesh, workspace)?.values(COLLECTION).await?;
        let read = |(key, row): (&String, &String)| rules::from_row(key, row);
        Ok(rows.iter().map(read).collect())
    }

    /// Makes a collection or overwrites what is said of it. A name that was deleted before gets its next
    /// generation.
    pub(crate) async fn update_collection(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceKey,
        collection: &CollectionMetadata,
    ) -> Result<(), Error> {
        let _alone = self.alone(workspace.as_str(), &collection.collection).await;
        self.put_collection(mesh, workspace, collection).await?;
        Ok(())
    }

    /// Sees to it that a collection is there. Returns its generation.
    pub(crate) async fn ensure_collection(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceKey,
        id: &str,
    ) -> Result<i64, Error> {
        let _alone = self.alone(workspace.as_str(), id).await;
        let row = Config::new(mesh, workspace)?.get(COLLECTION, id).await?;
        let known = match &row {
            Some(row) => self.remember(workspace, id, rules::generation(row)).await?,
            None => None,
        };
        let generation = match (known, row) {
            (Some(generation), _) => generation,
            (None, row) => {
                let one = match row {
                    Some(row) => rules::from_row(id, &row),
                    None => rules::complete(id, String::new(), String::new(), Vec::new())?,
                };
                self.put_collection(mesh, workspace, &one).await?
            }
        };
        // Others see it about when this process does.
        config::shown(mesh, || {
            mesh.config()
                .get(workspace.name(), COLLECTION, id)
                .is_some()
        })
        .await;
        Ok(generation)
    }

    /// Remembers a collection whose row is there; `None` if the row says a generation that is dead.
    async fn remember(
        &self,
        workspace: &WorkspaceKey,
        id: &str,
        row: i64,
    ) -> Result<Option<i64>, Error> {
        let remembered = self.rows().remember_collection(workspace.as_str(), id, row);
        remembered.await.map_err(wire)
    }

    async fn put_collection(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceKey,
        collection: &CollectionMetadata,
    ) -> Result<i64, Error> {
        let config = Config::new(mesh, workspace)?;
        let id = &collection.collection;
        let row = config.get(COLLECTION, id).await?;
        let row = row.map(|row| rules::generation(&row));
        let begun = self.rows().begin_collection(workspace.as_str(), id, row);
        let generation = begun.await.map_err(wire)?;
        let value = rules::value(collection, generation);
        config.put(COLLECTION, id, value).await?;
        Ok(generation)
    }

    /// Deletes a collection: noted for good first, then its row goes, then every store drops it. Returns
    /// when all stores that are there confirmed; the others do as soon as they are there.
    pub(crate) async fn delete_collection(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceKey,
        id: &str,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let _alone = self.alone(workspace.as_str(), id).await;
        let config = Config::new(mesh, workspace)?;
        let row = config.get(COLLECTION, id).await?;
        let row = row.map_or(0, |row| rules::generation(&row));
        let why = "the collection was deleted";
        let ended = self.rows().end_collection(workspace.as_str(), id, row, why);
        let generation = ended.await.map_err(wire)?;
        self.take_row_away(mesh, workspace, id, generation).await?;
        let outcome = self.drop_everywhere(mesh, workspace, id, deadline).await;
        self.wake.notify_one();
        outcome
    }

    /// Removes the row of a deleted generation, unless that is done or the name is another collection's.
    pub(super) async fn take_row_away(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceKey,
        id: &str,
        generation: i64,
    ) -> Result<(), Error> {
        let known = self
            .rows()
            .collection(workspace.as_str(), id)
            .await
            .map_err(wire)?;
        if known.is_none_or(|known| known.life != Life::Noted) {
            return Ok(());
        }
        Config::new(mesh, workspace)?.delete(COLLECTION, id).await?;
        let gone = self
            .rows()
            .collection_gone(workspace.as_str(), id, generation);
        gone.await.map_err(wire)
    }
}
