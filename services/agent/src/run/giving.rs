//! What else the tool `delegate` does: it gives work without waiting, and lists, cancels or steers tasks. None of it is done
//! twice: ids follow from the step.

use tg_mesh::clock;
use tg_schemas::msg::LoopRecord;
use tg_schemas::{Error, ErrorCode};

use super::execution::{StepExecution, is_over};
use super::tasking::{Given, PREVIEW, Work, begin, by_agent, subtask};
use crate::engine::decision::Observation;
use crate::engine::delegating::session::{self, Chosen, Wanted};
use crate::engine::delegating::{Definition, Roster, as_defined, check_depth};
use crate::engine::exchange::{Outcome, Returned};
use crate::engine::toolset::{Kind, Tool};
use crate::error::{AgentError, Stop};
use crate::kinds::{Arguments, text};
use crate::sessions::{SessionId, Turn};
use crate::store::{Opened, TaskRow, TaskStatus, TasksOf};

/// What kind of task it is.
const DELEGATE: &str = "delegate";
/// Digits by which a list names a task (also the fewest that may name one), and those of a new task's id in the answer.
const LISTED: usize = 8;
const GIVEN: usize = 16;
/// Longest part of a message in a list, in characters.
const SHOWN: usize = 80;
/// Tasks in a list.
const MOST: usize = 100;
/// Tasks of a session that are read.
const READ: usize = 1000;

/// The result of a call: text for the model, or what is wrong with the call.
pub(super) type Said = Result<Result<String, String>, Stop>;

fn shown(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(most).collect()
}

impl StepExecution {
    /// Has what a call does done once, and noted; of a run that is replayed it is what was noted.
    pub(super) async fn once(
        &mut self,
        tool: &Tool,
        arguments: &Arguments,
        agents: &Roster,
    ) -> Result<Observation, Stop> {
        let outcome = match &self.playback {
            Some(playback) => {
                playback.tool(((&self.run.run, self.step), 0), &tool.name, arguments)?
            }
            None => {
                let said = match &tool.kind {
                    Kind::Dispatch {
                        concurrent,
                        progress,
                        ..
                    } => {
                        let among = (agents, *concurrent);
                        self.give_graph(tool, among, arguments, *progress).await?
                    }
                    _ => self.of_tasks(agents, arguments).await?,
                };
                let outcome = match said {
                    Ok(text) => Outcome::Returned(Returned {
                        text,
                        ..Returned::default()
                    }),
                    Err(fault) => Outcome::Failed(Error::new(ErrorCode::Tool, fault)),
                };
                self.note_tool(tool, arguments.clone(), outcome.clone())?;
                outcome
            }
        };
        Ok(match outcome {
            Outcome::Returned(returned) => Observation {
                text: returned.text,
                called: true,
                ..Observation::default()
            },
            Outcome::Failed(error) | Outcome::Lost(error, _) => refused(error.message),
            Outcome::Unknown => refused("the outcome of this call is unknown"),
        })
    }

    async fn of_tasks(&mut self, agents: &Roster, arguments: &Arguments) -> Said {
        match text(arguments, "action") {
            "" | "run" => self.give(agents, arguments).await,
            "status" => self.told_of_tasks().await,
            "cancel" => self.cancel_task(arguments).await,
            "steer" => self.steer(agents, arguments).await,
            _ => Ok(Err(
                "action: must be run, status, cancel or steer".to_owned()
            )),
        }
    }

    /// Gives work to an agent that does it on its own.
    async fn give(&mut self, agents: &Roster, arguments: &Arguments) -> Said {
        let message = text(arguments, "message");
        let chosen = agents.choose(&self.run, text(arguments, "agent_id"), message);
        let wanted = wanted(arguments);
        let chosen = chosen.and_then(|(id, one)| {
            let one = one.answered_by(text(arguments, "model"))?;
            let session = session::choose(&self.run, &id, wanted)?;
            Ok((id, one, session))
        });
        match chosen {
            Ok((id, one, session)) => self.open((id, one), session, message).await,
            Err(fault) => Ok(Err(fault)),
        }
    }

    /// Opens a task and has it begin.
    async fn open(
        &mut self,
        (id, mut one): (String, Definition),
        session: Chosen,
        message: &str,
    ) -> Said {
        let name = match one.name.trim() {
            "" => id.clone(),
            name => name.to_owned(),
        };
        let lasts = session.lasts.then(|| self.session_of(&id, &session.name));
        let mut window = Vec::new();
        if let Some(session) = &lasts {
            let turns = self.agent.tasks.sessions.turns(session).await;
            let turns = turns.map_err(Stop::Error)?;
            remember(&mut one, &turns);
            window = made(&turns);
        }
        let run = subtask(&self.run, message, session.name.clone(), window);
        let given = Given {
            row: self.task_row(DELEGATE, (id.clone(), session.name), message),
            run: as_defined(run, &id, &one, 1, String::new()),
            name,
            program: one.program,
            session: lasts,
            turn: session::turn_id(&self.run),
            parent: session::of(&self.run).to_owned(),
        };
        let task = self.begin_task(given, by_agent()).await?;
        Ok(task.map(|task| {
            format!(
                "Agent {id} works on it as task {task}. What comes of it is announced; do not wait for it."
            )
        }))
    }

