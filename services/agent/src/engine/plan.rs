//! Plans: what is read of one that a model wrote, which step comes next, and what becomes of the others.
//!
//! A step waits for those that it depends on; those that wait for nothing are taken at the same time. One that fails takes with it what depends on it, unless the plan may be
//! revised: then what is left is planned anew, behind the steps there are.

use serde_json::Value;
use tg_schemas::msg::{AgentRun, PlanStep};

use super::bounds::{MAX_SHOWN, shorten};

/// Status of a step that waits.
const PENDING: &str = "pending";
/// Status of a step that found something out.
pub const COMPLETED: &str = "completed";
/// Status of a step whose tool failed.
pub const FAILED: &str = "failed";
/// Status of a step that is not taken: what it depends on failed, or the plan was revised.
pub const SKIPPED: &str = "skipped";
/// In bytes.
const MAX_GOAL: usize = 2 << 10;
/// What is planned where the model's plan has no steps.
const DIRECTLY: &str = "answer the question directly";

/// The list in a text that a model wrote as JSON, with whatever it put around it.
fn list(text: &str) -> Option<Vec<Value>> {
    let mut found = tg_replies::candidates(text).ok()?;
    // Steps one after the other, without a list around them.
    let is_step = |value: &Value| value.get("goal").is_some();
    if found.len() > 1 && found.iter().all(is_step) {
        return Some(found);
    }
    match found.swap_remove(0) {
        Value::Array(items) => Some(items),
        // One step without a list around it, or a list under a name.
        Value::Object(map) if map.contains_key("goal") => Some(vec![Value::Object(map)]),
        Value::Object(map) => map.into_iter().find_map(|(_, value)| match value {
            Value::Array(items) => Some(items),
            _ => None,
        }),
        _ => None,
    }
}

/// Texts of a list that a model wrote: what is no text is left out, `most` are taken.
pub fn goals(text: &str, most: usize) -> Option<Vec<String>> {
    let items = list(text)?.into_iter();
    let goals = items.filter_map(|item| match item {
        Value::String(goal) => Some(shorten(goal.trim(), MAX_GOAL)),
        _ => None,
    });
    let goals = goals.filter(|goal| !goal.is_empty());
    Some(goals.take(most).collect())
}

/// The steps of a plan that a model wrote, `most` at the most. `None`: it is no list. Dependencies on what is not there,
/// on the step itself, and those that would go in a circle are left out.
pub fn read(text: &str, most: usize) -> Option<Vec<PlanStep>> {
    let mut steps: Vec<PlanStep> = list(text)?
        .into_iter()
        .filter_map(step)
        .take(most)
        .collect();
    let count = i64::try_from(steps.len()).unwrap_or(0);
    for (own, step) in (0_i64..).zip(&mut steps) {
        step.depends_on
            .retain(|other| (0..count).contains(other) && *other != own);
        step.depends_on.sort_unstable();
        step.depends_on.dedup();
    }
    if is_circular(&steps) {
        for (own, step) in (0_i64..).zip(&mut steps) {
            step.depends_on.retain(|other| *other < own);
        }
    }
    Some(steps)
}

fn step(item: Value) -> Option<PlanStep> {
    let (goal, hint, after) = match item {
        Value::String(goal) => (goal, String::new(), Vec::new()),
        Value::Object(map) => {
            let text = |name: &str| map.get(name).and_then(Value::as_str).unwrap_or("");
            let after = map.get("depends_on").and_then(Value::as_array);
            let after = after.into_iter().flatten().filter_map(Value::as_i64);
            (
                text("goal").to_owned(),
                text("tool_hint").to_owned(),
                after.collect(),
            )
        }
        _ => return None,
    };
    let goal = shorten(goal.trim(), MAX_GOAL);
    (!goal.is_empty()).then(|| PlanStep {
        goal,
        tool_hint: shorten(hint.trim(), MAX_GOAL),
        depends_on: after,
        ..PlanStep::default()
    })
}

