//! How many tasks of graphs go on at the same time: so many of a workspace, in this process. What is more waits.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// See the module. There is an entry for each workspace that has tasks under way, and no other.
#[derive(Default)]
pub(super) struct Slots(Mutex<BTreeMap<String, Arc<Semaphore>>>);

impl Slots {
    /// Room for one task of a workspace, of so many, as soon as there is some.
    pub(super) async fn take(&self, workspace: &str, most: usize) -> Option<OwnedSemaphorePermit> {
        let slots = {
            let mut all = self.0.lock();
            // Who waits or has one holds it, too.
            all.retain(|_, slots| Arc::strong_count(slots) > 1);
            let new = || Arc::new(Semaphore::new(most));
            all.entry(workspace.to_owned()).or_insert_with(new).clone()
        };
        slots.acquire_owned().await.ok()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_workspace_waits_for_its_own_alone() {
        let slots = Slots::default();
        let first = slots.take("a", 1).await;
        assert!(slots.take("a", 1).now_or_never().is_none());
        assert!(slots.take("b", 1).now_or_never().is_some());
        drop(first);
        assert!(slots.take("a", 1).now_or_never().is_some());
        assert_eq!(slots.0.lock().len(), 1);
    }
}
