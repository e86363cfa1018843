//! The rows of this process: reads from memory, writes to the store, then memory, then notice, one at a time.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::RwLock;
use tg_mesh::clock;
use tg_schemas::Error;
use tg_schemas::msg::{ConfigPush, ConfigRequest};
use tg_storage::StorageError;
use tokio::sync::Mutex;

use crate::engine::{self, ConfigReply, Given, ReadScope, Rows, Write};
use crate::error::wire;
use crate::options::Options;
use crate::store::ConfigStore;

/// Rows read at once when the store is opened.
const PAGE: u32 = 4096;

/// Where notices go. A lost one heals with the next announcement.
#[async_trait]
pub(crate) trait Notices: Send + Sync {
    /// Tells everybody who listens.
    async fn tell(&self, push: ConfigPush);
}

/// The open store and its rows in memory.
pub(crate) struct CachedConfig {
    store: Arc<dyn ConfigStore>,
    /// How long a deleted workspace can be restored, in milliseconds.
    grace: i64,
    /// Bytes that a workspace may hold.
    most: usize,
    rows: RwLock<Rows>,
    /// Held from the plan to the notice: versions are told in their order.
    writing: Mutex<()>,
}

impl CachedConfig {
    /// Reads the store into memory.
    pub(crate) async fn load(
        store: Arc<dyn ConfigStore>,
        options: &Options,
    ) -> Result<Self, StorageError> {
        let mut rows = Rows::new(store.version().await?, []);
        let mut after = None;
        loop {
            let page = store.page(after.take(), PAGE).await?;
            let whole = page.len() < PAGE as usize;
            after = page.last().map(|row| row.at.clone());
            page.into_iter().for_each(|row| rows.insert(row));
            if whole {
                break;
            }
        }
        Ok(Self {
            store,
            grace: i64::try_from(options.grace().as_millis()).unwrap_or(i64::MAX),
            most: options.workspace_mb << 20,
            rows: RwLock::new(rows),
            writing: Mutex::default(),
        })
    }

    /// Answers a reading operation.
    pub(crate) fn read(
        &self,
        scope: ReadScope<'_>,
        ask: &ConfigRequest,
    ) -> Result<ConfigReply, Error> {
        engine::answer(&self.rows.read(), scope, ask)
    }

    /// Makes a write durable and visible, then tells. Must not be dropped half-way: memory would fall
    /// behind the disk; so callers give it a task of its own. Returns the version after it.
    pub(crate) async fn write(&self, write: Write, notices: &dyn Notices) -> Result<i64, Error> {
        let _turn = self.writing.lock().await;
        let trash = match &write {
            Write::RestoreWorkspace(workspace) => {
                self.store.trash(workspace).await.map_err(wire)?
            }
            _ => None,
        };
        let given = Given {
            now: clock::millis(),
            grace: self.grace,
            trash,
            most: self.most,
        };
        let change = engine::plan(&self.rows.read(), write, &given)?;
        self.store.commit(&change, given.now).await.map_err(wire)?;
        change.apply(&mut self.rows.write());
        notices.tell(change.push).await;
        Ok(change.version)
    }

    /// Tells the version as a change of everything.
    pub(crate) async fn announce(&self, notices: &dyn Notices) {
        let _turn = self.writing.lock().await;
        let push = engine::announcement(&self.rows.read());
        notices.tell(push).await;
    }
}

#[cfg(test)]
mod tests;
