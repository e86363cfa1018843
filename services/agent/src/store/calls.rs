//! What came of each of the calls that a step makes side by side, until the step has seen all of them.

use async_trait::async_trait;
use tg_storage::StorageError;

use super::whose::RunKey;
use crate::engine::decision::Observation;

/// A call of a run: its step, and which of the calls of that it is, from 0.
pub type CallAt = (u32, u32);

/// Calls, where they last.
///
/// # Errors
/// Every method: when the store failed; nothing is changed then.
#[async_trait]
pub trait CallStore: Send + Sync {
    /// Commits what came of a call; the first observation stands. `false`: the workspace has ended. It goes with what the step saw.
    async fn observe_call(
        &self,
        run: &RunKey,
        at: CallAt,
        observation: &Observation,
        now_ms: i64,
    ) -> Result<bool, StorageError>;

    /// What came of the calls of a step so far, by their number.
    async fn observed_calls(
        &self,
        run: &str,
        step: u32,
    ) -> Result<Vec<(u32, Observation)>, StorageError>;
}
