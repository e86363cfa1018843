//! Places that workspaces share fairly: one workspace takes at most its share of them, and whoever waits is served in
//! turn.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::GraphError;

/// See the module.
pub(crate) struct Permits {
    all: Arc<Semaphore>,
    share: usize,
    workspaces: Mutex<HashMap<Arc<str>, Weak<Semaphore>>>,
}

/// A place. Given back when dropped.
pub(crate) struct Permit {
    // The common place first: what waits for it waits longest.
    _common: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
}

impl Permits {
    /// So many places, and so many of them for one workspace at most.
    pub(crate) fn new(all: usize, share: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            share: share.clamp(1, all.max(1)),
            workspaces: Mutex::default(),
        }
    }

    /// Waits for a place. Only what is within its workspace's share waits for the common ones, so a workspace that
    /// asks for much is never before the others more than its share.
    pub(crate) async fn take(&self, workspace: &str) -> Result<Permit, GraphError> {
        let own = self.own(workspace).acquire_owned().await;
        let own = own.map_err(|_| GraphError::Closed)?;
        let common = self.all.clone().acquire_owned().await;
        Ok(Permit {
            _common: common.map_err(|_| GraphError::Closed)?,
            _own: own,
        })
    }

    fn own(&self, workspace: &str) -> Arc<Semaphore> {
        let mut workspaces = self.workspaces.lock();
        if let Some(known) = workspaces.get(workspace).and_then(Weak::upgrade) {
            return known;
        }
        // Those that nobody uses any more go.
        workspaces.retain(|_, known| known.strong_count() > 0);
        let new = Arc::new(Semaphore::new(self.share));
        workspaces.insert(workspace.into(), Arc::downgrade(&new));
        new
    }

    /// Places that are free.
    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        self.all.available_permits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_workspace_takes_its_share_and_leaves_the_rest() {
        let permits = Arc::new(Permits::new(4, 2));
        let first = permits.take("a").await.unwrap();
        let _second = permits.take("a").await.unwrap();
        let mut third = tokio_test(permits.clone(), "a");
        assert!(futures::poll!(&mut third).is_pending(), "above its share");
        let _other = permits.take("b").await.unwrap();
        assert_eq!(permits.free(), 1);
        drop(first);
        assert!(third.await.is_ok());
        assert_eq!(permits.free(), 2);
    }

    fn tokio_test(
        permits: Arc<Permits>,
        workspace: &'static str,
    ) -> futures::future::BoxFuture<'static, Result<Permit, GraphError>> {
        Box::pin(async move { permits.take(workspace).await })
    }
}
