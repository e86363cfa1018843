//! What the key of a workspace says.

use tg_schemas::{Error, ErrorCode, WorkspaceId, WorkspaceKey};

/// A workspace by the key that its things are kept under.
pub(crate) fn id(key: &str) -> Result<WorkspaceId, Error> {
    WorkspaceId::new(WorkspaceKey::parse(key).name()).map_err(|_| {
        Error::new(
            ErrorCode::Internal,
            "workspace: is not a valid workspace id",
        )
    })
}

/// The generation that a key names, for what is written on its behalf.
pub(crate) fn generation(key: &str) -> Option<i64> {
    Some(WorkspaceKey::parse(key).generation())
}
