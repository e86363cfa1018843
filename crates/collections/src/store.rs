//! What a store of collections does when some of what it holds has to go.

use async_trait::async_trait;
use tg_schemas::Error;
use tg_schemas::msg::Retract;

use crate::{CollectionKey, Retractions, WorkspaceStore, WriteKind};

/// A store whose data belongs to collections. [`crate::Retractor`] and [`crate::Dropper`] are its handlers, and
/// [`crate::reaper`] purges what it keeps for deleted workspaces.
#[async_trait]
pub trait CollectionStore: WorkspaceStore {
    /// What it counts, in the plural: `triples`. The name by which a dropped collection's items are reported.
    const ITEMS: &'static str;
    /// The metric that counts retracted items.
    const RETRACTED: &'static str;

    /// Tells apart what a store keeps side by side for one collection and retracts on its own; `()` where there is
    /// one thing only.
    type Part: Copy + Send + Sync + 'static;

    /// Where it remembers which retractions it has done: [`crate::Retractor`] reads and writes it.
    fn retractions(&self) -> &dyn Retractions;

    /// Takes back what came from chunks that are no more. Durable when `Ok`; the number of items that went. Doing it
    /// again at once changes nothing.
    ///
    /// # Errors
    /// When the store failed or is closing; then some of it may be gone already.
    async fn retract(
        &self,
        key: &CollectionKey,
        kind: WriteKind,
        part: Self::Part,
        what: Retract,
    ) -> Result<u64, Error>;

    /// Ends a collection in this generation and those before, for good: it is out of sight when this returns, and
    /// tracked writes of these generations are dropped from then on. About how many items it held. Doing it again
    /// changes nothing.
    ///
    /// # Errors
    /// When the store failed or is closing; then nothing has ended.
    async fn drop_collection(&self, last: &CollectionKey) -> Result<u64, Error>;
}
