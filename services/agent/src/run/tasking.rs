//! Carries out tasks: work that a run gave to another agent and does not wait for. Each is a run of its own, which this process takes
//! to its end as one of a subagent; a process that ends has none of them go on elsewhere.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tg_mesh::{Cx, Deadline, TaskKind, clock};
use tg_schemas::Error;
use tg_schemas::msg::{AgentRun, LoopRecord};
use tokio::sync::{SemaphorePermit, mpsc};

use super::agent::Agent;
use super::announce::{Parent, announce};
use super::execution::is_over;
use super::fan_in::{apart, walk};
use super::ids::new_run;
use super::program;
use crate::engine::decision::Finding;
use crate::engine::delegating::session;
use crate::engine::router::Route;
use crate::engine::splitting;
use crate::error::{AgentError, Stop};
use crate::sessions::{SessionId, Turn};
use crate::store::{Asked, Began, Caller, TaskEnd, TaskRow, TaskStatus};

/// Longest part of a task's message that is kept, in characters.
pub(super) const PREVIEW: usize = 200;
/// The same of its result, and of its error.
const KEPT: usize = 2000;
/// How often what is too old goes.
const PRUNE: Duration = Duration::from_secs(300);
/// How long a cancelled run may take to end.
pub(super) const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// A task as it was given.
pub(super) struct Given {
    pub(super) row: TaskRow,
    /// Its run before its first step, which has no id yet.
    pub(super) run: AgentRun,
    /// What people call the agent.
    pub(super) name: String,
    /// It is a program.
    pub(super) program: bool,
    /// Where what it answers is kept; `None`: nobody comes back to the session.
    pub(super) session: Option<SessionId>,
    /// Names the turn there.
    pub(super) turn: String,
    /// Session of the run that gave it.
    pub(super) parent: String,
}

impl Given {
    /// Who is sent what comes of it.
    pub(super) fn told(&self) -> Parent<'_> {
        Parent {
            workspace: &self.row.workspace,
            user: &self.row.user,
            session: &self.parent,
            // Only the sessions service counts the callers of a run from one on.
            of_sessions: self.run.caller_depth > 0,
            agent: &self.name,
        }
    }
}

/// How a task is done: what came of it, or what went wrong.
pub(super) type Work = Box<
    dyn FnOnce(Arc<Agent>, Cx, Arc<Given>) -> BoxFuture<'static, Result<String, String>> + Send,
>;

/// An agent does it.
pub(super) fn by_agent() -> Work {
    Box::new(|agent, cx, given| Box::pin(async move { work(&agent, &cx, &given).await }))
}

/// The run of a task before its first step, which has no id yet and is no part of the one that gives it.
pub(super) fn subtask(
    parent: &AgentRun,
    goal: &str,
    session: String,
    window: Vec<LoopRecord>,
) -> AgentRun {
    AgentRun {
        parent: String::new(),
        root: String::new(),
        record: false,
        session,
        tree: session::tree(parent).to_owned(),
        loop_window: window,
        ..splitting::subagent(parent, goal, String::new(), String::new())
    }
}

/// Begins a task whose row is in the ledger.
pub(super) fn begin(agent: &Arc<Agent>, cx: &Cx, given: Given, work: Work) {
    let mut own = cx.outliving();
    own.cancel = cx.mesh.stopping().child_token();
    let row = &given.row;
    agent
        .tasks
        .enter(&row.workspace, &row.id, own.cancel.clone());
    let (agent, given) = (agent.clone(), Arc::new(given));
    cx.mesh.spawn(TaskKind::Handler, async move {
        carry_out(&agent, &own, &given, work).await;
    });
}

