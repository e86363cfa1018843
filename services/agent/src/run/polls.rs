//! A tool that is configured as a poll is not used again sooner than makes sense: its last result stands until then. What is
//! known of polls travels with the run, so whoever takes it up goes on with it.

use tg_mesh::clock;
use tg_schemas::msg::PollRecord;

use super::execution::StepExecution;
use crate::engine::decision::{Decision, Observation};
use crate::engine::exchange::Entry;
use crate::engine::polls;
use crate::engine::toolset::Tool;
use crate::error::Stop;

impl StepExecution {
    /// A poll that is about to be made; `None`: the tool is none. Replayed, it is asked when it was.
    pub(super) fn poll(
        &mut self,
        tool: &Tool,
        (nth, decision): (u32, &Decision),
    ) -> Result<Option<PollRecord>, Stop> {
        if !tool.backs_off || !self.phase.is_react() {
            return Ok(None);
        }
        let now = match &self.playback {
            Some(playback) => playback.polled(((&self.run.run, self.step), nth))?,
            None => u64::try_from(clock::millis()).unwrap_or(0),
        };
        self.note(&Entry::Poll(now).of_call(nth))?;
        let (name, arguments) = decision.action();
        Ok(Some(polls::asked(&name, &arguments, now)))
    }

    /// The last result of a poll, if it is too soon to make it again.
    pub(super) fn held(&self, asked: &PollRecord) -> Option<Observation> {
        let known = polls::held(&self.run.polls, asked)?;
        let now = u64::try_from(asked.at).unwrap_or(0);
        metrics::counter!("tg_agent_poll_held_total").increment(1);
        Some(Observation {
            text: polls::told(&known.text, polls::wait(known, now), true),
            state: self.run.state.clone(),
            polled: Some(known.clone()),
            ..Observation::default()
        })
    }

    /// What a poll returned is known from here on, unless it failed.
    pub(super) fn polled(&self, seen: &mut Observation) {
        let Some(asked) = seen.polled.take_if(|poll| polls::is_open(poll)) else {
            return;
        };
        if seen.error.is_some() {
            return;
        }
        let poll = polls::returned(&self.run.polls, asked, &seen.text, seen.duration_ms);
        let seconds = polls::wait(&poll, u64::try_from(poll.at).unwrap_or(0));
        let text = match seen.text.is_empty() {
            true => "(nothing)",
            false => &seen.text,
        };
        seen.text = polls::told(text, seconds, false);
        seen.polled = Some(poll);
    }
}
