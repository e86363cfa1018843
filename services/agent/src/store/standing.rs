//! Where runs stand that are under way.

use crate::engine::decision::Decision;

/// Where a run, or one of its subagents, stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunProgress {
    /// Id of the run.
    pub run: String,
    /// The step that is under way; of a run that is over, its last.
    pub step: u32,
    /// Since when, in milliseconds since 1970: as exactly as its rows say.
    pub since_ms: i64,
    /// What was decided of it and is being done; `None`: nothing yet.
    pub decision: Option<Decision>,
    /// What its user is asked, by its name, and until when.
    pub asked: Option<(String, i64)>,
    /// It is over.
    pub over: bool,
    /// Why it ended, where it did so without an answer.
    pub ended: Option<String>,
}
