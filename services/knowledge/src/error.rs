//! Errors of this service, in the wire types of the contract.

use tg_schemas::{Error, ErrorCode};

/// Wire type of what a load ran into.
const LOAD: &str = "load-error";

/// A request that names no core, or one that is not there.
pub(crate) fn no_such_core() -> Error {
    Error::new(ErrorCode::NotFound, "id: there is no such core")
}

/// A core is of no collection, so nobody can say what of it is for whom; a part of it would pass for the whole.
pub(crate) fn not_judged() -> Error {
    Error::typed(
        "policy-enforcement-error",
        "id: no policies judge a knowledge core, so it is not read with a token that has a user context; ask the graph \
         of a collection that it was loaded into",
    )
}

/// A core has parts of a collection with policies, and nobody can say what of it is for whom.
pub(crate) fn of_policies() -> Error {
    Error::typed(
        "policy-enforcement-error",
        "id: this core has parts of a collection with policies, which judge no core, so it is not read as one; ask the graph of the \
         collection with a token that has a user context",
    )
}

/// It would be read there by everybody.
pub(crate) fn loaded_past_policies(collection: &str) -> Error {
    let text = format!(
        "collection: this core has parts of a collection with policies, and '{collection}' has none; who may configure the \
         workspace gives it some first"
    );
    Error::typed("policy-enforcement-error", text)
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
