//! `tg reindex`: processes again what was processed before, where the document or what its flow does with it has changed
//! since. What has begun goes on without the command.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::{Value, json};

use super::waiting::{Awaited, wait};
use crate::args::{Common, Options};
use crate::client::{Error, Result};
use crate::commands::library::standing::is_good;
use crate::fields::{list, text, texts};
use crate::layout::{Width, listing};
use crate::registry::Command;
use crate::session::Session;

/// Outcomes in the order in which they are counted.
const OUTCOMES: [(&str, &str); 5] = [
    ("begun", "begun"),
    ("due", "would be processed again"),
    ("under-way", "under way"),
    ("unchanged", "unchanged"),
    ("not-possible", "not possible"),
];

/// Arguments of `tg reindex`.
#[derive(Debug, Args)]
pub struct Reindex {
    #[command(flatten)]
    common: Common,
    /// Only this document
    #[arg(value_name = "IRI")]
    document: Option<String>,
    /// Only what was processed with this flow
    #[arg(short = 'f', long, value_name = "ID")]
    flow_id: Option<String>,
    /// Only what was processed into this collection
    #[arg(short = 'C', long, value_name = "ID")]
    collection: Option<String>,
    /// Only say what would be processed again, and why
    #[arg(long)]
    dry_run: bool,
    /// Also what has not changed, and all of it; replies of models that are kept are not paid again
    #[arg(long)]
    force: bool,
    /// Wait until all of it is processed
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,
}

impl Command for Reindex {
    const NAME: &'static str = "reindex";
    const ABOUT: &'static str =
        "Process again what changed: documents, prompts, ontologies, models";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        if self.document.is_none() && self.flow_id.is_none() && self.collection.is_none() {
            let text = "a document, --flow-id or --collection is required";
            return Err(Error::Usage(text.to_owned()));
        }
        let mut told = Vec::new();
        let ended = self.begin(session, &mut told).await;
        // What has begun is told whatever ended it.
        if ended.is_ok() || !told.is_empty() {
            let shown = json!({"documents": told, "outcomes": counts(&told)});
            session.out.lay(&shown, |width| overview(&told, width))?;
        }
        ended?;
        if self.wait {
            self.wait(session, &told).await?;
        }
        match told
            .iter()
            .any(|one| text(one, "outcome") == "not-possible")
        {
            true => Err(Error::Check("not all of it could be processed".to_owned())),
            false => Ok(()),
        }
    }
}

impl Reindex {
    /// Page by page.
    async fn begin(&self, session: &mut Session, told: &mut Vec<Value>) -> Result<()> {
        let http = session.http()?;
        let named = |name: &Option<String>| name.clone().unwrap_or_default();
        let mut line = session.out.living();
        let mut after = String::new();
        let ended = loop {
            let request = json!({
                "operation": "reindex",
                "dry-run": self.dry_run,
                "force": self.force,
                "after": after,
                "processing-metadata": {
                    "document-id": named(&self.document),
                    "flow": named(&self.flow_id),
                    "collection": named(&self.collection),
                },
            });
            match http.service("librarian", request).await {
                Ok(reply) => {
                    told.extend(list(&reply, "reindexed").iter().cloned());
                    after = text(&reply, "next");
                }
                Err(error) => break Err(error),
            }
            if after.is_empty() {
                break Ok(());
            }
            line.tell(&mut session.out, &format!("{} documents", told.len()));
        };
        line.end();
        ended
    }

    async fn wait(&self, session: &mut Session, told: &[Value]) -> Result<()> {
        let open = told
            .iter()
            .filter(|one| ["begun", "under-way"].contains(&text(one, "outcome").as_str()));
        let awaited: Vec<Awaited> = open
            .map(|one| Awaited {
                id: text(one, "processing-id"),
                name: text(one, "document-id"),
            })
            .collect();
        if awaited.is_empty() {
            return Ok(());
        }
        let records = wait(session, &awaited).await?;
        match records.iter().all(is_good) {
            true => Ok(()),
            false => Err(Error::Check("not everything was processed".to_owned())),
        }
    }
}

fn counts(told: &[Value]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for one in told {
        *counts.entry(text(one, "outcome")).or_default() += 1;
    }
    counts
}

/// A row for each that is not unchanged, and how many there are of each kind.
fn overview(told: &[Value], width: Width) -> String {
    if told.is_empty() {
        return "Nothing of it was processed before.".to_owned();
    }
    let rows = told
        .iter()
        .filter(|one| text(one, "outcome") != "unchanged")
        .map(|one| {
            [
                text(one, "document-id"),
                text(one, "collection"),
                text(one, "outcome"),
                format!("{} of {}", one["chunks-due"], one["chunks"]),
                why(one),
            ]
        });
    let rows: Vec<_> = rows.collect();
    let counts = counts(told);
    let counted = OUTCOMES.iter().filter_map(|(outcome, words)| {
        let count = counts.get(*outcome)?;
        Some(format!("{count} {words}"))
    });
    let counted = counted.collect::<Vec<_>>().join(", ");
    match rows.is_empty() {
        true => format!("{counted}."),
        false => {
            let heads = ["document", "collection", "outcome", "chunks", "why"];
            format!("{}\n\n{counted}.", listing(heads, rows.into_iter(), width))
        }
    }
}

/// `kg-extract-definitions: prompt, model; document: content`.
fn why(one: &Value) -> String {
    let error = text(one, "error");
    if !error.is_empty() {
        return error;
    }
    let changes = one.get("changes").and_then(Value::as_object);
    let changes = changes.into_iter().flatten();
    changes
        .map(|(id, _)| format!("{id}: {}", texts(&one["changes"], id).join(", ")))
        .collect::<Vec<_>>()
        .join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_told_with_its_reason_and_the_rest_is_counted() {
        let changed = json!({"document-id": "urn:d", "collection": "c", "outcome": "due", "chunks": 7, "chunks-due": 3,
            "changes": {"chunker": ["parameters"], "kg-extract-rows": ["schema", "prompt"]}});
        let same = json!({"document-id": "urn:e", "outcome": "unchanged", "changes": {}});
        let failed = json!({"document-id": "urn:f", "outcome": "not-possible", "error": "no flow", "chunks": 1,
            "chunks-due": 0});
        let shown = overview(&[changed, same.clone(), failed], None);
        assert!(
            shown.contains("3 of 7")
                && shown.contains("chunker: parameters; kg-extract-rows: schema, prompt"),
            "{shown}"
        );
        assert!(
            shown.contains("no flow") && !shown.contains("urn:e"),
            "{shown}"
        );
        assert!(
            shown.ends_with("\n\n1 would be processed again, 1 unchanged, 1 not possible."),
            "{shown}"
        );
        assert_eq!(overview(&[same], None), "1 unchanged.");
        assert_eq!(overview(&[], None), "Nothing of it was processed before.");
    }
}
