//! The ledger as it keeps summaries that were made again: its transactions.

use async_trait::async_trait;
use tg_storage::StorageError;

use super::{SqliteLedger, summaries};
use crate::store::summaries::{Remade, SummaryStore};
use crate::store::whose::RunKey;

#[async_trait]
impl SummaryStore for SqliteLedger {
    async fn remade(&self, run: &str, step: u32) -> Result<Vec<Remade>, StorageError> {
        let run = run.to_owned();
        self.db
            .read(move |conn| summaries::of(conn, &run, step))
            .await
    }

    async fn keep_remade(
        &self,
        run: &RunKey,
        step: u32,
        remade: &Remade,
    ) -> Result<Option<Remade>, StorageError> {
        let (RunKey { run, is_over }, remade) = (run.clone(), remade.clone());
        let write = self.db.write(move |tx| match is_over.holds() {
            true => Ok(None),
            false => summaries::keep(tx, (&run, step), remade),
        });
        write.await
    }

    async fn traced_in(&self, workspace: &str, run: &str) -> Result<Option<String>, StorageError> {
        let (workspace, run) = (workspace.to_owned(), run.to_owned());
        self.db
            .read(move |conn| summaries::traced_in(conn, &workspace, &run))
            .await
    }
}
