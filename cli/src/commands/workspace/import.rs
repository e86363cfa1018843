//! `tg import-workspace`: a bundle into a workspace. The bundle is read several times from its start and
//! never held: for what is said in it, for the triples, and for the documents of each level, parents first.
//!
//! Nothing that is there is removed, also with `--overwrite`: what is in the bundle takes its place. So a
//! command that was interrupted leaves nothing emptier than it was, and goes on when it is repeated.

mod documents;
#[cfg(test)]
mod fuzz;
mod reading;
mod said;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use self::documents::Documents;
use self::reading::{Item, Items};
use self::said::Said;
use super::bundle::Member;
use crate::args::{Common, Options};
use crate::client::{Error, Http, Result};
use crate::commands::config::put_items;
use crate::fields::{list, text, texts};
use crate::registry::Command;
use crate::session::Session;

/// Documents named in a text.
const NAMED: usize = 20;

/// Arguments of `tg import-workspace`.
#[derive(Debug, Args)]
pub struct ImportWorkspace {
    #[command(flatten)]
    common: Common,
    /// Bundle to read
    #[arg(short = 'i', long, value_name = "FILE")]
    input: PathBuf,
    /// Flow to import and process with
    #[arg(short = 'f', long, default_value = "default", value_name = "ID")]
    flow_id: String,
    /// Replace items and documents that are there already; nothing is removed
    #[arg(long)]
    overwrite: bool,
    /// Only the configuration
    #[arg(long)]
    config_only: bool,
    /// Process the documents of the bundle, except those that this command had processed before
    #[arg(long)]
    process: bool,
    /// Collection to process them to
    #[arg(long, default_value = "default", value_name = "ID")]
    process_collection: String,
    /// Only say what would be imported
    #[arg(long)]
    dry_run: bool,
}

impl Command for ImportWorkspace {
    const NAME: &'static str = "import-workspace";
    const ABOUT: &'static str = "Put a bundle into a workspace";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let said = Said::read(&self.input).await?;
        said.check(&self.input)?;
        if session.options.workspace.is_none() {
            let from = text(&said.manifest, "workspace");
            session.options.workspace = Some(from).filter(|from| !from.is_empty());
        }
        let http = session.http()?;
        let mut done = Done::default();
        self.config(&http, &said, &mut done).await?;
        if !self.config_only {
            self.collections(&http, &said).await?;
            self.triples(session, &mut done).await?;
            let documents = Documents {
                what: &self,
                http: &http,
                said: &said,
            };
            documents.import(session, &mut done).await?;
        }
        done.tell(session, &self)
    }
}

/// A document of the bundle that something could not be done with.
#[derive(Debug)]
struct Failed {
    document: String,
    why: String,
}

/// What was imported, what was there already, and what could not be done.
#[derive(Debug, Default)]
struct Done {
    items: usize,
    items_left: usize,
    triples: u64,
    documents: usize,
    documents_left: usize,
    not_imported: Vec<Failed>,
    started: usize,
    started_before: usize,
    not_started: Vec<Failed>,
}

impl Done {
    /// Says what was done. Whatever could not be done makes the command fail, at its end.
    fn tell(&self, session: &mut Session, asked: &ImportWorkspace) -> Result<()> {
        let mut shown = json!({
            "config": self.items, "config-skipped": self.items_left, "triples": self.triples,
            "documents": self.documents, "documents-skipped": self.documents_left,
            "documents-failed": named(&self.not_imported),
            "dry-run": asked.dry_run,
        });
        if asked.process && !asked.dry_run {
            shown["processing"] = json!({
                "started": self.started, "started-before": self.started_before,
                "not-started": named(&self.not_started),
            });
        }
        session.out.show(&shown, || self.sentence(asked))?;
        if !session.out.is_json() {
            for (what, failed) in [
                ("was not imported", &self.not_imported),
                ("is not processed", &self.not_started),
            ] {
                for one in failed.iter().take(NAMED) {
                    let text = format!("  {} {what}: {}", one.document, one.why);
                    session.out.talk(text);
                }
                if failed.len() > NAMED {
                    let more = failed.len() - NAMED;
                    session.out.talk(format!("  and {more} more"));
                }
            }
        }
        match (self.not_imported.len(), self.not_started.len()) {
            (0, 0) => Ok(()),
            (documents, 0) => Err(Error::Check(format!(
                "{documents} documents of the bundle were not imported"
            ))),
            (0, runs) => Err(Error::Check(format!(
                "{runs} documents of the bundle are not processed"
            ))),
            (documents, runs) => Err(Error::Check(format!(
                "{documents} documents of the bundle were not imported, and {runs} are not processed"
            ))),
        }
    }

