//! The GraphQL schema of each workspace, built again only when its configuration changed.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tg_mesh::Cx;
use tg_schemas::table::TABLE;
use tg_schemas::{Error, ErrorCode};

use crate::graphql::{Built, build};

/// Workspaces remembered.
const MOST: usize = 256;

type Rows = std::collections::BTreeMap<String, Arc<str>>;

/// A schema and the configuration it was built from.
type Kept = (Arc<Rows>, Arc<Built>);

/// See the module.
#[derive(Default)]
pub(super) struct Schemas(Mutex<HashMap<String, Kept>>);

impl Schemas {
    /// The schema of the context's workspace.
    pub(super) async fn of(&self, cx: &Cx) -> Result<Arc<Built>, Error> {
        let rows = cx.config().values(cx.workspace(), TABLE);
        if let Some((of, built)) = self.0.lock().get(cx.workspace())
            && *of == rows
        {
            return Ok(built.clone());
        }
        let wanted = rows.clone();
        let built = tokio::task::spawn_blocking(move || {
            build(wanted.iter().map(|(key, text)| (key.as_str(), &**text)))
        });
        let built = built.await.map_err(|_| unusable())?.map_err(|fault| {
            tracing::error!(%fault, "the schemas of a workspace do not make a GraphQL schema");
            unusable()
        })?;
        let built = Arc::new(built);
        let mut kept = self.0.lock();
        if kept.len() >= MOST {
            kept.clear();
        }
        kept.insert(cx.workspace().to_owned(), (rows, built.clone()));
        Ok(built)
    }
}

fn unusable() -> Error {
    Error::new(
        ErrorCode::Internal,
        "the workspace's schemas cannot be used",
    )
}
