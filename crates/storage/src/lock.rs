//! The owner's mark: an advisory lock on a file, released by the system when the process ends in whatever way. The file says
//! which process has it, for people.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::StorageError;

/// Held as long as the store is open.
#[derive(Debug)]
pub struct OwnerLock {
    file: File,
}

impl OwnerLock {
    /// Takes the lock that a file is.
    ///
    /// # Errors
    /// [`StorageError::InUse`] while somebody else has it, or what the file system says.
    pub fn take(path: &Path) -> Result<Self, StorageError> {
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(|error| StorageError::from_io(&error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StorageError::InUse),
            Err(TryLockError::Error(error)) => return Err(StorageError::from_io(&error)),
        }
        // For people only: a disk that is full is told by what is written next.
        let _ = file.set_len(0);
        let _ = write!(file, "{}", std::process::id());
        Ok(Self { file })
    }

    /// Lets go of it, where the owner may be dropped later.
    ///
    /// # Errors
    /// What the file system says.
    pub fn unlock(&self) -> std::io::Result<()> {
        self.file.unlock()
    }

    /// The process that took a lock last, as it said.
    pub fn taken_by(path: &Path) -> Option<u32> {
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    }

    /// The lock of a database file.
    pub(crate) fn take_beside(database: &Path) -> Result<Self, StorageError> {
        Self::take(&beside(database))
    }
}

fn beside(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_it_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("owner.lock");
        std::fs::write(&path, "4294967295 and more").unwrap();
        assert_eq!(OwnerLock::taken_by(&path), None);
        let held = OwnerLock::take(&path).unwrap();
        assert_eq!(OwnerLock::taken_by(&path), Some(std::process::id()));
        assert_eq!(OwnerLock::take(&path).err(), Some(StorageError::InUse));
        drop(held);
        assert!(OwnerLock::take(&path).is_ok());
    }
}
