//! The shape every command has, and the table that finds one by its name.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::future::Future;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Args, FromArgMatches};
use futures::future::LocalBoxFuture;

use crate::about::About;
use crate::args::Options;
use crate::client::Result;
use crate::commands::{self, FIRST, GROUPS};
use crate::find::like;
use crate::names::unified;
use crate::session::Session;

/// A command of `tg`.
pub trait Command: Args + FromArgMatches + 'static {
    /// Its name after `tg` and after `tg-`.
    const NAME: &'static str;
    /// Other names of it.
    const ALSO: &'static [&'static str] = &[];
    /// One line of help.
    const ABOUT: &'static str;

    /// The options of its session.
    fn options(&self) -> Options;

    /// Changes what shared arguments look like for this command, or adds help.
    fn adjust(command: clap::Command) -> clap::Command {
        command
    }

    /// Whether the command sees to Ctrl-C itself: it does not end it.
    fn outlives_ctrl_c(&self) -> bool {
        false
    }

    /// Whether each of its errors ends with exit code 1, as the contract of agents over time says of its commands.
    fn fails_with_one(&self) -> bool {
        false
    }

    /// Does the work.
    ///
    /// # Errors
    /// Why the command failed; the exit code follows from it.
    fn run(self, session: &mut Session) -> impl Future<Output = Result<()>>;
}

type Work = dyn for<'a> FnOnce(&'a mut Session) -> LocalBoxFuture<'a, Result<()>>;

/// A command with its arguments read, ready to run.
pub struct Prepared {
    /// Its name.
    pub name: &'static str,
    /// The options of its session.
    pub options: Options,
    /// What it is about.
    pub about: About,
    /// Whether it sees to Ctrl-C itself.
    pub outlives_ctrl_c: bool,
    /// Whether each of its errors ends with exit code 1.
    pub fails_with_one: bool,
    work: Box<Work>,
}

impl Prepared {
    /// Does the work.
    ///
    /// # Errors
    /// As [`Command::run`].
    pub async fn run(self, session: &mut Session) -> Result<()> {
        (self.work)(session).await
    }
}

/// A row of the table of commands.
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// Other names of it.
    pub also: &'static [&'static str],
    /// One line of help.
    pub about: &'static str,
    build: fn() -> clap::Command,
    prepare: fn(&ArgMatches) -> Result<Prepared, clap::Error>,
}

impl Row {
    /// The row of a command type.
    pub const fn of<C: Command>() -> Self {
        Self {
            name: C::NAME,
            also: C::ALSO,
            about: C::ABOUT,
            build: build::<C>,
            prepare: prepare::<C>,
        }
    }

    /// All its names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.also.iter().copied())
    }

    /// The command under its own `tg-` name.
    pub fn standalone(&self) -> clap::Command {
        let name = format!("tg-{}", self.name);
        (self.build)()
            .display_name(name.clone())
            .bin_name(name)
            .version(env!("CARGO_PKG_VERSION"))
    }
}

fn build<C: Command>() -> clap::Command {
    let command = clap::Command::new(C::NAME).visible_aliases(C::ALSO.iter().copied());
    let command = C::augment_args(command);
    unified(C::adjust(command.about(C::ABOUT).long_about(None)))
}

fn prepare<C: Command>(matches: &ArgMatches) -> Result<Prepared, clap::Error> {
    let command = C::from_arg_matches(matches)?;
    Ok(Prepared {
        name: C::NAME,
        about: About::read(matches),
        options: command.options(),
        outlives_ctrl_c: command.outlives_ctrl_c(),
        fails_with_one: command.fails_with_one(),
        work: Box::new(|session| Box::pin(command.run(session))),
    })
}

/// The whole of `tg` as a clap command.
pub fn tg() -> clap::Command {
    clap::Command::new("tg")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Commands for a Threadgraph or TrustGraph gateway")
        .help_template(template())
        .after_help(
            "`tg help COMMAND` says more of one. Every command also runs as tg-COMMAND; `tg links DIR` makes those \
             names.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(commands::ALL.iter().map(|row| (row.build)()))
}

/// The help of `tg`: its commands in groups, those first that a newcomer needs.
fn template() -> String {
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (title, names) in std::iter::once(&FIRST).chain(GROUPS) {
        let _ = write!(text, "\n{title}:\n");
        for name in *names {
            let Some(row) = commands::ALL.iter().find(|row| row.name == *name) else {
                continue;
            };
            let names = row.names().collect::<Vec<_>>().join(", ");
            let _ = writeln!(text, "  {names:28} {}", row.about);
        }
    }
    text + "\nOptions:\n{options}\n\n{after-help}"
}

/// The error of a name that no command has: says which ones may be meant.
fn unknown(word: &str) -> clap::Error {
    let mut text = format!("there is no command '{word}'");
    if word == "version" {
        text.push_str("; `tg --version` says it\n");
        return clap::Error::raw(ErrorKind::InvalidSubcommand, text);
    }
    let all: Vec<_> = commands::ALL
        .iter()
        .map(|row| (row.name, row.about))
        .collect();
    let found = like(word, &all);
    if found.is_empty() {
        text.push_str("; `tg --help` lists them all");
    } else {
        text.push_str(". Did you mean:");
        for (name, about) in found {
            let _ = write!(text, "\n  {name:28} {about}");
        }
    }
    clap::Error::raw(ErrorKind::InvalidSubcommand, text + "\n")
}

/// Finds the command by argument zero or by the first argument, and reads its arguments.
///
/// # Errors
/// What clap has to say instead of running a command: wrong arguments, or help and versions that were asked for.
pub fn parse(argv: &[OsString]) -> Result<Prepared, clap::Error> {
    if let Some(row) = argv.first().and_then(|program| by_program(program)) {
        let matches = row.standalone().try_get_matches_from(argv)?;
        return (row.prepare)(&matches);
    }
    // The others' arguments are not built for it: a start would take twice as long.
    if let Some(row) = argv.get(1).and_then(|word| word.to_str()).and_then(named) {
        let called = format!("tg {}", row.name);
        let command = (row.build)().display_name(called.clone()).bin_name(called);
        return (row.prepare)(&command.try_get_matches_from(&argv[1..])?);
    }
    let matches = tg().try_get_matches_from(argv).map_err(|error| {
        match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
            (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word))) => unknown(word),
            _ => error,
        }
    })?;
    let found = matches
        .subcommand()
        .and_then(|(name, matches)| Some((named(name)?, matches)));
    match found {
        Some((row, matches)) => (row.prepare)(matches),
        None => Err(tg().error(
            ErrorKind::InvalidSubcommand,
            "no such command; `tg --help` lists them",
        )),
    }
}

/// The command that a first word calls: one of the `tg-` names, else `tg`.
pub fn called(word: Option<&OsStr>) -> clap::Command {
    word.and_then(by_program).map_or_else(tg, Row::standalone)
}

/// Whether the program was called by the name of one command.
pub fn by_link(argv: &[OsString]) -> bool {
    argv.first()
        .is_some_and(|program| by_program(program).is_some())
}

fn by_program(program: &OsStr) -> Option<&'static Row> {
    let name = Path::new(program).file_name()?.to_str()?;
    let name = name.strip_suffix(".exe").unwrap_or(name);
    named(name.strip_prefix("tg-")?)
}

fn named(command: &str) -> Option<&'static Row> {
    let mut rows = commands::ALL.iter();
    rows.find(|row| row.names().any(|name| name == command))
}
