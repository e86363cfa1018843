//! Files named by the SHA-256 of their content: written once, read often, shared by whoever holds the
//! same content. Which blobs are still wanted is known by their owners' tables, not here.
//!
//! A file that is there is not believed: a loss of power may have left it short or empty. Storing its content
//! again mends it, and reading it whole says that it is damaged.

use std::fmt;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};

use crate::{Durability, StorageError};

mod stage;

pub use stage::{Part, StageId, Staged};

/// The hash that names a blob.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobId([u8; 32]);

impl BlobId {
    /// The name that content has.
    pub fn of(content: &[u8]) -> Self {
        Self(Sha256::digest(content).into())
    }

    /// The hash itself.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// From the hash itself.
    pub fn from_bytes(hash: [u8; 32]) -> Self {
        Self(hash)
    }

    /// Reads 64 hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self(bytes))
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A directory of blobs. The async methods work on the runtime's blocking threads.
#[derive(Clone, Debug)]
pub struct BlobStore {
    root: Arc<Path>,
    durability: Durability,
    next: Arc<AtomicU64>,
}

impl BlobStore {
    /// Opens or creates the directory; removes what an interrupted write left. The caller owns the
    /// directory (its database's lock says so). Blocks: call it at start-up.
    ///
    /// # Errors
    /// [`StorageError::Full`] where there is no room left, else [`StorageError::Io`] where the file system refuses.
    pub fn open(root: &Path, durability: Durability) -> Result<Self, StorageError> {
        let store = Self {
            root: root.into(),
            durability,
            next: Arc::default(),
        };
        let unfinished = store.unfinished();
        match fs::remove_dir_all(&unfinished) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(io(&error)),
            _ => {}
        }
        fs::create_dir_all(&unfinished).map_err(|error| io(&error))?;
        Ok(store)
    }

    /// Stores content under its hash: whole or not at all. What is there already and is what it should be is
    /// not written again; what is not is replaced.
    ///
    /// # Errors
    /// [`StorageError::Full`] where there is no room left, else [`StorageError::Io`] where the file system refuses.
    /// What was under the hash before is still there.
    pub async fn put(
        &self,
        content: impl AsRef<[u8]> + Send + 'static,
    ) -> Result<BlobId, StorageError> {
        self.blocking(move |store| store.put_now(content.as_ref()))
            .await
    }

    /// Content by hash; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`StorageError::Corrupt`] if the file does not hold what its name says.
    pub async fn get(&self, id: BlobId) -> Result<Option<Vec<u8>>, StorageError> {
        self.blocking(move |store| {
            let content = absent(fs::read(store.path(&id)))?;
            match content {
                Some(content) if BlobId::of(&content) != id => Err(damaged()),
                content => Ok(content),
            }
        })
        .await
    }

    /// Up to `length` bytes from `offset`; empty past the end, `None` if there is no such blob.
    ///
    /// # Errors
    /// [`StorageError::Io`] where the file cannot be read. What is read is not held against the hash.
    pub async fn get_range(
        &self,
        id: BlobId,
        offset: u64,
        length: usize,
    ) -> Result<Option<Vec<u8>>, StorageError> {
        self.blocking(move |store| absent(read_range(&store.path(&id), offset, length)))
            .await
    }

    /// Size in bytes; `None` if there is no such blob.
    ///
    /// # Errors
    /// [`StorageError::Io`] where the file system does not say.
    pub async fn size(&self, id: BlobId) -> Result<Option<u64>, StorageError> {
        self.blocking(move |store| absent(fs::metadata(store.path(&id)).map(|meta| meta.len())))
            .await
    }

