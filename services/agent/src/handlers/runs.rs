//! The system's `agent-runs`: runs as the ledger has them, what they stream from any part on, and ending one.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tg_mesh::{Cx, Mesh, RequestHandler, Responder, TaskKind, clock};
use tg_schemas::msg::{AgentRunsRequest, AgentRunsResponse, RunHappened, RunToolCall};
use tg_schemas::paging::{Asked, Page};
use tg_schemas::{Error, ErrorCode};

use super::known::{shown, task_shown, unknown, whose};
use super::parts::{TOGETHER, beyond};
use super::replay::replay;
use super::{summaries, why};
use crate::engine::confirmation::Answer;
use crate::error::AgentError;
use crate::run::Agent;
use crate::run::grace::{asker_left, nobody_listens};
use crate::run::transcript::Transcript;
use crate::store::{Happened, KnownRun, Replied, TasksOf, Whose};

/// Runs read from the ledger at once.
const STRIDE: usize = 512;
/// How long a cancel waits for the run to end before it reports what had happened in it.
const CANCEL: Duration = Duration::from_secs(2);
/// Who waits for news looks at the ledger so often: the run may go on elsewhere.
const LOOK: Duration = Duration::from_secs(2);

/// Serves `agent-runs` of `agent-manager`.
pub(crate) struct Runs(pub(crate) Arc<Agent>);

#[async_trait]
impl RequestHandler<AgentRunsRequest, AgentRunsResponse> for Runs {
    async fn serve(
        &self,
        cx: Cx,
        ask: AgentRunsRequest,
        mut out: Responder<AgentRunsResponse>,
    ) -> Result<(), Error> {
        let answer = match ask.operation.as_str() {
            "list-runs" if ask.all && !ask.id.is_empty() => self.one(&ask).await?,
            "list-runs" if ask.all => self.known(&ask).await?,
            "list-runs" => self.list(&ask).await?,
            "list-tasks" => self.tasks(&ask).await?,
            "cancel-run" => self.cancel(&cx, &ask).await?,
            "read-run" => return self.read(&cx, &ask, &mut out).await,
            "replay-run" => return replay(&self.0, &cx, (&whose(&ask), &ask), &mut out).await,
            "leave-run" => self.leave(&cx, &ask).await?,
            "confirm-run" => self.answer(&ask).await?,
            "why-run" => why::answer(&self.0, &ask).await?,
            "expand-summary" => summaries::expand(&self.0, &ask).await?,
            "remake-summary" => summaries::again(&self.0, &cx, &ask).await?,
            _ => {
                let text = "operation: must be list-runs, list-tasks, cancel-run, read-run, replay-run, leave-run, confirm-run, why-run, expand-summary or remake-summary";
                return Err(Error::new(ErrorCode::BadRequest, text));
            }
        };
        out.send(answer).await
    }
}

/// One that joins a run; it leaves it when dropped.
struct Joined {
    agent: Arc<Agent>,
    mesh: Mesh,
    transcript: Arc<Transcript>,
    run: KnownRun,
}

impl Joined {
    fn new(agent: &Arc<Agent>, cx: &Cx, run: &KnownRun) -> Self {
        let transcript = agent.transcripts.of(&run.run, &run.workspace);
        transcript.joined();
        // Another process may have heard it.
        if run.asker_gone {
            transcript.asker_left();
        }
        Self {
            agent: agent.clone(),
            mesh: cx.mesh.clone(),
            transcript,
            run: run.clone(),
        }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let nobody = self.transcript.parted();
        self.agent.transcripts.unused(&self.run.run);
        if !nobody || self.run.caller.grace_ms == 0 {
            return;
        }
        let (agent, mesh, run) = (self.agent.clone(), self.mesh.clone(), self.run.clone());
        self.mesh.spawn(TaskKind::Background, async move {
            let run = KnownRun {
                left_ms: Some(clock::millis()),
                ..run
            };
            if let Err(error) = nobody_listens(&agent, &mesh, run).await {
                tracing::debug!(%error, "it is not known that nobody listens to a run");
            }
        });
    }
}

impl Runs {
    /// Runs that go on without their callers and are under way.
    async fn list(&self, ask: &AgentRunsRequest) -> Result<AgentRunsResponse, Error> {
        let asked = Asked::read(&ask.operation, ask.limit, &ask.after)?;
        let mut after = asked.after().unwrap_or_default().to_owned();
        let mut page = Page::new(asked);
        let ledger = self.0.ledger().await?;
        loop {
            let some = ledger.detached(&ask.user, &after, STRIDE, clock::millis());
            let some = some.await?;
            let last = some.len() < STRIDE;
            for run in some {
                if page.is_full() {
                    break;
                }
                after.clone_from(&run.id);
                page.add(&after, run)?;
            }
            if last || page.is_full() {
                break;
            }
        }
        Ok(AgentRunsResponse {
            runs: page.entries,
            next: page.next,
            ..AgentRunsResponse::default()
        })
    }

