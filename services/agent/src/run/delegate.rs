//! Gives work to other agents: each is a run of its own within the step that calls it.

use std::ops::Range;
use std::time::Duration;

use tg_schemas::msg::AgentRun;

use super::execution::StepExecution;
use super::fan_in::{Task, Work};
use super::giving::{refused, wanted};
use crate::engine::decision::{Decision, Finding, Observation};
use crate::engine::delegating::graph::Graph;
use crate::engine::delegating::{self, PER_STEP, Roster, check_depth, session};
use crate::engine::toolset::Tool;
use crate::error::Stop;
use crate::kinds::{Arguments, text};

/// A graph is one hop, each of its tasks another.
pub(super) const OF_A_GRAPH: i64 = 2;

/// One agent with one task.
struct One {
    step: u32,
    task: Option<Task>,
}

impl Work for One {
    fn numbers(&self) -> Range<u32> {
        numbers(self.step)
    }

    fn next(&mut self) -> Option<Task> {
        self.task.take()
    }

    fn found(&mut self, _: &Finding) -> Option<String> {
        self.task = None;
        None
    }
}

/// Tasks of a graph.
struct Tasks {
    step: u32,
    graph: Graph,
    /// How long a task may take that names no time.
    usual: Duration,
    /// They wait for slots: those that a task calls in its turn go on in its own.
    slots: bool,
}

impl Tasks {
    /// The place in the graph of a subagent's number.
    fn place(&self, number: u32) -> usize {
        let place = number.saturating_sub(self.numbers().start);
        usize::try_from(place).unwrap_or(usize::MAX)
    }
}

impl Work for Tasks {
    fn numbers(&self) -> Range<u32> {
        numbers(self.step)
    }

    fn next(&mut self) -> Option<Task> {
        let (at, goal) = self.graph.start()?;
        let node = self.graph.node(at)?;
        Some(Task {
            number: self.numbers().start + u32::try_from(at).ok()?,
            goal,
            agent: Some((node.agent.clone(), node.definition.clone(), OF_A_GRAPH)),
            timeout: Some(node.timeout_seconds.map_or(self.usual, Duration::from_secs)),
            slot: self.slots,
            session: String::new(),
            window: Vec::new(),
        })
    }

    fn found(&mut self, finding: &Finding) -> Option<String> {
        self.graph.found(self.place(finding.subagent), finding)
    }

    fn is_over(&self) -> bool {
        self.graph.is_over()
    }
}

/// Numbers of the subagents that a step calls.
fn numbers(step: u32) -> Range<u32> {
    let first = step.saturating_mul(PER_STEP);
    first..first.saturating_add(PER_STEP)
}

impl StepExecution {
    /// Has one agent do something, and waits for its result, unless it does it on its own.
    pub(super) async fn delegate(
        &mut self,
        decision: &Decision,
        (tool, agents): (&Tool, &Roster),
        arguments: &Arguments,
    ) -> Result<Observation, Stop> {
        let most = self.agent.options.delegate_depth;
        let given = |name| text(arguments, name);
        let message = given("message");
        if !matches!(given("action"), "" | "run") {
            return self.once(tool, arguments, agents).await;
        }
        let chosen = |run: &AgentRun| {
            check_depth(run, 1, most)?;
            if message.is_empty() {
                return Err("message: is required".to_owned());
            }
            let (id, one) = agents.choose(run, given("agent_id"), message)?;
            let one = one.answered_by(given("model"))?;
            let session = session::choose(run, &id, wanted(arguments))?;
            Ok((id, one, session))
        };
        let (id, mut one, session) = match chosen(&self.run) {
            Ok(chosen) => chosen,
            Err(fault) => return Ok(refused(fault)),
        };
        if one.r#async {
            return self.once(tool, arguments, agents).await;
        }
        let lasts = session.lasts.then(|| self.session_of(&id, &session.name));
        let mut window = Vec::new();
        if let Some(session) = &lasts {
            let back = (session, &mut one);
            window = self.come_back(tool, arguments, back).await?;
        }
        let mut work = One {
            step: self.step,
            task: Some(Task {
                number: numbers(self.step).start,
                goal: message.to_owned(),
                agent: Some((id.clone(), one, 1)),
                timeout: Some(self.agent.options.tool_timeout()),
                slot: false,
                session: session.name,
                window,
            }),
        };
        let mut seen = self.fan_out(decision, &mut work).await?;
        seen.called = true;
        match seen
            .findings
            .first()
            .map(|found| delegating::told(&id, found))
        {
            Some(Ok(text)) => {
                if let Some(session) = &lasts {
                    let made = seen.findings.first().map(|found| found.window.clone());
                    self.keep_turn(session, message, (&text, made.unwrap_or_default()))
                        .await?;
                }
                seen.text = text;
            }
            Some(Err(fault)) => {
                seen.text = format!("error: {fault}");
                seen.error = Some(fault);
            }
            None => {}
        }
        Ok(seen)
    }

    /// The graph that a call has done, unless something is wrong with it.
    pub(super) fn graph(
        &self,
        (agents, concurrent): (&Roster, usize),
        arguments: &Arguments,
    ) -> Result<Graph, String> {
        check_depth(&self.run, OF_A_GRAPH, self.agent.options.delegate_depth)?;
        let written = arguments.get("task_graph").cloned().unwrap_or_default();
        let choose = |id: &str, task: &str| agents.choose(&self.run, id, task);
        let graph = Graph::read(&written, concurrent, &choose)?;
        tracing::info!(
            run = self.run.run,
            graph = graph.outline(),
            "tasks are dispatched"
        );
        Ok(graph)
    }

    /// Has several agents do what depends on each other, and waits for what there is.
    pub(super) async fn dispatch(
        &mut self,
        decision: &Decision,
        among: (&Roster, usize),
        arguments: &Arguments,
    ) -> Result<Observation, Stop> {
        let graph = match self.graph(among, arguments) {
            Ok(graph) => graph,
            Err(fault) => return Ok(refused(fault)),
        };
        let begun = self.progress(0, &graph.begun());
        self.pass_on(vec![begun]).await?;
        let mut work = Tasks {
            step: self.step,
            graph,
            usual: self.agent.options.tool_timeout(),
            slots: self.run.delegate_depth == 0,
        };
        let mut seen = self.fan_out(decision, &mut work).await?;
        seen.called = true;
        seen.text = work.graph.told();
        Ok(seen)
    }
}
