//! The patterns that runs can follow. Another one is one module and one line of the table: questions, the router and errors read the
//! names from here. Its steps are the phases that there are; a phase of another kind is a way to ask the model of its own.

mod planned;
mod react;
mod supervised;

use tg_schemas::msg::AgentRun;

use super::pattern::Pattern;
use super::phase::{PLAN, Phase, REACT, SUPERVISOR};
use planned::Planned;
use react::React;
use supervised::Supervised;

/// By the name that a run states. The first is that of a run that states none.
static PATTERNS: [(&str, &dyn Pattern); 3] =
    [(REACT, &React), (PLAN, &Planned), (SUPERVISOR, &Supervised)];

/// The names of all patterns.
pub fn names() -> Vec<&'static str> {
    PATTERNS.iter().map(|(name, _)| *name).collect()
}

/// Whether there is a pattern of this name.
pub fn is_known(name: &str) -> bool {
    PATTERNS.iter().any(|(known, _)| *known == name)
}

/// The pattern of a run.
pub fn of(run: &AgentRun) -> &'static dyn Pattern {
    let named = PATTERNS.iter().find(|(name, _)| *name == run.pattern);
    named.unwrap_or(&PATTERNS[0]).1
}

/// What the next step of a run is for.
pub fn next(run: &AgentRun) -> Phase {
    of(run).next(run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::router::{Route, Router};

    /// Whatever stands in the table may be asked for and chosen, and has its steps.
    #[test]
    fn the_table_has_what_a_router_can_choose() {
        assert_eq!(names(), [REACT, PLAN, SUPERVISOR]);
        for name in names() {
            let rows = [(name, "{}")];
            let router = Router::read(&rows, &[]);
            assert!(router.faults.is_empty(), "{:?}", router.faults);
            assert_eq!(router.pattern("", None), name);
            let kept = Route::by_name(name).pattern;
            assert_eq!(kept, if name == REACT { "" } else { name });
        }
        assert!(!is_known("nonsense") && Route::by_name("nonsense").pattern.is_empty());
        for (name, phase) in [
            ("", Phase::React),
            ("nonsense", Phase::React),
            (REACT, Phase::React),
            (PLAN, Phase::Plan),
            (SUPERVISOR, Phase::Decompose),
        ] {
            let run = AgentRun {
                pattern: name.to_owned(),
                ..AgentRun::default()
            };
            assert_eq!(next(&run), phase, "{name}");
        }
    }
}
