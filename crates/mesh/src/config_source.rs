//! What a host asks of whoever keeps the configuration. The typed client of that service implements it and is passed in:
//! the mesh knows rows and versions, neither a service nor what it is asked with.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use tg_rpc::Peer;
use tg_schemas::{Error, Topic};

use crate::config_view::Rows;

/// Where the configuration is read.
#[async_trait]
pub trait ConfigSource: Send + Sync + 'static {
    /// Where changes are announced.
    fn notices(&self) -> Topic;

    /// All rows of a type, by workspace, and the version they are of; while they change, the oldest one that was seen, so
    /// that the notices after it are applied once more. Each question may take `patience`.
    ///
    /// # Errors
    /// How a question failed; then nothing is known of the rows.
    async fn rows(
        &self,
        peer: &Peer,
        kind: &str,
        patience: Duration,
    ) -> Result<(i64, BTreeMap<String, Rows>), Error>;

    /// Values of keys (type and name) in a workspace, in order; `None` where there is none.
    ///
    /// # Errors
    /// How the question failed.
    async fn values(
        &self,
        peer: &Peer,
        workspace: &str,
        keys: &[(String, String)],
        patience: Duration,
    ) -> Result<Vec<Option<String>>, Error>;
}
