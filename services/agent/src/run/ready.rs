//! A call of a tool when everything before it is done.

use tg_schemas::msg::PollRecord;

use crate::engine::confirmation::Confirmed;
use crate::engine::decision::Observation;
use crate::engine::toolset::Tool;
use crate::kinds::Arguments;

/// A call before it is made.
pub(super) enum Prepared<'a> {
    /// It is not made; the model reads this instead.
    Known(Observation),
    /// It can be made.
    Ready(Ready<'a>),
}

/// What a call is made with.
pub(super) struct Ready<'a> {
    pub(super) tool: &'a Tool,
    pub(super) arguments: Arguments,
    pub(super) confirmed: Option<Confirmed>,
    pub(super) poll: Option<PollRecord>,
}

impl Ready<'_> {
    /// What it returned, with what is known of it besides.
    pub(super) fn seen(self, seen: Observation) -> Observation {
        Observation {
            confirmed: self.confirmed,
            polled: self.poll,
            ..seen
        }
    }
}
