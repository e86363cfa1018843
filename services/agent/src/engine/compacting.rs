//! What the model is shown of a run's earlier steps: all of them, or a summary instead of the oldest. The steps stay with the
//! run and in its trace; how they are summed up is `tg_compaction`'s. Pure.

use serde::Deserialize;
use tg_compaction::{Role, Row, is_full, pruned, split_point, surely_fit, tokens};
use tg_schemas::msg::{AgentRun, AgentRunStep};

/// Prompt that sums up steps.
pub const SUMMARISE: &str = "compact-summarise";
/// Prompt that makes one of several summaries.
pub const MERGE: &str = "compact-merge";

/// How much of a run may be compacted, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacting {
    /// Whether it is, before the model says that there is too much.
    pub enabled: bool,
    /// Whether a summary is made without what tools returned.
    pub mask: bool,
    /// Turns of the model that stay as they are.
    pub keep: usize,
}

/// What a workspace says of its own, in its configuration of type `agent`, key `compaction`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Overrides {
    enabled: Option<bool>,
    observation_mask: Option<bool>,
    keep_last_n: Option<usize>,
}

impl Compacting {
    /// With what a row of configuration says.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn with(self, row: &str) -> Result<Self, String> {
        let own: Overrides =
            serde_json::from_slice(row.as_bytes()).map_err(|error| error.to_string())?;
        Ok(Self {
            enabled: own.enabled.unwrap_or(self.enabled),
            mask: own.observation_mask.unwrap_or(self.mask),
            keep: own.keep_last_n.unwrap_or(self.keep),
        })
    }
}

fn summarised(run: &AgentRun) -> usize {
    let steps = usize::try_from(run.summarised).unwrap_or(0);
    steps.min(run.history.len())
}

/// Steps that the model is shown as they are.
pub fn shown(run: &AgentRun) -> &[AgentRunStep] {
    &run.history[summarised(run)..]
}

/// Steps that came with the question and that a summary of so many steps is the first to stand for.
pub fn given(run: &AgentRun, steps: i64) -> &[AgentRunStep] {
    let prior = usize::try_from(run.prior.min(steps)).unwrap_or(0);
    let (from, to) = (summarised(run), prior.min(run.history.len()));
    &run.history[from.min(to)..to]
}

/// Steps as rows of a dialog.
pub fn dialog<'a>(steps: impl Iterator<Item = &'a AgentRunStep>) -> Vec<Row> {
    let rows = steps.flat_map(|step| {
        [
            Row::call(step.thought.as_str(), &step.action, &step.arguments),
            Row::result(step.observation.as_str(), &step.action),
        ]
    });
    rows.collect()
}

/// What the model is shown of the run's steps, as rows of a dialog: the summary first, if there is one.
fn rows(run: &AgentRun) -> Vec<Row> {
    let summary = Some(&run.summary).filter(|summary| !summary.is_empty());
    let summary = summary.map(|summary| Row::text(Role::Assistant, summary.as_str()));
    let steps = dialog(shown(run).iter());
    summary.into_iter().chain(steps).collect()
}

/// With the question.
fn all(run: &AgentRun) -> Vec<Row> {
    let mut all = vec![Row::text(Role::User, run.question.as_str())];
    all.extend(rows(run));
    all
}

/// Whether a run takes more of a window of so many tokens than it may.
pub fn is_too_full(run: &AgentRun, window: u64) -> bool {
    let steps = shown(run);
    let bytes = |step: &AgentRunStep| {
        step.thought.len() + step.action.len() + step.arguments.len() + step.observation.len()
    };
    let bytes: usize = steps.iter().map(bytes).sum();
    let bytes = run.question.len() + run.summary.len() + bytes;
    // Few runs are near: the texts of the others are not copied to be counted.
    !surely_fit(2 + 2 * steps.len(), bytes, window) && is_full(&all(run), window)
}

/// Tokens of question and steps, about.
pub fn size(run: &AgentRun) -> u64 {
    tokens(&all(run))
}

/// The run with what tools returned shortened in the steps before those that stay.
pub fn shortened(run: &AgentRun, keep: usize) -> AgentRun {
    let mut run = run.clone();
    let from = summarised(&run);
    let to = older(&run, keep).map_or(from, |(_, to)| to);
    for step in &mut run.history[from..to] {
        if let Some(short) = pruned(&step.observation) {
            step.observation = short;
        }
    }
    run
}

/// The rows that are summed up next, and how many steps the summary will stand for. `None`: there are none.
pub fn older(run: &AgentRun, keep: usize) -> Option<(Vec<Row>, usize)> {
    let mut rows = rows(run);
    let split = split_point(&rows, keep)?;
    rows.truncate(split);
    let steps = rows.iter().filter(|row| !row.calls.is_empty()).count();
    (steps > 0).then(|| (rows, summarised(run) + steps))
}

#[cfg(test)]
mod tests {
    use tg_compaction::Tier;

    use super::*;
    use crate::engine::decision::{Compacted, Usage};

    fn run(steps: usize, observation: &str) -> AgentRun {
        let step = |n: usize| AgentRunStep {
            thought: format!("thought {n}"),
            action: "search".to_owned(),
            arguments: "{}".to_owned(),
            observation: observation.to_owned(),
            ..AgentRunStep::default()
        };
        AgentRun {
            question: "why?".to_owned(),
            history: (1..=steps).map(step).collect(),
            ..AgentRun::default()
        }
    }

    /// 99
    #[test]
    fn the_last_turns_stay_with_what_they_rest_on() {
        for few in 0..=3 {
            assert_eq!(older(&run(few, "found"), 2), None, "{few}");
        }
        let (rows, steps) = older(&run(5, "found"), 2).unwrap();
        assert_eq!((rows.len(), steps), (4, 2));
    }

    #[test]
    fn a_summary_is_summed_up_with_the_steps_after_it_and_never_alone() {
        let mut run = run(5, "found");
        let first = Compacted {
            tier: Tier::Full,
            text: "They searched.".to_owned(),
            steps: 2,
            before: 0,
            after: 0,
            usage: Usage::default(),
            calls: 1,
            recoveries: 0,
            given: Vec::new(),
        };
        first.apply(&mut run);
        assert_eq!(shown(&run).len(), 3);
        assert_eq!(older(&run, 2), None);
        run.history.push(AgentRunStep::default());
        run.history.push(AgentRunStep::default());
        let (rows, steps) = older(&run, 2).unwrap();
        assert_eq!(
            (rows[0].content.as_str(), rows.len(), steps),
            ("They searched.", 5, 4)
        );
        run.summarised = 400;
        assert!(shown(&run).is_empty());
    }

    #[test]
    fn long_results_before_those_that_stay_are_shortened() {
        let run = run(5, &"x".repeat(4_000));
        let short = shortened(&run, 2);
        let lengths: Vec<usize> = short
            .history
            .iter()
            .map(|step| step.observation.len())
            .collect();
        assert_eq!(lengths, [187, 187, 4_000, 4_000, 4_000]);
        assert!(is_too_full(&run, 6_000) && !is_too_full(&short, 6_000));
    }

    #[test]
    fn a_workspace_says_how() {
        let usual = Compacting {
            enabled: true,
            mask: true,
            keep: 2,
        };
        let own = usual.with(r#"{"observationMask": false}"#).unwrap();
        assert_eq!(
            own,
            Compacting {
                mask: false,
                ..usual
            }
        );
        assert!(usual.with(r#"{"enabled": "no"}"#).is_err());
    }
}
