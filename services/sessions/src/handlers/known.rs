//! What a request is known by: what its client calls it, what it asks, and what it says. A client that lost the answer and asks again
//! finds what was done; another text under the same name is a request of its own.

use std::sync::Arc;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use tg_clients::operations::Served;
use tg_mesh::{Cx, RequestHandler, Responder};
use tg_schemas::Error;
use tg_schemas::msg::{OperationRequest, OperationResponse};
use tg_schemas::operations::{ALL, Effect, SESSIONS};

/// The operations, each request under the id that it is known by.
pub(crate) struct Known(pub(crate) Served);

#[async_trait]
impl RequestHandler<OperationRequest, OperationResponse> for Known {
    async fn serve(
        &self,
        mut cx: Cx,
        asked: OperationRequest,
        out: Responder<OperationResponse>,
    ) -> Result<(), Error> {
        if let Some(id) = known_by(&cx, &asked) {
            cx.id = id;
        }
        // A method of the same name is Served's own.
        RequestHandler::serve(&self.0, cx, asked, out).await
    }
}

/// `None`: its question's own id. So it is with turns, which look for their request themselves, with what changes nothing, and with what
/// no client asks itself.
fn known_by(cx: &Cx, asked: &OperationRequest) -> Option<Arc<str>> {
    let mut all = ALL.iter().filter(|meta| meta.service == SESSIONS);
    let meta = all.find(|meta| meta.name == asked.operation)?;
    let is_turn = !meta.stream.is_empty();
    if is_turn || meta.effect == Effect::Read || cx.headers.depth.is_some() {
        return None;
    }
    let said = serde_json::to_vec(&asked.request).ok()?;
    let user = cx.headers.user_id.as_deref().unwrap_or_default();
    let mut hash = Sha256::new();
    for part in [
        cx.request()?.as_bytes(),
        meta.name.as_bytes(),
        user.as_bytes(),
        &said,
    ] {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    let hash: [u8; 32] = hash.finalize().into();
    // What is made gets this id, and ids are UUIDs.
    let id = uuid::Builder::from_random_bytes(std::array::from_fn(|at| hash[at]));
    Some(id.into_uuid().hyphenated().to_string().into())
}
