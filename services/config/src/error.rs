//! Errors of the store, in the wire types of the contract.

use tg_schemas::{Error, ErrorCode};
use tg_storage::StorageError;

/// A failing store is a `config-error`; one that is busy elsewhere says so. The details go to the log.
pub(crate) fn wire(fault: StorageError) -> Error {
    tracing::error!(error = %fault, "config store");
    let error = Error::from(fault);
    match error.code() {
        ErrorCode::Storage => Error::typed("config-error", error.message),
        _ => error,
    }
}
