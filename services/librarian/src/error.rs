//! Errors of the library, in the wire types of the contract.

use tg_schemas::{Error, ErrorCode};
use tg_storage::{StorageError, log_full_disk};

/// The request is malformed; the text names the field.
pub(crate) fn invalid(text: impl Into<String>) -> Error {
    Error::typed("request-error", text)
}

pub(crate) fn missing_document() -> Error {
    Error::new(ErrorCode::NotFound, "Document does not exist")
}

pub(crate) fn missing_parent() -> Error {
    Error::new(
        ErrorCode::NotFound,
        "document-metadata.parent-id: the parent does not exist",
    )
}

pub(crate) fn existing_document() -> Error {
    Error::new(ErrorCode::Conflict, "Document already exists")
}

pub(crate) fn missing_processing() -> Error {
    Error::new(ErrorCode::NotFound, "Processing object does not exist")
}

pub(crate) fn existing_processing() -> Error {
    Error::new(ErrorCode::Conflict, "Processing already exists")
}

/// What the library itself wrote cannot be read, or not be written.
pub(crate) fn unreadable(fault: serde_json::Error) -> Error {
    wire(StorageError::Corrupt(fault.to_string()))
}

/// A failure of the store as clients see it; the details go to the log.
pub(crate) fn wire(fault: StorageError) -> Error {
    match &fault {
        StorageError::Refused(_) => {}
        StorageError::Full => log_full_disk("the library cannot write"),
        _ => tracing::error!(%fault, "the library's store failed"),
    }
    fault.into()
}
