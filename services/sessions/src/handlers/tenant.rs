//! What a workspace says of its sessions.

use async_trait::async_trait;
use tg_clients::operations::{Chunks, Handle, Refused};
use tg_mesh::{Cx, clock};
use tg_schemas::operations::{
    Empty, Failure, GetTenantConfig, PutTenantConfig, TenantChange, TenantConfig,
};

use super::Agents;
use crate::engine::tenant;
use crate::error::SessionsError;
use crate::store::SettingStore;

impl Agents {
    /// The settings of the workspace.
    ///
    /// # Errors
    /// The store failed.
    pub(super) async fn tenant(&self, cx: &Cx) -> Result<TenantConfig, SessionsError> {
        let store = self.store.get().await?;
        let rows = store.settings(cx.workspace_key().as_str()).await?;
        let own = tenant::of_rows(&rows);
        Ok(tenant::config(cx.workspace(), &self.levels, own))
    }

    async fn changed(&self, cx: &Cx, change: &TenantChange) -> Result<TenantConfig, SessionsError> {
        let changes = tenant::changes(change, &self.levels.models)?;
        let store = self.store.get().await?;
        let key = cx.workspace_key();
        store.set(key.as_str(), changes, clock::millis()).await?;
        drop(store);
        self.tenant(cx).await
    }
}

#[async_trait]
impl Handle<GetTenantConfig> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        _: Empty,
        _: &mut Chunks<'_, GetTenantConfig>,
    ) -> Result<TenantConfig, Refused<Failure>> {
        Ok(self.tenant(cx).await?)
    }
}

#[async_trait]
impl Handle<PutTenantConfig> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        change: TenantChange,
        _: &mut Chunks<'_, PutTenantConfig>,
    ) -> Result<TenantConfig, Refused<Failure>> {
        Ok(self.changed(cx, &change).await?)
    }
}
