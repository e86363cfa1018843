//! The end of a run that is stopped with the best that it has.

use tg_clients::traces::Text;
use tg_provenance::Reason;
use tg_schemas::msg::AgentResponse;

use super::execution::StepExecution;
use super::titles;
use crate::engine::chunks::{self, Spent};
use crate::engine::decision::{Decision, Observation, Usage};
use crate::engine::guards::ladder;
use crate::engine::trace::{Entries, Left, Stopped, Stored};
use crate::error::Stop;
use crate::store::CallKind;

impl StepExecution {
    /// Most steps that the run may take: as its question says, else as the settings do.
    pub(super) fn most_steps(&self) -> usize {
        let usual = i64::from(self.agent.options.max_iterations);
        let own = Some(self.run.max_iterations).filter(|own| *own > 0);
        usize::try_from(own.unwrap_or(usual)).unwrap_or(usize::MAX)
    }

    /// What the run used up to its end in this step.
    pub(super) fn total(&self, decision: Option<&Decision>, seen: Option<&Observation>) -> Usage {
        let mut total = self.used_before();
        let used = [decision.map(|one| &one.usage), seen.map(|one| &one.usage)];
        used.into_iter().flatten().for_each(|used| total.add(used));
        if decision.is_none() {
            total.add(&self.asks.total);
        }
        total
    }

    pub(super) fn spent<'a>(&self, total: &'a Usage) -> Spent<'a> {
        Spent {
            total,
            rate: self.agent.options.usd_eur_rate,
        }
    }

    /// Ends the run, before or after a choice, or after what came of it. As with an answer, nothing but a fault of ours can
    /// turn it.
    pub(super) async fn stopped(
        &mut self,
        decision: Option<&Decision>,
        seen: Option<&Observation>,
        (reason, why): (Reason, &str),
    ) -> Result<(), Stop> {
        self.recorded().await?;
        if decision.is_none() && self.asks.models == 0 {
            self.free(CallKind::Model).await?;
        }
        self.keep_notes().await?;
        self.send_unsent().await;
        let action = decision.map(Decision::action_name).unwrap_or_default();
        let newest = seen.filter(|seen| seen.error.is_none());
        let text = ladder::answer(why, &self.run, newest.map(|seen| (&*action, &*seen.text)));
        let left = |stored| Left {
            decision,
            seen,
            ending: None,
            stopped: Some(Stopped {
                reason,
                why,
                text: &text,
                stored,
            }),
        };
        let shown = self.promised(&left(self.traces.has_library()));
        // A call that was made was shown with what it returned.
        let known = match seen {
            Some(_) => shown.len().saturating_sub(1),
            None => 0,
        };
        let mut end: Vec<AgentResponse> = Vec::new();
        if let (Some(decision), None, true) = (decision, seen, self.phase.is_react()) {
            end.extend(chunks::actions(&self.id, self.step, decision));
        }
        end.extend(shown.iter().skip(known).map(chunks::explain));
        let thought = self.reflected(decision);
        let unanswered = Left {
            decision,
            seen,
            ..Left::default()
        };
        let [thought, observed] = self.texts(&thought, &unanswered);
        let answer = Text {
            id: self.id.answer_document(),
            title: titles::answer(&self.run.question),
            text: &text,
        };
        let texts = [thought, observed, answer];
        let entries = |[thought, text, answer]: [bool; 3]| {
            self.entries().of(&left(answer), Stored { thought, text })
        };
        let stored = self.traces.store(texts, entries).await;
        stored.map_err(Stop::Error)?;
        self.earlier_steps().await;
        let total = self.total(decision, seen);
        let window = match (decision, seen) {
            (Some(decision), Some(seen)) => self.window_after(decision, seen),
            (Some(decision), None) => self.window_with(decision, &self.limits()),
            (None, _) => self.window(),
        };
        let last = {
            let spent = self.spent(&total);
            chunks::stopped(&self.id, reason, &text, spent, window.into_records())
        };
        end.push(last);
        self.send_if_wanted(end).await;
        let head = Entries::head(&shown);
        if self.relay.is_some() {
            self.went = Some(self.broken(decision, seen, &text, &head));
        }
        self.over(reason.as_str(), &head).await
    }
}
