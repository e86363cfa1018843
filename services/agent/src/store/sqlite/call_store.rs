//! The ledger as it keeps several calls of a step: its transactions.

use async_trait::async_trait;
use tg_storage::StorageError;

use super::{SqliteLedger, calls, steps};
use crate::engine::decision::Observation;
use crate::store::calls::{CallAt, CallStore};
use crate::store::whose::RunKey;

#[async_trait]
impl CallStore for SqliteLedger {
    async fn observe_call(
        &self,
        run: &RunKey,
        at: CallAt,
        observation: &Observation,
        now_ms: i64,
    ) -> Result<bool, StorageError> {
        let (RunKey { run, is_over }, text) = (run.clone(), steps::write_json(observation)?);
        let write = self.db.write(move |tx| {
            if is_over.holds() {
                return Ok(false);
            }
            calls::observe(tx, &run, at, &text, now_ms)?;
            Ok(true)
        });
        write.await
    }

    async fn observed_calls(
        &self,
        run: &str,
        step: u32,
    ) -> Result<Vec<(u32, Observation)>, StorageError> {
        let run = run.to_owned();
        self.db.read(move |conn| calls::of(conn, &run, step)).await
    }
}