/// Whether some step waits for itself in the end.
fn is_circular(steps: &[PlanStep]) -> bool {
    let mut done = vec![false; steps.len()];
    loop {
        let free = |at: &usize| !done[*at] && places(&steps[*at]).all(|other| done[other]);
        match (0..steps.len()).find(free) {
            Some(at) => done[at] = true,
            None => return done.contains(&false),
        }
    }
}

fn places(step: &PlanStep) -> impl Iterator<Item = usize> {
    let places = step.depends_on.iter();
    places.filter_map(|place| usize::try_from(*place).ok())
}

/// The plan where the model wrote none.
pub fn directly() -> Vec<PlanStep> {
    vec![PlanStep {
        goal: DIRECTLY.to_owned(),
        ..PlanStep::default()
    }]
}

/// Where the plan that is followed now begins among the steps of a run.
pub fn current(run: &AgentRun) -> usize {
    let from = run.revisions.last().copied().unwrap_or(0);
    usize::try_from(from).unwrap_or(0).min(run.plan.len())
}

/// The steps that wait for nothing any more, in order.
fn all_ready(plan: &[PlanStep]) -> impl Iterator<Item = usize> {
    let completed = |at: usize| plan.get(at).is_some_and(|step| step.status == COMPLETED);
    let steps = plan.iter().enumerate();
    let ready =
        steps.filter(move |(_, step)| step.status == PENDING && places(step).all(completed));
    ready.map(|(at, _)| at)
}

/// The first step that comes next.
pub fn ready(plan: &[PlanStep]) -> Option<usize> {
    all_ready(plan).next()
}

/// The steps that can be taken at the same time, `most` at the most.
pub fn together(plan: &[PlanStep], most: usize) -> Vec<usize> {
    all_ready(plan).take(most).collect()
}

/// Whether the plan that is followed now is to be revised: a step of it failed, and it may be.
pub fn is_to_be_revised(run: &AgentRun) -> bool {
    let now = &run.plan[current(run)..];
    run.revisions_left > 0 && now.iter().any(|step| step.status == FAILED)
}

/// Steps that were taken.
pub fn taken(plan: &[PlanStep]) -> usize {
    let taken = |step: &&PlanStep| step.status == COMPLETED || step.status == FAILED;
    plan.iter().filter(taken).count()
}

/// Puts a first plan, or a revision, behind the steps that there are; of those, what waits is not taken any more.
pub fn adopt(run: &mut AgentRun, steps: &[PlanStep], revisions_left: i64) {
    let from = run.plan.len();
    if from > 0 {
        for step in &mut run.plan {
            skip(step);
        }
        run.revisions.push(number(from));
    }
    run.plan.extend(steps.iter().cloned().map(|mut step| {
        for place in &mut step.depends_on {
            *place += number(from);
        }
        step
    }));
    run.revisions_left = revisions_left;
}

/// Notes what came of a step. Without a revision, what depends on one that failed is not taken.
pub fn settle(run: &mut AgentRun, at: usize, result: &str, failed: bool, may_revise: bool) {
    let Some(step) = run.plan.get_mut(at) else {
        return;
    };
    step.status = if failed { FAILED } else { COMPLETED }.to_owned();
    step.result = shorten(result, MAX_SHOWN);
    if !may_revise {
        run.revisions_left = 0;
    }
    if run.revisions_left > 0 {
        return;
    }
    loop {
        let lost = |step: &PlanStep| step.status == FAILED || step.status == SKIPPED;
        let waits_in_vain = |step: &PlanStep| {
            step.status == PENDING
                && places(step).any(|other| run.plan.get(other).is_some_and(lost))
        };
        match run.plan.iter().position(waits_in_vain) {
            Some(at) => skip(&mut run.plan[at]),
            None => return,
        }
    }
}

fn skip(step: &mut PlanStep) {
    if step.status == PENDING {
        step.status = SKIPPED.to_owned();
    }
}

fn number(place: usize) -> i64 {
    i64::try_from(place).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
