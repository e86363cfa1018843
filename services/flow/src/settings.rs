//! Bounds of the flow service.

use std::time::Duration;

/// How long things may take and how much is kept.
#[derive(Debug, Clone, Copy)]
pub struct FlowSettings {
    /// start-flow returns when the processors are attached, or after this.
    pub attach: Duration,
    /// stop-flow with `wait` lets processors finish at most this long.
    pub drain: Duration,
    /// stop-flow waits this long for processors to leave. Longer than they wait for their handlers.
    pub detach: Duration,
    /// A bus that is away is waited for this long.
    pub patience: Duration,
    /// Put-aside records kept at most; more wait on the bus.
    pub quotas: Quotas,
}

/// How many put-aside records a workspace, or a flow, may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Records.
    pub records: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
}

/// Room for put-aside records: retries, parked and stale records, dead letters.
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

impl Default for Quotas {
    fn default() -> Self {
        Self::of_workspaces(Quota {
            records: 500_000,
            bytes: 2 << 30,
        })
    }
}

impl Default for FlowSettings {
    fn default() -> Self {
        Self {
            attach: Duration::from_secs(5),
            drain: Duration::from_secs(30),
            detach: Duration::from_secs(15),
            patience: Duration::from_secs(30),
            quotas: Quotas::default(),
        }
    }
}
