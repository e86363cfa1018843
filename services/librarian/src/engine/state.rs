//! Where a run is in its life.

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Waits for another run of the same document and collection.
    Queued,
    /// Decided; its first records may or may not be on their way.
    Starting,
    /// Its records are on their way.
    Running,
    /// Nothing moves any more and something failed. A record that is tried again makes it run again.
    Failed,
    /// Every reader confirmed every record.
    Complete,
    /// Its flow was stopped or its collection deleted.
    Stopped,
    /// Handed to processors that tell nothing.
    Submitted,
    /// Taken back; what was on its way still arrives.
    Cancelled,
    /// What it was made for is gone: nothing that is told of it counts any more.
    Dropped,
}

impl State {
    const ALL: [(Self, &'static str); 9] = [
        (Self::Queued, "queued"),
        (Self::Starting, "starting"),
        (Self::Running, "running"),
        (Self::Failed, "failed"),
        (Self::Complete, "complete"),
        (Self::Stopped, "stopped"),
        (Self::Submitted, "submitted"),
        (Self::Cancelled, "cancelled"),
        (Self::Dropped, "dropped"),
    ];

    /// As it is stored.
    pub(crate) fn as_str(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(state, _)| *state == self)
            .map_or("", |(_, text)| text)
    }

    /// Reads what is stored.
    pub(crate) fn parse(text: &str) -> Self {
        Self::ALL
            .iter()
            .find(|(_, known)| *known == text)
            .map_or(Self::Stopped, |(state, _)| *state)
    }

    /// As clients see it.
    pub(crate) fn status(self) -> &'static str {
        match self {
            Self::Queued | Self::Starting | Self::Running => "processing",
            Self::Cancelled | Self::Dropped => "stopped",
            other => other.as_str(),
        }
    }

    /// Whether what is told of it counts.
    pub(crate) fn hears(self) -> bool {
        !matches!(
            self,
            Self::Queued | Self::Complete | Self::Submitted | Self::Dropped
        )
    }

    /// Whether it has not come to its end.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::Starting | Self::Running)
    }

    /// Whether its cutters are to go on making children.
    pub(crate) fn makes(self) -> bool {
        matches!(self, Self::Starting | Self::Running | Self::Failed)
    }
}

/// Records of a run, each once per reader.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Known so far.
    pub(crate) expected: i64,
    /// Of these: handled for good, well or not.
    pub(crate) settled: i64,
    /// Of these: not well.
    pub(crate) failed: i64,
}

impl Counts {
    /// Whether nothing is on its way.
    pub(crate) fn is_still(&self) -> bool {
        self.settled >= self.expected
    }

    /// What is said of a run in which something failed.
    pub(crate) fn some_failed(&self) -> String {
        let (failed, all) = (self.failed, self.expected);
        format!("{failed} of {all} records failed")
    }
}

/// What is said of a run that was cancelled with records under way.
pub(crate) fn cancelled(left: i64) -> String {
    format!("cancelled: {left} records known to be under way still arrive; what is stored stays")
}

/// What is to be done with a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing.
    Wait,
    /// What earlier runs made and this one did not is to be retracted first.
    Sweep,
    /// What this run made anew is there, all of it or but for what failed: what stood in its place is to be retracted.
    Supersede(Swept),
    /// It is over.
    End(State),
}

/// What was retracted so far as part of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Swept {
    /// Nothing.
    #[default]
    Nothing,
    /// What is gone from the document.
    Gone,
    /// What was superseded where nothing failed, too.
    Partly,
    /// All that was superseded.
    Superseded,
}

impl Swept {
    /// As it is stored.
    pub(crate) fn number(self) -> i64 {
        self as i64
    }

    /// Reads what is stored.
    pub(crate) fn of(number: i64) -> Self {
        match number {
            0 => Self::Nothing,
            1 => Self::Gone,
            2 => Self::Partly,
            _ => Self::Superseded,
        }
    }
}

/// Decides. `cut_failed` says whether a failure was met where documents are cut: then nobody knows what
/// is gone, and nothing is swept. What failed was not made anew: what was there stays until it is.
pub(crate) fn next(state: State, counts: Counts, swept: Swept, cut_failed: bool) -> Next {
    let revives = matches!(state, State::Running | State::Failed | State::Stopped);
    if !revives || !counts.is_still() {
        return Next::Wait;
    }
    if state == State::Stopped && (counts.failed > 0 || counts.expected == 0) {
        return Next::Wait;
    }
    if swept < Swept::Gone && !cut_failed {
        return Next::Sweep;
    }
    let all = match counts.failed {
        0 => Swept::Superseded,
        _ => Swept::Partly,
    };
    if swept >= Swept::Gone && swept < all {
        return Next::Supersede(all);
    }
    Next::End(if counts.failed > 0 {
        State::Failed
    } else {
        State::Complete
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_when_nothing_is_on_its_way() {
        let counts = |expected, settled, failed| Counts {
            expected,
            settled,
            failed,
        };
        let (running, all) = (State::Running, Swept::Superseded);
        assert_eq!(next(running, counts(5, 4, 0), all, false), Next::Wait);
        assert_eq!(
            next(running, counts(5, 5, 0), Swept::Nothing, false),
            Next::Sweep
        );
        assert_eq!(
            next(running, counts(5, 5, 0), Swept::Gone, false),
            Next::Supersede(all)
        );
        let done = Next::End(State::Complete);
        assert_eq!(next(running, counts(5, 5, 0), all, false), done);
        let failed = Next::End(State::Failed);
        assert_eq!(next(running, counts(5, 5, 1), Swept::Nothing, true), failed);
        let partly = Next::Supersede(Swept::Partly);
        assert_eq!(next(running, counts(5, 5, 1), Swept::Gone, false), partly);
        assert_eq!(next(running, counts(5, 5, 1), Swept::Partly, false), failed);
        let rest = next(running, counts(5, 5, 0), Swept::Partly, false);
        assert_eq!(rest, Next::Supersede(all));
        assert_eq!(next(running, counts(5, 5, 1), Swept::Nothing, true), failed);
        assert_eq!(next(State::Failed, counts(5, 5, 0), all, false), done);
        // What went on to its end although the flow had gone is complete all the same.
        assert_eq!(next(State::Stopped, counts(5, 5, 0), all, false), done);
        assert_eq!(
            next(State::Stopped, counts(5, 5, 1), all, false),
            Next::Wait
        );
        assert_eq!(
            next(State::Stopped, counts(0, 0, 0), all, false),
            Next::Wait
        );
        assert_eq!(
            next(State::Cancelled, counts(5, 5, 0), all, false),
            Next::Wait
        );
        assert_eq!(
            next(State::Starting, counts(1, 1, 0), all, false),
            Next::Wait
        );
    }

    #[test]
    fn states_are_read_as_they_are_written() {
        for (state, text) in State::ALL {
            assert_eq!(State::parse(text), state);
        }
        assert_eq!(State::Queued.status(), "processing");
        assert_eq!(State::Submitted.status(), "submitted");
    }
}
