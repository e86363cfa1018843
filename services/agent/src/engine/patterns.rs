//! The patterns that runs can follow. Another one is one module and one line of the table.

mod planned;
mod react;
mod supervised;

use tg_schemas::msg::AgentRun;

use super::pattern::Pattern;
use super::phase::{PLAN, Phase, SUPERVISOR};
use super::router::REACT;
use planned::Planned;
use react::React;
use supervised::Supervised;

/// By the name that a run states. The first is that of a run that states none.
static PATTERNS: [(&str, &dyn Pattern); 3] =
    [(REACT, &React), (PLAN, &Planned), (SUPERVISOR, &Supervised)];

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
    use crate::engine::router::BUILT;

    #[test]
    fn the_table_has_what_a_router_can_choose() {
        let names: Vec<&str> = PATTERNS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, BUILT);
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
