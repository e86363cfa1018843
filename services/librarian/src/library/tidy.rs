//! Taking away what nobody needs any more.

use tg_schemas::Error;
use tg_schemas::msg::COLLECTION_STORES;

use super::Library;
use crate::fault::wire;
use crate::store::collection::{self, Life, Tombstone};
use crate::store::{content, document, made, run, upload};

/// Files removed in one step.
const BATCH: u32 = 256;
/// Answers kept in a workspace; older ones go.
const ANSWERS: u32 = 100_000;

impl Library {
    /// Removes files that no document uses. What cannot be removed now is found by [`Self::remove_orphans`].
    pub(super) async fn remove_unused(&self) {
        loop {
            let _alone = self.uses.write().await;
            let unused = match self.write(|tx| content::take_unused(tx, BATCH)).await {
                Ok(unused) if unused.is_empty() => return,
                Ok(unused) => unused,
                Err(_) => return,
            };
            for hash in unused {
                if let Err(fault) = self.content.remove(hash).await {
                    tracing::warn!(%fault, "content of a removed document stays");
                }
            }
        }
    }

    /// What time makes superfluous: uploads of yesterday, the oldest of too many answers.
    pub(crate) async fn tidy(&self, now: i64) -> Result<(), Error> {
        self.expire_uploads(now).await?;
        while self
            .write(|tx| document::trim_answers(tx, ANSWERS, BATCH))
            .await?
            > 0
        {}
        self.remove_unused().await;
        Ok(())
    }

    /// Removes files that an interrupted write left without a row.
    pub(crate) async fn remove_orphans(&self) -> Result<(), Error> {
        for first in 0..=u8::MAX {
            if self.content.list(first).await.map_err(wire)?.is_empty() {
                continue;
            }
            let _alone = self.uses.write().await;
            let files = self.content.list(first).await.map_err(wire)?;
            let unknown = self
                .read(move |conn| content::unknown(conn, &files))
                .await?;
            for hash in unknown {
                self.content.remove(hash).await.map_err(wire)?;
            }
        }
        Ok(())
    }

    /// Workspaces that have anything here.
    pub(crate) async fn workspaces(&self) -> Result<Vec<String>, Error> {
        self.read(document::workspaces).await
    }

    /// Forgets a workspace that was deleted; its collections are to be dropped by every store.
    pub(crate) async fn purge(&self, workspace: &str) -> Result<(), Error> {
        let name = workspace.to_owned();
        let uploads = self.read(move |conn| upload::of_workspace(conn, &name));
        for id in uploads.await? {
            let _alone = self.upload_lock(&id).await;
            self.drop_session(id.clone()).await?;
        }
        let workspace = workspace.to_owned();
        self.write(move |tx| {
            for (id, incarnation) in collection::live(tx, &workspace)? {
                for store in COLLECTION_STORES {
                    let stone = Tombstone {
                        workspace: workspace.clone(),
                        collection: id.clone(),
                        store: store.to_owned(),
                        incarnation,
                    };
                    collection::bury(tx, &stone)?;
                }
                collection::set(tx, &workspace, &id, incarnation, Life::Gone)?;
            }
            run::purge(tx, &workspace)?;
            made::purge(tx, &workspace)?;
            document::purge(tx, &workspace)
        })
        .await?;
        self.remove_unused().await;
        Ok(())
    }
}
