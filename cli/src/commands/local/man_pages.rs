//! `tg man-pages`: a page for `tg` and one for each command, made of the same texts as its help.

use std::fs;
use std::path::PathBuf;

use clap::Args;

use crate::args::Options;
use crate::client::{Error, Result};
use crate::registry::{Command, tg};
use crate::session::Session;

/// Arguments of `tg man-pages`.
#[derive(Debug, Args)]
pub struct ManPages {
    /// Directory to put the pages into; made if it is not there
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Command for ManPages {
    const NAME: &'static str = "man-pages";
    const ABOUT: &'static str = "Write man pages of tg and its commands";

    fn options(&self) -> Options {
        Options {
            json: self.json,
            ..Options::local()
        }
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        self.write()?;
        let dir = self.dir.display().to_string();
        session
            .out
            .show(&serde_json::json!({"directory": dir}), || {
                format!("Man pages are in {dir}.")
            })
    }
}

impl ManPages {
    fn write(&self) -> Result<()> {
        let write = || {
            fs::create_dir_all(&self.dir)?;
            clap_mangen::generate_to(tg(), &self.dir)
        };
        write().map_err(|error| Error::file(&self.dir, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::ALL;

    #[test]
    fn every_command_has_a_page() {
        let folder = tempfile::tempdir().expect("a folder");
        let pages = ManPages {
            dir: folder.path().join("man1"),
            json: false,
        };
        pages.write().expect("written");
        pages.write().expect("written again");
        for row in ALL {
            let page = pages.dir.join(format!("tg-{}.1", row.name));
            let page = fs::read_to_string(page).expect(row.name);
            assert!(page.contains(".SH SYNOPSIS"), "{}: {page}", row.name);
        }
        assert!(pages.dir.join("tg.1").exists());
    }
}
