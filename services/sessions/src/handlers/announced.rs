//! What came of a task is said in the session that it was given in: behind the turns of the session that were there before it, and
//! in the one that continues it, where it was shortened meanwhile. The agent of the session says it in its own words; where it
//! cannot, it is said as it is.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tg_clients::session_notices::KEPT;
use tg_mesh::tg_bus::pause::after;
use tg_mesh::{Cx, RequestHandler, Responder, clock};
use tg_schemas::msg::{OperationResponse, SessionNotice};
use tg_schemas::operations::WhenBusy;
use tg_schemas::{Error, ErrorCode};
use tokio::time::Instant;

use super::Agents;
use super::asking::{Asking, Hearing, flow_of};
use super::work::told;
use crate::engine::definition::Definition;
use crate::engine::transcript::{Said, TOLD, framing};
use crate::store::{Session, SessionStore, Unasked};
use crate::trail::{ModelCall, Who};

/// Sessions of a chain that are looked at to find the one that goes on.
const CHAIN: usize = 1_000;
/// How long the agent of the session may take each time, how often it is asked, and the pause after the first time.
const ATTEMPT: Duration = Duration::from_secs(120);
const ATTEMPTS: u32 = 4;
const FIRST: Duration = Duration::from_secs(2);
/// The last time is begun this long after the first at the latest.
const LONGEST: Duration = Duration::from_secs(8);

/// Serves notices to sessions.
pub(crate) struct Announced(pub(crate) Arc<Agents>);

#[async_trait]
impl RequestHandler<SessionNotice, OperationResponse> for Announced {
    async fn serve(
        &self,
        cx: Cx,
        notice: SessionNotice,
        mut out: Responder<OperationResponse>,
    ) -> Result<(), Error> {
        for (field, value) in [
            ("session_id", &notice.session_id),
            ("message_id", &notice.message_id),
        ] {
            if value.is_empty() {
                let text = format!("{field}: is required");
                return Err(Error::new(ErrorCode::BadRequest, text));
            }
        }
        let kept = self.keep(&cx, notice).await?;
        let kept = kept.map(|text| (KEPT.to_owned(), json!(text)));
        out.send(OperationResponse {
            last: true,
            data: kept.into_iter().collect(),
            ..OperationResponse::default()
        })
        .await
    }
}

impl Announced {
    /// Most notices are to conversations and runs that are no sessions: nothing of them is kept. Returns what is.
    async fn keep(&self, cx: &Cx, notice: SessionNotice) -> Result<Option<String>, Error> {
        let Agents { store, turns, .. } = &*self.0;
        let key = cx.workspace_key();
        let mut id = notice.session_id.clone();
        let mut said = None;
        for _ in 0..CHAIN {
            let opened = store.get().await?;
            if opened.session(key.as_str(), &id).await?.is_none() {
                return Ok(None);
            }
            // A turn may take long, and the store may have to go to another process meanwhile.
            drop(opened);
            let alone = turns.after(key.clone(), &id).await;
            let opened = store.get().await?;
            let Some(session) = opened.session(key.as_str(), &id).await? else {
                return Ok(None);
            };
            if session.archived.is_some() {
                match session.successor {
                    Some(next) => id = next,
                    None => return Ok(None),
                }
                continue;
            }
            let Some(text) = said.take() else {
                // Users take turns while the agent is asked. Then the session is looked at once more.
                drop((opened, alone));
                let worded = self.worded(cx, &session, &notice).await;
                said = Some(worded.unwrap_or_else(|| notice.text.clone()));
                continue;
            };
            let unasked = Unasked {
                id: notice.message_id,
                content: text.clone(),
                at: clock::millis(),
            };
            opened.announce(key.as_str(), &id, unasked).await?;
            return Ok(Some(text));
        }
        Ok(None)
    }

    /// What the agent of the session says of it. It has no tools then, so that nothing follows from what it is told. `None`: nobody is
    /// to be asked, or it failed each time.
    async fn worded(&self, cx: &Cx, session: &Session, notice: &SessionNotice) -> Option<String> {
        let agents = &*self.0;
        if notice.notification.is_empty() {
            return None;
        }
        let (agent, _) = agents.either(cx, &session.owner.agent).await.ok()?;
        let agent = Definition {
            tools: Vec::new(),
            ..(*agent).clone()
        };
        let settings = agents.tenant(cx).await.ok()?.effective;
        let usual = settings.agent_flow.as_deref().unwrap_or_default();
        let flow = flow_of(&agents.flows, cx, &agent, usual).ok()?;
        // It has a place among the turns of the workspace, and waits for no other one.
        let lane = format!("announced {}", notice.message_id);
        let key = cx.workspace_key();
        let turn = agents.turns.enter(key.clone(), &lane, WhenBusy::Queue, 0);
        let _turn = turn.await.ok()?;
        let store = agents.store.get().await.ok()?;
        let past = store.past(key.as_str(), &session.id, (0, i64::MAX), TOLD);
        let past = past.await.ok()?;
        drop(store);
        let past: Vec<Said> = past.iter().filter_map(told).collect();
        let asking = Asking {
            agent: &agent,
            question: &notice.notification,
            framing: framing(&agent, "", &past),
            session: &session.id,
            window: "[]",
            flow,
            depth: 0,
        };
        let (began, hearing) = (Instant::now(), Hearing::whole());
        let (mut made, mut said) = (Vec::new(), None);
        for attempt in 0..ATTEMPTS {
            if let Some(before) = attempt.checked_sub(1) {
                tokio::time::sleep_until(began + after(FIRST, before, LONGEST)).await;
            }
            if cx.cancel.is_cancelled() {
                break;
            }
            let name = format!("announced-{attempt}");
            let asked = asking.ask_as(cx, &name, &hearing, &mut made);
            let answered = tokio::time::timeout(ATTEMPT, asked).await;
            if let Ok(Ok(answered)) = answered {
                // Why a guard stopped it is not what came of the task.
                said = Some(answered)
                    .filter(|one| !one.stopped && !one.content.trim().is_empty())
                    .map(|one| one.content);
                break;
            }
        }
        let who = Who {
            surface: "delegate",
            agent: agent.name.clone(),
            user: session.owner.user.clone(),
            session: Some(session.id.clone()),
            ..Who::default()
        };
        let made = made.into_iter();
        let made: Vec<_> = made
            .map(|call| ModelCall::of_agent(who.surface, call))
            .collect();
        agents.trail.calls(cx, &who, &made).await;
        said
    }
}
