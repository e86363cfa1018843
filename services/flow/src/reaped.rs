//! What the reaper of deleted workspaces does here: records that were dead-lettered for their flows go. The flows were
//! stopped, so none of it comes back with a restored workspace.

use async_trait::async_trait;
use tg_collections::{KnownConfig, WorkspaceStore};
use tg_schemas::{Error, WorkspaceKey, WorkspaceTombstone};

use crate::store::{RecordStore, Store};

/// Workspaces looked at in one step.
const PAGE: u32 = 500;

#[async_trait]
impl WorkspaceStore for Store {
    const AT_ONCE: bool = true;

    async fn workspaces(&self) -> Result<Vec<String>, Error> {
        let (mut all, mut after) = (Vec::new(), String::new());
        loop {
            let page = RecordStore::workspaces(&**self, &after, PAGE).await?;
            let Some(last) = page.last() else {
                return Ok(all);
            };
            after.clone_from(last);
            all.extend(page);
        }
    }

    async fn purge(&self, key: &WorkspaceKey, deleted: &WorkspaceTombstone) -> Result<(), Error> {
        // In the first generation may be what the release before kept without one, of a later workspace too.
        let until = match key.generation() {
            0 => deleted.deleted_at,
            _ => i64::MAX,
        };
        Ok(RecordStore::purge(&**self, key.as_str(), until).await?)
    }

    fn known_config(&self) -> &dyn KnownConfig {
        &**self
    }
}
