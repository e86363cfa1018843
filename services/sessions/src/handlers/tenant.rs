//! What a workspace says of its sessions.

use std::collections::BTreeMap;

use async_trait::async_trait;
use tg_clients::operations::{Chunks, Handle, Refused};
use tg_mesh::{Cx, clock};
use tg_schemas::operations::{
    Empty, Failure, GetTenantConfig, PutTenantConfig, TenantChange, TenantConfig, TenantSettings,
};

use super::Agents;
use crate::engine::tenant;
use crate::error::SessionsError;
use crate::store::{Session, SettingStore};

impl Agents {
    /// The settings of the workspace.
    ///
    /// # Errors
    /// The store failed.
    pub(super) async fn tenant(&self, cx: &Cx) -> Result<TenantConfig, SessionsError> {
        let store = self.store.get().await?;
        let rows = store.settings(cx.workspace_key().as_str()).await?;
        Ok(self.tenant_of(cx, &rows))
    }

    /// The settings of the workspace, of which the store has these.
    fn tenant_of(&self, cx: &Cx, rows: &BTreeMap<String, String>) -> TenantConfig {
        let own = tenant::of_rows(rows);
        tenant::config(cx.workspace(), &self.levels, own)
    }

    /// The settings that count, and a session, whosever it is.
    ///
    /// # Errors
    /// The store failed.
    pub(super) async fn settings_and_session(
        &self,
        cx: &Cx,
        id: &str,
    ) -> Result<(TenantSettings, Option<Session>), SessionsError> {
        let store = self.store.get().await?;
        let key = cx.workspace_key();
        let (rows, session) = store.settings_and_session(key.as_str(), id).await?;
        Ok((self.tenant_of(cx, &rows).effective, session))
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
