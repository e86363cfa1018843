//! The ledger as it keeps the ends of traces and signed heads: its transactions.

use async_trait::async_trait;
use tg_provenance::Ended;
use tg_storage::StorageError;

use super::{SqliteLedger, heads};
use crate::store::ends::{HeadKey, HeadStore, LastHeads, SignedHead};
use crate::store::whose::IsOver;

#[async_trait]
impl HeadStore for SqliteLedger {
    async fn ended(
        &self,
        workspace: &str,
        day: &str,
        after: i64,
        most: usize,
    ) -> Result<Vec<Ended>, StorageError> {
        let (workspace, day) = (workspace.to_owned(), day.to_owned());
        let read = self
            .db
            .read(move |conn| heads::ended(conn, &workspace, &day, after, most));
        read.await
    }

    async fn heads(&self, workspace: &str, day: &str) -> Result<LastHeads, StorageError> {
        let (workspace, day) = (workspace.to_owned(), day.to_owned());
        let read = self
            .db
            .read(move |conn| heads::last(conn, &workspace, &day));
        read.await
    }

    async fn keep_head(
        &self,
        workspace: &str,
        is_over: &IsOver,
        head: &SignedHead,
    ) -> Result<bool, StorageError> {
        let (workspace, is_over, head) = (workspace.to_owned(), is_over.clone(), head.clone());
        let write = self.db.write(move |tx| match is_over.holds() {
            true => Ok(false),
            false => heads::keep(tx, &workspace, &head),
        });
        write.await
    }

    async fn head_key(&self, new: Vec<u8>) -> Result<Vec<u8>, StorageError> {
        self.db.write(move |tx| heads::key(tx, &new)).await
    }

    async fn rotate_head_key(
        &self,
        old: Vec<u8>,
        verifies: String,
        new: Vec<u8>,
    ) -> Result<bool, StorageError> {
        let rotated = self
            .db
            .write(move |tx| heads::rotate_key(tx, &old, &verifies, &new));
        rotated.await
    }

    async fn head_keys_before(&self) -> Result<Vec<HeadKey>, StorageError> {
        self.db.read(heads::keys_before).await
    }

    async fn revoke_head_key(&self, pem: String, from: String) -> Result<bool, StorageError> {
        let revoked = self.db.write(move |tx| heads::revoke_key(tx, &pem, &from));
        revoked.await
    }
}
