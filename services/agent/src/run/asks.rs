//! Calls of models in a step: their number, and the tokens that they used.

use crate::engine::decision::Usage;
use crate::store::Decided;

/// Calls of models in a step. Each call has a reservation of its own. A process that takes the step up again counts from the
/// beginning, so no call is reserved or counted twice.
#[derive(Debug, Default)]
pub(super) struct Asks {
    pub(super) models: u32,
    pub(super) summaries: u32,
    /// Use of the last call, until it is counted.
    pub(super) last: Usage,
    /// Use of all calls.
    pub(super) total: Usage,
    /// The first of several calls of tools that is not made, and why; neither are those after it.
    pub(super) refused: Option<(u32, String)>,
    /// Whether the budgets had room for the chosen tool when the decision was committed. Taken when the tool is about to be called.
    pub(super) reserved: Option<Decided>,
    /// The step before reserved the first call, for a short time only.
    pub(super) ahead: bool,
}

impl Asks {
    /// Adds the use of a call.
    pub(super) fn took(&mut self, used: &Usage) {
        self.last.add(used);
        self.total.add(used);
    }
}
