//! `tg links`: makes the `tg-*` names in a directory. It never replaces what it did not make.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use crate::args::Options;
use crate::client::{Error, Result};
use crate::commands::ALL;
use crate::registry::{Command, Row};
use crate::session::Session;

/// Arguments of `tg links`.
#[derive(Debug, Args)]
pub struct Links {
    /// Directory to put the names into; made if it is not there
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Hard links instead of symbolic ones
    #[arg(long)]
    hard: bool,
    /// Replace files of these names
    #[arg(long)]
    force: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Command for Links {
    const NAME: &'static str = "links";
    const ABOUT: &'static str = "Make tg and the tg-* names in a directory";

    fn options(&self) -> Options {
        Options {
            json: self.json,
            ..Options::local()
        }
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let program = std::env::current_exe().map_err(|error| Error::file("tg", error))?;
        let made = self.make(&program)?;
        let dir = self.dir.display();
        let shown: Value = made.iter().map(|path| path.display().to_string()).collect();
        session
            .out
            .show(&shown, || format!("{} names in {dir}", made.len()))?;
        session
            .out
            .talk(format!("Put {dir} into PATH to use them, e.g. tg-whoami."));
        Ok(())
    }
}

impl Links {
    fn make(&self, program: &Path) -> Result<Vec<PathBuf>> {
        fs::create_dir_all(&self.dir).map_err(|error| Error::file(&self.dir, error))?;
        let names = ALL.iter().flat_map(Row::names);
        let names = names.map(|name| format!("tg-{name}"));
        std::iter::once("tg".to_owned())
            .chain(names)
            .map(|name| {
                let link = self.dir.join(name);
                self.make_one(program, &link)?;
                Ok(link)
            })
            .collect()
    }

    fn make_one(&self, program: &Path, link: &Path) -> Result<()> {
        let make = || match self.hard {
            true => fs::hard_link(program, link),
            false => symlink(program, link),
        };
        match make() {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if !self.force && !is_ours(program, link) {
                    return Err(Error::file(link, "exists already; --force replaces it"));
                }
                fs::remove_file(link).map_err(|error| Error::file(link, error))?;
                make().map_err(|error| Error::file(link, error))
            }
            outcome => outcome.map_err(|error| Error::file(link, error)),
        }
    }
}

/// Whether a name leads to this program, or to a `tg` that is no longer there.
fn is_ours(program: &Path, link: &Path) -> bool {
    match (fs::canonicalize(link), fs::read_link(link)) {
        (Ok(target), _) if fs::canonicalize(program).is_ok_and(|own| own == target) => true,
        (_, Ok(target)) => target.file_name().is_some_and(|name| name == "tg"),
        _ => false,
    }
}

#[cfg(unix)]
fn symlink(program: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(program, link)
}

#[cfg(not(unix))]
fn symlink(program: &Path, link: &Path) -> std::io::Result<()> {
    fs::hard_link(program, link)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn links(dir: &Path, force: bool) -> Links {
        Links {
            dir: dir.join("bin"),
            hard: false,
            force,
            json: false,
        }
    }

    #[test]
    fn names_are_made_again_but_strangers_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("tg");
        fs::write(&program, "x").expect("written");
        let made = links(folder.path(), false).make(&program).expect("made");
        assert_eq!(made.len(), ALL.iter().flat_map(Row::names).count() + 1);
        assert!(made.iter().any(|path| path.ends_with("tg-verify")));
        assert_eq!(fs::read_link(&made[0]).expect("a link"), program);
        links(folder.path(), false)
            .make(&program)
            .expect("made again");

        fs::remove_file(&made[0]).expect("removed");
        fs::write(&made[0], "a stranger").expect("written");
        assert!(links(folder.path(), false).make(&program).is_err());
        assert!(links(folder.path(), true).make(&program).is_ok());
    }
}
