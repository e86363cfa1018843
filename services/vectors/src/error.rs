//! What can go wrong in the stores of this service, and how it is said to clients.

use tg_mesh::OpenError;
use tg_schemas::{Error, ErrorCode};
use tg_storage::StorageError;

use crate::engine::kind::Kind;

/// Why a store did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VectorError {
    /// A field is not what it should be.
    #[error("{field}: {why}")]
    Field {
        /// Path of the field, e.g. `entities[3].vector`.
        field: String,
        /// What is wrong with it.
        why: String,
    },
    /// The vectors come from another model than those of the collection.
    #[error(
        "model: this collection's {} vectors were made by '{held}', these by '{given}'; vectors of \
         different models cannot be compared. Use the same model, or have the collection embedded again by \
         the other (tg reembed-collection)",
        kind.as_str()
    )]
    OtherModel {
        /// What the vectors stand for.
        kind: Kind,
        /// Model of the collection.
        held: String,
        /// Model of the request.
        given: String,
    },
    /// The vectors have another dimension than those of the collection.
    #[error(
        "vector: has {given} dimensions, this collection's {} vectors have {held}: they come from \
         different models. Use the same model, or have the collection embedded again by the other \
         (tg reembed-collection)",
        kind.as_str()
    )]
    OtherDimension {
        /// What the vectors stand for.
        kind: Kind,
        /// Dimension of the collection.
        held: usize,
        /// Dimension of the request.
        given: usize,
    },
    /// A collection would have more vectors than can be searched.
    #[error(
        "vectors: this process has {most} MiB of memory for the vectors of one collection, and they need about {needed} \
         MiB: spread them over several collections, delete some, or give it more with `vectors.memory_mb`"
    )]
    Memory {
        /// MiB that they need.
        needed: usize,
        /// MiB that there are.
        most: usize,
    },
    /// What was being read page by page is there no more.
    #[error("the vectors of this collection were replaced while they were read: begin anew")]
    Replaced,
    /// A quota of the workspace is used up.
    #[error("{}", .0.message)]
    Quota(Error),
    /// The file failed; nothing of the change was kept.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The store is closing, or its thread died.
    #[error("the store is closed")]
    Closed,
}

impl VectorError {
    /// A fault of a field.
    pub(crate) fn field(field: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Field {
            field: field.into(),
            why: why.into(),
        }
    }
}

impl From<VectorError> for Error {
    fn from(error: VectorError) -> Self {
        let code = match error {
            VectorError::Storage(storage) => return storage.into(),
            VectorError::Quota(error) => return error,
            VectorError::Field { .. } => ErrorCode::BadRequest,
            VectorError::Memory { .. } => ErrorCode::TooLarge,
            VectorError::OtherModel { .. }
            | VectorError::OtherDimension { .. }
            | VectorError::Replaced => ErrorCode::Conflict,
            VectorError::Closed => ErrorCode::Unavailable,
        };
        Error::new(code, error.to_string())
    }
}

impl From<VectorError> for OpenError {
    fn from(error: VectorError) -> Self {
        match error {
            VectorError::Storage(fault) => fault.into(),
            error => Self::Failed(error.into()),
        }
    }
}
