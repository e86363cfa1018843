//! Documents on their way into the library: what is said of them waits for their content.

use async_trait::async_trait;
use tg_schemas::msg::LibraryMetadata;
use tg_schemas::{Error, ErrorCode};
use tg_storage::StorageError;
use tg_storage::rusqlite::{OptionalExtension, Transaction, params};

use super::file::SqliteCores;
use crate::store::{MAX_PENDING, PENDING_MILLIS, Pending, PendingStore};

#[async_trait]
impl PendingStore for SqliteCores {
    async fn announce(
        &self,
        workspace: &str,
        metadata: LibraryMetadata,
        now: i64,
    ) -> Result<(), StorageError> {
        let workspace = workspace.to_owned();
        let body = serde_json::to_string(&metadata)
            .map_err(|error| StorageError::Io(error.to_string()))?;
        self.db
            .write(move |tx| {
                tx.prepare_cached("DELETE FROM pending WHERE at < ?1")?
                    .execute([now - PENDING_MILLIS])?;
                let count: i64 = tx
                    .prepare_cached("SELECT count(*) FROM pending WHERE workspace = ?1")?
                    .query_row([&workspace], |row| row.get(0))?;
                if count >= MAX_PENDING {
                    return Err(StorageError::Refused(Error::new(
                        ErrorCode::Busy,
                        "library-metadata: too many documents wait for their content",
                    )));
                }
                tx.prepare_cached("INSERT OR REPLACE INTO pending VALUES (?1, ?2, ?3, '', 0, ?4)")?
                    .execute(params![workspace, metadata.id, body, now])?;
                Ok(())
            })
            .await
    }

    async fn announced(
        &self,
        workspace: &str,
        document: &str,
    ) -> Result<Option<Pending>, StorageError> {
        let named = [workspace.to_owned(), document.to_owned()];
        let sql = "SELECT metadata, upload, chunk FROM pending
                   WHERE workspace = ?1 AND document = ?2";
        self.db
            .read(move |conn| {
                let found = conn
                    .prepare_cached(sql)?
                    .query_row(named, |row| {
                        let body: String = row.get(0)?;
                        Ok(Pending {
                            metadata: serde_json::from_slice(body.as_bytes()).unwrap_or_default(),
                            upload: row.get(1)?,
                            chunk: row.get(2)?,
                        })
                    })
                    .optional()?;
                Ok(found)
            })
            .await
    }

    async fn uploading(
        &self,
        workspace: &str,
        document: &str,
        upload: String,
        chunk: i64,
    ) -> Result<(), StorageError> {
        let named = (workspace.to_owned(), document.to_owned());
        let sql = "UPDATE pending SET upload = ?3, chunk = ?4
                   WHERE workspace = ?1 AND document = ?2";
        self.db
            .write(move |tx| {
                tx.prepare_cached(sql)?
                    .execute(params![named.0, named.1, upload, chunk])?;
                Ok(())
            })
            .await
    }

    async fn arrived(&self, workspace: &str, document: &str) -> Result<(), StorageError> {
        let named = [workspace.to_owned(), document.to_owned()];
        let sql = "DELETE FROM pending WHERE workspace = ?1 AND document = ?2";
        self.db
            .write(move |tx| {
                tx.prepare_cached(sql)?.execute(named)?;
                Ok(())
            })
            .await
    }
}

pub(super) fn drop_workspace(tx: &Transaction<'_>, workspace: &str) -> Result<(), StorageError> {
    tx.prepare_cached("DELETE FROM pending WHERE workspace = ?1")?
        .execute([workspace])?;
    Ok(())
}
