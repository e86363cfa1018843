//! Which configuration a store has known: from another one, or an older one, it takes no proof of a deletion.

use async_trait::async_trait;
use tg_schemas::Error;
use tg_storage::{ConfigKnown, Database};

/// Remembers, as durably as a store keeps its data, which configuration that store has known.
#[async_trait]
pub trait KnownConfig: Send + Sync {
    /// The configuration that was remembered; `None` before the first.
    ///
    /// # Errors
    /// When it cannot be read.
    async fn config_known(&self) -> Result<Option<ConfigKnown>, Error>;

    /// Remembers a configuration instead of the one before.
    ///
    /// # Errors
    /// When it cannot be written.
    async fn remember_config(&self, known: ConfigKnown) -> Result<(), Error>;
}

#[async_trait]
impl KnownConfig for Database {
    async fn config_known(&self) -> Result<Option<ConfigKnown>, Error> {
        Ok(Self::config_known(self).await?)
    }

    async fn remember_config(&self, known: ConfigKnown) -> Result<(), Error> {
        Ok(Self::remember_config(self, known).await?)
    }
}

#[cfg(test)]
mod conformance {
    //! What every adapter of [`KnownConfig`] does. A new one is added by one line at the end.

    use tg_storage::Durability;

    use super::*;

    fn config(identity: &str, version: i64) -> ConfigKnown {
        ConfigKnown {
            identity: identity.to_owned(),
            version,
        }
    }

    async fn the_last_configuration_is_known(open: impl Fn() -> Box<dyn KnownConfig>) {
        let store = open();
        assert_eq!(store.config_known().await.unwrap(), None);
        for known in [config("a", 3), config("a", 2), config("b", 1)] {
            for _ in 0..2 {
                store.remember_config(known.clone()).await.unwrap();
            }
            assert_eq!(store.config_known().await.unwrap(), Some(known));
        }
        drop(store);
        let known = open().config_known().await.unwrap();
        assert_eq!(known, Some(config("b", 1)), "after a start");
    }

    #[tokio::test]
    async fn sqlite() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("store.sqlite");
        the_last_configuration_is_known(|| {
            Box::new(Database::open(&file, &[], Durability::Process).unwrap())
        })
        .await;
    }
}
