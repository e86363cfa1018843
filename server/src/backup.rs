//! Backup and restore of a data directory. A backup is taken beside the processes that write there: it asks them for
//! nothing and holds nothing up. `moment.rs` says what moment it shows.
//!
//! A backup is a directory of plain files and a list of them with their hashes, which is written last: without that list it
//! is not one.

mod copying;
mod manifest;
mod moment;
mod one_workspace;
mod places;
mod restore;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tg_mesh::clock;
use tg_schemas::WorkspaceId;

use self::copying::{Copying, is_empty};
pub use self::manifest::Manifest;
use self::moment::Moment;
pub use self::restore::restore;
pub(crate) use self::restore::unfinished;

/// Copies a data directory, as it is at one moment, into an empty directory.
///
/// # Errors
/// There is nothing to copy, the directory is not empty, or a file cannot be read or written. Nothing is left there then.
pub fn take(data_dir: &Path, to: &Path) -> Result<Manifest> {
    take_of(data_dir, to, None)
}

/// As [`take`], of one workspace alone.
///
/// # Errors
/// As for [`take`]. Or there is no such workspace, or a store is not known.
pub fn take_workspace(data_dir: &Path, to: &Path, workspace: &WorkspaceId) -> Result<Manifest> {
    take_of(data_dir, to, Some(workspace))
}

fn take_of(data_dir: &Path, to: &Path, only: Option<&WorkspaceId>) -> Result<Manifest> {
    if !data_dir.is_dir() {
        bail!("data_dir: {} is not there", data_dir.display());
    }
    if !is_empty(to)? {
        bail!(
            "{} is not empty; a backup needs an empty directory",
            to.display()
        );
    }
    if let Some(workspace) = only {
        // Before much is copied in vain.
        one_workspace::key_of(data_dir, workspace)?;
    }
    copying::make(to)?;
    let (data_dir, to) = (whole(data_dir)?, whole(to)?);
    if to.starts_with(&data_dir) {
        let _ = std::fs::remove_dir(&to);
        bail!(
            "{} is in the data directory; a backup needs a place of its own",
            to.display()
        );
    }
    let taken = copy(&data_dir, &to, only);
    if taken.is_err() {
        copying::empty(&to);
    }
    taken
}

fn whole(path: &Path) -> Result<PathBuf> {
    path.canonicalize()
        .with_context(|| path.display().to_string())
}

fn copy(data_dir: &Path, to: &Path, only: Option<&WorkspaceId>) -> Result<Manifest> {
    let mut copying = Copying::new(data_dir, to);
    let begun = clock::millis();
    // Content never changes under its name: most of it is copied before the moment, and what is new since right after it.
    copying.content()?;
    let (moment, at) = Moment::of(data_dir, &mut copying)?;
    if moment.is_empty() {
        bail!(
            "data_dir: {} has no store; name the one that the system uses (--data-dir, or its --config)",
            data_dir.display()
        );
    }
    let moment = match only {
        Some(_) => moment.stores_alone(),
        None => moment,
    };
    let records = moment.has_records();
    // Before the stores: a document that is deleted while these are copied has its content all the same.
    copying.content()?;
    moment.write(&mut copying)?;
    match only {
        Some(workspace) => one_workspace::keep(&mut copying, workspace)?,
        None => copying.others()?,
    }
    let manifest = Manifest::new(begun, at, records, copying.into_files()?).of(only);
    manifest.write(to)?;
    Ok(manifest)
}

#[cfg(test)]
mod tests;