    fn sentence(&self, asked: &ImportWorkspace) -> String {
        let verb = match asked.dry_run {
            true => "Would import",
            false => "Imported",
        };
        let mut text = format!(
            "{verb} {} config items ({} skipped), {} triples, {} documents ({} skipped).",
            self.items, self.items_left, self.triples, self.documents, self.documents_left
        );
        if asked.process && !asked.dry_run {
            text.push_str(&format!(
                "\nProcessing of {} documents started ({} before, {} not started).",
                self.started,
                self.started_before,
                self.not_started.len()
            ));
        }
        text
    }
}

fn named(failed: &[Failed]) -> Value {
    let one = |one: &Failed| json!({"document": one.document, "message": one.why});
    failed.iter().map(one).collect()
}

impl ImportWorkspace {
    async fn config(&self, http: &Http, said: &Said, done: &mut Done) -> Result<()> {
        let mut known = BTreeSet::new();
        if !self.overwrite {
            let reply = http.all("config", json!({"operation": "config"})).await?;
            let config = reply.get("config").and_then(Value::as_object);
            for (kind, rows) in config.into_iter().flatten() {
                let keys = rows.as_object().into_iter().flatten();
                known.extend(keys.map(|(key, _)| (kind.clone(), key.clone())));
            }
        }
        let rows = said.items().filter_map(|item| {
            let (kind, key) = (text(item, "type"), text(item, "key"));
            if known.contains(&(kind.clone(), key.clone())) {
                done.items_left += 1;
                return None;
            }
            done.items += 1;
            // Stored as JSON text, as everybody does.
            let value = item["value"].to_string();
            Some(json!({"type": kind, "key": key, "value": value}))
        });
        match self.dry_run {
            true => rows.for_each(drop),
            false => put_items(http, rows).await?,
        }
        Ok(())
    }

    /// Makes the collections that are not there yet.
    async fn collections(&self, http: &Http, said: &Said) -> Result<()> {
        let request = json!({"operation": "list-collections"});
        let reply = http.all("collection-management", request).await?;
        let known: BTreeSet<String> = list(&reply, "collections")
            .iter()
            .map(|one| text(one, "collection"))
            .collect();
        let rows = said
            .config
            .iter()
            .filter(|item| text(item, "type") == "collection");
        let mut wanted: BTreeMap<String, Value> = rows
            .map(|item| (text(item, "key"), item["value"].clone()))
            .collect();
        for collection in &said.collections {
            wanted.entry(collection.clone()).or_default();
        }
        for (id, row) in wanted {
            if known.contains(&id) || self.dry_run {
                continue;
            }
            let request = json!({
                "operation": "update-collection",
                "collection": id,
                "name": text(&row, "name"),
                "description": text(&row, "description"),
                "tags": texts(&row, "tags"),
            });
            http.service("collection-management", request).await?;
        }
        Ok(())
    }

    async fn triples(&self, session: &Session, done: &mut Done) -> Result<()> {
        let mut items = Items::open(&self.input, |member| matches!(member, Member::Triples(..)));
        let progress = session.out.progress("triples", None);
        let mut import = None;
        let mut collection = String::new();
        while let Some(item) = items.next().await? {
            match item {
                Item::Begin(Member::Triples(of, _), _) => {
                    collection = of;
                    if !self.dry_run {
                        import = Some(session.import(&self.flow_id, "triples").await?);
                    }
                }
                Item::Triples(triples) => {
                    done.triples += triples.len() as u64;
                    progress.inc(triples.len() as u64);
                    let frame = json!({
                        "metadata": {"id": "workspace-import", "metadata": [], "collection": collection},
                        "triples": triples,
                    });
                    if let Some(import) = &mut import {
                        import.send(&frame).await?;
                    }
                }
                Item::End => {
                    if let Some(import) = import.take() {
                        import.finish().await?;
                    }
                }
                Item::Begin(..) | Item::Bytes(_) | Item::Skipped(_) => {}
            }
        }
        progress.finish_and_clear();
        Ok(())
    }
}
