//! What retrieval asks beside patterns: the edges around a whole frontier ([`around`]) and where facts come
//! from ([`sources`]), each from one state of a dataset, with labels. Reads only; knows no bus.

mod around;
mod best;
mod labels;
mod look;
mod sources;
mod words;

use tg_schemas::msg::{
    NeighbourhoodRequest, NeighbourhoodResponse, SourcesRequest, SourcesResponse, UserContext,
};
use tokio_util::sync::CancellationToken;

use crate::error::GraphError;
use crate::store::embedded::EmbeddedGraph;
use crate::store::embedded::dataset::Dataset;
use tg_collections::CollectionKey;

impl EmbeddedGraph {
    /// The edges around nodes; see [`NeighbourhoodRequest`].
    ///
    /// # Errors
    /// When it was cancelled, or the dataset cannot be loaded or has policies that cannot be applied.
    pub async fn neighbours(
        &self,
        key: &CollectionKey,
        user: Option<&UserContext>,
        ask: NeighbourhoodRequest,
        cancel: CancellationToken,
    ) -> Result<NeighbourhoodResponse, GraphError> {
        self.look(key, user, cancel, move |data, cancel| {
            around::around(data, &ask, cancel, around::SCORING)
        })
        .await
    }

    /// Where facts and parts of documents come from; see [`SourcesRequest`].
    ///
    /// # Errors
    /// When it was cancelled, or the dataset cannot be loaded or has policies that cannot be applied.
    pub async fn sources(
        &self,
        key: &CollectionKey,
        user: Option<&UserContext>,
        ask: SourcesRequest,
        cancel: CancellationToken,
    ) -> Result<SourcesResponse, GraphError> {
        self.look(key, user, cancel, move |data, cancel| {
            sources::sources(data, &ask, cancel)
        })
        .await
    }

    /// Runs a bounded read on a thread of its own. Without a dataset the answer is the empty one.
    async fn look<R: Default + Send + 'static>(
        &self,
        key: &CollectionKey,
        user: Option<&UserContext>,
        cancel: CancellationToken,
        read: impl FnOnce(&Dataset, &CancellationToken) -> Result<R, GraphError> + Send + 'static,
    ) -> Result<R, GraphError> {
        let Some(dataset) = self.seen(key, user).await? else {
            return Ok(R::default());
        };
        let permit = Self::permit(&self.shared.scans).await?;
        let work = move || {
            let _permit = permit;
            if let Some(sight) = dataset.sight() {
                let cancel = cancel.clone();
                sight.ends_when(move || cancel.is_cancelled());
            }
            read(&dataset, &cancel)
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|_| GraphError::Closed)?
    }
}

#[cfg(test)]
mod tests;
