//! `measure-agent`: how long the first prompt about a question is. How many steps follow nobody knows before.

use std::sync::Arc;

use async_trait::async_trait;
use tg_clients::measure;
use tg_mesh::{Cx, RequestHandler, Responder};
use tg_schemas::Error;
use tg_schemas::msg::{AgentRequest, MeasureRequest, MeasureResponse};

use crate::engine::prompt::{PROMPT, terms};
use crate::engine::question::first_step;
use crate::run::Agent;

/// Serves `measure` of `agent-manager`.
pub(crate) struct Measure(pub(crate) Arc<Agent>);

#[async_trait]
impl RequestHandler<MeasureRequest, MeasureResponse> for Measure {
    async fn serve(
        &self,
        cx: Cx,
        ask: MeasureRequest,
        mut out: Responder<MeasureResponse>,
    ) -> Result<(), Error> {
        let tools = self.0.tools(&cx).await;
        let additional = Agent::additional_context(&cx);
        let mut measured = MeasureResponse::default();
        for question in ask.texts {
            let question = AgentRequest {
                question,
                ..AgentRequest::default()
            };
            let run = first_step(
                question,
                String::new(),
                String::new(),
                cx.headers.roles.as_deref(),
            );
            let terms = terms(&run, &tools.available(&run), additional.as_deref(), None);
            measured.prompt_tokens += measure::prompt(&cx, PROMPT, terms).await?;
            measured.calls += 1;
        }
        out.send(measured).await
    }
}
