//! In which generation of its workspace something belongs, so that nobody sees what a predecessor of the same name left.

use tg_clients::generations;
use tg_mesh::Mesh;
use tg_schemas::{Error, ErrorCode, WorkspaceKey};

/// Whether generations are known.
///
/// # Errors
/// `unavailable` before the configuration was read.
pub(super) fn known(mesh: &Mesh) -> Result<(), Error> {
    if generations::of_workspaces(mesh).is_some_and(|config| config.version() < 0) {
        let text = "the configuration was not read yet";
        return Err(Error::new(ErrorCode::Unavailable, text));
    }
    Ok(())
}

/// What a workspace's rows are kept under now.
///
/// # Errors
/// As of [`known`].
pub(super) fn present(mesh: &Mesh, workspace: &str) -> Result<WorkspaceKey, Error> {
    known(mesh)?;
    Ok(mesh.config().workspace_key(workspace))
}

/// Whether a workspace was deleted, whatever has its name now. Foreign config services say nothing of that.
pub(super) fn is_over(mesh: &Mesh, key: &WorkspaceKey) -> bool {
    generations::of_workspaces(mesh).is_some_and(|config| config.is_over(key))
}
