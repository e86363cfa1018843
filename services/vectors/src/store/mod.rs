//! Where vectors and words are kept: what an adapter does, and those over SQLite.
//!
//! Retraction and the end of collections and workspaces are [`tg_collections::CollectionStore`]'s; what is here is what
//! only vectors and words need.

pub mod keywords;
pub mod points;
pub mod reembed;

#[cfg(test)]
mod conformance;

use async_trait::async_trait;
use tg_collections::{CollectionKey, WriteKind};

use crate::engine::kind::Kind;
use crate::engine::point::{Condition, Facets, Point, Subject};
use crate::error::VectorError;

/// Most subjects or chunks a search returns.
pub const MAX_LIMIT: usize = 10_000;

/// Points to be kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// The collection.
    pub key: CollectionKey,
    /// What the vectors stand for.
    pub kind: Kind,
    /// Model of the vectors; empty when nobody said.
    pub model: String,
    /// How they come.
    pub write_kind: WriteKind,
    /// The points.
    pub points: Vec<Point>,
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Search {
    /// The collection.
    pub key: CollectionKey,
    /// What the vectors stand for.
    pub kind: Kind,
    /// Where to look.
    pub vector: Vec<f32>,
    /// Model of the vector; empty when nobody said.
    pub model: String,
    /// Most subjects to return; no more than [`MAX_LIMIT`] are.
    pub limit: usize,
    /// What they must hold, all of it.
    pub conditions: Vec<Condition>,
}

/// A subject that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// What it is.
    pub subject: Subject,
    /// Cosine of its nearest vector with the query, from -1 to 1.
    pub score: f64,
    /// Facets of that vector.
    pub facets: Facets,
}

/// Vectors of one kind of a collection, as they were written.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// Their model; empty when nobody said.
    pub model: String,
    /// The vectors.
    pub points: Vec<Point>,
    /// Behind which point the next page begins; `None` behind the last one.
    pub next: Option<i64>,
}

/// The vectors of all collections. Vectors of one kind of one collection have one model and one dimension; an emptied
/// collection is free to take others.
#[async_trait]
pub trait PointStore: Send + Sync + 'static {
    /// Keeps points. Durable and visible when `Ok`; the number of points that are new or changed. Points are told apart
    /// by what they stand for and their chunk, so the same ones may come again. `None` of tracked ones of a generation that was
    /// dropped: they are not kept.
    ///
    /// # Errors
    /// [`VectorError::OtherModel`] and [`VectorError::OtherDimension`] when they cannot join the ones that are kept;
    /// [`VectorError::Quota`] when the workspace may not keep so many; otherwise when the store failed. Nothing of
    /// the write was kept then.
    async fn put(&self, write: Write) -> Result<Option<usize>, VectorError>;

    /// The nearest subjects, each once, nearest first. A collection without vectors has none; so has a query without
    /// direction.
    ///
    /// # Errors
    /// As for [`PointStore::put`].
    async fn search(&self, search: Search) -> Result<Vec<Hit>, VectorError>;

    /// Points of a collection.
    ///
    /// # Errors
    /// When the store failed.
    async fn count(&self, key: &CollectionKey, kind: Kind) -> Result<usize, VectorError>;

    /// At most so many points of a collection, in the order in which they were written, from behind one on. Each point that is
    /// there from the first page to the last is in one of them.
    ///
    /// # Errors
    /// [`VectorError::Replaced`] where another model has taken over since the page before; otherwise when the store failed.
    async fn page(
        &self,
        key: &CollectionKey,
        kind: Kind,
        after: Option<i64>,
        most: usize,
    ) -> Result<Page, VectorError>;
}

/// A chunk to index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkText {
    /// Its id.
    pub id: String,
    /// Its text.
    pub text: String,
}

/// A chunk that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct KeywordHit {
    /// Its id.
    pub id: String,
    /// How well it matches, by the adapter's measure (BM25); higher is better, and comparable within one answer only.
    pub score: f64,
}

/// The words of all chunks. Neither hits nor statistics of one collection reach another.
#[async_trait]
pub trait KeywordStore: Send + Sync + 'static {
    /// Indexes a chunk; one of the same id is replaced. Durable and visible when `Ok`; 0 when it was there already,
    /// just so, and when a tracked one came too late.
    ///
    /// # Errors
    /// [`VectorError::Quota`] when the workspace may not keep another; otherwise when the store failed. Nothing
    /// was indexed then.
    async fn put(
        &self,
        key: &CollectionKey,
        kind: WriteKind,
        chunk: ChunkText,
    ) -> Result<usize, VectorError>;

    /// The best chunks for a question, best first; none for a question without words. Whatever its characters, a
    /// question is words only.
    ///
    /// # Errors
    /// When the store failed.
    async fn search(
        &self,
        key: &CollectionKey,
        question: &str,
        limit: usize,
    ) -> Result<Vec<KeywordHit>, VectorError>;

    /// Chunks of a collection.
    ///
    /// # Errors
    /// When the store failed.
    async fn count(&self, key: &CollectionKey) -> Result<usize, VectorError>;
}