async fn carry_out(agent: &Arc<Agent>, cx: &Cx, given: &Arc<Given>, work: Work) {
    let (workspace, id) = (&*given.row.workspace, &*given.row.id);
    let came = {
        let mut work = work(agent.clone(), cx.clone(), given.clone());
        let came = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => None,
            came = &mut work => Some(came),
        };
        if came.is_none() {
            if cx.mesh.stopping().is_cancelled() {
                let stopped = TaskEnd {
                    status: TaskStatus::Cancelled,
                    error: "shutdown".to_owned(),
                    ..TaskEnd::default()
                };
                if let Err(error) = settle(agent, given, &stopped).await {
                    tracing::debug!(%error, "a task ends with the process");
                }
            }
            let _ = tokio::time::timeout(STOP_TIMEOUT, work).await;
        }
        came
    };
    agent.tasks.leave(workspace, id);
    let Some(came) = came else {
        return;
    };
    let ended = settle(agent, given, &ended(&came)).await;
    match ended {
        // Somebody has ended it before.
        Ok(false) => {}
        Ok(true) => announce(agent, cx, given.told(), &came).await,
        Err(error) => tracing::warn!(%error, task = id, "it is not known what came of a task"),
    }
}

/// Ends a task in the ledger. `false`: it is over.
async fn settle(agent: &Agent, given: &Given, end: &TaskEnd) -> Result<bool, Error> {
    let ledger = agent.ledger().await?;
    let row = &given.row;
    let ended = ledger.end_task(&row.workspace, &row.id, end, clock::millis());
    Ok(ended.await?)
}

/// What is kept of what came of a task.
fn ended(came: &Result<String, String>) -> TaskEnd {
    let begin = |text: &str| text.chars().take(KEPT).collect::<String>();
    match came {
        Ok(text) => TaskEnd {
            status: TaskStatus::Success,
            result: begin(text),
            ..TaskEnd::default()
        },
        Err(error) => TaskEnd {
            status: TaskStatus::Failed,
            error: begin(error),
            ..TaskEnd::default()
        },
    }
}

/// Has the agent do it, as soon as there is a place; what it answered, or what went wrong.
async fn work(agent: &Arc<Agent>, cx: &Cx, given: &Given) -> Result<String, String> {
    let _place = place(agent, cx).await?;
    let mut cx = cx.clone();
    cx.deadline = Deadline::after(Duration::from_secs(agent.options.task_seconds));
    if given.program {
        return by_program(agent, &cx, given).await;
    }
    let run = start(agent, &cx, given)
        .await
        .map_err(|stop| fault(&stop))?;
    let finding = walked(agent, cx, run).await?;
    if let Some(error) = finding.error {
        return Err(error);
    }
    keep(agent, given, (&finding.text, finding.window.clone())).await?;
    Ok(match finding.stopped {
        true => format!("[subagent stopped] {}", finding.text),
        false => finding.text,
    })
}

/// A place among the tasks that go on at the same time, once there is one.
pub(super) async fn place<'a>(agent: &'a Agent, cx: &Cx) -> Result<SemaphorePermit<'a>, String> {
    let place = tokio::select! {
        place = agent.tasks.places.acquire() => place,
        () = cx.cancel.cancelled() => return Err(AgentError::Cancelled.to_string()),
    };
    place.map_err(|_| AgentError::Stopping.to_string())
}

/// Takes the run of a task to its end. Its parts are dropped.
pub(super) async fn walked(agent: &Arc<Agent>, cx: Cx, run: AgentRun) -> Result<Finding, String> {
    let (mesh, deadline) = (cx.mesh.clone(), cx.deadline);
    let own = agent.clone();
    let relay = mpsc::channel(1).0;
    let walking: BoxFuture<'static, Result<Finding, Stop>> =
        Box::pin(async move { walk(&own, &cx, run, &relay).await });
    let walked = apart(&mesh, walking);
    let walked = tokio::time::timeout(deadline.left() + STOP_TIMEOUT, walked).await;
    let walked = walked.map_err(|_| AgentError::Timeout.to_string())?;
    let finding = walked.map_err(|_| "the task broke off".to_owned())?;
    finding.map_err(|stop| fault(&stop))
}

