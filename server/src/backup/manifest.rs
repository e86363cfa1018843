//! What a backup says of itself: who made it, the moment that it shows, and each file with its length and hash.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Component, Path};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use tg_schemas::WorkspaceId;

use super::copying::{self, Copied};

/// Its file, which makes a directory a backup.
const NAME: &str = "backup.json";
/// The form of a backup. A release reads this one and those before it.
const FORMAT: u32 = 1;

/// What is in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    format: u32,
    /// Release that made it.
    pub threadgraph: String,
    /// When it was begun, in milliseconds since 1970: what was confirmed before is in it.
    pub begun: i64,
    /// The moment that it shows: nothing that a store wrote later is in it. Trails and files of the operator are copied after it.
    pub moment: i64,
    /// Whether records that waited are in it. With a broker they are there.
    pub records: bool,
    /// The workspace that it holds alone; `None`: it holds everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Every file.
    pub files: Vec<Copied>,
}

impl Manifest {
    pub(super) fn new(begun: i64, moment: i64, records: bool, files: Vec<Copied>) -> Self {
        Self {
            format: FORMAT,
            threadgraph: env!("CARGO_PKG_VERSION").to_owned(),
            begun,
            moment,
            records,
            workspace: None,
            files,
        }
    }

    /// The same of one workspace alone.
    pub(super) fn of(self, workspace: Option<&WorkspaceId>) -> Self {
        Self {
            workspace: workspace.map(|one| one.as_str().to_owned()),
            ..self
        }
    }

    /// What is in it, in words.
    pub fn summary(&self) -> String {
        let bytes: u64 = self.files.iter().map(|file| file.bytes).sum();
        let mib = bytes.div_ceil(1 << 20);
        format!("{} files, {mib} MiB", self.files.len())
    }

    /// Writes it, at once and in whole: from now on the directory is a backup.
    pub(super) fn write(&self, to: &Path) -> Result<()> {
        let (name, part) = (to.join(NAME), to.join(format!("{NAME}.part")));
        let text = serde_json::to_vec_pretty(self)?;
        let write = || {
            let mut file = File::create(&part)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&part, &name)?;
            File::open(to)?.sync_all()
        };
        write().with_context(|| format!("cannot write {}", name.display()))
    }

    /// Reads it.
    pub(super) fn read(from: &Path) -> Result<Self> {
        let text = match fs::read(from.join(NAME)) {
            Err(error) if error.kind() == ErrorKind::NotFound => bail!(
                "{} is not a backup, or one that was not finished: it has no {NAME}",
                from.display()
            ),
            text => text.with_context(|| from.join(NAME).display().to_string())?,
        };
        let damaged = || format!("{} is damaged", from.join(NAME).display());
        let value: serde_json::Value = serde_json::from_slice(&text).with_context(damaged)?;
        match value["format"].as_u64() {
            Some(format) if format > u64::from(FORMAT) => bail!(
                "{} was made by a newer release ({})",
                from.display(),
                value["threadgraph"].as_str().unwrap_or("unknown")
            ),
            _ => {}
        }
        let manifest: Self = serde_json::from_value(value).with_context(damaged)?;
        let strange = manifest.files.iter().find(|file| !is_below(&file.path));
        match strange {
            Some(file) => bail!(
                "{} names a file outside of it: {}",
                from.join(NAME).display(),
                file.path.display()
            ),
            None => Ok(manifest),
        }
    }

    /// Holds every file of a backup against its hash.
    pub(super) fn verify(&self, from: &Path) -> Result<()> {
        for file in &self.files {
            let path = from.join(&file.path);
            let found = copying::hash(&path)
                .with_context(|| format!("the backup lacks {}", file.path.display()))?;
            if found != (file.bytes, file.sha256.clone()) {
                bail!(
                    "the backup is damaged: {} is not what was backed up",
                    file.path.display()
                );
            }
        }
        Ok(())
    }
}

/// Whether a path stays below the directory that it is joined to.
fn is_below(path: &Path) -> bool {
    path.file_name().is_some()
        && path
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
}
