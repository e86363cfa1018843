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
