//! Makes what the model is shown of a run fit what it reads: first by shortening what tools returned, then by a summary of the
//! earlier steps, at last without them. The steps themselves stay with the run and in its trace.

use std::time::Duration;

use serde_json::Value;
use tg_compaction::{
    Asked, Failure, MODEL_TYPE, NOTE, RECOVERIES, Summariser, Summary, Tier, is_overflow, said,
    summarise, window,
};
use tg_mesh::tg_bus::pause::after;
use tg_mesh::{Cx, warn_of};
use tg_schemas::msg::AgentRun;
use tg_schemas::{Error, ErrorCode};

use super::execution::StepExecution;
use super::hearing::Unheard;
use crate::engine::compacting::{
    Compacting, MERGE, SUMMARISE, is_too_full, older, shortened, shown, size,
};
use crate::engine::decision::{Compacted, Usage};
use crate::engine::guards::budget::tokens as guessed;
use crate::engine::prompt::Terms;
use crate::error::Stop;

/// Config type and key of what a workspace says of its own.
pub(super) const OWN: (&str, &str) = ("agent", "compaction");
/// Between two questions for the same summary: doubling from the first up to the second.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));
/// Tokens that a model reads at least that is asked at all.
const LEAST: u64 = 16_000;

/// What the model is shown of a run in a step.
pub(super) struct View {
    /// `None`: the run as it is.
    run: Option<AgentRun>,
    pub(super) compacted: Option<Compacted>,
    /// How often the model said that it was shown too much, in this step and those before.
    recoveries: i64,
}

/// With what a workspace says of its own.
pub(super) fn as_said(cx: &Cx, usual: Compacting, row: Option<&str>) -> Compacting {
    let Some(row) = row else {
        return usual;
    };
    usual.with(row).unwrap_or_else(|fault| {
        warn_of!(cx, fault, "earlier steps are summed up as everywhere");
        usual
    })
}

/// Whether an error says that the request is longer than the model can read.
pub(super) fn is_too_long(error: &Error) -> bool {
    !matches!(error.code(), ErrorCode::Cancelled | ErrorCode::Timeout)
        && is_overflow(&error.message)
}

impl StepExecution {
    fn compacting(&self) -> Compacting {
        let row = self.row(OWN.0, OWN.1);
        as_said(&self.cx, self.agent.options.compacting(), row.as_deref())
    }

    /// Tokens that the model reads which answered last; before the first answer, the one that the question names.
    fn model_window(&self) -> u64 {
        let named = self.run.settings.as_ref().map(|one| one.model.as_str());
        let answered = Some(self.run.model.as_str()).filter(|model| !model.is_empty());
        let row = match answered.or(named).unwrap_or_default() {
            "" => None,
            model => self.row(MODEL_TYPE, model),
        };
        let of_model = row.and_then(|row| said(&row).ok());
        window(of_model, None, Some(self.agent.options.context_window))
    }

    /// Nobody waits any more, or there is no time left.
    fn is_late(&self) -> bool {
        self.cx.cancel.is_cancelled() || self.cx.deadline.passed()
    }

    /// The run as the model is shown it.
    pub(super) async fn view(&mut self) -> Result<View, Stop> {
        let (how, window) = (self.compacting(), self.model_window());
        let mut view = View {
            run: None,
            compacted: None,
            recoveries: self.run.recoveries,
        };
        if !how.enabled || !is_too_full(&self.run, window) {
            return Ok(view);
        }
        let short = shortened(&self.run, how.keep);
        if is_too_full(&short, window) {
            self.compact(&mut view, how, window).await?;
        } else {
            view.run = Some(short);
        }
        Ok(view)
    }

    /// The model says that what it is shown is too much. Whether there is less to be shown: a run sums up so often for that, is then
    /// asked the question alone once, and fails the next time.
    pub(super) async fn recover(&mut self, view: &mut View) -> Result<bool, Stop> {
        let before = size(view.of(&self.run));
        let most = i64::from(RECOVERIES);
        if view.recoveries > most {
            return Ok(false);
        }
        view.recoveries += 1;
        if view.recoveries <= most {
            // It reads less than it was shown, whatever is said of it.
            let window = self.model_window().min(before.max(LEAST));
            if self.compact(view, self.compacting(), window).await? {
                return Ok(true);
            }
        }
        let run = view.of(&self.run);
        let nothing = shown(run).is_empty() && run.summary.is_empty();
        if nothing {
            return Ok(false);
        }
        let all = Summary {
            text: String::new(),
            tier: Tier::HardClear,
        };
        let steps = run.history.len();
        view.put(&self.run, all, (steps, Usage::default(), 0));
        Ok(true)
    }

