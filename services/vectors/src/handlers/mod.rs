//! One handler per kind of processor: thin, over the traits of [`crate::store`].

mod embeddings_query;
mod embeddings_write;
mod kw_index;
mod reembed;

pub(crate) use embeddings_query::Querier;
pub(crate) use embeddings_write::Writer;
pub(crate) use kw_index::KeywordIndex;
pub(crate) use reembed::Reembed;

use tg_schemas::{Error, ErrorCode};

use crate::error::VectorError;

/// A limit as asked for: nothing and less mean the usual number.
fn limit(asked: i64, usual: usize) -> usize {
    usize::try_from(asked)
        .ok()
        .filter(|limit| *limit > 0)
        .unwrap_or(usual)
}

/// The error as clients see it: faults that have no code of their own get the service's type.
fn wire(error: VectorError, kind: &str) -> Error {
    let told = Error::from(error);
    match told.code() {
        ErrorCode::Storage | ErrorCode::Internal => Error::typed(kind, told.message),
        _ => told,
    }
}
