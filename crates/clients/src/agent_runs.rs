//! The agent's ledger of runs, whichever gateway they came through.

use std::time::Duration;

use tg_mesh::{Answer, Ask, Mesh};
use tg_schemas::msg::{
    AgentRunsRequest, AgentRunsResponse, AgentTask, DetachedRun, RunHappened, RunStanding,
};
use tg_schemas::processors::agent_manager::RUNS;
use tg_schemas::{Error, ErrorCode};

use crate::caller::{Caller, goes_on};

/// How long its questions may take together.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long a run may be read.
const READ: Duration = Duration::from_secs(3600);

/// The command that lets a run use the tool that it asks for. It names the question, so that a late answer does not count for the
/// next one; `asked` is empty if the run asks only once.
pub fn confirm_command(run: &str, asked: &str) -> String {
    match asked {
        "" => format!("tg confirm {run} yes"),
        asked => format!("tg confirm {run} yes --message-id {asked}"),
    }
}

/// Asks about the runs of one user, or of a workspace.
pub struct AgentRuns<'a> {
    caller: Caller<AgentRunsRequest, AgentRunsResponse>,
    user: &'a str,
    workspace: &'a str,
}

impl<'a> AgentRuns<'a> {
    /// On this process's own account.
    pub fn of(mesh: &Mesh, user: &'a str) -> Self {
        Self {
            caller: Caller::of_system(mesh, RUNS).at_most(TIMEOUT),
            user,
            workspace: "",
        }
    }

    /// For somebody's request, with these options, and for as long as these say.
    pub fn for_somebody(mesh: &Mesh, user: &'a str, ask: Ask) -> Self {
        Self {
            caller: Caller::for_somebody(mesh, RUNS.of_system(), ask),
            user,
            workspace: "",
        }
    }

    /// Those of a workspace instead, by the text form of its key, whoever asked for them.
    pub fn of_workspace(self, workspace: &'a str) -> Self {
        Self { workspace, ..self }
    }

    /// All that go on without their caller and are under way. None where there is no agent of ours, which keeps no such ledger.
    ///
    /// # Errors
    /// How a question failed; one is asked for each page.
    pub async fn list(&self) -> Result<Vec<DetachedRun>, Error> {
        let mut all = Vec::new();
        if !self.caller.neighbours().keep_runs() {
            return Ok(all);
        }
        let mut request = AgentRunsRequest {
            limit: self.caller.page(),
            ..self.about("list-runs")
        };
        loop {
            let page = match self.caller.last(&request).await {
                Err(error) if error.code() == ErrorCode::NobodyServes => return Ok(all),
                page => page?,
            };
            all.extend(page.runs);
            if !goes_on(&mut request.after, page.next) {
                return Ok(all);
            }
        }
    }

