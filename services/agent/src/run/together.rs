//! Several tools that the model chose at once are used side by side. Each is prepared in its turn as a single one is, made under a key of
//! its own, and committed as it returns; who takes the step up again makes none of those that have returned. What they returned is
//! read in the order in which they were chosen.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tg_clients::traces::Text;
use tg_mesh::clock;
use tg_schemas::msg::{AgentRunCall, Citation};
use tokio::time::Instant;

use super::execution::{StepExecution, there};
use super::guard;
use super::ready::{Prepared, Ready};
use crate::engine::bounds::{MAX_OBSERVATION, MAX_SHOWN};
use crate::engine::chunks;
use crate::engine::citing;
use crate::engine::decision::{Decision, Observation, Usage};
use crate::engine::phase::Phase;
use crate::engine::toolset::ToolSet;
use crate::error::Stop;

/// Several calls as the next steps know them.
pub(super) fn calls(decision: &Decision) -> Vec<AgentRunCall> {
    let apart = decision.apart();
    let calls = apart.iter().map(|one| {
        let (action, arguments) = one.action();
        AgentRunCall {
            action: action.into_owned(),
            arguments,
        }
    });
    calls.collect()
}

/// What the model is shown of what a step saw: of each of several calls as much.
pub(super) fn shown(decision: &Decision, seen: &Observation) -> String {
    let apart = decision.apart();
    if apart.is_empty() {
        return guard::shown(seen, MAX_SHOWN);
    }
    let most = MAX_SHOWN / apart.len();
    let texts = seen.calls.iter().map(|seen| guard::shown(seen, most));
    joined(&apart, texts)
}

fn joined(apart: &[Decision], texts: impl Iterator<Item = String>) -> String {
    let texts = (1..).zip(apart).zip(texts);
    let texts =
        texts.map(|((number, one), text)| format!("[{number}] {}:\n{text}", one.action_name()));
    texts.collect::<Vec<_>>().join("\n\n")
}

impl StepExecution {
    /// Uses several tools side by side.
    pub(super) async fn side_by_side(
        &mut self,
        tools: &ToolSet,
        decision: &Decision,
        repeated: bool,
    ) -> Result<Observation, Stop> {
        let apart = decision.apart();
        let most = MAX_OBSERVATION / apart.len().max(1);
        let mut seen = self.returned_before().await?;
        let mut ready = Vec::new();
        for (nth, one) in (0..).zip(&apart) {
            if let Some(known) = seen.get(&nth) {
                if let Some(asked) = &known.confirmed {
                    let at = (self.step, nth);
                    let chunk = chunks::confirm(&self.id, at, one, asked.until_ms);
                    self.send_all(vec![chunk]).await?;
                }
                continue;
            }
            let started = Instant::now();
            match self.prepare_one(tools, (nth, one), repeated).await? {
                Prepared::Ready(made) => ready.push(((nth, one), made)),
                Prepared::Known(known) => {
                    let known = self.came(nth, known, started, most)?;
                    self.commit(nth, &known).await?;
                    seen.insert(nth, known);
                }
            }
        }
        self.make_all(ready, &mut seen, most).await?;
        Ok(self
            .put_side_by_side(tools, &apart, seen.into_values().collect())
            .await)
    }

    /// What came of calls before this process took the step.
    async fn returned_before(&self) -> Result<BTreeMap<u32, Observation>, Stop> {
        if self.playback.is_some() {
            return Ok(BTreeMap::new());
        }
        let ledger = self.ledger().await?;
        let known = ledger.observed_calls(&self.run.run, self.step).await?;
        Ok(known.into_iter().collect())
    }

