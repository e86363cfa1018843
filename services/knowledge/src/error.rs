//! Errors of this service, in the wire types of the contract.

use tg_schemas::{Error, ErrorCode};

/// Wire type of what a load ran into.
const LOAD: &str = "load-error";

/// A request that names no core, or one that is not there.
pub(crate) fn no_such_core() -> Error {
    Error::new(ErrorCode::NotFound, "id: there is no such core")
}

/// A field is not what it should be.
pub(crate) fn field(path: &str, why: &str) -> Error {
    Error::new(ErrorCode::BadRequest, format!("{path}: {why}"))
}

/// A core could not be loaded or unloaded.
pub(crate) fn load(text: impl Into<String>) -> Error {
    Error::typed(LOAD, text)
}

/// Something about the documents of a core.
pub(crate) fn library(error: Error) -> Error {
    // What passes keeps its code, so that the asker knows that it may ask again.
    if error.code().is_transient() {
        return error;
    }
    Error::typed("librarian-error", error.message)
}