    /// All that are known.
    async fn known(&self, ask: &AgentRunsRequest) -> Result<AgentRunsResponse, Error> {
        let asked = Asked::read(&ask.operation, ask.limit, &ask.after)?;
        let mut after = asked.after().unwrap_or_default().to_owned();
        let mut page = Page::new(asked);
        let ledger = self.0.ledger().await?;
        let now_ms = clock::millis();
        loop {
            let some = ledger.known(&whose(ask), &after, STRIDE).await?;
            let last = some.len() < STRIDE;
            for run in some {
                if page.is_full() {
                    break;
                }
                after.clone_from(&run.caller.question);
                page.add(&after, shown(run, now_ms))?;
            }
            if last || page.is_full() {
                break;
            }
        }
        Ok(AgentRunsResponse {
            runs: page.entries,
            next: page.next,
            ..AgentRunsResponse::default()
        })
    }

    /// Tasks that runs gave, as they were given.
    async fn tasks(&self, ask: &AgentRunsRequest) -> Result<AgentRunsResponse, Error> {
        let asked = Asked::read(&ask.operation, ask.limit, &ask.after)?;
        let mut after = asked.after().unwrap_or_default().to_owned();
        let mut page = Page::new(asked);
        let (ledger, of) = (self.0.ledger().await?, TasksOf::Whose(whose(ask)));
        let (owner, now_ms) = (&self.0.tasks.owner, clock::millis());
        loop {
            let some = ledger
                .tasks(&of, owner, (after.as_str(), STRIDE), now_ms)
                .await?;
            let last = some.len() < STRIDE;
            for task in some {
                if page.is_full() {
                    break;
                }
                after = task.place();
                page.add(&after, task_shown(task))?;
            }
            if last || page.is_full() {
                break;
            }
        }
        Ok(AgentRunsResponse {
            tasks: page.entries,
            next: page.next,
            ..AgentRunsResponse::default()
        })
    }

    /// The one with an id, where it is known.
    async fn one(&self, ask: &AgentRunsRequest) -> Result<AgentRunsResponse, Error> {
        let ledger = self.0.ledger().await?;
        let run = ledger.of_question(&whose(ask), &ask.id).await?;
        let now_ms = clock::millis();
        Ok(AgentRunsResponse {
            runs: run.into_iter().map(|run| shown(run, now_ms)).collect(),
            ..AgentRunsResponse::default()
        })
    }

    /// Ends a run, and says what had happened in it.
    async fn cancel(&self, cx: &Cx, ask: &AgentRunsRequest) -> Result<AgentRunsResponse, Error> {
        let ledger = self.0.ledger().await?;
        let whose = whose(ask);
        let run = ledger.of_question(&whose, &ask.id).await?;
        let run = run.ok_or_else(unknown)?;
        let transcript = self.0.transcripts.of(&run.run, &run.workspace);
        if !ledger.cancel(&whose, &ask.id, clock::millis()).await? {
            self.0.transcripts.unused(&run.run);
            return Err(unknown());
        }
        self.0
            .tasks
            .cancel(&ledger, &run.workspace, &ask.id)
            .await?;
        cx.mesh.server().cancel_detached(&ask.id);
        let over = async {
            loop {
                let news = transcript.news();
                if transcript.is_over() {
                    return;
                }
                news.await;
            }
        };
        let over = tokio::time::timeout(CANCEL, over).await.is_ok();
        self.0.transcripts.unused(&run.run);
        let happened = ledger.happened(&run.run).await?;
        Ok(AgentRunsResponse {
            happened: Some(told(happened, over)),
            ..AgentRunsResponse::default()
        })
    }

    /// Answers what a run asks before it uses a tool.
    async fn answer(&self, ask: &AgentRunsRequest) -> Result<AgentRunsResponse, Error> {
        let bad = |text: &str| Error::new(ErrorCode::BadRequest, text);
        let answer = Answer::said(&ask.answer).ok_or_else(|| bad("answer: must be yes or no"))?;
        let ledger = self.0.ledger().await?;
        let whose = whose(ask);
        let (run, said) = ((&*ask.id, &*ask.asked), (answer, &*ask.user));
        let replied = ledger.answer_user(&whose, run, said, clock::millis());
        match replied.await? {
            Replied::Noted => {
                self.0.answers.notify_waiters();
                Ok(AgentRunsResponse::default())
            }
            Replied::NoRun => Err(unknown()),
            Replied::NothingAsked => {
                let text = "the run asks nothing, or what was asked was answered or is over";
                Err(Error::new(ErrorCode::NotFound, text))
            }
            Replied::Several => Err(bad(
                "message_id: is required: the run has asked more than once",
            )),
        }
    }

    /// The asker of a run is gone.
    async fn leave(&self, cx: &Cx, ask: &AgentRunsRequest) -> Result<AgentRunsResponse, Error> {
        let ledger = self.0.ledger().await?;
        let run = ledger.of_question(&whose(ask), &ask.id).await?;
        let run = run.ok_or_else(unknown)?;
        if !run.over && run.caller.grace_ms > 0 {
            asker_left(&self.0, &cx.mesh, run).await?;
        }
        Ok(AgentRunsResponse::default())
    }

