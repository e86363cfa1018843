//! Documents in their tables.

use async_trait::async_trait;
use tg_schemas::msg::DocumentMetadata;
use tg_storage::StorageError;
use tg_storage::blob::BlobId;

use super::{SqliteLibrary, adding, content, cutting, document, removing, usage};
use crate::engine::asker::Asker;
use crate::engine::quota::Usage;
use crate::store::documents::{Added, DocumentStore, Listing, Located, New, Prepared};

#[async_trait]
impl DocumentStore for SqliteLibrary {
    async fn usage(
        &self,
        workspace: &str,
        adds: Vec<(String, u64)>,
    ) -> Result<(Usage, Usage), StorageError> {
        let workspace = workspace.to_owned();
        self.read(move |conn| {
            let used = usage::of(conn, &workspace)?;
            Ok((used, usage::more(conn, &workspace, &adds)?))
        })
        .await
    }

    async fn document(
        &self,
        workspace: &str,
        id: &str,
    ) -> Result<Option<DocumentMetadata>, StorageError> {
        let (workspace, id) = (workspace.to_owned(), id.to_owned());
        let found = self.read(move |conn| document::get(conn, &workspace, &id));
        Ok(found.await?.map(|stored| stored.document))
    }

    async fn located(
        &self,
        workspace: &str,
        ids: Vec<String>,
        most: u64,
    ) -> Result<Option<Vec<Option<Located>>>, StorageError> {
        let workspace = workspace.to_owned();
        self.read(move |conn| {
            let (mut found, mut bytes) = (Vec::with_capacity(ids.len()), 0_u64);
            for id in &ids {
                let Some(stored) = document::get(conn, &workspace, id)? else {
                    found.push(None);
                    continue;
                };
                let place = content::place(conn, stored.content)?;
                bytes += place.as_ref().and_then(|place| place.size).unwrap_or(0);
                if bytes > most {
                    return Ok(None);
                }
                found.push(Some((stored.document, place)));
            }
            Ok(Some(found))
        })
        .await
    }

    async fn walk(
        &self,
        workspace: &str,
        walk: Listing,
    ) -> Result<Vec<(i64, DocumentMetadata)>, StorageError> {
        let workspace = workspace.to_owned();
        self.read(move |conn| document::walk(conn, &workspace, &walk))
            .await
    }

    async fn add_new(&self, asker: &Asker, new: New) -> Result<(), StorageError> {
        let asker = asker.clone();
        self.write(move |tx| adding::add_new(tx, &asker, &new))
            .await
    }

    async fn add_all(
        &self,
        asker: &Asker,
        new: Vec<New>,
    ) -> Result<Vec<DocumentMetadata>, StorageError> {
        let workspace = asker.workspace.clone();
        let write = self.db.write_short(adding::bytes(&new), move |tx| {
            adding::add_all(tx, &workspace, &new)
        });
        write.await
    }

    async fn ensure(&self, asker: &Asker, new: New) -> Result<(), StorageError> {
        let asker = asker.clone();
        self.write(move |tx| adding::ensure(tx, &asker, &new)).await
    }

    async fn add_child(&self, asker: &Asker, new: New) -> Result<(), StorageError> {
        let asker = asker.clone();
        self.write(move |tx| cutting::add_child(tx, &asker, &new))
            .await
    }

    async fn add_children(
        &self,
        asker: &Asker,
        new: Vec<New>,
        told_apart: bool,
    ) -> Result<Added, StorageError> {
        let asker = asker.clone();
        self.write(move |tx| cutting::add_children(tx, &asker, new, told_apart))
            .await
    }

    async fn finish_children(
        &self,
        asker: &Asker,
        id: &str,
        confirmed: Vec<String>,
    ) -> Result<Vec<DocumentMetadata>, StorageError> {
        let (asker, id) = (asker.clone(), id.to_owned());
        self.write(move |tx| cutting::finish_children(tx, &asker, &id, confirmed))
            .await
    }

    async fn update(
        &self,
        workspace: &str,
        document: DocumentMetadata,
        content: Option<Prepared>,
    ) -> Result<bool, StorageError> {
        let workspace = workspace.to_owned();
        self.write(move |tx| adding::update(tx, &workspace, &document, content.as_ref()))
            .await
    }

    async fn remove(&self, asker: &Asker, id: &str) -> Result<(), StorageError> {
        let (asker, id) = (asker.clone(), id.to_owned());
        self.write(move |tx| removing::remove(tx, &asker, &id))
            .await
    }

    async fn trim_answers(&self, keep: u32, most: u32) -> Result<usize, StorageError> {
        self.write(move |tx| document::trim_answers(tx, keep, most))
            .await
    }

    async fn take_unused(&self, most: u32) -> Result<Vec<BlobId>, StorageError> {
        self.write(move |tx| content::take_unused(tx, most)).await
    }

    async fn unknown(&self, hashes: Vec<BlobId>) -> Result<Vec<BlobId>, StorageError> {
        self.read(move |conn| content::unknown(conn, &hashes)).await
    }
}
