//! Content that arrives in parts: a staged file takes them at their offsets, in any order and over many
//! runs of the process, and becomes a blob when it is whole. Which parts arrived is known by the owner's
//! tables, not here.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{BlobId, BlobStore, absent, io};
use crate::{Durability, StorageError};

/// Bytes read at once while a staged file is hashed.
const STEP: usize = 256 << 10;
/// Longest name of a staged file.
const MAX_NAME: usize = 64;

/// Name of a staged file: letters, digits and `-`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StageId(String);

impl StageId {
    /// Reads a name; `None` for text that cannot be a plain file name.
    pub fn parse(text: &str) -> Option<Self> {
        let plain = text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        (plain && !text.is_empty() && text.len() <= MAX_NAME).then(|| Self(text.to_owned()))
    }
}

impl fmt::Display for StageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A part that a staged file should hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Its hash.
    pub hash: BlobId,
    /// Its length in bytes.
    pub length: u64,
}

/// What a staged file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Staged {
    /// All parts; this is the hash of the whole.
    Whole(BlobId),
    /// These parts, by position, are not what they should be.
    Damaged(Vec<usize>),
    /// There is no such file.
    Absent,
}

impl BlobStore {
    /// Writes bytes into a staged file at an offset, making the file if there is none.
    ///
    /// # Errors
    /// [`StorageError::Full`] where there is no room left, else [`StorageError::Io`] where the file system refuses.
    /// The part may be there in pieces, and is to be written again.
    pub async fn stage_write(
        &self,
        stage: &StageId,
        offset: u64,
        bytes: impl AsRef<[u8]> + Send + 'static,
    ) -> Result<(), StorageError> {
        let path = self.staged(stage);
        self.blocking(move |store| {
            write_at(&path, offset, bytes.as_ref(), store.durability).map_err(|error| io(&error))
        })
        .await
    }

    /// Looks whether a staged file holds what it should. What follows the last part is cut off. The file stays
    /// where it is: [`Self::adopt`] makes it a blob, once its owner has noted the hash.
    ///
    /// # Errors
    /// [`StorageError::Io`] where the file cannot be read or cut.
    pub async fn staged_hash(
        &self,
        stage: &StageId,
        parts: Vec<Part>,
    ) -> Result<Staged, StorageError> {
        let path = self.staged(stage);
        self.blocking(move |_| staged_hash_now(&path, &parts)).await
    }

    /// Makes a staged file, known to be whole, the blob of its hash; it takes the place of one that is there.
    /// Without a staged file nothing is done: the blob is there already, or the owner looks for itself.
    ///
    /// # Errors
    /// [`StorageError::Full`] where there is no room left, else [`StorageError::Io`] where the file system refuses.
    /// The staged file is still there, and adopting it again is safe.
    pub async fn adopt(&self, stage: &StageId, id: BlobId) -> Result<(), StorageError> {
        let path = self.staged(stage);
        self.blocking(move |store| {
            let file = match File::open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(io(&error)),
            };
            store
                .move_to(&file, &path, &store.path(&id))
                .map_err(|error| io(&error))
        })
        .await
    }

    /// Removes a staged file; none is fine.
    ///
    /// # Errors
    /// [`StorageError::Io`] where the file system refuses; the file may still be there.
    pub async fn stage_remove(&self, stage: &StageId) -> Result<(), StorageError> {
        let path = self.staged(stage);
        self.blocking(move |_| absent(fs::remove_file(path)).map(|_| ()))
            .await
    }

    /// All staged files.
    ///
    /// # Errors
    /// [`StorageError::Io`] where the directory cannot be read.
    pub async fn stages(&self) -> Result<Vec<StageId>, StorageError> {
        self.blocking(|store| {
            let names = names_in(&store.stages_dir())?;
            Ok(names
                .iter()
                .filter_map(|name| StageId::parse(name))
                .collect())
        })
        .await
    }

    /// Blobs whose hash begins with a byte: all of them in 256 steps.
    ///
    /// # Errors
    /// [`StorageError::Io`] where the directory cannot be read.
    pub async fn list(&self, first: u8) -> Result<Vec<BlobId>, StorageError> {
        self.blocking(move |store| {
            let prefix = format!("{first:02x}");
            let names = names_in(&store.root.join(&prefix))?;
            let ids = names
                .iter()
                .filter_map(|name| BlobId::parse(&format!("{prefix}{name}")));
            Ok(ids.collect())
        })
        .await
    }

    fn stages_dir(&self) -> PathBuf {
        self.root.join("staged")
    }

    fn staged(&self, stage: &StageId) -> PathBuf {
        self.stages_dir().join(&stage.0)
    }
}

