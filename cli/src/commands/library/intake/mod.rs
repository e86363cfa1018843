//! `tg add`: files, directories and web addresses into the library, and on into a collection. What is there already
//! stays as it is, and what nothing can read is reported and not added.

pub(super) mod document;
mod fetch;
mod find;
mod gone;
mod outcome;
mod shelf;
mod take;
mod watch;

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use self::find::{Source, find};
use self::outcome::{Outcome, Summary};
use self::take::Taker;
use self::watch::Seen;
use super::processing::troubles;
use super::standing::{is_good, retry, standing};
use super::waiting::{Awaited, passes, wait};
use crate::args::{InCollection, Options};
use crate::client::{Error, Result};
use crate::commands::flow::must_run;
use crate::fields::text;
use crate::registry::Command;
use crate::session::Session;

/// Pause between two looks at what is followed.
const LOOK: Duration = Duration::from_secs(1);

/// Arguments of `tg add`.
#[derive(Debug, Args)]
pub struct Add {
    #[command(flatten)]
    pub(super) into: InCollection,
    /// Wait until all is processed
    #[arg(long)]
    pub(super) wait: bool,
    /// Go on: add what is new or changed until Ctrl-C
    #[arg(long)]
    pub(super) watch: bool,
    /// Remove documents whose files are gone from the directories that are named
    #[arg(long, conflicts_with = "id")]
    pub(super) delete: bool,
    /// MIME type or ending, where content and name do not say
    #[arg(short = 'k', long, value_name = "MIME")]
    pub(super) kind: Option<String>,
    /// Title [default: what the document calls itself, else its file's name]
    #[arg(long, visible_alias = "name")]
    pub(super) title: Option<String>,
    /// Id of the document [default: made from where it is]
    #[arg(long, visible_alias = "identifier", value_name = "IRI")]
    pub(super) id: Option<String>,
    /// Tags, separated by commas
    #[arg(long, value_delimiter = ',')]
    pub(super) tags: Vec<String>,
    /// Files, directories, http(s) addresses
    #[arg(required = true, value_name = "FILE|DIR|URL")]
    pub(super) paths: Vec<PathBuf>,
}

impl Command for Add {
    const NAME: &'static str = "add";
    const ABOUT: &'static str = "Add documents to the library and process them";

    fn options(&self) -> Options {
        Options::from(&self.into)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut round = Round {
            add: &self,
            seen: Seen::default(),
            told: Vec::new(),
            summary: Summary::default(),
        };
        let ended = match self.watch {
            true => round.follow(session).await,
            false => round.once(session).await,
        };
        // What was done is told whatever ended it.
        let shown = match ended.is_err() && round.summary.is_empty() {
            true => Ok(()),
            false => round.show(session),
        };
        ended?;
        shown?;
        match round.summary.failures() {
            0 => Ok(()),
            failed => Err(Error::Check(format!(
                "{failed} of the documents could not be added or processed"
            ))),
        }
    }
}

/// One run of the command.
struct Round<'a> {
    add: &'a Add,
    seen: Seen,
    /// For programs; nothing is kept while a directory is followed.
    told: Vec<Value>,
    summary: Summary,
}

