//! What whoever starts the service decides: room for dead letters, and how long things may take.

use std::path::PathBuf;
use std::time::Duration;

use tg_storage::Durability;

tg_settings::options! {
    /// Options of the flow service.
    pub struct Options {
        /// Dead letters of one workspace at most; a flow may have half of them.
        dead_letter_records: u64 = 500_000, Whole(2..=1 << 30);
        /// Dead letters of one workspace at most, in MiB; a flow may have half of it.
        dead_letter_mb: u64 = 2048, Whole(1..=1 << 20);
        /// Flows of one workspace at most: each has queues and readers of its own in every process.
        flows_per_workspace: usize = 10_000, Whole(1..=1 << 20);
    }
    given {
        /// Directory of the service's file.
        data_dir: PathBuf,
        /// What a committed write survives.
        durability: Durability,
        /// How long things may take.
        waits: Waits,
    }
}

impl Options {
    /// Room for dead letters.
    pub(crate) fn quotas(&self) -> Quotas {
        Quotas::of_workspaces(Quota {
            records: self.dead_letter_records,
            bytes: self.dead_letter_mb << 20,
        })
    }
}

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waits {
    /// start-flow returns when the processors are attached, or after this.
    pub attach: Duration,
    /// stop-flow with `wait` lets processors finish at most this long.
    pub drain: Duration,
    /// stop-flow waits this long for processors to leave. Longer than they wait for their handlers.
    pub detach: Duration,
    /// A bus that is away is waited for this long.
    pub patience: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            attach: Duration::from_secs(5),
            drain: Duration::from_secs(30),
            detach: Duration::from_secs(15),
            patience: Duration::from_secs(30),
        }
    }
}

/// How many dead letters a workspace, or a flow, may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Records.
    pub records: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
}

/// Room for dead letters: retries, parked and stale records, dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotas {
    /// Of each workspace.
    pub workspace: Quota,
    /// Of each flow.
    pub flow: Quota,
}

impl Quotas {
    /// So much for each workspace, and half of it for each flow.
    pub fn of_workspaces(workspace: Quota) -> Self {
        let flow = Quota {
            records: workspace.records / 2,
            bytes: workspace.bytes / 2,
        };
        Self { workspace, flow }
    }
}
