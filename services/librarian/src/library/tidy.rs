//! Taking away what nobody needs any more.

use tg_schemas::Error;

use super::Library;
use crate::error::wire;

/// Files removed in one step.
const BATCH: u32 = 256;
/// Answers kept in a workspace; older ones go.
const ANSWERS: u32 = 100_000;
/// Workspaces or uploads looked at in one step.
pub(super) const PAGE: u32 = 500;

impl Library {
    /// Removes files that no document uses. What cannot be removed now is found by [`Self::remove_orphans`].
    pub(super) async fn remove_unused(&self) {
        loop {
            let _alone = self.uses.write().await;
            let unused = match self.rows.take_unused(BATCH).await {
                Ok(unused) if unused.is_empty() => return,
                Ok(unused) => unused,
                Err(fault) => {
                    tracing::warn!(%fault, "content that is not referenced is not removed yet");
                    return;
                }
            };
            for hash in unused {
                if let Err(fault) = self.content.remove(hash).await {
                    tracing::warn!(%fault, "content of a removed document is not removed yet");
                }
            }
        }
    }

    /// What time makes superfluous: uploads of yesterday, the oldest of too many answers.
    pub(crate) async fn tidy(&self, now: i64) -> Result<(), Error> {
        self.expire_uploads(now).await?;
        while self.rows.trim_answers(ANSWERS, BATCH).await.map_err(wire)? > 0 {}
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
            for hash in self.rows.unknown(files).await.map_err(wire)? {
                self.content.remove(hash).await.map_err(wire)?;
            }
        }
        Ok(())
    }

    /// Workspaces that have anything here.
    pub(crate) async fn workspaces(&self) -> Result<Vec<String>, Error> {
        let (mut all, mut after) = (Vec::new(), String::new());
        loop {
            let page = self.rows.workspaces(&after, PAGE).await.map_err(wire)?;
            let Some(last) = page.last() else {
                return Ok(all);
            };
            after.clone_from(last);
            all.extend(page);
        }
    }

    /// Forgets a workspace that was deleted; its collections are to be dropped by every store.
    pub(crate) async fn purge(&self, workspace: &str) -> Result<(), Error> {
        loop {
            let uploads = self.rows.uploads_of(workspace, PAGE).await.map_err(wire)?;
            if uploads.is_empty() {
                break;
            }
            for id in uploads {
                let _alone = self.upload_lock(&id).await;
                self.drop_session(&id).await?;
            }
        }
        self.rows.purge(workspace).await.map_err(wire)?;
        self.remove_unused().await;
        Ok(())
    }
}