impl Round<'_> {
    /// All that is named.
    async fn once(&mut self, session: &mut Session) -> Result<()> {
        let found = find(&self.add.paths);
        let single = self.add.id.is_some() || self.add.title.is_some();
        if single && found.sources.len() > 1 {
            let text = "--id and --title are for one document only";
            return Err(Error::Usage(text.to_owned()));
        }
        for (name, why) in found.faults {
            self.tell(session, Outcome::refused(name, why))?;
        }
        if !found.sources.is_empty() {
            must_run(session, &session.http()?, &self.add.into.flow.flow_id).await?;
        }
        // First: what is there under another name now is added anew.
        self.remove_gone(session, &found.sources).await?;
        self.take(session, found.sources).await
    }

    /// Removes what is gone. Of a directory without a single file nothing is: a disk may just not be there.
    async fn remove_gone(&mut self, session: &mut Session, found: &[Source]) -> Result<()> {
        if !self.add.delete {
            return Ok(());
        }
        let (full, empty) = find::with_and_without_files(&self.add.paths, found);
        for directory in empty {
            let directory = directory.display();
            (session.out).talk(format!("{directory} has no file: nothing of it is removed"));
        }
        let directories = find::directories(&full);
        if directories.is_empty() {
            return Ok(());
        }
        for (path, id) in gone::remove(&session.http()?, &directories).await? {
            self.tell(session, Outcome::removed(path.display().to_string(), id))?;
        }
        Ok(())
    }

    /// All that is named, again and again until the user interrupts.
    async fn follow(&mut self, session: &mut Session) -> Result<()> {
        let mut away = false;
        let mut faulty = Vec::new();
        // What was there when all was last seen to.
        let mut there: Option<HashSet<Source>> = None;
        // Some of it was not there at the last look: who saves a file may have removed it for a moment.
        let mut missed = false;
        loop {
            let found = find(&self.add.paths);
            if found
                .sources
                .iter()
                .any(|one| matches!(one, Source::Web(_)))
            {
                let text = "--watch is for files and directories";
                return Err(Error::Usage(text.to_owned()));
            }
            for (name, why) in &found.faults {
                // The same fault is told once.
                if !faulty.contains(&(name.clone(), why.clone())) {
                    self.tell(session, Outcome::refused(name.clone(), why.clone()))?;
                }
            }
            faulty = found.faults;
            let now: HashSet<Source> = found.sources.iter().cloned().collect();
            let fewer = there.as_ref().is_none_or(|there| !there.is_subset(&now));
            let removes = fewer && (missed || there.is_none());
            let mut taken = match removes {
                true => self.remove_gone(session, &found.sources).await,
                false => Ok(()),
            };
            let fresh = self.seen.fresh(found.sources);
            if taken.is_ok() {
                taken = self.take(session, fresh).await;
            }
            if taken.is_ok() {
                missed = fewer && !removes;
                if !missed {
                    there = Some(now);
                }
            }
            match taken {
                Ok(()) => away = false,
                Err(Error::Interrupted) => return Ok(()),
                Err(error) if passes(&error) => {
                    if !away {
                        session.out.talk(format!("{error}; trying again"));
                    }
                    away = true;
                }
                Err(error) => return Err(error),
            }
            match session.pause(LOOK).await {
                Err(Error::Interrupted) => return Ok(()),
                paused => paused?,
            }
        }
    }

    async fn take(&mut self, session: &mut Session, sources: Vec<Source>) -> Result<()> {
        if sources.is_empty() {
            return Ok(());
        }
        let mut taker = Taker::new(session, self.add).await?;
        let mut awaited = Vec::new();
        for source in taker.in_order(sources) {
            let outcome = taker.take(session, &source).await?;
            self.seen.took(&source);
            let name = match &outcome.document {
                Some(document) => document.title.clone(),
                None => outcome.name.clone(),
            };
            awaited.extend(outcome.processings.iter().map(|id| Awaited {
                id: id.clone(),
                name: name.clone(),
            }));
            self.tell(session, outcome)?;
        }
        if self.add.wait && !awaited.is_empty() {
            self.wait(session, &awaited).await?;
        }
        Ok(())
    }

    async fn wait(&mut self, session: &mut Session, awaited: &[Awaited]) -> Result<()> {
        let records = wait(session, awaited).await?;
        for (one, record) in awaited.iter().zip(&records) {
            let entry = self.told.iter_mut().find(|told| {
                let ids = told["processings"].as_array();
                ids.is_some_and(|ids| ids.iter().any(|id| *id == one.id.as_str()))
            });
            if let Some(told) = entry {
                told["status"] = record["status"].clone();
                told["progress"] = record["progress"].clone();
            }
            let how = standing(record);
            if !is_good(record) {
                let mut why = troubles(session, record).await;
                if let Some(command) = retry(record) {
                    why.push_str(&format!("; `{command}` tries again what failed"));
                }
                self.summary.fail(&one.name, &why);
            } else if how != text(record, "status") {
                let why = troubles(session, record).await;
                self.summary.warn(&one.name, &format!("{how}: {why}"));
            }
        }
        Ok(())
    }

    fn tell(&mut self, session: &mut Session, outcome: Outcome) -> Result<()> {
        self.summary.count(&outcome);
        match (session.out.is_json(), self.add.watch) {
            (true, true) => session.out.json_line(&outcome.json()),
            (true, false) => {
                self.told.push(outcome.json());
                Ok(())
            }
            (false, _) => {
                session.out.line(outcome.line())?;
                session.out.flush()
            }
        }
    }

    fn show(&self, session: &mut Session) -> Result<()> {
        let mut told = self.summary.json();
        if self.add.watch && session.out.is_json() {
            return session.out.json_line(&told);
        }
        told["documents"] = json!(self.told);
        session.out.show(&told, || self.summary.text())
    }
}
