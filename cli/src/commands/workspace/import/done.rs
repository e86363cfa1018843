//! What an import did and what it could not do, and how it says so.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tg_schemas::ErrorCode;

use super::asked::ImportWorkspace;
use crate::client::{Error, Result, Settled};
use crate::fields::counted;
use crate::session::Session;

/// Failures named in a text.
const NAMED: usize = 20;

/// A part of the bundle that something could not be done with.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) what: String,
    pub(super) why: String,
}

impl Failed {
    pub(super) fn new(what: impl Into<String>, why: impl ToString) -> Self {
        Self {
            what: what.into(),
            why: why.to_string(),
        }
    }
}

/// Whether an error concerns only what was asked about, so that the rest of the bundle may go on.
pub(super) fn concerns_one(error: &Error) -> bool {
    let code = error.code();
    let refused = [
        ErrorCode::BadRequest,
        ErrorCode::NotFound,
        ErrorCode::Conflict,
        ErrorCode::TooLarge,
    ];
    code.is_some_and(|code| refused.contains(&code))
        && !error.is_missing_workspace()
        && error.missing_flow().is_none()
}

/// What was imported, what was there already, and what could not be done.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) items: usize,
    pub(super) items_left: usize,
    pub(super) triples: u64,
    pub(super) documents: usize,
    pub(super) documents_left: usize,
    /// Configuration, collections and triples that were not imported.
    pub(super) failed: Vec<Failed>,
    /// What the store reported of collections whose triples it did not all take.
    not_stored: Vec<(String, Settled)>,
    /// Documents that were not imported.
    pub(super) not_imported: Vec<Failed>,
    pub(super) started: usize,
    pub(super) started_before: usize,
    /// Documents that are not processed.
    pub(super) not_started: Vec<Failed>,
    /// Documents from which other content was processed than they have now.
    pub(super) stale: Vec<String>,
}

impl Done {
    /// Whether the triples of a collection are stored. What a store refused concerns this collection alone.
    pub(super) fn is_stored(&mut self, collection: &str, settled: Option<Settled>) -> bool {
        let Some(settled) = settled else {
            return true;
        };
        let Err(fault) = settled.check("triples") else {
            return true;
        };
        let what = format!("triples of collection {collection}");
        self.failed.push(Failed::new(what, fault));
        self.not_stored.push((collection.to_owned(), settled));
        false
    }

    /// The documents that were not imported.
    pub(super) fn not_imported_ids(&self) -> BTreeSet<String> {
        let failed = self.not_imported.iter();
        failed.map(|failed| failed.what.clone()).collect()
    }

    /// Says what was done. Whatever could not be done makes the command fail, at its end.
    pub(super) fn tell(&self, session: &mut Session, asked: &ImportWorkspace) -> Result<()> {
        let mut shown = json!({
            "config": self.items, "config-skipped": self.items_left, "triples": self.triples,
            "documents": self.documents, "documents-skipped": self.documents_left,
            "documents-failed": named(&self.not_imported, "document"),
            "failed": named(&self.failed, "part"),
            "dry-run": asked.dry_run,
        });
        if asked.process && !asked.dry_run {
            shown["processing"] = json!({
                "started": self.started, "started-before": self.started_before,
                "not-started": named(&self.not_started, "document"),
            });
        }
        if !self.not_stored.is_empty() {
            let of = |(collection, settled): &(String, Settled)| json!({"collection": collection, "settled": settled.show()});
            shown["not-stored"] = self.not_stored.iter().map(of).collect();
        }
        if !self.stale.is_empty() {
            shown["to-process"] = json!(self.stale);
        }
        session.out.show(&shown, || self.sentence(asked))?;
        let not_imported = match asked.dry_run {
            true => "would not be imported",
            false => "was not imported",
        };
        let all = [
            (not_imported, &self.failed),
            (not_imported, &self.not_imported),
            ("is not processed", &self.not_started),
        ];
        if !session.out.is_json() {
            for (collection, settled) in &self.not_stored {
                let items = format!("triples of collection {collection}, number");
                session.tell_settled(Some(settled), &items);
            }
            for (what, failed) in all {
                for one in failed.iter().take(NAMED) {
                    let text = format!("  {} {what}: {}", one.what, one.why);
                    session.out.talk(text);
                }
                if failed.len() > NAMED {
                    let more = failed.len() - NAMED;
                    session.out.talk(format!("  and {more} more"));
                }
            }
            if !self.stale.is_empty() {
                session.out.talk(self.stale_sentence(asked));
            }
        }
        self.verdict()
    }

    /// What answers will still come from.
    fn stale_sentence(&self, asked: &ImportWorkspace) -> String {
        let mut named = self.stale.iter().take(NAMED).cloned().collect::<Vec<_>>();
        if self.stale.len() > NAMED {
            named.push(format!("{} more", self.stale.len() - NAMED));
        }
        let have = match asked.dry_run {
            true => "would have",
            false => "have",
        };
        format!(
            "{} documents {have} other content than what was processed from them; --process processes them again: {}",
            self.stale.len(),
            named.join(", ")
        )
    }

    fn verdict(&self) -> Result<()> {
        let counts = [
            (
                self.failed.len(),
                "parts of the bundle were not imported in whole",
            ),
            (
                self.not_imported.len(),
                "documents of the bundle were not imported",
            ),
            (
                self.not_started.len(),
                "documents of the bundle are not processed",
            ),
        ];
        let told = counts.iter().filter(|(count, _)| *count > 0);
        let told: Vec<String> = told
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        match told.is_empty() {
            true => Ok(()),
            false => Err(Error::Check(told.join(", and "))),
        }
    }

    fn sentence(&self, asked: &ImportWorkspace) -> String {
        let verb = match asked.dry_run {
            true => "Would import",
            false => "Imported",
        };
        let mut text = format!(
            "{verb} {} ({} skipped), {}, {} ({} skipped).",
            counted(self.items as u64, "config item"),
            self.items_left,
            counted(self.triples, "triple"),
            counted(self.documents as u64, "document"),
            self.documents_left
        );
        if asked.process && !asked.dry_run {
            text.push_str(&format!(
                "\nProcessing of {} started ({} before, {} not started).",
                counted(self.started as u64, "document"),
                self.started_before,
                self.not_started.len()
            ));
        }
        text
    }
}

fn named(failed: &[Failed], key: &str) -> Value {
    let one = |one: &Failed| json!({key: one.what, "message": one.why});
    failed.iter().map(one).collect()
}
