//! Errors in the words that clients of the reference know.

use tg_schemas::{Error, ErrorCode};

/// Wire type of the reference's flow errors.
const KIND: &str = "flow-error";

/// An error whose text clients know.
pub(crate) fn known(text: &str) -> Error {
    Error::typed(KIND, text)
}

/// A field of the request is wrong.
pub(crate) fn bad(text: impl Into<String>) -> Error {
    Error::new(ErrorCode::BadRequest, text)
}

/// The state of things does not allow it.
pub(crate) fn conflict(text: impl Into<String>) -> Error {
    Error::new(ErrorCode::Conflict, text)
}
