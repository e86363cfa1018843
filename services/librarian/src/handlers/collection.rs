//! The endpoint of a workspace's collections: decodes, has it done, answers.

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{Cx, OwnedStore, RequestHandler, Responder};
use tg_schemas::Error;
use tg_schemas::msg::{CollectionManagementRequest, CollectionManagementResponse};

use crate::engine::collection as rules;
use crate::error::invalid;
use crate::librarian::Librarian;

/// The endpoint of the collection service.
pub(crate) struct Collections(pub(crate) Arc<OwnedStore<Librarian>>);

#[async_trait]
impl RequestHandler<CollectionManagementRequest, CollectionManagementResponse> for Collections {
    async fn serve(
        &self,
        cx: Cx,
        ask: CollectionManagementRequest,
        mut out: Responder<CollectionManagementResponse>,
    ) -> Result<(), Error> {
        let librarian = self.0.get().await?;
        let workspace = cx.scope.workspace.as_ref();
        let workspace = workspace.ok_or_else(|| invalid("workspace: is required"))?;
        let mesh = &cx.mesh;
        let collections = match ask.operation.as_str() {
            "list-collections" => {
                let all = librarian.list_collections(mesh, workspace).await?;
                rules::select(all.into_iter(), &ask.tag_filter, ask.limit)
            }
            "update-collection" => {
                let one = rules::complete(&ask.collection, ask.name, ask.description, ask.tags)?;
                librarian.update_collection(mesh, workspace, &one).await?;
                vec![one]
            }
            "delete-collection" => {
                rules::check(&ask.collection)?;
                let deletion =
                    librarian.delete_collection(mesh, workspace, &ask.collection, cx.deadline);
                deletion.await?;
                Vec::new()
            }
            _ => return Err(invalid("operation: is not known to the collection service")),
        };
        out.send(CollectionManagementResponse {
            error: None,
            timestamp: now(),
            collections,
        })
        .await
    }
}

/// UTC, and says so.
fn now() -> String {
    let now = chrono::Utc::now();
    now.to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
}