    /// A task that this step gives.
    pub(super) fn task_row(
        &self,
        kind: &str,
        (agent, session): (String, String),
        message: &str,
    ) -> TaskRow {
        TaskRow {
            workspace: self.cx.workspace_key().to_string(),
            id: session::task_id(&self.run),
            kind: kind.to_owned(),
            agent,
            session,
            tree: session::tree(&self.run).to_owned(),
            user: self.user(),
            message: message.chars().take(PREVIEW).collect(),
            created_ms: clock::millis(),
            ..TaskRow::default()
        }
    }

    /// Opens a task and has it begin, unless it is there. The digits that name a new one, or why there is none.
    pub(super) async fn begin_task(&self, given: Given, work: Work) -> Said {
        let task: String = given.row.id.chars().take(GIVEN).collect();
        let ledger = self.ledger().await?;
        let owner = &self.agent.tasks.owner;
        let is_over = is_over(&self.cx);
        let opened = ledger.open_task(&given.row, owner, &is_over);
        match opened.await? {
            Opened::New => begin(&self.agent, &self.cx, given, work),
            Opened::Known => {}
            Opened::TooMany => {
                return Ok(Err("too many tasks wait or are under way".to_owned()));
            }
            Opened::NoWorkspace => return Err(AgentError::NoWorkspace.into()),
        }
        Ok(Ok(task))
    }

    /// All tasks of the session and of those that began in it.
    async fn own_tasks(&self) -> Result<Vec<TaskRow>, Stop> {
        let of = TasksOf::Tree {
            workspace: self.cx.workspace_key().to_string(),
            user: self.user(),
            tree: session::tree(&self.run).to_owned(),
        };
        let ledger = self.ledger().await?;
        let owner = &self.agent.tasks.owner;
        let tasks = ledger.tasks(&of, owner, ("", READ), clock::millis());
        Ok(tasks.await?)
    }

    async fn told_of_tasks(&self) -> Said {
        let tasks = self.own_tasks().await?;
        if tasks.is_empty() {
            return Ok(Ok("No tasks.".to_owned()));
        }
        let mut told = format!("{} task(s):", tasks.len());
        for task in tasks.iter().skip(tasks.len().saturating_sub(MOST)) {
            let id = task.id.chars().take(LISTED).collect::<String>();
            told.push_str(&format!(
                "\n[{id}] agent={}, status={}, message: \"{}\"",
                task.agent,
                task.status.as_str(),
                shown(&task.message, SHOWN)
            ));
        }
        Ok(Ok(told))
    }

    /// The task that a call names, if it is open.
    async fn named_task(&self, arguments: &Arguments) -> Result<Result<TaskRow, String>, Stop> {
        let id = text(arguments, "task_id");
        if id.is_empty() {
            return Ok(Err("task_id: is required".to_owned()));
        }
        if id.len() < LISTED {
            return Ok(Err(format!("task_id: {LISTED} digits at least")));
        }
        let mut tasks = self.own_tasks().await?;
        tasks.retain(|task| task.id.starts_with(id));
        let Some(task) = tasks.pop() else {
            return Ok(Err(format!("there is no task '{id}'")));
        };
        Ok(match (tasks.is_empty(), task.status.is_open()) {
            (false, _) => Err(format!("task_id: '{id}' names several tasks")),
            // Who takes this step up again finds what it has ended.
            (true, false) if task.status != TaskStatus::Cancelled => {
                Err(format!("task {id} is over: {}", task.status.as_str()))
            }
            _ => Ok(task),
        })
    }

    async fn end_named(&self, arguments: &Arguments) -> Result<Result<TaskRow, String>, Stop> {
        let task = match self.named_task(arguments).await? {
            Ok(task) => task,
            Err(fault) => return Ok(Err(fault)),
        };
        let ledger = self.ledger().await?;
        let tasks = &self.agent.tasks;
        tasks.cancel(&ledger, &task.workspace, &task.id).await?;
        Ok(Ok(task))
    }

    async fn cancel_task(&self, arguments: &Arguments) -> Said {
        let ended = self.end_named(arguments).await?;
        Ok(ended.map(|task| {
            let id: String = task.id.chars().take(GIVEN).collect();
            format!("Task {id} of agent {} is cancelled.", task.agent)
        }))
    }

