//! Vector and keyword search: the embeddings stores and the keyword index.
//!
//! * [`engine`] has the rules. Pure: exact search in memory, every row's cosine with the query, the best of each
//!   subject; what is kept of a vector; the words of a question.
//! * [`store`] is what adapters keep: [`PointStore`] and [`KeywordStore`]. The present ones are [`SqlitePoints`], one
//!   SQLite file searched in memory, and [`SqliteKeywords`], a full-text index per collection, ranked by BM25.
//!   [`ReembedStore`] is what a store of vectors does so that a collection can be changed to another model.
//! * [`processors`] are the hosted processors: writers and queries for entities, chunks and rows, and
//!   `kw-index`.
//!
//! Data is selected by [`CollectionKey`], a struct; no name is ever made of two others.

pub mod engine;
mod error;
mod handlers;
mod options;
mod processors;
mod reembedder;
pub mod store;

pub use engine::kind::Kind;
pub use engine::point::{Condition, Facets, MAX_DIMENSION, Point, Subject, check_vector};
pub use error::VectorError;
pub use options::{Limits, Options};
pub use processors::processors;
pub use store::keywords::SqliteKeywords;
pub use store::points::SqlitePoints;
pub use store::reembed::ReembedStore;
pub use store::{ChunkText, Hit, KeywordHit, KeywordStore, MAX_LIMIT, PointStore, Search, Write};
pub use tg_collections::{CollectionKey, Quota, WriteKind};
