//! A collection is deleted: no conversation may use it any more, nor one that gets its name later.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{Cx, LeasedStore, RequestHandler, Responder};
use tg_schemas::msg::{CollectionDrop, CollectionDropped};
use tg_schemas::{Error, ErrorCode, WorkspaceKey};

use crate::store::{SessionStore, SqliteSessions};

/// Serves the end of collections.
pub(crate) struct Dropped(pub(crate) Arc<LeasedStore<SqliteSessions>>);

#[async_trait]
impl RequestHandler<CollectionDrop, CollectionDropped> for Dropped {
    async fn serve(
        &self,
        cx: Cx,
        ask: CollectionDrop,
        mut out: Responder<CollectionDropped>,
    ) -> Result<(), Error> {
        for (field, value) in [
            ("workspace", &ask.workspace),
            ("collection", &ask.collection),
        ] {
            if value.is_empty() {
                let text = format!("{field}: is required");
                return Err(Error::new(ErrorCode::BadRequest, text));
            }
        }
        let workspace = WorkspaceKey::parse(&ask.workspace);
        let config = cx.config();
        // One that has its name now is another, and stays.
        let is_other = config.workspace_key(workspace.name()) == workspace
            && config.collection_generation(workspace.name(), &ask.collection) > ask.generation;
        let count = match is_other {
            true => 0,
            false => {
                let store = self.0.get().await?;
                store
                    .forget_collection(workspace.as_str(), &ask.collection)
                    .await?
            }
        };
        out.send(CollectionDropped {
            error: None,
            removed: BTreeMap::from([(
                "conversations".to_owned(),
                i64::try_from(count).unwrap_or(i64::MAX),
            )]),
        })
        .await
    }
}
