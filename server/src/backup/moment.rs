//! The moment that a backup shows. Each store is shown at one of its own commits, all of them within a few milliseconds.
//! Records on the embedded bus are taken from before that until after it, so none is lost between its queue and its store;
//! one that was handled meanwhile is handled again, as after a crash.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tg_mesh::clock;
use tg_mesh::embedded::LogCopy;
use tg_storage::Snapshot;

use super::copying::Copying;
use super::places::{BUS, CONFIG};

/// A moment is tried so often: a store that is made or removed within its few milliseconds spoils it, and so does much
/// new work on the bus.
const TRIES: usize = 20;

/// The stores, each held at its own commit, and the records around that.
pub(super) struct Moment {
    stores: Vec<(PathBuf, Snapshot)>,
    records: Option<LogCopy>,
    staged: Vec<(PathBuf, File)>,
}

impl Moment {
    /// Holds a moment; also says when it was.
    pub(super) fn of(data_dir: &Path, copying: &mut Copying<'_>) -> Result<(Self, i64)> {
        for _ in 0..TRIES {
            let found = copying.stores()?;
            let Some(mut moment) = Self::opened(data_dir, &found)? else {
                continue;
            };
            moment.staged = copying.staged()?;
            // Only what was added while the first copy took its time, so that little is left for after the moment.
            copying.content()?;
            if moment.hold(data_dir)? && copying.stores()?.is_subset(&found) {
                return Ok((moment, clock::millis()));
            }
        }
        bail!(
            "the system makes stores faster than they can be backed up; try again when it does less"
        )
    }

    /// The stores, open. None: one of them is gone.
    fn opened(data_dir: &Path, found: &BTreeSet<PathBuf>) -> Result<Option<Self>> {
        let mut stores = Vec::with_capacity(found.len());
        for path in found {
            let file = data_dir.join(path);
            match Snapshot::open(&file) {
                Err(_) if !file.exists() => return Ok(None),
                store => {
                    let store = store.with_context(|| format!("cannot open {}", path.display()))?;
                    stores.push((path.clone(), store));
                }
            }
        }
        // What other stores have seen is held after them: a store that has seen a newer configuration than there is would not
        // follow it.
        stores.sort_by_key(|(path, _)| path == Path::new(CONFIG));
        Ok(Some(Self {
            stores,
            records: None,
            staged: Vec::new(),
        }))
    }

    /// Whether the moment is one: nothing on the bus came and went within it.
    fn hold(&mut self, data_dir: &Path) -> Result<bool> {
        let bus = data_dir.join(BUS);
        let unread = || format!("cannot read {}", bus.display());
        let mut records = match bus.is_dir() {
            true => Some(LogCopy::begin(&bus).with_context(unread)?),
            false => None,
        };
        for (path, store) in &self.stores {
            store
                .hold()
                .with_context(|| format!("cannot read {}", path.display()))?;
        }
        let whole = match &mut records {
            Some(records) => records.end().with_context(unread)?,
            None => true,
        };
        self.records = records;
        Ok(whole)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.stores.is_empty()
    }

    pub(super) fn has_records(&self) -> bool {
        self.records.is_some()
    }

    /// The same without records and uploads: these do not say whose they are.
    pub(super) fn stores_alone(self) -> Self {
        Self {
            records: None,
            staged: Vec::new(),
            ..self
        }
    }

    /// Copies what is held.
    pub(super) fn write(self, copying: &mut Copying<'_>) -> Result<()> {
        for (path, store) in self.stores {
            let to = copying.place(&path)?;
            store
                .copy(&to)
                .with_context(|| format!("cannot copy {}", path.display()))?;
            copying.written(&path)?;
        }
        if let Some(records) = self.records {
            let folder = copying.place(Path::new(BUS))?;
            let files = records.write(&folder).context("cannot copy records")?;
            for file in files {
                let name = file.file_name().unwrap_or_default();
                copying.written(&Path::new(BUS).join(name))?;
            }
        }
        for (path, file) in &self.staged {
            copying.file(path, file)?;
        }
        Ok(())
    }
}
