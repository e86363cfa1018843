//! Room for payloads of all workspaces.

use std::sync::Arc;

use tg_mesh::fair::{Pool, Share};
use tg_schemas::WorkspaceId;

/// KiB of payloads of all workspaces.
const BODIES: usize = 128 << 10;
/// One KiB in so many is for workspaces that find no other room.
const RESERVE: usize = 8;
/// One workspace has one in so many of these.
const OF_RESERVE: usize = 8;

/// One workspace has half of the room. The last eighth is a reserve, in which each has little: a few that have much do not keep
/// others out.
pub(super) struct Bodies {
    pool: Pool,
    reserve: Pool,
}

impl Default for Bodies {
    fn default() -> Self {
        Self::of(BODIES)
    }
}

impl Bodies {
    fn of(kib: usize) -> Self {
        let reserve = kib / RESERVE;
        Self {
            pool: Pool::new(kib - reserve, kib / 2),
            reserve: Pool::new(reserve, reserve / OF_RESERVE),
        }
    }

    /// Takes room for so many bytes, if there is any.
    pub(super) fn try_take(&self, workspace: &WorkspaceId, bytes: usize) -> Option<Share> {
        let (workspace, kib) = (Arc::from(workspace.as_str()), (bytes >> 10).max(1));
        let share = self.pool.try_take(&workspace, kib);
        share.or_else(|| self.reserve.try_take(&workspace, kib))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_workspaces_that_take_all_they_can_leave_room_for_others() {
        let bodies = Bodies::of(128);
        let of = |name: &str| WorkspaceId::new(name).unwrap();
        let mut held = Vec::new();
        let mut flood = |name: &str, kib: usize| {
            let shares = std::iter::from_fn(|| bodies.try_take(&of(name), kib << 10));
            let shares: Vec<_> = shares.collect();
            let taken: usize = shares.iter().map(Share::units).sum();
            held.extend(shares);
            taken
        };
        assert_eq!((flood("one", 1), flood("two", 1)), (64 + 2, 48 + 2));
        assert_eq!((flood("three", 2), flood("four", 1)), (2, 2));
        // What is given back can be taken again.
        held.clear();
        assert!(bodies.try_take(&of("three"), 64 << 10).is_some());
    }
}
