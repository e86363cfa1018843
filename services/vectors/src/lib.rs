//! Vector and keyword search: the embeddings stores and the keyword index.
//!
//! * [`Engine`] keeps vectors in one SQLite file and searches them in memory, exactly: every row's cosine
//!   with the query, the best of each subject. [`scan`], [`top`], [`matrix`], [`fixed`] and [`index`] are pure.
//! * [`keywords`] keeps a full-text index per collection, ranked by BM25.
//! * [`processors`] are the hosted processors: writers and queries for entities, chunks and rows, and
//!   `kw-index`.
//!
//! Data is selected by [`CollectionKey`], a struct; no name is ever made of two others.

mod cache;
mod commits;
mod engine;
mod error;
pub mod fixed;
pub mod index;
mod key;
pub mod keywords;
pub mod matrix;
mod point;
mod reaped;
pub mod scan;
mod scans;
mod service;
pub mod store;
pub mod top;

pub use engine::{Engine, Hit, Limits, MAX_LIMIT, Search};
pub use error::VectorError;
pub use key::Kind;
pub use point::{Condition, Facets, MAX_DIMENSION, Point, Subject, check_vector};
pub use service::processors;
pub use store::write::Write;
pub use tg_collections::{CollectionKey, WriteKind};
