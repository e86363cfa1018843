//! The GraphQL schema of each workspace, built again only when its configuration changed.

use std::sync::Arc;

use tg_mesh::{Cx, Derived};
use tg_schemas::table::TABLE;
use tg_schemas::{Error, ErrorCode};

use crate::graphql::{Built, build};

/// See the module.
#[derive(Default)]
pub(super) struct Schemas(Derived<Built>);

impl Schemas {
    /// The schema of the context's workspace.
    pub(super) async fn of(&self, cx: &Cx) -> Result<Arc<Built>, Error> {
        let rows = [cx.config().values(cx.workspace(), TABLE)];
        if let Some(built) = self.0.get(cx.workspace(), &rows) {
            return Ok(built);
        }
        let wanted = rows[0].clone();
        let built = tokio::task::spawn_blocking(move || {
            build(wanted.iter().map(|(key, text)| (key.as_str(), &**text)))
        });
        let built = built.await.map_err(|_| unusable())?.map_err(|fault| {
            tracing::error!(%fault, "the schemas of a workspace do not make a GraphQL schema");
            unusable()
        })?;
        Ok(self.0.put(cx.workspace(), rows.into(), built))
    }
}

fn unusable() -> Error {
    Error::new(
        ErrorCode::Internal,
        "the workspace's schemas cannot be used",
    )
}