    /// Ends a task and has its agent, or another, begin afresh with something else.
    async fn steer(&mut self, agents: &Roster, arguments: &Arguments) -> Said {
        let message = text(arguments, "message");
        if message.is_empty() {
            return Ok(Err("message: is required".to_owned()));
        }
        let known = match self.named_task(arguments).await? {
            Ok(known) => known,
            Err(fault) => return Ok(Err(fault)),
        };
        let id = match text(arguments, "agent_id") {
            "" => known.agent.as_str(),
            other => other,
        };
        let most = self.agent.options.delegate_depth;
        let chosen =
            check_depth(&self.run, 1, most).and_then(|()| agents.choose(&self.run, id, message));
        let named = |(id, one): (String, Definition)| {
            let one = one.answered_by(text(arguments, "model"))?;
            Ok::<_, String>((id, one))
        };
        let (id, one) = match chosen.and_then(named) {
            Ok(chosen) => chosen,
            Err(fault) => return Ok(Err(fault)),
        };
        if let Err(fault) = self.end_named(arguments).await? {
            return Ok(Err(fault));
        }
        let session = session::fresh(&self.run, &id);
        self.open((id, one), session, message).await
    }

    /// Tells an agent what was said in a session that is come back to, and returns the last calls of it; both are noted, of a run that
    /// is recorded.
    pub(super) async fn come_back(
        &mut self,
        tool: &Tool,
        arguments: &Arguments,
        (session, one): (&SessionId, &mut Definition),
    ) -> Result<Vec<LoopRecord>, Stop> {
        let (earlier, window) = match &self.playback {
            Some(playback) => {
                let which = ((&*self.run.run, self.step), 0);
                let known = playback.tool(which, &tool.name, arguments)?;
                match known {
                    Outcome::Returned(returned) => (returned.text, returned.window),
                    Outcome::Failed(_) | Outcome::Lost(..) | Outcome::Unknown => Default::default(),
                }
            }
            None => {
                let turns = self.agent.tasks.sessions.turns(session).await;
                let turns = turns.map_err(Stop::Error)?;
                let known = (earlier(&turns), made(&turns));
                let returned = Returned {
                    text: known.0.clone(),
                    window: known.1.clone(),
                    ..Returned::default()
                };
                self.note_tool(tool, arguments.clone(), Outcome::Returned(returned))?;
                known
            }
        };
        add(one, &earlier);
        Ok(window)
    }

    /// Keeps a turn in a session.
    pub(super) async fn keep_turn(
        &self,
        session: &SessionId,
        asked: &str,
        (answered, window): (&str, Vec<LoopRecord>),
    ) -> Result<(), Stop> {
        if self.playback.is_some() {
            return Ok(());
        }
        let turn = Turn {
            id: session::turn_id(&self.run),
            asked: asked.to_owned(),
            answered: answered.to_owned(),
            window,
        };
        let kept = self.agent.tasks.sessions.add(session, turn).await;
        kept.map_err(Stop::Error)
    }

    /// A session of the run's user with an agent.
    pub(super) fn session_of(&self, agent: &str, name: &str) -> SessionId {
        SessionId {
            workspace: self.cx.workspace_key().to_string(),
            user: self.user(),
            agent: agent.to_owned(),
            name: name.to_owned(),
        }
    }

    fn user(&self) -> String {
        self.cx.headers.user_id.clone().unwrap_or_default()
    }
}

/// A fault of a call, as the model reads it.
pub(super) fn refused(fault: impl Into<String>) -> Observation {
    let fault = fault.into();
    Observation {
        text: format!("error: {fault}"),
        error: Some(fault),
        ..Observation::default()
    }
}

/// Which session a call wants.
pub(super) fn wanted(arguments: &Arguments) -> Wanted<'_> {
    Wanted {
        name: text(arguments, "session_id"),
        mode: text(arguments, "mode"),
    }
}

fn earlier(turns: &[Turn]) -> String {
    let turns = turns.iter();
    session::earlier(turns.map(|turn| (&*turn.asked, &*turn.answered)))
}

/// The last calls that were made in a session.
fn made(turns: &[Turn]) -> Vec<LoopRecord> {
    turns
        .last()
        .map_or_else(Vec::new, |turn| turn.window.clone())
}

fn remember(one: &mut Definition, turns: &[Turn]) {
    add(one, &earlier(turns));
}

/// Adds to the instructions of an agent.
fn add(one: &mut Definition, text: &str) {
    if !text.is_empty() {
        one.framing = format!("{}\n\n{text}", one.framing).trim().to_owned();
    }
}
