//! The state of a step's stream: who reads it, and who may join the run.

use std::sync::Arc;

use super::transcript::Transcript;
use crate::store::KnownRun;

/// The state of a step's stream.
#[derive(Default)]
pub(super) struct Telling {
    /// Number of the next part.
    pub(super) at: u64,
    pub(super) transcript: Option<Arc<Transcript>>,
    /// The caller of the run, where the run goes on without them for a limited time.
    pub(super) waits: Option<KnownRun>,
    /// Parts that were noted before this process took the step up: the number of the step's first one, and that of the first one
    /// that the asker lacks.
    pub(super) lacked: Option<(u64, u64)>,
}

impl Telling {
    /// From this number on.
    pub(super) fn from(at: u64, lacked: Option<(u64, u64)>) -> Self {
        Self {
            at,
            lacked,
            ..Self::default()
        }
    }

    /// Whether somebody may join the run.
    pub(super) fn is_kept(&self) -> bool {
        self.transcript.is_some()
    }
}
