//! The prompts by which a question is split among subagents and answered from what they found; and a subagent's run.

use serde_json::{Value, json};
use tg_schemas::msg::{AgentRun, PlanStep};

use super::bounds::{MAX_SHOWN, shorten};
use super::decision::Finding;
use super::phase::REACT;
use super::plan::{COMPLETED, FAILED};
use super::prompt::{Terms, framing, terms_of};
use super::toolset::Tool;

/// Prompt that splits a question.
pub const DECOMPOSE: &str = "supervisor-decompose";
/// Prompt that answers from what was found.
pub const SYNTHESISE: &str = "supervisor-synthesise";
/// What a run says before it answers.
pub const SYNTHESISING: &str = "Synthesising final answer from sub-agent results";

/// What a run says of its goals.
pub fn decomposed(goals: &[String]) -> String {
    let (count, listed) = (goals.len(), Value::from(goals));
    format!("Decomposed into {count} sub-goals: {listed}")
}

/// Variables of [`DECOMPOSE`].
pub fn decompose(run: &AgentRun, most: usize, tools: &[&Tool], additional: Option<&str>) -> Terms {
    let tools = tools.iter();
    let tools = tools.map(|tool| json!({"name": tool.name, "description": tool.described(run)}));
    terms_of([
        ("question", run.question.as_str().into()),
        ("framing", framing(run, additional).join("\n\n").into()),
        ("max_subagents", most.into()),
        ("tools", tools.collect()),
    ])
}

/// Variables of [`SYNTHESISE`].
pub fn synthesise(run: &AgentRun, additional: Option<&str>) -> Terms {
    let results = run.plan.iter();
    let results = results.map(|found| json!({"goal": found.goal, "result": found.result}));
    terms_of([
        ("question", run.question.as_str().into()),
        ("framing", framing(run, additional).join("\n\n").into()),
        ("results", results.collect()),
    ])
}

/// The run of a subagent before its first step. What it may use is what its parent may.
pub fn subagent(parent: &AgentRun, goal: &str, run: String, started_at: String) -> AgentRun {
    AgentRun {
        run,
        step: 1,
        question: goal.to_owned(),
        group: parent.group.clone(),
        state: parent.state.clone(),
        collection: parent.collection.clone(),
        collections: parent.collections.clone(),
        loop_detection: parent.loop_detection.clone(),
        framing: parent.framing.clone(),
        started_at,
        depth: parent.depth,
        pattern: REACT.to_owned(),
        task_type: parent.task_type.clone(),
        parent: parent.run.clone(),
        conversation: parent.conversation.clone(),
        account: parent.account.clone(),
        root: match parent.root.as_str() {
            "" => parent.run.clone(),
            root => root.to_owned(),
        },
        agent: parent.agent.clone(),
        delegate_depth: parent.delegate_depth,
        roles: parent.roles.clone(),
        tools: parent.tools.clone(),
        grant: parent.grant.clone(),
        record: parent.record,
        settings: parent.settings.clone(),
        top_k: parent.top_k,
        caller_depth: parent.caller_depth,
        ..AgentRun::default()
    }
}

/// Id of the run that began all of which a run is a part: its own, unless it is a subagent's.
pub fn whole(run: &AgentRun) -> &str {
    let ids = [&run.root, &run.parent, &run.run];
    ids.into_iter()
        .find(|id| !id.is_empty())
        .map_or("", String::as_str)
}

/// What was found, as the run keeps it: in the order of the goals and not of their ends, so that the prompt is always the same.
pub fn found(findings: &[Finding]) -> Vec<PlanStep> {
    let mut findings: Vec<&Finding> = findings.iter().collect();
    findings.sort_by_key(|finding| finding.subagent);
    findings.into_iter().map(step_of).collect()
}

fn step_of(finding: &Finding) -> PlanStep {
    let (status, result) = match &finding.error {
        None => (COMPLETED, finding.text.clone()),
        Some(error) => (FAILED, format!("Error: {error}")),
    };
    PlanStep {
        goal: finding.goal.clone(),
        status: status.to_owned(),
        result: shorten(&result, MAX_SHOWN),
        ..PlanStep::default()
    }
}
