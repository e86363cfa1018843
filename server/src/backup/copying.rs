//! Files from one directory to another, each with its length and hash, and on the disk before it is listed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::places::{BUS, CONTENT, SCRATCH, STAGED, UNFINISHED};

/// Bytes read at once.
const STEP: usize = 256 << 10;
/// What SQLite and the owner's lock put beside a database.
const BESIDE: [&str; 4] = ["-wal", "-shm", "-journal", ".lock"];
/// How a database begins.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// A file that was copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copied {
    /// Its path below the directory.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256, in hex.
    pub sha256: String,
}

/// A backup while it is made.
pub(super) struct Copying<'a> {
    from: &'a Path,
    to: &'a Path,
    /// Stores that were found, by their paths below the data directory.
    stores: BTreeSet<PathBuf>,
    files: BTreeMap<PathBuf, Copied>,
}

impl<'a> Copying<'a> {
    pub(super) fn new(from: &'a Path, to: &'a Path) -> Self {
        Self {
            from,
            to,
            stores: BTreeSet::new(),
            files: BTreeMap::new(),
        }
    }

    /// The stores that are there.
    pub(super) fn stores(&mut self) -> Result<BTreeSet<PathBuf>> {
        self.look()?;
        Ok(self.stores.clone())
    }

    /// Looks through the data directory, but for content and records, and notes its stores. Returns all else.
    fn look(&mut self) -> Result<Vec<PathBuf>> {
        let (mut stores, mut others) = (BTreeSet::new(), Vec::new());
        let mut left = vec![PathBuf::new()];
        while let Some(folder) = left.pop() {
            for name in names(&self.from.join(&folder))? {
                let path = folder.join(name);
                if [BUS, CONTENT, UNFINISHED].map(Path::new).contains(&&*path) {
                    continue;
                }
                let full = self.from.join(&path);
                match fs::metadata(&full) {
                    Ok(data) if data.is_dir() => left.push(path),
                    Ok(data) if data.is_file() && !is_beside(&full) => {
                        let known = self.stores.contains(&path);
                        match known || is_store(&full)? {
                            true => _ = stores.insert(path),
                            false => others.push(path),
                        }
                    }
                    // A socket or a pipe, or something that is gone by now.
                    _ => {}
                }
            }
        }
        self.stores = stores;
        Ok(others)
    }

    /// Copies content that is not copied yet.
    pub(super) fn content(&mut self) -> Result<()> {
        for folder in names(&self.from.join(CONTENT))? {
            if [STAGED, SCRATCH].map(Path::new).contains(&&*folder) {
                continue;
            }
            let folder = Path::new(CONTENT).join(folder);
            for name in names(&self.from.join(&folder))? {
                let path = folder.join(name);
                if !self.files.contains_key(&path) {
                    self.copy(&path)?;
                }
            }
        }
        Ok(())
    }

    /// Uploads in progress, held open: they go on, or become content under another name.
    pub(super) fn staged(&self) -> Result<Vec<(PathBuf, File)>> {
        let folder = Path::new(CONTENT).join(STAGED);
        let mut files = Vec::new();
        for name in names(&self.from.join(&folder))? {
            let path = folder.join(name);
            if let Some(file) = open(&self.from.join(&path))? {
                files.push((path, file));
            }
        }
        Ok(files)
    }

    /// Copies what is neither a store nor content: files that people put there, and trails, which only grow.
    pub(super) fn others(&mut self) -> Result<()> {
        for path in self.look()? {
            self.copy(&path)?;
        }
        Ok(())
    }

    /// Copies a file, if it is there.
    pub(super) fn copy(&mut self, path: &Path) -> Result<()> {
        match open(&self.from.join(path))? {
            Some(file) => self.file(path, &file),
            None => Ok(()),
        }
    }

    /// Copies a file.
    pub(super) fn file(&mut self, path: &Path, file: &File) -> Result<()> {
        let to = self.place(path)?;
        let copied = write(file, &to).with_context(|| format!("cannot copy {}", path.display()))?;
        self.note(path, copied);
        Ok(())
    }

    /// Where a file of a path goes, whose folders are there now.
    pub(super) fn place(&self, path: &Path) -> Result<PathBuf> {
        let to = self.to.join(path);
        make(to.parent().unwrap_or(self.to))?;
        Ok(to)
    }

    /// Lists a file that was written at its place.
    pub(super) fn written(&mut self, path: &Path) -> Result<()> {
        let copied = hash(&self.to.join(path));
        let copied = copied.with_context(|| format!("cannot read {}", path.display()))?;
        self.note(path, copied);
        Ok(())
    }

    fn note(&mut self, path: &Path, (bytes, sha256): (u64, String)) {
        let path = path.to_owned();
        let copied = Copied {
            path: path.clone(),
            bytes,
            sha256,
        };
        self.files.insert(path, copied);
    }

    /// Where the copy is made.
    pub(super) fn to(&self) -> &Path {
        self.to
    }

    /// The paths of what was copied.
    pub(super) fn copied(&self) -> Vec<PathBuf> {
        self.files.keys().cloned().collect()
    }