    /// Puts a summary in place of the earlier steps. Whether there were any.
    async fn compact(
        &mut self,
        view: &mut View,
        how: Compacting,
        window: u64,
    ) -> Result<bool, Stop> {
        let Some((rows, steps)) = older(view.of(&self.run), how.keep) else {
            return Ok(false);
        };
        let mut by = Asker {
            step: self,
            usage: Usage::default(),
            calls: 0,
        };
        let summary = match summarise(&rows, window, how.mask, &mut by).await {
            Ok(summary) => summary,
            Err(Failure::TooSmall) => Summary {
                text: String::new(),
                tier: Tier::HardClear,
            },
            Err(Failure::Stopped(Stop::Spent(_))) => Summary {
                text: NOTE.to_owned(),
                tier: Tier::Note,
            },
            Err(Failure::Stopped(stop)) => return Err(stop),
        };
        let (usage, calls) = (by.usage, by.calls);
        view.put(&self.run, summary, (steps, usage, calls));
        let run = view.of(&self.run);
        if size(run) > window && !run.summary.is_empty() {
            let none = Summary {
                text: String::new(),
                tier: Tier::HardClear,
            };
            view.put(&self.run, none, (steps, Usage::default(), 0));
        }
        if let Some(compacted) = &view.compacted {
            let (tier, steps) = (compacted.tier.as_str(), compacted.steps);
            metrics::counter!("tg_agent_compactions_total", "tier" => tier).increment(1);
            let (run, before, after) = (self.run.run.as_str(), compacted.before, compacted.after);
            tracing::info!(
                run,
                tier,
                steps,
                before,
                after,
                "earlier steps were summed up"
            );
        }
        Ok(true)
    }
}

impl View {
    /// The run as the model is shown it, of which this is the whole.
    pub(super) fn of<'a>(&'a self, whole: &'a AgentRun) -> &'a AgentRun {
        self.run.as_ref().unwrap_or(whole)
    }

    /// Shows a summary instead of the first steps of a run, which are so many.
    fn put(
        &mut self,
        whole: &AgentRun,
        summary: Summary,
        (steps, mut usage, mut calls): (usize, Usage, u64),
    ) {
        let mut before = size(self.of(whole));
        if let Some(earlier) = self.compacted.take() {
            usage.add(&earlier.usage);
            calls += earlier.calls;
            before = earlier.before;
        }
        let mut compacted = Compacted {
            tier: summary.tier,
            text: summary.text,
            steps: i64::try_from(steps).unwrap_or(i64::MAX),
            before,
            after: 0,
            usage,
            calls,
            recoveries: self.recoveries,
            given: Vec::new(),
        };
        let run = self.run.get_or_insert_with(|| whole.clone());
        compacted.apply(run);
        compacted.after = size(run);
        self.compacted = Some(compacted);
    }
}

/// The prompt that asks for a summary, and its variables.
pub(super) fn prompted(asked: Asked<'_>) -> (&'static str, Terms) {
    let (prompt, terms) = match asked {
        Asked::Chunk { text, mask } => (
            SUMMARISE,
            vec![("dialog", Value::from(text)), ("mask", mask.into())],
        ),
        Asked::Merge { text } => (MERGE, vec![("summaries", text.into())]),
    };
    let terms = terms.into_iter();
    let terms = terms.map(|(name, value)| (name.to_owned(), value.to_string()));
    (prompt, terms.collect())
}

/// How many tokens these are, about.
pub(super) fn tokens_of(terms: &Terms) -> u64 {
    let bytes = terms.values().map(String::len).sum();
    u64::try_from(guessed(bytes)).unwrap_or(0)
}

/// Waits before the model is asked again for the same summary, unless there is no time left: what is asked next says so.
pub(super) async fn rested(cx: &Cx, attempts: u32) {
    tokio::select! {
        () = tokio::time::sleep(after(PAUSES.0, attempts.saturating_sub(1), PAUSES.1)) => {}
        () = cx.cancel.cancelled() => {}
        () = cx.deadline.reached() => {}
    }
}

/// Has the flow's model sum up.
struct Asker<'a> {
    step: &'a mut StepExecution,
    usage: Usage,
    calls: u64,
}

impl Summariser for Asker<'_> {
    type Stop = Stop;

    async fn ask(&mut self, asked: Asked<'_>) -> Result<Option<String>, Stop> {
        let (prompt, terms) = prompted(asked);
        let size = tokens_of(&terms);
        self.step.sum_up_again(size).await?;
        self.calls += 1;
        let reply = self.step.hear_whole(prompt, &terms).await;
        if !matches!(reply, Err(Unheard::Stop(_))) {
            self.step.settle_summary().await?;
        }
        match reply {
            Ok(whole) => {
                self.usage.add(&whole.usage);
                Ok(whole.usable.then_some(whole.text))
            }
            Err(Unheard::Stop(stop)) => Err(stop),
            Err(Unheard::Failed(error)) if self.step.is_late() => Err(self.step.ending(&error)),
            Err(Unheard::Failed(error)) => {
                tracing::debug!(%error, "earlier steps were not summed up");
                Ok(None)
            }
        }
    }

    async fn pause(&mut self, attempts: u32) -> Result<(), Stop> {
        rested(&self.step.cx, attempts).await;
        Ok(())
    }
}