    /// A page of all that are known, also those that are over; with it, where the next one begins.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn known(
        &self,
        limit: i64,
        after: &str,
    ) -> Result<(Vec<DetachedRun>, String), Error> {
        if !self.caller.neighbours().keep_runs() {
            return Ok(Default::default());
        }
        let request = AgentRunsRequest {
            limit,
            after: after.to_owned(),
            all: true,
            ..self.about("list-runs")
        };
        match self.caller.last(&request).await {
            Err(error) if error.code() == ErrorCode::NobodyServes => Ok(Default::default()),
            page => page.map(|page| (page.runs, page.next)),
        }
    }

    /// A page of the tasks that they gave; with it, where the next one begins.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn tasks(&self, limit: i64, after: &str) -> Result<(Vec<AgentTask>, String), Error> {
        if !self.caller.neighbours().keep_runs() {
            return Ok(Default::default());
        }
        let request = AgentRunsRequest {
            limit,
            after: after.to_owned(),
            ..self.about("list-tasks")
        };
        match self.caller.last(&request).await {
            Err(error) if error.code() == ErrorCode::NobodyServes => Ok(Default::default()),
            page => page.map(|page| (page.tasks, page.next)),
        }
    }

    /// What is known of the one with this id. `None`: there is no such run, or no agent of ours.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn find(&self, id: &str) -> Result<Option<DetachedRun>, Error> {
        if !self.caller.neighbours().keep_runs() {
            return Ok(None);
        }
        let request = AgentRunsRequest {
            id: id.to_owned(),
            all: true,
            ..self.about("list-runs")
        };
        let found = self.caller.last(&request).await?.runs;
        Ok(found.into_iter().find(|run| run.id == id))
    }

    /// Cancels the one with this id, and says what had happened in it. `None`: no such run is under way.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn cancel(&self, id: &str) -> Result<Option<RunHappened>, Error> {
        let answer = self.ask_of(id, "cancel-run").await?;
        Ok(answer.map(|answer| answer.happened.unwrap_or_default()))
    }

    /// Answers what it asks before it uses a tool: `yes` or `no`, to the question with that name, or the only one. `false`: there
    /// is no agent of ours.
    ///
    /// # Errors
    /// How the question failed: there is no such run, or it asks nothing.
    pub async fn confirm(&self, id: &str, asked: &str, answer: &str) -> Result<bool, Error> {
        if !self.caller.neighbours().keep_runs() {
            return Ok(false);
        }
        let request = AgentRunsRequest {
            id: id.to_owned(),
            asked: asked.to_owned(),
            answer: answer.to_owned(),
            ..self.about("confirm-run")
        };
        self.caller.last(&request).await.map(|_| true)
    }

    /// What it waits for: the run, and where it and its subagents stand. `None`: there is no such run, or no agent of ours.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn why(&self, id: &str) -> Result<Option<(DetachedRun, Vec<RunStanding>)>, Error> {
        let answer = self.ask_of(id, "why-run").await?;
        Ok(answer.and_then(|answer| Some((answer.runs.into_iter().next()?, answer.standing))))
    }

    /// What it had summed up before a step, with the steps that the summary stands for; 0: the last time that it did.
    ///
    /// # Errors
    /// How the question failed: there is no such run or summary.
    pub async fn expand(&self, id: &str, step: i64) -> Result<AgentRunsResponse, Error> {
        self.about_summary("expand-summary", id, (step, "")).await
    }

    /// Has a model sum the same steps up again. The run stays as it is.
    ///
    /// # Errors
    /// As [`AgentRuns::expand`]; the run is under way, or the model gave no summary.
    pub async fn remake(
        &self,
        id: &str,
        step: i64,
        model: &str,
    ) -> Result<AgentRunsResponse, Error> {
        self.about_summary("remake-summary", id, (step, model))
            .await
    }

    async fn about_summary(
        &self,
        operation: &str,
        id: &str,
        (step, model): (i64, &str),
    ) -> Result<AgentRunsResponse, Error> {
        if !self.caller.neighbours().keep_runs() {
            return Err(Error::new(ErrorCode::NotFound, "run not found"));
        }
        let request = AgentRunsRequest {
            id: id.to_owned(),
            step,
            model: model.to_owned(),
            ..self.about(operation)
        };
        self.caller.last(&request).await
    }

    /// Says that nobody listens to it any more. `false`: there is no such run.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn leave(&self, id: &str) -> Result<bool, Error> {
        Ok(self.ask_of(id, "leave-run").await?.is_some())
    }

    /// What it streams from a part on, to its end.
    ///
    /// # Errors
    /// Where the question cannot be asked; where there is no agent of ours, there is no such run.
    pub fn read(
        mesh: &Mesh,
        request: &AgentRunsRequest,
    ) -> Result<Answer<AgentRunsResponse>, Error> {
        let caller = Caller::of_system(mesh, RUNS).patient(READ);
        if !caller.neighbours().keep_runs() {
            return Err(Error::new(ErrorCode::NotFound, "run not found"));
        }
        caller.ask(request)
    }

    async fn ask_of(&self, id: &str, operation: &str) -> Result<Option<AgentRunsResponse>, Error> {
        if !self.caller.neighbours().keep_runs() {
            return Ok(None);
        }
        let request = AgentRunsRequest {
            id: id.to_owned(),
            ..self.about(operation)
        };
        match self.caller.last(&request).await {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if matches!(error.code(), ErrorCode::NotFound | ErrorCode::NobodyServes) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn about(&self, operation: &str) -> AgentRunsRequest {
        AgentRunsRequest {
            operation: operation.to_owned(),
            user: self.user.to_owned(),
            workspace: self.workspace.to_owned(),
            ..AgentRunsRequest::default()
        }
    }
}
