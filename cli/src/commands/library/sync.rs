//! `tg sync`: the library has what directories have, and processes it: what is new and changed is added, what is gone is removed.

use std::path::PathBuf;

use clap::Args;

use super::intake::Add;
use crate::args::{InCollection, Options};
use crate::client::{Error, Result};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg sync`.
#[derive(Debug, Args)]
pub struct Sync {
    #[command(flatten)]
    into: InCollection,
    /// Wait until all is processed
    #[arg(long)]
    wait: bool,
    /// Go on until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// Tags of what is added, separated by commas
    #[arg(long, value_delimiter = ',')]
    tags: Vec<String>,
    /// Directories
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
}

impl Command for Sync {
    const NAME: &'static str = "sync";
    const ABOUT: &'static str = "Make the library what directories are: add, change, remove";

    fn options(&self) -> Options {
        Options::from(&self.into)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        // Of a file that is gone nobody knows that it was one: only what a directory does not list any more is removed.
        if let Some(other) = self.directories.iter().find(|path| !path.is_dir()) {
            let text = format!("{} is not a directory", other.display());
            return Err(Error::Usage(text));
        }
        let add = Add {
            into: self.into,
            wait: self.wait,
            watch: self.watch,
            delete: true,
            kind: None,
            title: None,
            id: None,
            tags: self.tags,
            paths: self.directories,
        };
        add.run(session).await
    }
}