    /// Streams the parts of a run from a number on, to its end.
    async fn read(
        &self,
        cx: &Cx,
        ask: &AgentRunsRequest,
        out: &mut Responder<AgentRunsResponse>,
    ) -> Result<(), Error> {
        let whose = whose(ask);
        let ledger = self.0.ledger().await?;
        let run = ledger.of_question(&whose, &ask.id).await?;
        let mut run = run.ok_or_else(unknown)?;
        let joined = match run.over {
            true => None,
            false => Some(Joined::new(&self.0, cx, &run)),
        };
        if run.left_ms.is_some() && joined.is_some() {
            ledger.left(&run.run, None, false).await?;
        }
        drop(ledger);
        let mut from = u64::try_from(ask.from).unwrap_or(0);
        let mut sent = false;
        let gone = out.cancelled();
        loop {
            let news = joined.as_ref().map(|joined| joined.transcript.news());
            let over = run.over || joined.as_ref().is_some_and(|one| one.transcript.is_over());
            if let Some((first, parts)) = self.told(joined.as_ref(), &run, from).await? {
                // The number of the first part announces what is not kept any more, for a reader that is slower than the writer.
                from = first.saturating_add(parts.len() as u64);
                sent = true;
                out.send(some(first, parts)).await?;
                continue;
            }
            let Some(news) = news.filter(|_| !over) else {
                if let Some(ends) = self.ended(&whose, &ask.id, (from, sent)).await? {
                    out.send(some(ends, Vec::new())).await?;
                }
                return out.send(AgentRunsResponse::default()).await;
            };
            tokio::select! {
                () = news => {}
                () = gone.cancelled() => return Ok(()),
                () = cx.mesh.stopping().cancelled() => return Err(AgentError::Stopping.into()),
                () = tokio::time::sleep(LOOK) => {
                    let known = self.0.ledger().await?.of_question(&whose, &ask.id).await?;
                    run = known.ok_or_else(unknown)?;
                }
            }
            if joined
                .as_ref()
                .is_some_and(|one| one.transcript.is_forgotten())
            {
                return Err(AgentError::Stopping.into());
            }
        }
    }

    /// A run is over, and nothing is there from a number on: it has ended there, or its rest is not kept. A reader to whom parts
    /// were sent learns where the run ended; for the others it is as if there were no run.
    async fn ended(
        &self,
        whose: &Whose,
        id: &str,
        (from, sent): (u64, bool),
    ) -> Result<Option<u64>, Error> {
        let ledger = self.0.ledger().await?;
        let run = ledger.of_question(whose, id).await?.ok_or_else(unknown)?;
        match run.ends {
            Some(ends) if from > ends => Err(beyond()),
            Some(ends) if from == ends => Ok(None),
            Some(ends) if sent => Ok(Some(ends)),
            Some(_) => Err(not_kept()),
            // Runs that tell nothing here, or ended before their ends were noted.
            None => match ledger.told(&run.run, 0, 1).await? {
                Some(_) => Ok(None),
                None => Err(not_kept()),
            },
        }
    }

    /// Parts from a number on, as the ledger has them, else as this process does.
    async fn told(
        &self,
        joined: Option<&Joined>,
        run: &KnownRun,
        from: u64,
    ) -> Result<Option<(u64, Vec<String>)>, Error> {
        // What is here and goes to the ledger meanwhile is there when it is looked for again.
        let transcript = joined.map(|joined| &joined.transcript);
        if transcript.is_some_and(|transcript| transcript.has_all_before(from)) {
            return Ok(None);
        }
        let here = transcript.and_then(|transcript| transcript.from(from, TOGETHER));
        if let Some((first, _)) = &here
            && *first == from
        {
            return Ok(here);
        }
        let ledger = self.0.ledger().await?;
        let kept = ledger.told(&run.run, from, TOGETHER).await?;
        Ok(kept.or(here))
    }
}

/// Some parts, the first of them with this number.
fn some(first: u64, parts: Vec<String>) -> AgentRunsResponse {
    AgentRunsResponse {
        first: i64::try_from(first).unwrap_or(i64::MAX),
        parts,
        more: true,
        ..AgentRunsResponse::default()
    }
}

fn not_kept() -> Error {
    let text = "the run's answer is not kept from this offset on";
    Error::new(ErrorCode::NotFound, text)
}

fn told(happened: Happened, over: bool) -> RunHappened {
    let calls = happened.calls.into_iter().map(|call| RunToolCall {
        tool: call.tool,
        returned: call.returned,
        failed: call.failed,
    });
    RunHappened {
        over,
        steps: i64::from(happened.steps),
        calls: calls.collect(),
        in_token: happened.in_token,
        out_token: happened.out_token,
    }
}
