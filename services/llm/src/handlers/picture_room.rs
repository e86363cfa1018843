//! Memory for pictures that are described, shared fairly by workspaces, whatever flows they have.

use std::sync::Arc;

use tg_mesh::Cx;
use tg_mesh::fair::{Pool, Share};
use tg_provider_http::within;

use crate::error::LlmError;

/// KiB for all pictures that are described at once. The questions themselves are counted where they come in.
const ALL: usize = 96 << 10;
/// What one workspace may have while it has something: half.
const OF_ONE: usize = ALL / 2;
/// A picture is held as it came, as bytes while it is looked at, and in what the provider is sent.
const TIMES: usize = 3;

pub(crate) struct PictureRoom(Pool);

impl Default for PictureRoom {
    fn default() -> Self {
        Self(Pool::new(ALL, OF_ONE))
    }
}

/// KiB that are held for so many bytes of base64.
pub(super) fn units(base64: usize) -> usize {
    (base64.saturating_mul(TIMES) >> 10).max(1)
}

impl PictureRoom {
    /// Waits for room for a picture, as long as its asker does.
    pub(super) async fn take(&self, cx: &Cx, base64: usize) -> Result<Share, LlmError> {
        let taken = self.wait(cx.workspace(), base64);
        let left = within(cx.deadline.left());
        tokio::select! {
            taken = tokio::time::timeout(left, taken) => taken.unwrap_or(Err(LlmError::NoRoom)),
            () = cx.cancel.cancelled() => Err(LlmError::Cancelled),
        }
    }

    async fn wait(&self, workspace: &str, base64: usize) -> Result<Share, LlmError> {
        let whose = Arc::from(workspace);
        let taken = self.0.take(&whose, units(base64)).await;
        // None that may be described is larger than all there is.
        taken.map_err(|_| LlmError::LargePicture)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn a_workspace_leaves_room_for_others() {
        let room = PictureRoom::default();
        let mut held = Vec::new();
        while let Some(taken) = room.wait("greedy", 11 * MIB).now_or_never() {
            held.push(taken.unwrap());
            assert!(held.len() < 8, "a workspace takes all");
        }
        let other = room.wait("other", 11 * MIB).now_or_never();
        assert!(other.is_some_and(|taken| taken.is_ok()));
        drop(held);
        assert!(room.wait("greedy", MIB).now_or_never().is_some());
    }

    #[test]
    fn what_would_never_fit_is_refused_at_once() {
        let room = PictureRoom::default();
        let told = room.wait("w", 1 << 30).now_or_never().unwrap();
        assert_eq!(told.err(), Some(LlmError::LargePicture));
        assert!(room.wait("w", 11 * MIB).now_or_never().is_some());
    }
}