    /// Removes a file that was copied, and its folder, if that is empty then.
    pub(super) fn remove(&mut self, path: &Path) -> Result<()> {
        let to = self.to.join(path);
        fs::remove_file(&to).with_context(|| format!("cannot remove {}", to.display()))?;
        if let Some(folder) = to.parent() {
            // One that has more in it stays.
            let _ = fs::remove_dir(folder);
        }
        self.files.remove(path);
        Ok(())
    }

    /// All that was copied, which a loss of power takes away no more.
    pub(super) fn into_files(self) -> Result<Vec<Copied>> {
        settle(self.to, self.files.keys().map(PathBuf::as_path))?;
        Ok(self.files.into_values().collect())
    }
}

/// Opens a file; none where it is gone.
fn open(path: &Path) -> Result<Option<File>> {
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        file => file
            .map(Some)
            .with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Whether a file lies beside a database, and is no other's.
fn is_beside(path: &Path) -> bool {
    let name = path.to_string_lossy();
    let of = BESIDE.iter().filter_map(|ending| name.strip_suffix(ending));
    of.map(Path::new).any(Path::exists)
}

/// Whether a file is a store: it has an owner's lock beside it, or begins as a database. Not asked of one that is known:
/// closing a file ends the locks that SQLite has on it in this process.
fn is_store(path: &Path) -> Result<bool> {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    if Path::new(&lock).exists() {
        return Ok(true);
    }
    let Some(file) = open(path)? else {
        return Ok(false);
    };
    let mut start = Vec::new();
    file.take(MAGIC.len() as u64)
        .read_to_end(&mut start)
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(start == MAGIC)
}

/// What is in a directory; nothing where there is none.
fn names(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("cannot read {}", dir.display()))?,
    };
    let names = entries.map(|entry| Ok(PathBuf::from(entry?.file_name())));
    let names: io::Result<Vec<_>> = names.collect();
    names.with_context(|| format!("cannot read {}", dir.display()))
}

/// Whether a directory has nothing in it, or is not there.
pub(super) fn is_empty(dir: &Path) -> Result<bool> {
    if dir.exists() && !dir.is_dir() {
        bail!("{} is not a directory", dir.display());
    }
    Ok(names(dir)?.is_empty())
}

/// Makes a directory that its owner alone can read.
pub(super) fn make(dir: &Path) -> Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .with_context(|| format!("cannot make {}", dir.display()))
}

/// Takes away what is in a directory, as far as that works. The mark of a restore that did not end goes last, and stays where
/// anything else does.
pub(super) fn empty(dir: &Path) {
    let names = names(dir).unwrap_or_default();
    let mut all_gone = true;
    for name in names.iter().filter(|name| *name != Path::new(UNFINISHED)) {
        let path = dir.join(name);
        let gone = match path.is_dir() {
            true => fs::remove_dir_all(path),
            false => fs::remove_file(path),
        };
        all_gone &= gone.is_ok();
    }
    if all_gone {
        let _ = fs::remove_file(dir.join(UNFINISHED));
    }
}

/// The directories that files at these paths below a directory need, with that one.
fn folders<'a>(of: &Path, files: impl Iterator<Item = &'a Path>) -> BTreeSet<PathBuf> {
    let above = files.flat_map(|file| file.ancestors().skip(1));
    let mut folders: BTreeSet<PathBuf> = above.map(|folder| of.join(folder)).collect();
    folders.insert(of.to_owned());
    folders
}

/// Has the disk know the names of files that were written at these paths below a directory: each file itself is there already.
pub(super) fn settle<'a>(of: &Path, files: impl Iterator<Item = &'a Path>) -> Result<()> {
    for folder in folders(of, files) {
        let synced = File::open(&folder).and_then(|folder| folder.sync_all());
        synced.with_context(|| format!("cannot write in {}", folder.display()))?;
    }
    Ok(())
}

/// Writes a new file onto the disk; its length and hash.
pub(super) fn write(mut from: &File, to: &Path) -> io::Result<(u64, String)> {
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(to)?;
    let read = each_step(&mut from, |bytes| file.write_all(bytes))?;
    file.sync_all()?;
    Ok(read)
}

/// Length and hash of a file.
pub(super) fn hash(path: &Path) -> io::Result<(u64, String)> {
    each_step(&mut File::open(path)?, |_| Ok(()))
}

fn each_step(
    from: &mut impl Read,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<(u64, String)> {
    let (mut hash, mut length) = (Sha256::new(), 0);
    let mut buffer = vec![0; STEP];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok((length, hex::encode(hash.finalize()))),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => read?,
        };
        hash.update(&buffer[..read]);
        length += read as u64;
        take(&buffer[..read])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_directory_above_a_file_is_synced() {
        let files = ["a/b/c", "a/d", "e"].map(Path::new);
        let found = folders(Path::new("/to"), files.into_iter());
        let expected = ["/to", "/to/a", "/to/a/b"].map(PathBuf::from);
        assert_eq!(found, BTreeSet::from(expected));
        assert_eq!(folders(Path::new("/to"), std::iter::empty()).len(), 1);
    }

    #[test]
    fn a_directory_is_emptied_with_its_mark() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(UNFINISHED), "x").unwrap();
        fs::create_dir_all(dir.path().join("zoo/deep")).unwrap();
        fs::write(dir.path().join("zoo/deep/file"), "x").unwrap();
        empty(dir.path());
        assert!(is_empty(dir.path()).unwrap());
    }
}
