//! A question begins a run. Its first step is a durable record with the asker's address in it, for whoever reads the
//! flow's steps; this process begins it while the record is on its way.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tg_mesh::{Cx, ReplyAddress, RequestHandler, Responder, clock};
use tg_schemas::Error;
use tg_schemas::msg::{AgentRequest, AgentResponse};
use tg_schemas::processors::agent_manager;

use crate::engine::chunks;
use crate::engine::question::{check, first_step};
use crate::error::AgentError;
use crate::run::Agent;
use crate::run::budget::budgets_of;
use crate::run::execution::is_over;
use crate::run::ids::new_run;
use crate::run::route::{settle, without_choice};
use crate::run::step::begin_at_once;
use crate::store::{Asked, Began, Caller};

/// How long to wait for a step that has no record to let go of the answer.
const REGAIN: Duration = Duration::from_secs(2);
/// Longest grace, in seconds.
const MAX_GRACE: i64 = 3600;

/// Serves `request` of `agent-manager`.
pub(crate) struct Questions(pub(crate) Arc<Agent>);

#[async_trait]
impl RequestHandler<AgentRequest, AgentResponse> for Questions {
    async fn serve(
        &self,
        cx: Cx,
        question: AgentRequest,
        out: Responder<AgentResponse>,
    ) -> Result<(), Error> {
        check(&question)?;
        // A run whose bounds nobody can read is not begun.
        budgets_of(&self.0, &cx)?;
        let new = Began {
            run: new_run(),
            started_at: clock::rfc3339(),
            route: without_choice(&self.0, &cx, &question),
        };
        let asked = Asked {
            workspace: cx.workspace_key().to_string(),
            is_over: is_over(&cx),
            key: question_key(&cx),
            text: question.question.clone(),
            asker: caller(&cx, &question),
        };
        let known = new.run.clone();
        let ledger = self.0.ledger().await?;
        let began = ledger.begin(asked, new, clock::millis()).await?;
        let began = began.ok_or(AgentError::NoWorkspace)?;
        // While the model chooses, the store may have to go to another process.
        drop(ledger);
        let key = question_key(&cx);
        let route = settle(&self.0, &cx, &question, (&key, &began)).await?;
        if began.run == known {
            self.0.leases.publishing(&began.run, 1);
        } else {
            self.0.leases.asked_again(&cx.id, 0);
        }
        let roles = cx.headers.roles.as_deref();
        let wanted = question.tool_names.clone();
        let mut run = first_step(question, began.run, began.started_at, roles);
        route.apply(&mut run);
        run.tools = Some(wanted_of(self.0.tools(&cx).await.names(&run), wanted));
        run.depth = i64::from(cx.headers.depth.unwrap_or(0));
        let address = out.release();
        run.reply = serde_json::to_string(&address).map_err(AgentError::from)?;
        let (run, own) = (Arc::new(run), cx.outliving());
        // A run that goes on without its asker has its record first: nobody would ask again after a kill.
        let begun = match cx.headers.detach {
            true => None,
            false => begin_at_once(&self.0, &own, &run, address.clone()),
        };
        // The step goes first: its model is asked before this thread writes the record.
        tokio::task::yield_now().await;
        let published = own.record_shared(agent_manager::NEXT_STEP, &run).await;
        if let Some(begun) = begun {
            let _ = begun.send(published.is_ok());
        }
        if let Err(error) = published
            && let Some(mut out) = regain(&cx, address).await
        {
            out.send(chunks::failure(error, None)).await?;
        }
        Ok(())
    }

    async fn resumes(&self, cx: &Cx) -> bool {
        self.0
            .leases
            .asked_again(&cx.id, cx.headers.seq.unwrap_or(0));
        match self.0.ledger().await {
            Ok(ledger) => ledger.is_open(question_key(cx)).await.unwrap_or(false),
            Err(_) => false,
        }
    }
}

/// The tools of a run that its question names; all of them where it names none.
fn wanted_of(mut tools: Vec<String>, wanted: Option<Vec<String>>) -> Vec<String> {
    if let Some(wanted) = wanted {
        tools.retain(|tool| wanted.contains(tool));
    }
    tools
}

/// The answer, once the step that was begun at once lets go of it: it notices that it has no record when it has
/// something to say. One that thinks for longer is asked for again by who waits.
async fn regain(cx: &Cx, address: ReplyAddress) -> Option<Responder<AgentResponse>> {
    let end = tokio::time::Instant::now() + REGAIN;
    loop {
        let out = cx.mesh.resume::<AgentResponse>(address.clone());
        if out.is_some() || tokio::time::Instant::now() >= end {
            return out;
        }
        tokio::time::sleep(REGAIN / 100).await;
    }
}

/// Who asks, if that is known or the run goes on without them.
fn caller(cx: &Cx, question: &AgentRequest) -> Option<Caller> {
    let user = cx.headers.user_id.clone().unwrap_or_default();
    let goes_on = cx.headers.detach;
    (goes_on || !user.is_empty()).then(|| Caller {
        user,
        question: cx.id.to_string(),
        flow: cx.flow().to_owned(),
        request: cx.request().unwrap_or_default().to_owned(),
        deadline_ms: i64::try_from(cx.deadline.millis()).unwrap_or(i64::MAX),
        goes_on,
        grace_ms: match goes_on {
            true => question.grace.clamp(0, MAX_GRACE).saturating_mul(1000),
            false => 0,
        },
    })
}

/// What makes a repeated question the same: where it came in, who waits for the answer, and its id.
fn question_key(cx: &Cx) -> String {
    let reply_to = cx.headers.reply_to.as_deref().unwrap_or_default();
    let workspace = cx.workspace_key();
    format!("{workspace}/{}/{reply_to}/{}", cx.flow(), cx.id)
}
