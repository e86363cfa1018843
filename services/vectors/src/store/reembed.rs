//! What a store does so that a collection can be changed to another model.

use async_trait::async_trait;
use tg_collections::CollectionKey;

use crate::error::VectorError;

/// A change to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begin {
    /// The collection.
    pub key: CollectionKey,
    /// Name of the new model.
    pub model: String,
    /// Who makes its vectors.
    pub topic: String,
    /// Vectors whose text is not known or refused go at the switch, instead of holding it up.
    pub leave_out: bool,
}

/// A change under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its number.
    pub id: i64,
    /// The collection.
    pub key: CollectionKey,
    /// Name of the new model.
    pub model: String,
    /// Who makes its vectors.
    pub topic: String,
    /// As it was begun.
    pub leave_out: bool,
}

/// How a change stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    /// Vectors are made.
    #[default]
    Running,
    /// All that can be made are there; the texts of others are not known, or are refused.
    Waiting,
    /// The new vectors serve.
    Switched,
}

/// How far a change is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// Name of the new model.
    pub model: String,
    /// Names of those whose vectors serve.
    pub serving: Vec<String>,
    /// Vectors that were made.
    pub done: u64,
    /// Vectors to make, with those.
    pub total: u64,
    /// Vectors whose text is not known, as far as they are counted. After the switch: those that went.
    pub textless: u64,
    /// Vectors whose text the new model refuses, in the same way.
    pub refused: u64,
    /// Whose text the first of them is, and why it is refused; empty: none is, or it is over.
    pub refusal: String,
    /// How it stands.
    pub state: State,
}

/// Texts to make vectors of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// Their space.
    pub space: i64,
    /// The number before the first.
    pub after: u32,
    /// Number and text of each.
    pub points: Vec<(u32, String)>,
    /// The last number that was looked at.
    pub last: u32,
}

/// A batch with the vectors of its points.
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    /// The change it is for.
    pub task: Task,
    /// The batch.
    pub batch: Batch,
    /// A vector for each point; of those that are refused it is not looked at.
    pub vectors: Vec<Vec<f32>>,
    /// Points whose text the new model refuses, and why.
    pub refused: Vec<(u32, String)>,
}

/// A store of vectors that can be changed to those of another model. Until the switch the old ones serve, and what is
/// written of the new model waits beside them; then all of the new serve at once.
#[async_trait]
pub trait ReembedStore: Send + Sync + 'static {
    /// Begins a change, or goes on with the one to this model: what was refused is tried once more. One to another model is
    /// given up.
    ///
    /// # Errors
    /// When the store failed.
    async fn begin(&self, begin: Begin) -> Result<(), VectorError>;

    /// How far the latest change of a collection is; `None` where none was begun.
    ///
    /// # Errors
    /// When the store failed.
    async fn progress(&self, key: &CollectionKey) -> Result<Option<Progress>, VectorError>;

    /// Names of the models whose vectors serve.
    ///
    /// # Errors
    /// When the store failed.
    async fn serving(&self, key: &CollectionKey) -> Result<Vec<String>, VectorError>;

    /// Changes under way whose numbers are larger, the oldest first, so many at most.
    ///
    /// # Errors
    /// When the store failed.
    async fn tasks(&self, after: i64, most: u32) -> Result<Vec<Task>, VectorError>;

    /// The next texts of a change; `None` when all were taken.
    ///
    /// # Errors
    /// When the store failed.
    async fn batch(&self, task: &Task) -> Result<Option<Batch>, VectorError>;

    /// Keeps the vectors of a batch beside those that serve, with how far that is. `false` where that is of no use any more.
    ///
    /// # Errors
    /// [`VectorError::Memory`] when they could not be searched; otherwise when the store failed.
    async fn stage(&self, made: Made) -> Result<bool, VectorError>;

    /// Has the new vectors serve, if all are there. `false` where something is left to do.
    ///
    /// # Errors
    /// When the store failed.
    async fn switch(&self, task: &Task) -> Result<bool, VectorError>;

    /// Gives a change up; `false` where none is under way.
    ///
    /// # Errors
    /// When the store failed.
    async fn abandon(&self, key: &CollectionKey) -> Result<bool, VectorError>;
}
