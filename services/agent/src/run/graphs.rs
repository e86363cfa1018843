//! Graphs of tasks that are not waited for. The call answers at once; each task is a run of its own, and what comes of all of them is
//! announced as that of one task. A process that ends has none of them go on elsewhere.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tg_mesh::{Cx, Deadline, clock};
use tg_schemas::msg::AgentRun;
use tokio::time::Instant;

use super::agent::Agent;
use super::announce::report;
use super::delegate::OF_A_GRAPH;
use super::execution::StepExecution;
use super::giving::Said;
use super::program;
use super::tasking::{Given, STOP_TIMEOUT, Work, begun, fault, place, started, subtask, walked};
use crate::engine::decision::Finding;
use crate::engine::delegating::graph::{Graph, Node};
use crate::engine::delegating::{Roster, as_defined, session};
use crate::engine::toolset::Tool;
use crate::error::AgentError;
use crate::kinds::Arguments;

/// What kind of task it is.
const DISPATCH: &str = "dispatch";
/// Digits of the task's id in the names of the sessions in which it is done.
const NAMED: usize = 16;

impl StepExecution {
    /// Has several agents do what depends on each other, on their own.
    pub(super) async fn give_graph(
        &self,
        tool: &Tool,
        among: (&Roster, usize),
        arguments: &Arguments,
        reports: bool,
    ) -> Said {
        let graph = match self.graph(among, arguments) {
            Ok(graph) => graph,
            Err(fault) => return Ok(Err(fault)),
        };
        let told = graph.begun();
        let mut row = self.task_row(DISPATCH, (tool.name.clone(), String::new()), &told);
        let task: String = row.id.chars().take(NAMED).collect();
        row.session = format!("orchestrator:{task}");
        let given = Given {
            row,
            run: AgentRun::clone(&self.run),
            name: tool.name.clone(),
            program: false,
            session: None,
            turn: String::new(),
            parent: session::of(&self.run).to_owned(),
        };
        let task = self.begin_task(given, by_agents(graph, reports)).await?;
        Ok(task.map(|task| {
            format!(
                "{told}. They work on it as task {task}. What comes of it is announced; do not wait for it."
            )
        }))
    }
}

/// Agents do what the graph says.
fn by_agents(graph: Graph, reports: bool) -> Work {
    Box::new(move |agent, cx, given| {
        Box::pin(async move { work(&agent, cx, &given, (graph, reports)).await })
    })
}

/// The results of all tasks, once each is over; where none succeeded, why.
async fn work(
    agent: &Arc<Agent>,
    mut cx: Cx,
    given: &Arc<Given>,
    (mut graph, reports): (Graph, bool),
) -> Result<String, String> {
    started(agent, &given.row).await?;
    let stop = cx.cancel.child_token();
    cx.cancel = stop.clone();
    cx.deadline = Deadline::after(Duration::from_secs(agent.options.task_seconds));
    let parent = given.told();
    if reports {
        report(&cx, parent, &graph.begun()).await;
    }
    let mut going = FuturesUnordered::new();
    while !graph.is_over() && !cx.cancel.is_cancelled() {
        while let Some((at, goal)) = graph.start() {
            let Some(node) = graph.node(at).cloned() else {
                continue;
            };
            going.push(one(
                agent.clone(),
                cx.clone(),
                given.clone(),
                (at, node, goal),
            ));
        }
        let Some((at, finding)) = going.next().await else {
            break;
        };
        if let Some(told) = graph.found(at, &finding)
            && reports
            && agent.tasks.may_report(parent.workspace, parent.session)
        {
            report(&cx, parent, &told).await;
        }
    }
    // Those that are not waited for end, too.
    stop.cancel();
    let ended = async { while going.next().await.is_some() {} };
    let _ = tokio::time::timeout(STOP_TIMEOUT, ended).await;
    match graph.fault() {
        Some(fault) => Err(fault),
        None => Ok(graph.told()),
    }
}

/// What came of a task of the graph, by its place.
async fn one(
    agent: Arc<Agent>,
    cx: Cx,
    given: Arc<Given>,
    (at, node, goal): (usize, Node, String),
) -> (usize, Finding) {
    let began = Instant::now();
    let done = done(&agent, cx, &given, (at, &node, &goal)).await;
    let mut finding = done.unwrap_or_else(|error| Finding {
        goal,
        error: Some(error),
        ..Finding::default()
    });
    finding.took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    (at, finding)
}

/// Has the agent of a task do it, as soon as there is a place. The graph's time bounds the wait, too.
async fn done(
    agent: &Arc<Agent>,
    mut cx: Cx,
    given: &Given,
    (at, node, goal): (usize, &Node, &str),
) -> Result<Finding, String> {
    let _place = tokio::select! {
        place = place(agent, &cx) => place?,
        () = cx.deadline.reached() => return Err(AgentError::Timeout.to_string()),
    };
    let limit = node.timeout_seconds;
    let end = limit.map(|seconds| Deadline::after(Duration::from_secs(seconds)));
    cx.deadline = end.map_or(cx.deadline, |end| end.min(cx.deadline));
    let session = format!("{}:{}", given.row.session, node.id);
    let run = subtask(&given.run, goal, session, Vec::new());
    let run = as_defined(
        run,
        &node.agent,
        &node.definition,
        OF_A_GRAPH,
        String::new(),
    );
    let name = format!("{}/{at}", given.row.id);
    let found = match node.definition.program {
        true => by_program(agent, &cx, (node, name), run).await,
        false => match begun(agent, &cx, (&given.row, name.as_str()), run).await {
            Ok(run) => walked(agent, cx, run).await,
            Err(stop) => Err(fault(&stop)),
        },
    };
    let failed = !matches!(&found, Ok(finding) if finding.error.is_none());
    match (limit, end) {
        (Some(seconds), Some(end)) if failed && end.passed() => Ok(Finding {
            goal: goal.to_owned(),
            error: Some(format!("timeout after {seconds}s")),
            late: true,
            ..Finding::default()
        }),
        _ => found,
    }
}

/// Has a program do a task: that is no run, and no trace.
async fn by_program(
    agent: &Arc<Agent>,
    cx: &Cx,
    (node, name): (&Node, String),
    run: AgentRun,
) -> Result<Finding, String> {
    let (session, message) = (run.session.clone(), run.question.clone());
    let asked = program::Given {
        run: AgentRun {
            run: name,
            started_at: clock::rfc3339(),
            ..run
        },
        agent: &node.agent,
        session: &session,
        lasts: false,
        message: &message,
    };
    let answer = program::ask(agent, cx, &asked).await;
    let reply = answer.map_err(|stop| fault(&stop))??;
    Ok(Finding {
        text: reply.text,
        usage: reply.usage,
        ..Finding::default()
    })
}
