//! Collections in their tables.

use async_trait::async_trait;
use tg_schemas::processors::collection_stores;
use tg_storage::StorageError;

use super::{SqliteLibrary, children, collection, fingerprints, outbox, run};
use crate::store::collections::{CollectionStore, Known, Life, Tombstone};

#[async_trait]
impl CollectionStore for SqliteLibrary {
    async fn collection(&self, workspace: &str, id: &str) -> Result<Option<Known>, StorageError> {
        let (workspace, id) = (workspace.to_owned(), id.to_owned());
        self.read(move |conn| collection::get(conn, &workspace, &id))
            .await
    }

    async fn remember_collection(
        &self,
        workspace: &str,
        id: &str,
        row: i64,
    ) -> Result<Option<i64>, StorageError> {
        let (workspace, id) = (workspace.to_owned(), id.to_owned());
        self.write(move |tx| {
            let known = collection::get(tx, &workspace, &id)?;
            if known.is_some_and(|known| known.is_dead(row)) {
                return Ok(None);
            }
            if known.is_none_or(|known| known.life != Life::Live || known.generation != row) {
                collection::set(tx, &workspace, &id, row, Life::Live)?;
            }
            Ok(Some(row))
        })
        .await
    }

    async fn begin_collection(
        &self,
        workspace: &str,
        id: &str,
        row: Option<i64>,
    ) -> Result<i64, StorageError> {
        let (workspace, id) = (workspace.to_owned(), id.to_owned());
        self.write(move |tx| {
            let known = collection::get(tx, &workspace, &id)?;
            let lives = |row: &i64| !known.is_some_and(|known| known.is_dead(*row));
            let generation = match (row.filter(lives), known) {
                (Some(row), _) => row,
                (None, None) => 0,
                (None, Some(known)) => {
                    // Its row was taken away by another hand: what it held goes too.
                    if known.life == Life::Live {
                        let last = known.generation;
                        collection::bury(tx, &workspace, &id, last, collection_stores())?;
                    }
                    known.generation + 1
                }
            };
            collection::set(tx, &workspace, &id, generation, Life::Live)?;
            Ok(generation)
        })
        .await
    }

    async fn end_collection(
        &self,
        workspace: &str,
        id: &str,
        row: i64,
        why: &str,
    ) -> Result<i64, StorageError> {
        let (workspace, id, why) = (workspace.to_owned(), id.to_owned(), why.to_owned());
        self.write(move |tx| {
            let known = collection::get(tx, &workspace, &id)?;
            let last = known.map_or(row, |known| known.generation.max(row));
            collection::set(tx, &workspace, &id, last, Life::Noted)?;
            collection::bury(tx, &workspace, &id, last, collection_stores())?;
            run::stop_collection(tx, &workspace, &id, last, &why)?;
            children::forget_collection(tx, &workspace, &id, last)?;
            outbox::forget_collection(tx, &workspace, &id, last)?;
            fingerprints::forget_unused(tx)?;
            Ok(last)
        })
        .await
    }

    async fn collection_gone(
        &self,
        workspace: &str,
        id: &str,
        generation: i64,
    ) -> Result<(), StorageError> {
        let (workspace, id) = (workspace.to_owned(), id.to_owned());
        self.write(move |tx| collection::gone(tx, &workspace, &id, generation))
            .await
    }

    async fn tombstones_of(
        &self,
        workspace: &str,
        id: &str,
    ) -> Result<Vec<Tombstone>, StorageError> {
        let (workspace, id) = (workspace.to_owned(), id.to_owned());
        self.read(move |conn| collection::stones(conn, &workspace, &id))
            .await
    }

    async fn pending_tombstones(
        &self,
        store: &str,
        most: u32,
    ) -> Result<Vec<Tombstone>, StorageError> {
        let store = store.to_owned();
        self.read(move |conn| collection::pending(conn, &store, most))
            .await
    }

    async fn confirm(&self, stone: &Tombstone) -> Result<(), StorageError> {
        let stone = stone.clone();
        self.write(move |tx| collection::confirmed(tx, &stone))
            .await
    }
}
