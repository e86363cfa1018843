//! What a step knows of who may join its run.

use std::sync::Arc;

use super::transcript::Transcript;
use crate::store::KnownRun;

/// What a step knows of who may join its run.
#[derive(Default)]
pub(super) struct Telling {
    /// Number of the next part.
    pub(super) at: u64,
    pub(super) transcript: Option<Arc<Transcript>>,
    /// Who asked for the run, where it goes on without them for some time only.
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
