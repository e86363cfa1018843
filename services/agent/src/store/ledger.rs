//! The ledger that a process has open, whatever its adapter.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tg_storage::{Durability, StorageError};

use super::LedgerStore;
use super::sqlite::SqliteLedger;

/// The ledger that this process has open.
#[derive(Clone)]
pub struct Ledger(Arc<dyn LedgerStore>);

impl Ledger {
    /// Over an adapter.
    pub fn new(store: Arc<dyn LedgerStore>) -> Self {
        Self(store)
    }

    /// Opens or creates the ledger in a directory. Blocks.
    ///
    /// # Errors
    /// When the file cannot be opened, is damaged, of a newer release or in use by another process.
    pub fn open(dir: &Path, durability: Durability) -> Result<Self, StorageError> {
        let store = SqliteLedger::open(&Self::file(dir), durability)?;
        Ok(Self::new(Arc::new(store)))
    }

    /// The ledger's file in a directory.
    pub fn file(dir: &Path) -> PathBuf {
        dir.join("agent.db")
    }

    /// A ledger that ends with the process.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn in_memory() -> Result<Self, StorageError> {
        Ok(Self::new(Arc::new(SqliteLedger::in_memory()?)))
    }
}

impl Deref for Ledger {
    type Target = dyn LedgerStore;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}
