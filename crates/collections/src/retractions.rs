//! Which retractions a store has done. One names what goes by what made it, and what made it may make the same once more
//! later: done again then, it would take that.

use async_trait::async_trait;
use tg_schemas::Error;
use tg_storage::{Database, DoneOnce};

/// Remembers, as durably as a store keeps its data, which retractions were done: the newest of each workspace and reader.
#[async_trait]
pub trait Retractions: Send + Sync {
    /// Whether a retraction was done.
    ///
    /// # Errors
    /// When it cannot be read.
    async fn is_done(&self, one: DoneOnce) -> Result<bool, Error>;

    /// Remembers that one was done. Doing it again changes nothing.
    ///
    /// # Errors
    /// When it cannot be written.
    async fn note(&self, one: DoneOnce) -> Result<(), Error>;

    /// Forgets those of a workspace, by its key.
    ///
    /// # Errors
    /// When it cannot be written.
    async fn forget(&self, workspace: &str) -> Result<(), Error>;
}

#[async_trait]
impl Retractions for Database {
    async fn is_done(&self, one: DoneOnce) -> Result<bool, Error> {
        Ok(self.has_done(one).await?)
    }

    async fn note(&self, one: DoneOnce) -> Result<(), Error> {
        Ok(self.note_done(one).await?)
    }

    async fn forget(&self, workspace: &str) -> Result<(), Error> {
        Ok(self.forget_done(workspace.to_owned()).await?)
    }
}

#[cfg(test)]
mod conformance {
    //! What every adapter of [`Retractions`] does. A new one is added by one line at the end.

    use tg_storage::Durability;

    use super::*;

    fn one(owner: &str, purpose: &str, record: &str) -> DoneOnce {
        DoneOnce {
            owner: owner.to_owned(),
            purpose: purpose.to_owned(),
            record: record.to_owned(),
        }
    }

    async fn what_was_done_is_known(open: impl Fn() -> Box<dyn Retractions>) {
        let store = open();
        let all = [
            one("w", "p", "1"),
            one("w", "p", "2"),
            one("w", "q", "1"),
            one("v", "p", "1"),
        ];
        store.forget("w").await.unwrap();
        for (at, now) in all.iter().enumerate() {
            for _ in 0..2 {
                assert!(!store.is_done(now.clone()).await.unwrap(), "{at}");
            }
            for _ in 0..2 {
                store.note(now.clone()).await.unwrap();
                assert!(store.is_done(now.clone()).await.unwrap());
            }
        }
        drop(store);
        let store = open();
        for one in &all {
            assert!(store.is_done(one.clone()).await.unwrap(), "after a start");
        }
        store.forget("w").await.unwrap();
        for one in &all {
            let known = store.is_done(one.clone()).await.unwrap();
            assert_eq!(known, one.owner == "v", "{one:?}");
        }
    }

    #[tokio::test]
    async fn sqlite() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("store.sqlite");
        what_was_done_is_known(|| {
            Box::new(Database::open(&file, &[], Durability::Process).unwrap())
        })
        .await;
    }
}
