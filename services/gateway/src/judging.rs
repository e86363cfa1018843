//! Room for the questions that live exports ask of stores about what passes: between them come those of everybody else, and of
//! one workspace there are never so many that another's wait.

use std::sync::Arc;

use tg_mesh::fair::{Pool, Share};

/// Questions at once for all who look on, and for those of one workspace.
const QUESTIONS: usize = 64;
const OF_ONE: usize = 16;

/// What all live exports of this process ask within. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct JudgeRoom(Pool);

impl Default for JudgeRoom {
    fn default() -> Self {
        Self(Pool::new(QUESTIONS, OF_ONE))
    }
}

impl JudgeRoom {
    /// Waits for a place; none where the process ends.
    pub(crate) async fn take(&self, workspace: &Arc<str>) -> Option<Share> {
        self.0.take(workspace, 1).await.ok()
    }
}
