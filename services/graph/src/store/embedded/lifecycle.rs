//! The life cycle of what is kept here: what is taken back, and the end of collections and workspaces.

use async_trait::async_trait;
use tg_collections::{
    CollectionKey, CollectionStore, KnownConfig, Retractions, WorkspaceStore, WriteKind,
};
use tg_schemas::msg::Retract;
use tg_schemas::vocabulary::POLICY_GRAPH;
use tg_schemas::{Error, ErrorCode, WorkspaceKey, WorkspaceTombstone};

use super::{EmbeddedGraph, journal};
use crate::engine::convert;
use crate::error::GraphError;

#[async_trait]
impl WorkspaceStore for EmbeddedGraph {
    async fn workspaces(&self) -> Result<Vec<String>, Error> {
        let known = self.shared.journal.read(journal::workspaces).await;
        Ok(known.map_err(Error::from)?)
    }

    async fn purge(&self, key: &WorkspaceKey, _: &WorkspaceTombstone) -> Result<(), Error> {
        self.retractions().forget(key.as_str()).await?;
        self.drop_workspace(key.as_str()).await.map_err(wire)?;
        Ok(())
    }

    fn known_config(&self) -> &dyn KnownConfig {
        &self.shared.journal
    }
}

#[async_trait]
impl CollectionStore for EmbeddedGraph {
    const ITEMS: &'static str = "triples";
    const RETRACTED: &'static str = "tg_graph_triples_retracted_total";
    type Part = ();

    fn retractions(&self) -> &dyn Retractions {
        &self.shared.journal
    }

    async fn retract(
        &self,
        key: &CollectionKey,
        kind: WriteKind,
        (): (),
        what: Retract,
    ) -> Result<u64, Error> {
        // What is not RDF was never written, and policies belong to no document.
        let quads = what
            .triples
            .iter()
            .filter(|triple| triple.g.as_deref() != Some(POLICY_GRAPH))
            .filter_map(|triple| convert::quad("", triple).ok())
            .collect();
        let gone = Self::retract(self, key, &what.chunks, quads, kind).await;
        let outdated = self.supersede(key, &what.superseded, kind).await;
        Ok((gone.map_err(wire)? + outdated.map_err(wire)?) as u64)
    }

    async fn drop_collection(&self, last: &CollectionKey) -> Result<u64, Error> {
        Self::drop_collection(self, last).await.map_err(wire)
    }
}

fn wire(error: GraphError) -> Error {
    error.to_wire(ErrorCode::Storage.as_str())
}
