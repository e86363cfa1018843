//! The agent's ledger of runs that go on without their caller, whichever gateway they came through.

use std::time::Duration;

use tg_mesh::Mesh;
use tg_schemas::msg::{AgentRunsRequest, AgentRunsResponse, DetachedRun};
use tg_schemas::processors::agent_manager::RUNS;
use tg_schemas::{Error, ErrorCode};

use crate::caller::{Caller, goes_on};

/// How long its questions may take together.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Asks about the runs of one user.
pub struct AgentRuns<'a> {
    caller: Caller<AgentRunsRequest, AgentRunsResponse>,
    user: &'a str,
}

impl<'a> AgentRuns<'a> {
    /// On this process's own account.
    pub fn of(mesh: &Mesh, user: &'a str) -> Self {
        Self {
            caller: Caller::of_system(mesh, RUNS).at_most(TIMEOUT),
            user,
        }
    }

    /// All that are under way. None where there is no agent of ours, which keeps no such ledger.
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

    /// Cancels the one with this id. `false`: no such run of the user is under way.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn cancel(&self, id: &str) -> Result<bool, Error> {
        if !self.caller.neighbours().keep_runs() {
            return Ok(false);
        }
        let request = AgentRunsRequest {
            id: id.to_owned(),
            ..self.about("cancel-run")
        };
        match self.caller.last(&request).await {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.code(), ErrorCode::NotFound | ErrorCode::NobodyServes) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn about(&self, operation: &str) -> AgentRunsRequest {
        AgentRunsRequest {
            operation: operation.to_owned(),
            user: self.user.to_owned(),
            ..AgentRunsRequest::default()
        }
    }
}
