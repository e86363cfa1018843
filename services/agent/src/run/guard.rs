//! The findings of the guards of the loop in a step. Each is committed with the decision or the observation that it is about, so
//! each process that takes the step up has the same.

use tg_schemas::msg::AgentRun;

use super::execution::StepExecution;
use crate::engine::bounds::{MAX_SHOWN, shorten};
use crate::engine::decision::{Decision, Observation, Taken};
use crate::engine::guards::ladder::{self, Ladder};
use crate::engine::guards::thresholds::Overrides;
use crate::engine::guards::{Climbed, Rung, Thresholds, Window, calls};
use crate::engine::polls;
use crate::engine::toolset::{self, ToolSet};

/// Config type and key of what a workspace says of its own.
const OWN: (&str, &str) = ("agent", "loop_detection");

/// The guard that has a call not made.
pub(super) fn blocks(decision: &Decision) -> Option<&Climbed> {
    let guard = decision.guard.as_ref();
    guard.filter(|guard| guard.rung == Rung::Block)
}

/// What the model is shown of what a tool returned, so many bytes at most: also of a long text the warning at its end.
pub(super) fn shown(seen: &Observation, most: usize) -> String {
    let shown = shorten(&seen.text, most);
    match &seen.guard {
        Some(guard) if guard.rung == Rung::Tell && shown.len() < seen.text.len() => {
            shown + &ladder::notice(guard)
        }
        _ => shown,
    }
}

fn count(guard: &Climbed, rung: Rung) {
    let detector = guard.detector.as_str();
    metrics::counter!("tg_agent_guard_total", "detector" => detector, "rung" => rung.as_str())
        .increment(1);
}

impl StepExecution {
    /// When there is too much of a loop, as the agent says, else the workspace.
    pub(super) fn limits(&self) -> Thresholds {
        let mut limits = self.agent.options.loops();
        let workspace = self.cx.workspace();
        let row = self.row(OWN.0, OWN.1);
        let own = Some(self.run.loop_detection.as_str()).filter(|text| !text.is_empty());
        for said in row.as_deref().into_iter().chain(own) {
            match Overrides::read(said) {
                Ok(own) => limits = limits.with(&own),
                Err(fault) => {
                    tracing::warn!(workspace, fault, "what finds loops is as everywhere");
                }
            }
        }
        limits
    }

    /// The last calls of the session before this step.
    pub(super) fn window(&self) -> Window {
        Window::of(&self.run, self.limits().window())
    }

    /// The same with the calls of this step, if it makes any.
    pub(super) fn window_with(&self, decision: &Decision, limits: &Thresholds) -> Window {
        let window = Window::of(&self.run, limits.window());
        let calling = |window: Window, one: &Decision| match &one.taken {
            Taken::Action { name, .. } => window.calling(name, &one.action().1, limits.window()),
            _ => window,
        };
        let apart = decision.apart();
        apart.iter().fold(calling(window, decision), calling)
    }

    /// The same with what they returned.
    pub(super) fn window_after(&self, decision: &Decision, seen: &Observation) -> Window {
        let window = self.window_with(decision, &self.limits());
        match &decision.taken {
            Taken::Action { .. } => window.returned(&seen.result_hash),
            Taken::Actions { .. } => {
                let hashes = seen.calls.iter().map(|seen| seen.result_hash.as_str());
                window.all_returned(hashes.collect())
            }
            _ => window,
        }
    }

    fn polls(&self, tools: &ToolSet, decision: &Decision) -> bool {
        let available = tools.available(&self.run);
        toolset::find(&available, &decision.action_name()).is_some_and(|tool| tool.poll)
    }

