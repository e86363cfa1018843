//! What is said of a document that cannot be processed.

use std::fmt::Display;

use tg_mesh::ConsumeError;
use tg_schemas::{Error, ErrorCode};

/// A document will never be read, and why.
pub(crate) fn refused(document: &str, why: impl Display) -> ConsumeError {
    ConsumeError::Dead(Error::new(
        ErrorCode::BadRequest,
        format!("document '{document}' {why}"),
    ))
}

/// A fault met while a document was processed: transient ones are tried again.
pub(crate) fn met(document: &str, error: Error) -> ConsumeError {
    match ConsumeError::from(error) {
        ConsumeError::Dead(error) => ConsumeError::Dead(Error {
            message: format!("document '{document}': {}", error.message),
            ..error
        }),
        retry => retry,
    }
}
