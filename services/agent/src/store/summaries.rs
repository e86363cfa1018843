//! Summaries that were made again of what a run summed up: they stand beside the run's rows, which stay as they are.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tg_compaction::Tier;
use tg_storage::StorageError;

use super::whose::RunKey;
use crate::engine::decision::Usage;

/// Summaries of one step that are kept; more are not made.
pub const MOST_REMADE: usize = 16;

/// A summary that was made again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remade {
    /// Id of the question that asked for it.
    pub request: String,
    /// The model that wrote it.
    pub model: String,
    /// How good it is.
    pub tier: Tier,
    /// The text.
    pub text: String,
    /// Tokens, about, of question and steps before, and with it.
    pub tokens: (u64, u64),
    /// What it took.
    pub usage: Usage,
    /// When it was made, milliseconds since the Unix epoch.
    pub at_ms: i64,
}

/// The ledger, where it keeps such summaries.
///
/// # Errors
/// Every method: when the store failed; nothing is changed then.
#[async_trait]
pub trait SummaryStore: Send + Sync {
    /// Those of a step, in the order in which they were made.
    async fn remade(&self, run: &str, step: u32) -> Result<Vec<Remade>, StorageError>;

    /// Keeps one; the first of a request stands and is returned. `None`: its workspace has ended, or as many are kept as may be.
    async fn keep_remade(
        &self,
        run: &RunKey,
        step: u32,
        remade: &Remade,
    ) -> Result<Option<Remade>, StorageError>;

    /// The collection that has the trace of a run which is over. `None`: its end was not noted.
    async fn traced_in(&self, workspace: &str, run: &str) -> Result<Option<String>, StorageError>;
}
