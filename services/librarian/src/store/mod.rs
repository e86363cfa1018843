//! Where the library is kept: what an adapter does, and those over SQLite and over files.
//!
//! A method is one transaction: whole or not at all, and seen at one moment. Writers may be repeated: by the id of
//! the question that is noted with the change, or because the second time changes nothing. Listings come in pages.
//! Content is named by its hash; small content is kept in the row, large content beside the rows (`contents`).

pub(crate) mod collections;
pub(crate) mod contents;
pub(crate) mod documents;
mod files;
pub(crate) mod runs;
mod sqlite;
pub(crate) mod uploads;

#[cfg(test)]
mod conformance;

use async_trait::async_trait;
use tg_collections::KnownConfig;
use tg_storage::StorageError;

pub(crate) use collections::CollectionStore;
pub(crate) use contents::ContentStore;
pub(crate) use documents::DocumentStore;
pub(crate) use runs::RunStore;
pub(crate) use sqlite::SqliteLibrary;
pub use sqlite::{ONE_WORKSPACE, files_of_content};
pub(crate) use uploads::UploadStore;

/// All that the library keeps in rows.
#[async_trait]
pub(crate) trait LibraryStore:
    DocumentStore + UploadStore + RunStore + CollectionStore + KnownConfig
{
    /// At most `most` keys of workspaces that have anything here, sorted, after one.
    async fn workspaces(&self, after: &str, most: u32) -> Result<Vec<String>, StorageError>;

    /// Forgets a workspace that was deleted: documents, runs, and what its runs were to retract; every store is to
    /// drop its collections. Upload sessions are ended before, one by one, as they have files.
    async fn purge(&self, workspace: &str) -> Result<(), StorageError>;
}
