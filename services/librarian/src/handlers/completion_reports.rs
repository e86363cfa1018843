//! Hears what became of the records of runs.

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{ConsumeError, Cx, LeasedStore, RecordConsumer, clock};
use tg_schemas::Error;
use tg_schemas::msg::RunTally;

use crate::error::wire;
use crate::librarian::Librarian;

/// Takes completion reports in.
pub(crate) struct CompletionReports(pub(crate) Arc<LeasedStore<Librarian>>);

#[async_trait]
impl RecordConsumer<RunTally> for CompletionReports {
    async fn consume(&self, _: Cx, told: RunTally) -> Result<(), ConsumeError> {
        let outcome = async {
            let librarian = self.0.get().await?;
            librarian.hear(told).await
        };
        // Whatever stands in the way, it comes again: entries count once.
        outcome
            .await
            .map_err(|error: Error| ConsumeError::Retry { error, after: None })
    }
}

impl Librarian {
    /// Enters what was told; runs that are over end.
    pub(crate) async fn hear(&self, told: RunTally) -> Result<(), Error> {
        let changed = self.rows().hear(told.entries, clock::millis());
        let changed = changed.await.map_err(wire)?;
        if changed {
            self.wake.notify_one();
        }
        Ok(())
    }
}