/// Has a program do it: that is no run of its own, and no trace.
async fn by_program(agent: &Arc<Agent>, cx: &Cx, given: &Given) -> Result<String, String> {
    let row = &given.row;
    started(agent, row).await?;
    let asked = program::Given {
        run: AgentRun {
            run: row.id.clone(),
            started_at: clock::rfc3339(),
            ..given.run.clone()
        },
        agent: &row.agent,
        session: &row.session,
        lasts: given.session.is_some(),
        message: &given.run.question,
    };
    let answer = program::ask(agent, cx, &asked).await;
    let reply = answer.map_err(|stop| fault(&stop))??;
    keep(agent, given, (&reply.text, Vec::new())).await?;
    Ok(reply.text)
}

/// A task is under way from now on, and no run.
pub(super) async fn started(agent: &Agent, row: &TaskRow) -> Result<(), String> {
    let ledger = agent.ledger().await.map_err(|error| error.message)?;
    let started = ledger.start_task(&row.workspace, &row.id, "", clock::millis());
    match started.await.map_err(|error| Error::from(error).message)? {
        true => Ok(()),
        false => Err(AgentError::Cancelled.to_string()),
    }
}

/// Keeps the turn in a session that somebody may come back to.
async fn keep(
    agent: &Agent,
    given: &Given,
    (answered, window): (&str, Vec<LoopRecord>),
) -> Result<(), String> {
    let Some(session) = &given.session else {
        return Ok(());
    };
    let turn = Turn {
        id: given.turn.clone(),
        asked: given.run.question.clone(),
        answered: answered.to_owned(),
        window,
    };
    let kept = agent.tasks.sessions.add(session, turn).await;
    kept.map_err(|error| error.message)
}

pub(super) fn fault(stop: &Stop) -> String {
    match stop {
        Stop::End(ending) => ending.message.clone(),
        Stop::Spent(over) => over.why.clone(),
        Stop::Error(error) => error.message.clone(),
    }
}

/// The run of a task, which begins now.
async fn start(agent: &Agent, cx: &Cx, given: &Given) -> Result<AgentRun, Stop> {
    let row = &given.row;
    let run = begun(agent, cx, (row, row.id.as_str()), given.run.clone()).await?;
    let ledger = agent.ledger().await.map_err(Stop::Error)?;
    let started = ledger.start_task(&row.workspace, &row.id, &run.run, clock::millis());
    if !started.await? {
        return Err(AgentError::Cancelled.into());
    }
    Ok(run)
}

/// A run of a task by its name, which begins now.
pub(super) async fn begun(
    agent: &Agent,
    cx: &Cx,
    (row, id): (&TaskRow, &str),
    run: AgentRun,
) -> Result<AgentRun, Stop> {
    let TaskRow {
        workspace, user, ..
    } = row;
    let caller = Caller {
        user: user.clone(),
        question: id.to_owned(),
        flow: cx.flow().to_owned(),
        request: cx.request().unwrap_or_default().to_owned(),
        deadline_ms: i64::try_from(cx.deadline.millis()).unwrap_or(i64::MAX),
        goes_on: false,
        grace_ms: 0,
    };
    let asked = Asked {
        workspace: workspace.clone(),
        is_over: is_over(cx),
        key: format!("task/{workspace}/{id}"),
        text: run.question.clone(),
        asker: (!user.is_empty()).then_some(caller),
    };
    let new = Began {
        run: new_run(),
        started_at: clock::rfc3339(),
        route: Some(Route::default()),
    };
    let ledger = agent.ledger().await.map_err(Stop::Error)?;
    let began = ledger.begin(asked, new, clock::millis()).await?;
    let began = began.ok_or(AgentError::NoWorkspace)?;
    Ok(AgentRun {
        run: began.run,
        started_at: began.started_at,
        ..run
    })
}

/// Removes tasks that are over for too long, until `stopping`.
pub(crate) async fn prune(agent: Arc<Agent>, stopping: impl Future<Output = ()>) {
    tokio::pin!(stopping);
    loop {
        if let Some(ledger) = agent.store.opened() {
            let pruned = ledger.prune_tasks(&agent.tasks.owner, clock::millis());
            if let Err(error) = pruned.await {
                tracing::warn!(%error, "tasks that are over stay for another while");
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PRUNE) => {}
            () = &mut stopping => return,
        }
    }
}
