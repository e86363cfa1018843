//! `tg import-workspace`: a bundle into a workspace. The bundle is read several times from its start and
//! never held: first in whole, before anything is written, for what is said in it and what is wrong with it; then
//! for the triples, and for the documents of each level, parents first.
//!
//! Nothing that is there is removed, also with `--overwrite`: what is in the bundle takes its place, each document in
//! one step, once all of its content is there. So a command that was interrupted leaves nothing emptier than it was, and goes on when it is repeated.
//! What is bad or refused is reported at the end, and delays nothing else.

mod asked;
mod documents;
mod done;
#[cfg(test)]
mod fuzz;
mod made;
mod processed;
mod reading;
mod said;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

pub use self::asked::ImportWorkspace;
use self::documents::Documents;
use self::done::{Done, Failed, concerns_one};
use self::reading::{Item, Items};
use self::said::Said;
use super::bundle::Member;
use crate::args::Options;
use crate::client::{Error, Http, Import, Result, Settled};
use crate::commands::config::{masked, put_items};
use crate::commands::flow::must_run;
use crate::fields::{list, text, texts};
use crate::registry::Command;
use crate::session::Session;

impl Command for ImportWorkspace {
    const NAME: &'static str = "import-workspace";
    const ABOUT: &'static str = "Put a bundle into a workspace";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let said = Said::read(self.input.path()).await?;
        if session.options.workspace.is_none() {
            let from = text(&said.manifest, "workspace");
            session.options.workspace = Some(from).filter(|from| !from.is_empty());
        }
        let http = session.http()?;
        if self.new {
            self.make(session, &http).await?;
        }
        let mut done = Done::default();
        // What goes through a flow needs one that runs, which is better known before anything is written.
        if !self.config_only && (self.process || !said.collections.is_empty()) {
            let runs = must_run(session, &http, &self.flow_id).await;
            runs.map_err(|error| match error {
                Error::Missing(text) => Error::Missing(format!("{text}; nothing was imported")),
                error => error,
            })?;
        }
        self.config(&http, &said, &mut done).await?;
        if !self.config_only {
            self.collections(&http, &said, &mut done).await?;
            self.triples(session, &mut done).await?;
            let documents = Documents {
                what: &self,
                http: &http,
                said: &said,
            };
            documents.import(session, &mut done).await?;
        }
        done.failed.extend(said.bad);
        if !self.config_only {
            done.not_imported.extend(said.bad_documents);
        }
        done.tell(session, &self)
    }
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
        let mut rows = Vec::new();
        for item in said.items() {
            let (kind, key) = (text(item, "type"), text(item, "key"));
            if known.contains(&(kind.clone(), key.clone())) {
                done.items_left += 1;
                continue;
            }
            if masked::is_shown_masked(&kind, &item["value"]) {
                let what = format!("config {kind}/{key}");
                done.failed.push(Failed::new(what, masked::why()));
                continue;
            }
            // Stored as JSON text, as everybody does.
            let value = item["value"].to_string();
            rows.push(json!({"type": kind, "key": key, "value": value}));
        }
        let refused = match self.dry_run {
            true => Vec::new(),
            false => put_acceptable(http, &rows).await?,
        };
        done.items = rows.len() - refused.len();
        done.failed.extend(refused);
        Ok(())
    }

    /// Makes the collections that are not there yet.
    async fn collections(&self, http: &Http, said: &Said, done: &mut Done) -> Result<()> {
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
            match http.service("collection-management", request).await {
                Ok(_) => {}
                Err(error) if concerns_one(&error) => {
                    let what = format!("collection {id}");
                    done.failed.push(Failed::new(what, error));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn triples(&self, session: &Session, done: &mut Done) -> Result<()> {
        let mut items = Items::open(self.input.path(), |member| {
            matches!(member, Member::Triples(..))
        });
        let progress = session.out.progress("triples", None);
        let mut import = None;
        let mut collection = String::new();
        let mut count = 0;
        // What follows a refused frame is not sent any more.
        let mut refused = false;
        while let Some(item) = items.next().await? {
            let outcome = match item {
                Item::Begin(Member::Triples(of, _), _) => {
                    (collection, count, refused) = (of, 0, false);
                    if !self.dry_run {
                        import = Some(session.import(&self.flow_id, "triples").await?);
                    }
                    Ok(())
                }
                Item::Triples(triples) => {
                    count += triples.len() as u64;
                    progress.inc(triples.len() as u64);
                    let frame = json!({
                        "metadata": {"id": "workspace-import", "metadata": [], "collection": collection},
                        "triples": triples,
                    });
                    match &mut import {
                        Some(import) => import.send(&frame).await,
                        None => Ok(()),
                    }
                }
                Item::End => {
                    let (outcome, stored) = match finish(import.take()).await {
                        Ok(settled) => (Ok(()), done.is_stored(&collection, settled) && !refused),
                        Err(error) => (Err(error), false),
                    };
                    if self.dry_run || stored {
                        done.triples += count;
                    }
                    outcome
                }
                // What cannot be read was told when the bundle was checked.
                Item::Begin(..) | Item::Bytes(_) | Item::Bad(_) => Ok(()),
            };
            match outcome {
                Ok(()) => {}
                Err(error) if concerns_one(&error) => {
                    (import, refused) = (None, true);
                    let what = format!("triples of collection {collection}");
                    done.failed.push(Failed::new(what, error));
                }
                Err(error) => return Err(error),
            }
        }
        progress.finish_and_clear();
        Ok(())
    }
}

/// Ends an import; what the store reported, if it was asked.
async fn finish(import: Option<Import>) -> Result<Option<Settled>> {
    let Some(mut import) = import else {
        return Ok(None);
    };
    import.end().await?;
    Ok(import.into_settled())
}

/// Puts items; those that are refused are returned with the reason.
async fn put_acceptable(http: &Http, rows: &[Value]) -> Result<Vec<Failed>> {
    match put_items(http, rows.to_vec()).await {
        Ok(()) => return Ok(Vec::new()),
        Err(error) if concerns_one(&error) => {}
        Err(error) => return Err(error),
    }
    let mut refused = Vec::new();
    for row in rows {
        match put_items(http, [row.clone()]).await {
            Ok(()) => {}
            Err(error) if concerns_one(&error) => {
                let what = format!("config {}/{}", text(row, "type"), text(row, "key"));
                refused.push(Failed::new(what, error));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(refused)
}
