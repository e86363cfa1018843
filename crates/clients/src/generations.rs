//! Which generation of its name a workspace is in, and whether it was deleted: what the configuration says of that, where
//! it says anything. A foreign config service only has no row any more, from which nothing follows.

use tg_mesh::{ConfigView, Mesh};

use crate::neighbours::Neighbours;

/// The configuration, where it says of each deletion what was deleted.
pub fn of_workspaces(mesh: &Mesh) -> Option<&ConfigView> {
    Some(mesh.config()).filter(|_| Neighbours::of(mesh).keep_tombstones())
}
