//! The system's `agent-runs`: runs that go on without their caller, as the ledger has them, and ending one.

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{Cx, RequestHandler, Responder, clock};
use tg_schemas::msg::{AgentRunsRequest, AgentRunsResponse};
use tg_schemas::paging::{Asked, Page};
use tg_schemas::{Error, ErrorCode};

use crate::run::Agent;

/// Runs read from the ledger at once.
const STRIDE: usize = 512;

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
            "list-runs" => self.list(&ask).await?,
            "cancel-run" => {
                let ledger = self.0.ledger().await?;
                if !ledger.cancel(&ask.user, &ask.id, clock::millis()).await? {
                    return Err(Error::new(ErrorCode::NotFound, "run not found"));
                }
                cx.mesh.server().cancel_detached(&ask.id);
                AgentRunsResponse::default()
            }
            _ => {
                let text = "operation: must be list-runs or cancel-run";
                return Err(Error::new(ErrorCode::BadRequest, text));
            }
        };
        out.send(answer).await
    }
}

impl Runs {
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
            error: None,
            runs: page.entries,
            next: page.next,
        })
    }
}