    /// Checks calls that are about to be made. If a guard stops the run, none of them is made.
    pub(super) fn guard_decision(&self, tools: &ToolSet, decision: &mut Decision) {
        if !self.phase.is_react() {
            // A plan has an end of its own.
            return;
        }
        let limits = self.limits();
        let mut window = Window::of(&self.run, limits.window());
        let mut told = self.run.told.clone();
        let mut guards = Vec::new();
        let apart = decision.apart();
        let calls: &[Decision] = match apart.is_empty() {
            true => std::slice::from_ref(&*decision),
            false => &apart,
        };
        for one in calls {
            let Taken::Action { name, .. } = &one.taken else {
                return;
            };
            window = window.calling(name, &one.action().1, limits.window());
            let ladder = Ladder {
                limits: &limits,
                told: &told,
                poll: self.polls(tools, one),
            };
            let guard = ladder.before(&window);
            if let Some(guard) = &guard {
                self.warn(guard);
            }
            told = ladder::told(told, [guard.as_ref(), None]);
            guards.push(guard);
        }
        let Taken::Actions { calls } = &mut decision.taken else {
            decision.guard = guards.pop().flatten();
            return;
        };
        let stops = guards.iter().flatten().find(|guard| guard.stops());
        decision.guard = stops.cloned();
        for (call, guard) in calls.iter_mut().zip(guards) {
            call.guard = guard;
        }
    }

    fn warn(&self, guard: &Climbed) {
        let (run, detector) = (self.run.run.as_str(), guard.detector.as_str());
        tracing::warn!(
            run,
            detector,
            rung = guard.rung.as_str(),
            tool = guard.tool,
            count = guard.count,
            "a run loops"
        );
        if guard.rung == Rung::Stop {
            count(guard, Rung::Block);
        }
        count(guard, guard.rung);
    }

    /// Checks what a call returned. The model reads a warning behind the result.
    pub(super) fn guard_result(
        &self,
        tools: &ToolSet,
        decision: &Decision,
        seen: &mut Observation,
    ) {
        if !self.phase.is_react() || !matches!(decision.taken, Taken::Action { .. }) {
            return;
        }
        let limits = self.limits();
        let window = self.window_with(decision, &limits);
        self.judge(tools, decision, (window, &self.run.told), seen);
    }

    /// The same of each of several, which returned in this order.
    pub(super) fn guard_results(
        &self,
        tools: &ToolSet,
        apart: &[Decision],
        seen: &mut [Observation],
    ) {
        if !self.phase.is_react() {
            return;
        }
        let limits = self.limits();
        let mut window = Window::of(&self.run, limits.window());
        let mut told = self.run.told.clone();
        for (one, seen) in apart.iter().zip(seen) {
            let (name, arguments) = one.action();
            window = window.calling(&name, &arguments, limits.window());
            self.judge(tools, one, (window.clone(), &told), seen);
            window = window.returned(&seen.result_hash);
            told = ladder::told(told, [None, seen.guard.as_ref()]);
        }
    }

    /// `window`: with the call at its end.
    fn judge(
        &self,
        tools: &ToolSet,
        decision: &Decision,
        (window, told): (Window, &[String]),
        seen: &mut Observation,
    ) {
        if blocks(decision).is_some() {
            // Nothing new was learnt.
            seen.result_hash = window.known_result().unwrap_or_default().to_owned();
            return;
        }
        // How long to wait is not what a poll returned.
        seen.result_hash = match &seen.polled {
            Some(poll) => poll.r.clone(),
            None => calls::result_hash(&shorten(&seen.text, MAX_SHOWN)),
        };
        let limits = self.limits();
        let ladder = Ladder {
            limits: &limits,
            told,
            poll: self.polls(tools, decision),
        };
        let warned = decision.guard.as_ref();
        let Some(guard) = ladder.after(&window.returned(&seen.result_hash), warned) else {
            return;
        };
        if guard.rung == Rung::Tell {
            seen.text.push_str(&ladder::notice(&guard));
            if warned.is_none_or(|warned| warned.key != guard.key) {
                count(&guard, Rung::Warn);
            }
        }
        count(&guard, guard.rung);
        seen.guard = Some(guard);
    }

    /// What the next step knows of the loop.
    pub(super) fn remember(&self, next: &mut AgentRun, decision: &Decision, seen: &Observation) {
        next.loop_window = self.window_after(decision, seen).into_records();
        let apart = decision.apart();
        let calls = apart.iter().zip(&seen.calls);
        for (decision, seen) in calls.chain([(decision, seen)]) {
            if let Some(poll) = &seen.polled {
                next.polls = polls::remember(std::mem::take(&mut next.polls), poll);
            }
            let given = [decision.guard.as_ref(), seen.guard.as_ref()];
            next.told = ladder::told(std::mem::take(&mut next.told), given);
        }
    }
}
