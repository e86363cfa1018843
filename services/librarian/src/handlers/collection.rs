//! The endpoint of a workspace's collections: decodes, has it done, answers.

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{Cx, LeasedStore, RequestHandler, Responder, clock};
use tg_schemas::Error;
use tg_schemas::msg::{CollectionManagementRequest, CollectionManagementResponse};
use tg_schemas::paging::Asked;

use crate::engine::collection as rules;
use crate::error::invalid;
use crate::librarian::Librarian;

/// The endpoint of the collection service.
pub(crate) struct Collections(pub(crate) Arc<LeasedStore<Librarian>>);

#[async_trait]
impl RequestHandler<CollectionManagementRequest, CollectionManagementResponse> for Collections {
    async fn serve(
        &self,
        cx: Cx,
        ask: CollectionManagementRequest,
        mut out: Responder<CollectionManagementResponse>,
    ) -> Result<(), Error> {
        let librarian = self.0.get().await?;
        if cx.scope.workspace.is_none() {
            return Err(invalid("workspace: is required"));
        }
        let workspace = &cx.workspace_key();
        let mesh = &cx.mesh;
        let mut next = String::new();
        let mut reembedding = None;
        let collections = match ask.operation.as_str() {
            "list-collections" => {
                let asked = Asked::read(&ask.operation, ask.limit, &ask.after)?;
                let all = librarian.list_collections(mesh, workspace).await?;
                let page = rules::select(all, &ask.tag_filter, asked)?;
                next = page.next;
                page.entries
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
            "reembed-collection" => {
                let (id, flow) = (&ask.collection, &ask.flow);
                let begun = librarian.reembed(mesh, workspace, id, flow, ask.leave_out);
                reembedding = Some(begun.await?);
                Vec::new()
            }
            "show-reembedding" => {
                let shown = librarian.reembedding(mesh, workspace, &ask.collection);
                reembedding = Some(shown.await?);
                Vec::new()
            }
            "abandon-reembedding" => {
                let ended = librarian.abandon_reembedding(mesh, workspace, &ask.collection);
                reembedding = Some(ended.await?);
                Vec::new()
            }
            _ => return Err(invalid("operation: is not known to the collection service")),
        };
        out.send(CollectionManagementResponse {
            error: None,
            timestamp: clock::rfc3339(),
            collections,
            next,
            reembedding,
        })
        .await
    }
}
