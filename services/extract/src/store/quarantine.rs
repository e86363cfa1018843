//! Statements that do not fit the ontologies: kept until somebody corrects an ontology and replays them, or discards them.

use async_trait::async_trait;
use tg_storage::StorageError;

use crate::engine::ontology::Rejected;

/// Where statements come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    /// Flow that found them.
    pub flow: String,
    /// Collection that they were for.
    pub collection: String,
    /// Its generation.
    pub generation: i64,
    /// Document.
    pub document: String,
    /// Chunk.
    pub chunk: String,
    /// Model that said them; empty if it did not say.
    pub model: String,
    /// Version of the prompt; empty if unknown.
    pub prompt_version: String,
    /// When it was asked: UTC, ISO 8601 with `Z`.
    pub asked_at: String,
}

impl Origin {
    /// Bytes of all its texts.
    pub fn bytes(&self) -> usize {
        let texts = [&self.flow, &self.collection, &self.document, &self.chunk];
        let how = [&self.model, &self.prompt_version, &self.asked_at];
        texts.into_iter().chain(how).map(String::len).sum()
    }
}

/// A statement that was not written, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// Its number; later ones are larger.
    pub number: i64,
    /// Where it comes from.
    pub origin: Origin,
    /// What it says, and why it was not written.
    pub rejected: Rejected,
}

/// Which of a workspace's are meant. What is empty means all.
#[derive(Debug, Clone, Default)]
pub struct Which {
    /// This one.
    pub number: Option<i64>,
    /// Those of a flow.
    pub flow: String,
    /// Those for a collection.
    pub collection: String,
}

/// What is kept of workspaces, bounded in number and bytes for each. Each method is one transaction.
#[async_trait]
pub trait Quarantine: Send + Sync + 'static {
    /// Keeps what a chunk's reply said in vain, in place of what is kept of that chunk. Where the workspace has more than it
    /// may, its oldest ones go, and are counted.
    ///
    /// # Errors
    /// When the store failed; nothing was changed then.
    async fn reject(
        &self,
        workspace: String,
        origin: Origin,
        rejected: Vec<Rejected>,
    ) -> Result<(), StorageError>;

    /// Those with larger numbers, the oldest first.
    ///
    /// # Errors
    /// When the store failed.
    async fn rejected(
        &self,
        workspace: String,
        which: Which,
        after: i64,
        most: u32,
    ) -> Result<Vec<Quarantined>, StorageError>;

    /// How many of a workspace went for want of room.
    ///
    /// # Errors
    /// When the store failed.
    async fn dropped(&self, workspace: String) -> Result<i64, StorageError>;

    /// Notes why one still does not fit.
    ///
    /// # Errors
    /// When the store failed.
    async fn still(
        &self,
        workspace: String,
        number: i64,
        reason: String,
    ) -> Result<(), StorageError>;

    /// Forgets one; `false` if it is not there.
    ///
    /// # Errors
    /// When the store failed.
    async fn forget(&self, workspace: String, number: i64) -> Result<bool, StorageError>;

    /// Forgets all that are meant; how many those were.
    ///
    /// # Errors
    /// When the store failed.
    async fn forget_all(&self, workspace: String, which: Which) -> Result<i64, StorageError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_of_an_origin_counts() {
        let text = |bytes: usize| "x".repeat(bytes);
        let origin = Origin {
            flow: text(1),
            collection: text(2),
            generation: 0,
            document: text(4),
            chunk: text(8),
            model: text(16),
            prompt_version: text(32),
            asked_at: text(64),
        };
        assert_eq!(origin.bytes(), 127);
    }
}
