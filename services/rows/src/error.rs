//! What can go wrong with rows. Texts are fit for clients.

use tg_schemas::{Error, ErrorCode};
use tg_storage::StorageError;

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum RowsError {
    /// A field that the caller named or filled.
    #[error("{field}: {why}")]
    Field {
        /// Which.
        field: String,
        /// What is wrong with it.
        why: String,
    },
    /// No such table.
    #[error("schema_name: there is no schema '{0}'")]
    NoTable(String),
    /// The table's configuration cannot be used.
    #[error("schema '{0}': {1}")]
    BadTable(String, String),
    /// The store failed.
    #[error("the rows could not be stored or read")]
    Storage(#[from] StorageError),
}

impl RowsError {
    pub(crate) fn field(field: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Field {
            field: field.into(),
            why: why.into(),
        }
    }
}

impl From<RowsError> for Error {
    fn from(error: RowsError) -> Self {
        match error {
            RowsError::Storage(fault) => fault.into(),
            told => Error::new(ErrorCode::BadRequest, told.to_string()),
        }
    }
}