    async fn prepare_one<'a>(
        &mut self,
        tools: &'a ToolSet,
        (nth, one): (u32, &Decision),
        repeated: bool,
    ) -> Result<Prepared<'a>, Stop> {
        if let Some((_, why)) = self.asks.refused.as_ref().filter(|(from, _)| nth >= *from) {
            let told = format!("this call was not made. {why}");
            return Ok(Prepared::Known(Observation {
                // A step of a plan is not taken by that.
                put_off: matches!(self.phase, Phase::Execute(_)),
                ..Observation::failed(told)
            }));
        }
        if self.gives_work(tools, one) {
            let told = format!(
                "'{}' has other agents do something: it is used alone, in a step of its own",
                one.action_name()
            );
            return Ok(Prepared::Known(Observation::failed(told)));
        }
        self.prepare(tools, (nth, one), repeated).await
    }

    /// Makes all that are ready at the same time; each is committed as it returns.
    async fn make_all(
        &mut self,
        ready: Vec<((u32, &Decision), Ready<'_>)>,
        seen: &mut BTreeMap<u32, Observation>,
        most: usize,
    ) -> Result<(), Stop> {
        let known = Arc::new(self.run.citations.clone());
        let mut going = FuturesUnordered::new();
        for ((nth, one), ready) in ready {
            let mut call = self.calling((nth, one), ready.tool, &known);
            going.push(async move {
                let started = Instant::now();
                let made = call.make(ready.tool, ready.arguments.clone()).await;
                (nth, ready, call, started, made)
            });
        }
        while let Some((nth, ready, mut call, started, made)) = going.next().await {
            self.take_notes(&mut call)?;
            let one = self.came(nth, ready.seen(made?), started, most)?;
            self.commit(nth, &one).await?;
            seen.insert(nth, one);
        }
        Ok(())
    }

    async fn commit(&mut self, nth: u32, seen: &Observation) -> Result<(), Stop> {
        if self.playback.is_some() {
            return Ok(());
        }
        self.keep_notes().await?;
        let ledger = self.ledger().await?;
        let (key, at) = (self.key(), (self.step, nth));
        there(ledger.observe_call(&key, at, seen, clock::millis()).await?).map_err(Stop::from)
    }

    /// What they are together, of which the texts of all but the first go to the library by themselves.
    async fn put_side_by_side(
        &self,
        tools: &ToolSet,
        apart: &[Decision],
        mut calls: Vec<Observation>,
    ) -> Observation {
        let mut cited = self.run.citations.clone();
        for seen in &mut calls {
            if seen.citations.is_empty() {
                continue;
            }
            // Each was numbered as if it was the only one.
            let own: Vec<Citation> = self
                .run
                .citations
                .iter()
                .chain(&seen.citations)
                .cloned()
                .collect();
            (seen.text, seen.citations) = citing::of_run(&seen.text, &own, &cited);
            cited.extend(seen.citations.iter().cloned());
        }
        self.guard_results(tools, apart, &mut calls);
        for ((nth, one), seen) in (0..).zip(apart).zip(&calls).skip(1) {
            if seen.put_off {
                continue;
            }
            let (id, title) = self.named(nth, one.place);
            let text = Text {
                id,
                title,
                text: &seen.text,
            };
            self.traces.save(&text).await;
        }
        let mut all = Observation {
            text: joined(apart, calls.iter().map(|seen| seen.text.clone())),
            state: self.run.state.clone(),
            citations: cited.split_off(self.run.citations.len()),
            ..Observation::default()
        };
        for seen in &calls {
            all.called |= seen.called;
            all.duration_ms = all.duration_ms.max(seen.duration_ms);
            // Time passes once for all.
            all.usage.add(&Usage {
                duration_ms: 0,
                ..seen.usage.clone()
            });
            if seen.error.is_none() && seen.state != self.run.state {
                all.state.clone_from(&seen.state);
            }
            let stops = seen.guard.as_ref().filter(|guard| guard.stops());
            all.guard = all.guard.take().or_else(|| stops.cloned());
        }
        if calls.iter().all(|seen| seen.error.is_some()) {
            all.error = Some("none of the calls succeeded".to_owned());
        }
        all.calls = calls;
        all
    }
}
