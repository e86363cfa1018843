//! `tg backup` and `tg restore`: `threadgraph backup` and `threadgraph restore` under the names of commands. The data lies
//! on the machine of the system, and so does its program.

use std::path::PathBuf;
use std::process::Command as Program;

use clap::Args;

use crate::args::Options;
use crate::client::{Error, Result};
use crate::registry::Command;
use crate::session::Session;

/// The program of the system.
const PROGRAM: &str = "threadgraph";

/// What both take.
#[derive(Debug, Args)]
struct Places {
    /// Directory of the backup
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Directory of the data; that of the settings unless given
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Settings file of the system
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Arguments of `tg backup`.
#[derive(Debug, Args)]
pub struct Backup {
    #[command(flatten)]
    places: Places,
    /// Copy this workspace alone
    #[arg(short = 'w', long, value_name = "NAME")]
    workspace: Option<String>,
}

impl Command for Backup {
    const NAME: &'static str = "backup";
    const ABOUT: &'static str =
        "Copy all data of the system on this machine, as they are at one moment";

    fn options(&self) -> Options {
        self.places.options()
    }

    fn adjust(command: clap::Command) -> clap::Command {
        command.after_help(
            "The system may run meanwhile. If a backup of one workspace fails or is interrupted, remove the directory: it may hold \
             data of other workspaces. One workspace as a bundle, from anywhere: tg export-workspace.",
        )
    }

    async fn run(self, _: &mut Session) -> Result<()> {
        self.places.run(Self::NAME, self.workspace.as_deref())
    }
}

/// Arguments of `tg restore`.
#[derive(Debug, Args)]
pub struct Restore {
    #[command(flatten)]
    places: Places,
}

impl Command for Restore {
    const NAME: &'static str = "restore";
    const ABOUT: &'static str = "Copy a backup into an empty data directory of this machine";

    fn options(&self) -> Options {
        self.places.options()
    }

    fn adjust(command: clap::Command) -> clap::Command {
        command.after_help(
            "One workspace from its bundle: tg import-workspace. A workspace that was deleted: tg restore-workspace.",
        )
    }

    async fn run(self, _: &mut Session) -> Result<()> {
        self.places.run(Self::NAME, None)
    }
}

impl Places {
    fn options(&self) -> Options {
        Options {
            json: self.json,
            ..Options::local()
        }
    }

    /// The program beside this one, else the one that PATH leads to.
    fn program(&self, what: &str, workspace: Option<&str>) -> Program {
        let own = std::env::current_exe().and_then(|own| own.canonicalize());
        let beside = own.map(|own| own.with_file_name(PROGRAM));
        let beside = beside.ok().filter(|beside| beside.is_file());
        let mut program = Program::new(beside.unwrap_or_else(|| PathBuf::from(PROGRAM)));
        program.arg(what).arg(&self.directory);
        for (flag, path) in [("--data-dir", &self.data_dir), ("--config", &self.config)] {
            if let Some(path) = path {
                program.arg(flag).arg(path);
            }
        }
        if let Some(workspace) = workspace {
            program.args(["--workspace", workspace]);
        }
        if self.json {
            program.arg("--json");
        }
        program
    }

    /// Becomes that program: what it prints and how it ends are its own.
    #[cfg(unix)]
    fn run(&self, what: &str, workspace: Option<&str>) -> Result<()> {
        use std::os::unix::process::CommandExt;
        Err(Error::file(PROGRAM, self.program(what, workspace).exec()))
    }

    #[cfg(not(unix))]
    fn run(&self, _: &str, _: Option<&str>) -> Result<()> {
        Err(Error::file(PROGRAM, "does not run on this machine"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_given_what_was_said() {
        let places = Places {
            directory: "/b".into(),
            data_dir: Some("/d".into()),
            config: None,
            json: true,
        };
        let said = |workspace| -> Vec<String> {
            let program = places.program("backup", workspace);
            let said = program.get_args();
            said.map(|one| one.to_string_lossy().into_owned()).collect()
        };
        let all = ["backup", "/b", "--data-dir", "/d", "--json"];
        assert_eq!(said(None), all);
        let (before, after) = all.split_at(4);
        assert_eq!(
            said(Some("acme")),
            [before, &["--workspace", "acme"][..], after].concat()
        );
    }
}
