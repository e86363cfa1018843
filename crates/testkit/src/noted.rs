//! Files in which the tests of one runner find what they share: those of a `cargo test`, of a `cargo nextest run` or of
//! `scripts/suites.py`. A binary that was started by hand shares with nobody.

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::process::parent_id;
use std::path::PathBuf;

use anyhow::Result;

/// Such a file, locked until it is dropped: a test that opens it meanwhile waits.
pub(crate) struct Noted {
    file: File,
    /// Where it is.
    pub(crate) path: PathBuf,
    /// The process whose end ends what is shared.
    pub(crate) owner: u32,
    /// What it held when it was opened.
    pub(crate) text: String,
}

impl Noted {
    /// Opens the file about one shared thing.
    pub(crate) async fn open(about: &str) -> Result<Self> {
        let owner = owner();
        let path = std::env::temp_dir().join(format!("tg-{about}-of-{owner}"));
        let opened = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)?;
        let (mut file, locked) = tokio::task::spawn_blocking(move || {
            let locked = opened.lock();
            (opened, locked)
        })
        .await?;
        locked?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Ok(Self {
            file,
            path,
            owner,
            text,
        })
    }

    /// Writes another text in its place.
    pub(crate) fn write(mut self, text: &str) -> Result<()> {
        self.file.rewind()?;
        self.file.set_len(0)?;
        Ok(self.file.write_all(text.as_bytes())?)
    }
}

/// The process that is named by `TG_SUITES` (it runs all suites), or the runner of tests that started this process, else this
/// process.
fn owner() -> u32 {
    if let Some(suites) = std::env::var_os("TG_SUITES")
        && let Some(id) = suites.to_str().and_then(|id| id.parse::<u32>().ok())
        && PathBuf::from(format!("/proc/{id}")).exists()
    {
        return id;
    }
    let parent = parent_id();
    let program = fs::read_link(format!("/proc/{parent}/exe")).unwrap_or_default();
    match program.file_name().and_then(|name| name.to_str()) {
        Some("cargo" | "cargo-nextest") => parent,
        _ => std::process::id(),
    }
}
