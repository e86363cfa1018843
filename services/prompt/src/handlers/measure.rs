//! `measure-prompt`: how many tokens a prompt has. No model is asked.

use async_trait::async_trait;
use tg_clients::rendering::ReadyPrompts;
use tg_mesh::{Cx, RequestHandler, Responder};
use tg_schemas::msg::{MeasureResponse, PromptRequest};
use tg_schemas::{Error, ErrorCode};
use tokio::sync::Semaphore;

use crate::options::Options;

/// Prompts counted at once.
const COUNTING: usize = 4;

/// Serves `measure` of `prompt`.
pub(crate) struct Measure {
    prompts: ReadyPrompts,
    /// Prompts counted at once.
    counting: Semaphore,
}

impl Measure {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            prompts: ReadyPrompts::new(options.workspaces),
            counting: Semaphore::new(COUNTING),
        }
    }
}

#[async_trait]
impl RequestHandler<PromptRequest, MeasureResponse> for Measure {
    async fn serve(
        &self,
        cx: Cx,
        question: PromptRequest,
        mut out: Responder<MeasureResponse>,
    ) -> Result<(), Error> {
        let set = self.prompts.get(&cx);
        let prompt = set.render(&question.id, &question.terms)?;
        let stopping = |()| Error::new(ErrorCode::Unavailable, "stopping");
        let _turn = self.counting.acquire().await.map_err(|_| stopping(()))?;
        let counted = tokio::task::spawn_blocking(move || {
            tg_tokens::count(&prompt.system) + tg_tokens::count(&prompt.text)
        });
        let tokens = counted.await.map_err(|_| stopping(()))?;
        let measured = MeasureResponse {
            calls: 1,
            prompt_tokens: i64::try_from(tokens).unwrap_or(i64::MAX),
            ..MeasureResponse::default()
        };
        out.send(measured).await
    }
}