fn staged_hash_now(staged: &Path, parts: &[Part]) -> Result<Staged, StorageError> {
    let mut file = match File::open(staged) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Staged::Absent),
        Err(error) => return Err(io(&error)),
    };
    let size: u64 = parts.iter().map(|part| part.length).sum();
    file = cut(file, staged, size).map_err(|error| io(&error))?;
    let (whole, damaged) = hash_parts(&mut file, parts).map_err(|error| io(&error))?;
    match damaged.is_empty() {
        true => Ok(Staged::Whole(whole)),
        false => Ok(Staged::Damaged(damaged)),
    }
}

fn write_at(path: &Path, offset: u64, bytes: &[u8], hard: Durability) -> std::io::Result<()> {
    let new = !path.exists();
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(bytes)?;
    if hard == Durability::Power {
        file.sync_all()?;
        if let Some(parent) = path.parent().filter(|_| new) {
            File::open(parent)?.sync_all()?;
        }
    }
    Ok(())
}

/// Removes what follows the last part: a part may have been longer in an earlier try.
fn cut(file: File, path: &Path, size: u64) -> std::io::Result<File> {
    if file.metadata()?.len() > size {
        OpenOptions::new().write(true).open(path)?.set_len(size)?;
    }
    Ok(file)
}

/// Hash of the whole, and the positions of parts whose own hash differs.
fn hash_parts(file: &mut File, parts: &[Part]) -> std::io::Result<(BlobId, Vec<usize>)> {
    let mut whole = Sha256::new();
    let mut damaged = Vec::new();
    let mut buffer = vec![0; STEP];
    for (at, part) in parts.iter().enumerate() {
        let mut own = Sha256::new();
        let mut left = part.length;
        while left > 0 {
            let want = usize::try_from(left).unwrap_or(STEP).min(STEP);
            let got = file.read(&mut buffer[..want])?;
            if got == 0 {
                break;
            }
            own.update(&buffer[..got]);
            whole.update(&buffer[..got]);
            left -= got as u64;
        }
        if BlobId(own.finalize().into()) != part.hash {
            damaged.push(at);
        }
    }
    Ok((BlobId(whole.finalize().into()), damaged))
}

fn names_in(dir: &Path) -> Result<Vec<String>, StorageError> {
    let Some(entries) = absent(fs::read_dir(dir))? else {
        return Ok(Vec::new());
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(|error| io(&error))?.file_name();
        names.extend(name.into_string());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(bytes: &[u8]) -> Part {
        Part {
            hash: BlobId::of(bytes),
            length: bytes.len() as u64,
        }
    }

    #[tokio::test]
    async fn parts_in_any_order_become_a_blob() {
        let dir = tempfile::tempdir().unwrap();
        let store = BlobStore::open(dir.path(), Durability::Power).unwrap();
        let stage = StageId::parse("a-1").unwrap();
        store.stage_write(&stage, 4, "longer text").await.unwrap();
        store.stage_write(&stage, 0, "one ").await.unwrap();
        // A restart leaves it alone.
        let store = BlobStore::open(dir.path(), Durability::Power).unwrap();
        store.stage_write(&stage, 4, "two").await.unwrap();
        assert_eq!(store.stages().await.unwrap(), std::slice::from_ref(&stage));
        let look = async |parts: Vec<Part>| store.staged_hash(&stage, parts).await.unwrap();
        let wrong = look(vec![part(b"one "), part(b"2wo")]).await;
        assert_eq!(wrong, Staged::Damaged(vec![1]));
        let id = BlobId::of(b"one two");
        let parts = || vec![part(b"one "), part(b"two")];
        assert_eq!(look(parts()).await, Staged::Whole(id));
        // A torn file of the name is replaced.
        fs::create_dir_all(store.path(&id).parent().unwrap()).unwrap();
        fs::write(store.path(&id), "one").unwrap();
        store.adopt(&stage, id).await.unwrap();
        store.adopt(&stage, id).await.unwrap();
        assert_eq!(store.get(id).await.unwrap().unwrap(), b"one two");
        assert!(store.stages().await.unwrap().is_empty());
        let first = u8::from_str_radix(&id.to_string()[..2], 16).unwrap();
        assert_eq!(store.list(first).await.unwrap(), [id]);
        assert!(store.list(first.wrapping_add(1)).await.unwrap().is_empty());
        assert_eq!(look(parts()).await, Staged::Absent);
    }

    #[test]
    fn a_stage_is_a_plain_name() {
        for bad in ["", "../x", "a/b", "a.b", &"x".repeat(65)] {
            assert_eq!(StageId::parse(bad), None, "{bad}");
        }
    }
}
