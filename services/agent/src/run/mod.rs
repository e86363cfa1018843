//! Runs on the bus: a question begins a run, a step record takes one step, a ledger row comes before
//! whatever follows from it.
//!
//! [`request`] begins runs · [`step`] receives step records · [`walk`] takes one step · [`think`] asks the
//! model · [`act`] uses the tool · [`keep`] stores texts and trace entries · [`desk`] is what this process
//! knows of steps under way.

mod act;
mod desk;
mod keep;
mod request;
mod step;
mod think;
mod tools;
mod walk;

use std::sync::Arc;

use tg_schemas::Error;

use crate::engine::decision::Ending;
use crate::settings::AgentSettings;
use crate::store::Ledger;

pub use request::Questions;
pub use step::Steps;
pub use tools::WATCHED;

/// What the two handlers of the processor share.
pub struct Agent {
    settings: AgentSettings,
    ledger: Ledger,
    desk: Arc<desk::Desk>,
    tools: tools::Tools,
}

impl Agent {
    /// With a ledger of its own.
    pub fn new(settings: AgentSettings, ledger: Ledger) -> Arc<Self> {
        Arc::new(Self {
            settings,
            ledger,
            desk: Arc::default(),
            tools: tools::Tools::default(),
        })
    }
}

/// Why a step does not lead to the next.
#[derive(Debug)]
enum Stop {
    /// The run ends here, without an answer.
    End(Ending),
    /// Something of ours failed: the step is tried again later and continues from its rows.
    Fault(Error),
}

impl From<tg_storage::StorageError> for Stop {
    fn from(error: tg_storage::StorageError) -> Self {
        tracing::warn!(%error, "the agent's ledger failed");
        Self::Fault(error.into())
    }
}

/// Milliseconds since the Unix epoch, as the ledger counts.
fn now_ms() -> i64 {
    chrono::Utc::now().timestamp_millis()
}

#[cfg(test)]
mod tests;
