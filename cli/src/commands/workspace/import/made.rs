//! `--new`: the workspace that a bundle goes into is made for it, so that what is in other workspaces stays as it is.

use serde_json::json;
use tg_schemas::ErrorCode;

use super::asked::ImportWorkspace;
use crate::client::{Error, Http, Result};
use crate::fields::text;
use crate::session::Session;

/// The blueprint of its flow.
const BLUEPRINT: &str = "everything";

impl ImportWorkspace {
    /// Makes the workspace and starts its flow.
    ///
    /// # Errors
    /// There is one of that name: nothing is written then. Or it cannot be made.
    pub(super) async fn make(&self, session: &Session, http: &Http) -> Result<()> {
        let named = session.options.workspace.clone();
        let id = named.unwrap_or_else(|| "default".to_owned());
        let record = json!({"id": id, "enabled": true});
        let ask = json!({"operation": "get-workspace", "workspace_record": record});
        let known = match http.iam(ask).await {
            Ok(reply) => {
                let known = reply.get("workspace");
                known.is_some_and(|known| text(known, "id") == id)
            }
            Err(error) if error.code() == Some(ErrorCode::NotFound) => false,
            Err(error) => return Err(error),
        };
        if known {
            return Err(Error::Check(format!(
                "workspace {id} exists, and --new imports only into one that it makes itself; nothing was imported"
            )));
        }
        let make = json!({"operation": "create-workspace", "workspace_record": record});
        http.iam(make).await?;
        let start = json!({
            "operation": "start-flow",
            "flow-id": self.flow_id,
            "blueprint-name": BLUEPRINT,
            "description": "Made for a bundle",
        });
        http.service("flow", start).await?;
        Ok(())
    }
}
