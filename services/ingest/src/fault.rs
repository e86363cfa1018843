//! What is said of a document that cannot be processed.

use std::fmt::Display;

use tg_mesh::ReadFault;
use tg_schemas::{Error, ErrorCode};

/// A document will never be read, and why.
pub(crate) fn refused(document: &str, why: impl Display) -> ReadFault {
    ReadFault::Dead(Error::new(
        ErrorCode::BadRequest,
        format!("document '{document}' {why}"),
    ))
}

/// A fault met while a document was processed: transient ones are tried again.
pub(crate) fn met(document: &str, error: Error) -> ReadFault {
    match ReadFault::from(error) {
        ReadFault::Dead(error) => ReadFault::Dead(Error {
            message: format!("document '{document}': {}", error.message),
            ..error
        }),
        retry => retry,
    }
}
