//! Errors of the store, in the wire types of the contract.

use tg_schemas::Error;
use tg_storage::StorageError;

/// Logs what happened and tells what clients may know.
pub(crate) fn wire(fault: StorageError) -> Error {
    tracing::error!(error = %fault, "iam store");
    Error::from(fault)
}