    /// Removes a blob. Its owner has made sure that nothing refers to it.
    ///
    /// # Errors
    /// [`StorageError::Io`] where the file system refuses; the blob may still be there.
    pub async fn remove(&self, id: BlobId) -> Result<(), StorageError> {
        self.blocking(move |store| absent(fs::remove_file(store.path(&id))).map(|_| ()))
            .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Self) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        let store = self.clone();
        tokio::task::spawn_blocking(move || f(&store))
            .await
            .map_err(|_| StorageError::Panicked)?
    }

    fn put_now(&self, content: &[u8]) -> Result<BlobId, StorageError> {
        let id = BlobId::of(content);
        let path = self.path(&id);
        if holds(&path, content) {
            return Ok(id);
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let temporary = self.unfinished().join(number.to_string());
        let result = self.write_and_move(content, &temporary, &path);
        if result.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        result.map(|()| id).map_err(|error| io(&error))
    }

    fn write_and_move(&self, content: &[u8], from: &Path, to: &Path) -> std::io::Result<()> {
        let mut file = File::create(from)?;
        file.write_all(content)?;
        self.move_to(&file, from, to)
    }

    /// Gives a written file its name. Its bytes are on the disk before that in every durability: the row that
    /// speaks for it may outlive a loss of power, and must not speak for an empty file then.
    fn move_to(&self, file: &File, from: &Path, to: &Path) -> std::io::Result<()> {
        let directory = to.parent().unwrap_or(&self.root);
        fs::create_dir_all(directory)?;
        file.sync_all()?;
        fs::rename(from, to)?;
        if self.durability == Durability::Power {
            File::open(directory)?.sync_all()?;
            File::open(&*self.root)?.sync_all()?;
        }
        Ok(())
    }

    fn path(&self, id: &BlobId) -> PathBuf {
        let name = id.to_string();
        self.root.join(&name[..2]).join(&name[2..])
    }

    fn unfinished(&self) -> PathBuf {
        self.root.join("unfinished")
    }
}

fn io(error: &std::io::Error) -> StorageError {
    StorageError::from_io(error)
}

fn damaged() -> StorageError {
    StorageError::Corrupt("a file does not hold what its name says".to_owned())
}

/// Whether a file holds exactly this content. One that cannot be read does not.
fn holds(path: &Path, content: &[u8]) -> bool {
    let same_length = fs::metadata(path).is_ok_and(|meta| meta.len() == content.len() as u64);
    same_length && fs::read(path).is_ok_and(|there| there == content)
}

fn absent<T>(result: std::io::Result<T>) -> Result<Option<T>, StorageError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io(&error)),
    }
}

fn read_range(path: &Path, offset: u64, length: usize) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut content = Vec::new();
    file.take(length as u64).read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn content_is_found_by_its_hash_in_whole_and_in_parts() {
        let dir = tempfile::tempdir().unwrap();
        let store = BlobStore::open(dir.path(), Durability::Power).unwrap();
        let id = store.put("hello world").await.unwrap();
        assert_eq!(store.put("hello world").await.unwrap(), id);
        assert_eq!(BlobId::parse(&id.to_string()), Some(id));
        assert_eq!(store.get(id).await.unwrap().unwrap(), b"hello world");
        assert_eq!(store.get_range(id, 6, 3).await.unwrap().unwrap(), b"wor");
        assert_eq!(store.get_range(id, 99, 3).await.unwrap().unwrap(), b"");
        assert_eq!(store.size(id).await.unwrap(), Some(11));
        store.remove(id).await.unwrap();
        store.remove(id).await.unwrap();
        assert_eq!(store.get(id).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_torn_file_is_told_and_mended() {
        let dir = tempfile::tempdir().unwrap();
        let store = BlobStore::open(dir.path(), Durability::Process).unwrap();
        let id = store.put("hello world").await.unwrap();
        for torn in ["", "hello", "hello w0rld", "hello world and more"] {
            fs::write(store.path(&id), torn).unwrap();
            let told = store.get(id).await.unwrap_err();
            assert!(matches!(told, StorageError::Corrupt(_)), "{torn}: {told}");
            assert_eq!(store.put("hello world").await.unwrap(), id);
            assert_eq!(store.get(id).await.unwrap().unwrap(), b"hello world");
        }
    }

    #[test]
    fn text_that_is_no_hash_is_no_id() {
        for bad in ["", "../../etc/passwd", &"g".repeat(64), &"ü".repeat(32)] {
            assert_eq!(BlobId::parse(bad), None, "{bad}");
        }
    }
}
