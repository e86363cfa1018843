//! The owner's mark: an advisory lock on a file beside the database, released by the system when the
//! process ends in whatever way.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use crate::StorageError;

/// Held as long as the store is open.
#[derive(Debug)]
pub(crate) struct OwnerLock {
    _file: File,
}

impl OwnerLock {
    /// Takes the lock of a database file, or says that somebody has it.
    pub(crate) fn take(database: &Path) -> Result<Self, StorageError> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(beside(database))
            .map_err(|error| StorageError::from_io(&error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(StorageError::InUse),
            Err(TryLockError::Error(error)) => Err(StorageError::from_io(&error)),
        }
    }
}

fn beside(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}
