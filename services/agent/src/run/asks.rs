//! How often models were asked in a step, and what that took.

use crate::engine::decision::Usage;
use crate::store::Decided;

/// How often models were asked in a step. Each time is reserved by itself; who takes the step up again counts from the
/// beginning, so that nothing is reserved or counted twice.
#[derive(Debug, Default)]
pub(super) struct Asks {
    pub(super) models: u32,
    pub(super) summaries: u32,
    /// What the last time took that is not counted.
    pub(super) last: Usage,
    /// What all of them took.
    pub(super) total: Usage,
    /// From which on several calls of tools are not made, and why.
    pub(super) refused: Option<(u32, String)>,
    /// What was said of the tool that was chosen when the decision was committed, until it is about to be called.
    pub(super) reserved: Option<Decided>,
    /// The step before reserved the first time, and not for long.
    pub(super) ahead: bool,
}

impl Asks {
    /// What a call took.
    pub(super) fn took(&mut self, used: &Usage) {
        self.last.add(used);
        self.total.add(used);
    }
}
