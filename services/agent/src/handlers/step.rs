//! The flow's own `agent-step`: a record of a step comes in, and the step is taken, unless that was done already.

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{ConsumeError, Cx, RecordConsumer, ReplyAddress};
use tg_schemas::msg::AgentRun;

use crate::error::AgentError;
use crate::run::Agent;
use crate::run::recorded::Recorded;
use crate::run::step::take;

/// Reads `agent-step` of every flow.
pub(crate) struct Steps(pub(crate) Arc<Agent>);

#[async_trait]
impl RecordConsumer<AgentRun> for Steps {
    async fn consume(&self, cx: Cx, run: AgentRun) -> Result<(), ConsumeError> {
        let agent = &self.0;
        let malformed = || AgentError::MalformedStep;
        let step = u32::try_from(run.step)
            .ok()
            .filter(|step| *step > 0)
            .ok_or_else(malformed)?;
        let address: ReplyAddress =
            serde_json::from_slice(run.reply.as_bytes()).map_err(|_| malformed())?;
        // It was begun here when the record was written, or an earlier delivery of it is still being handled.
        let claim = tokio::select! {
            claim = agent.leases.take_soon(&run.run, step) => claim,
            () = cx.mesh.shutdown().cancelled() => return Err(AgentError::InProgress.into()),
        };
        if agent.leases.is_done(&run.run, step) {
            return Ok(());
        }
        take(agent.clone(), cx, run, address, (claim, Recorded::Durable)).await
    }
}
