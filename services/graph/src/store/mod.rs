//! Where quads are kept: what an adapter does, and the one in this process.
//!
//! An adapter takes and gives terms of the contract. Retraction and the end of collections and workspaces are
//! [`tg_collections::CollectionStore`]'s; what is here is what only a graph needs.

pub mod embedded;

#[cfg(test)]
mod conformance;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tg_collections::{CollectionKey, WriteKind};
use tg_schemas::msg::{
    NeighbourhoodRequest, NeighbourhoodResponse, SourcesRequest, SourcesResponse, UserContext,
};
use tg_schemas::{Term, Triple};
use tokio_util::sync::CancellationToken;

use crate::error::GraphError;

/// What triples must look like. Open components match everything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TriplePattern {
    /// Subject.
    pub s: Option<Term>,
    /// Predicate.
    pub p: Option<Term>,
    /// Object.
    pub o: Option<Term>,
    /// Graph: open or `*` means all graphs, empty text the default one.
    pub g: Option<String>,
}

/// What became of triples that were to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// How many were valid and are kept now; `None`: the write came too late, its collection has ended.
    pub kept: Option<usize>,
    /// The fault of each triple that is not RDF. The others are kept all the same.
    pub refused: Vec<GraphError>,
}

/// What kind of SPARQL query it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Rows.
    Select,
    /// Yes or no.
    Ask,
    /// A graph by template.
    Construct,
    /// A graph about resources.
    Describe,
}

impl Form {
    /// As on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Select => "select",
            Self::Ask => "ask",
            Self::Construct => "construct",
            Self::Describe => "describe",
        }
    }
}

/// The graphs of a query, in place of those that it names itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graphs {
    /// Together the default graph.
    pub default: Vec<String>,
    /// Found by `GRAPH`.
    pub named: Vec<String>,
}

/// A SPARQL query and its limits.
#[derive(Debug, Clone)]
pub struct SparqlAsk {
    /// The text.
    pub query: String,
    /// What it looks in; with none, what it says itself.
    pub graphs: Graphs,
    /// Most rows or triples.
    pub limit: Option<usize>,
    /// Rows or triples of a part.
    pub batch: usize,
    /// Longest time until the last part is read. The evaluation is also within the store's own limit.
    pub time: Duration,
    /// What is known of the user that asks, for policies.
    pub user: Option<Arc<UserContext>>,
    /// Stops it.
    pub cancel: CancellationToken,
}

/// Some results of a SPARQL query.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Rows, aligned with the variables.
    Rows(Vec<Vec<Option<Term>>>),
    /// Triples of a graph.
    Triples(Vec<Triple>),
    /// Yes or no.
    Ask(bool),
}

/// The parts of a running query. Dropping it stops the query.
#[async_trait]
pub trait SparqlParts: Send {
    /// The next part with the bytes of memory that it takes; `None` at the end.
    ///
    /// # Errors
    /// Whatever ended the query: its limits, a fault while it ran, or the asker.
    async fn next(&mut self) -> Result<Option<(Part, usize)>, GraphError>;
}

/// A running SPARQL query.
pub struct SparqlAnswer {
    /// What kind of query it is.
    pub form: Form,
    /// Variables of a SELECT.
    pub variables: Vec<String>,
    /// Its results.
    pub parts: Box<dyn SparqlParts>,
}

impl SparqlAnswer {
    /// The next part; `None` at the end.
    ///
    /// # Errors
    /// Whatever ended the query: its limits, a fault while it ran, or the asker.
    pub async fn next(&mut self) -> Result<Option<Part>, GraphError> {
        Ok(self.next_sized().await?.map(|(part, _)| part))
    }

    /// As [`Self::next`], with the bytes of memory that the part takes.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub async fn next_sized(&mut self) -> Result<Option<(Part, usize)>, GraphError> {
        self.parts.next().await
    }
}

/// Triples that match a pattern, from one state of a graph.
#[async_trait]
pub trait TripleScan: Send {
    /// Up to `size` further triples, fewer where they are long; none only at the end.
    ///
    /// # Errors
    /// When the store failed or is closing.
    async fn next_chunk(&mut self, size: usize) -> Result<Vec<Triple>, GraphError>;
}

/// The graphs of all collections. A collection that nothing was written to is empty. Where one has policies, each reader sees
/// what these let the user see of whom it reads, and nothing where nothing is known of the user.
#[async_trait]
pub trait QuadStore: Send + Sync + 'static {
    /// Adds triples; of what a thing has only one value, the last counts. Durable and visible when `Ok`, and then for
    /// every reader at once; on an error neither. Triples that are there already change nothing. Tracked ones of a
    /// generation that was dropped are not kept.
    ///
    /// # Errors
    /// When the workspace or the memory has no room for them, and when the store failed.
    async fn write(
        &self,
        key: &CollectionKey,
        triples: Vec<Triple>,
        kind: WriteKind,
    ) -> Result<Written, GraphError>;

    /// As [`QuadStore::write`], by somebody who loads what they know: a fact among it stays when what an extraction found of
    /// the same is taken back, before or after. What comes with where it was found (`tg:contains`) was found.
    ///
    /// # Errors
    /// As for [`QuadStore::write`].
    async fn load(
        &self,
        key: &CollectionKey,
        triples: Vec<Triple>,
        kind: WriteKind,
    ) -> Result<Written, GraphError>;

    /// Everything that matches, if it is no more than `limit`, or [`crate::Limits::single_answer`] when there is no
    /// limit. What can match nothing, such as a literal as subject, matches nothing.
    ///
    /// # Errors
    /// [`GraphError::Term`] for a term that is not valid, [`GraphError::TooMany`], [`GraphError::TooMuch`],
    /// [`GraphError::NoUserContext`] and [`GraphError::Policy`] where there are policies, and when the store failed.
    async fn find(
        &self,
        key: &CollectionKey,
        user: Option<&UserContext>,
        pattern: TriplePattern,
        limit: Option<usize>,
    ) -> Result<Vec<Triple>, GraphError>;

    /// What matches, chunk by chunk, from one state of the graph.
    ///
    /// # Errors
    /// As for [`QuadStore::find`].
    async fn scan(
        &self,
        key: &CollectionKey,
        user: Option<&UserContext>,
        pattern: TriplePattern,
        limit: Option<usize>,
    ) -> Result<Box<dyn TripleScan>, GraphError>;

    /// Starts a SPARQL query. Without `FROM` it sees the default graph, and every named one by `GRAPH`.
    ///
    /// # Errors
    /// [`GraphError::QuerySyntax`], and whatever keeps it from starting.
    async fn sparql(&self, key: &CollectionKey, ask: SparqlAsk)
    -> Result<SparqlAnswer, GraphError>;

    /// The edges around nodes; see [`NeighbourhoodRequest`].
    ///
    /// # Errors
    /// When it was cancelled or the store failed.
    async fn neighbours(
        &self,
        key: &CollectionKey,
        user: Option<&UserContext>,
        ask: NeighbourhoodRequest,
        cancel: CancellationToken,
    ) -> Result<NeighbourhoodResponse, GraphError>;

    /// Where facts and parts of documents come from; see [`SourcesRequest`].
    ///
    /// # Errors
    /// When it was cancelled or the store failed.
    async fn sources(
        &self,
        key: &CollectionKey,
        user: Option<&UserContext>,
        ask: SourcesRequest,
        cancel: CancellationToken,
    ) -> Result<SourcesResponse, GraphError>;
}
