//! What came of a task is said in the session that it was given in: behind the turns of the session that were there before it, and
//! in the one that continues it, where it was shortened meanwhile.

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{Cx, LeasedStore, RequestHandler, Responder, clock};
use tg_schemas::msg::{OperationResponse, SessionNotice};
use tg_schemas::{Error, ErrorCode};

use crate::store::{SessionStore, SqliteSessions, Unasked};
use crate::turns::Turns;

/// Sessions of a chain that are looked at to find the one that goes on.
const CHAIN: usize = 1_000;

/// Serves notices to sessions.
pub(crate) struct Announced {
    pub(crate) store: Arc<LeasedStore<SqliteSessions>>,
    pub(crate) turns: Arc<Turns>,
}

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
        self.keep(&cx, notice).await?;
        out.send(OperationResponse {
            last: true,
            ..OperationResponse::default()
        })
        .await
    }
}

impl Announced {
    /// Most notices are to conversations and runs that are no sessions: nothing of them is kept.
    async fn keep(&self, cx: &Cx, notice: SessionNotice) -> Result<(), Error> {
        let key = cx.workspace_key();
        let mut id = notice.session_id;
        for _ in 0..CHAIN {
            let store = self.store.get().await?;
            if store.session(key.as_str(), &id).await?.is_none() {
                return Ok(());
            }
            // A turn may take long, and the store may have to go to another process meanwhile.
            drop(store);
            let _alone = self.turns.after(key.clone(), &id).await;
            let store = self.store.get().await?;
            let Some(session) = store.session(key.as_str(), &id).await? else {
                return Ok(());
            };
            if session.archived.is_none() {
                let said = Unasked {
                    id: notice.message_id,
                    content: notice.text,
                    at: clock::millis(),
                };
                store.announce(key.as_str(), &id, said).await?;
                return Ok(());
            }
            match session.successor {
                Some(next) => id = next,
                None => return Ok(()),
            }
        }
        Ok(())
    }
}
