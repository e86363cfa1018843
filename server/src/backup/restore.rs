//! The way back: a backup into an empty data directory. Everything is held against its hash before anything is written.
//! A directory that a restore did not fill to the end is marked, and no process starts with it.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::copying::{self, is_empty};
use super::manifest::Manifest;
use super::places::UNFINISHED;

/// Copies a backup into an empty data directory.
///
/// # Errors
/// The backup is not whole or was made by a newer release, or the directory is not empty: nothing is written then. Or a
/// file cannot be written: what was, is taken away again.
pub fn restore(from: &Path, data_dir: &Path) -> Result<Manifest> {
    let manifest = Manifest::read(from)?;
    if !is_empty(data_dir)? {
        let how = match &manifest.workspace {
            Some(_) => {
                "a backup of one workspace is restored into a new system, with an empty directory; into another system it goes as \
                 a bundle (tg export-workspace)"
            }
            None => "a backup is restored into an empty directory",
        };
        bail!("data_dir: {} is not empty; {how}", data_dir.display());
    }
    manifest.verify(from)?;
    copying::make(data_dir)?;
    let filled = fill(&manifest, from, data_dir);
    if filled.is_err() {
        copying::empty(data_dir);
    }
    filled.map(|()| manifest)
}

fn fill(manifest: &Manifest, from: &Path, data_dir: &Path) -> Result<()> {
    let mark = data_dir.join(UNFINISHED);
    let write = || {
        fs::write(&mark, "A restore did not end.\n")?;
        File::open(data_dir)?.sync_all()
    };
    write().with_context(|| format!("cannot write in {}", data_dir.display()))?;
    for file in &manifest.files {
        let (source, to) = (from.join(&file.path), data_dir.join(&file.path));
        copying::make(to.parent().unwrap_or(data_dir))?;
        let copied = File::open(source).and_then(|source| copying::write(&source, &to));
        let copied = copied.with_context(|| format!("cannot restore {}", file.path.display()))?;
        if copied != (file.bytes, file.sha256.clone()) {
            bail!("the backup changed meanwhile: {}", file.path.display());
        }
    }
    copying::settle(data_dir, manifest.files.iter().map(|file| &*file.path))?;
    let done = || {
        fs::remove_file(&mark)?;
        File::open(data_dir)?.sync_all()
    };
    done().with_context(|| format!("cannot write in {}", data_dir.display()))
}

/// Whether a restore into this directory did not end.
pub(crate) fn unfinished(data_dir: &Path) -> bool {
    data_dir.join(UNFINISHED).exists()
}
