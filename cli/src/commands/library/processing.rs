//! Documents on their way through a flow: start, look, wait, try again, stop.

use clap::Args;
use serde_json::{Value, json};

use crate::args::{Common, InFlow, Options};
use crate::client::{Error, Result};
use crate::commands::library::listing;
use crate::commands::library::waiting::{self, Awaited, missing};
use crate::fields::{list, text, texts};
use crate::layout::{cut, record, table};
use crate::registry::Command;
use crate::session::Session;

/// Faults shown of one record.
const FAULTS: usize = 20;

/// Arguments of `tg start-library-processing`.
#[derive(Debug, Args)]
pub struct StartLibraryProcessing {
    #[command(flatten)]
    common: Common,
    /// Flow to process it with
    #[arg(short = 'i', long, default_value = "default", value_name = "ID")]
    flow_id: String,
    /// Document of the library
    #[arg(short = 'd', long, value_name = "IRI")]
    document_id: String,
    /// Id of the processing record
    #[arg(long, visible_alias = "processing-id", value_name = "ID")]
    id: String,
    /// Collection the results go to
    #[arg(long, default_value = "default", value_name = "ID")]
    collection: String,
    /// Tags, separated by commas
    #[arg(long, value_delimiter = ',')]
    tags: Vec<String>,
    /// Only say what it would cost
    #[arg(long)]
    dry_run: bool,
    /// Wait until it has come to its end
    #[arg(long, conflicts_with = "dry_run")]
    wait: bool,
}

impl Command for StartLibraryProcessing {
    const NAME: &'static str = "start-library-processing";
    const ABOUT: &'static str = "Process a document of the library with a flow";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({
            "operation": "add-processing",
            "dry-run": self.dry_run,
            "processing-metadata": {
                "id": self.id,
                "document-id": self.document_id,
                "time": chrono::Utc::now().timestamp(),
                "flow": self.flow_id,
                "collection": self.collection,
                "tags": self.tags,
            },
        });
        let reply = session.http()?.service("librarian", request).await?;
        if self.dry_run {
            let estimate = reply.get("estimate").cloned().unwrap_or_else(|| json!({}));
            return session.out.show(&estimate, || estimated(&estimate));
        }
        if self.wait {
            let ended = wait(session, &self.id).await?;
            return finish(session, &ended);
        }
        let started = json!({"id": self.id, "status": "processing"});
        session.out.show(&started, String::new)
    }
}

fn estimated(estimate: &Value) -> String {
    let counts = estimate.as_object().into_iter().flatten();
    let rows: Vec<_> = counts
        .map(|(name, count)| (name.as_str(), count.to_string()))
        .collect();
    record(&rows)
}

/// Arguments of `tg show-library-processing`.
#[derive(Debug, Args)]
pub struct ShowLibraryProcessing {
    #[command(flatten)]
    common: Common,
}

impl Command for ShowLibraryProcessing {
    const NAME: &'static str = "show-library-processing";
    const ABOUT: &'static str = "Show what was processed and how far it is";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let records = records(session).await?;
        session
            .out
            .show(&Value::from(records.clone()), || match records.as_slice() {
                [] => "No processing objects.".to_owned(),
                records => records.iter().map(shown).collect::<Vec<_>>().join("\n\n"),
            })
    }
}

/// Arguments of `tg stop-library-processing`.
#[derive(Debug, Args)]
pub struct StopLibraryProcessing {
    #[command(flatten)]
    flow: InFlow,
    /// Id of the processing record
    #[arg(long, visible_alias = "processing-id", value_name = "ID")]
    id: String,
}

impl Command for StopLibraryProcessing {
    const NAME: &'static str = "stop-library-processing";
    const ABOUT: &'static str = "Stop following a document's processing and remove its record";

    fn options(&self) -> Options {
        Options::from(&self.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({"operation": "remove-processing", "processing-id": self.id});
        session.http()?.service("librarian", request).await?;
        let done = json!({"id": self.id, "removed": true});
        session.out.show(&done, String::new)
    }
}

/// Arguments of `tg process-status`.
#[derive(Debug, Args)]
pub struct ProcessStatus {
    #[command(flatten)]
    common: Common,
    /// Id of the processing record [default: all]
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Wait until it has come to its end; exit code 1 when that is not `complete`
    #[arg(long)]
    wait: bool,
    /// Try what failed once more, and nothing else
    #[arg(long, requires = "id")]
    retry: bool,
}

impl Command for ProcessStatus {
    const NAME: &'static str = "process-status";
    const ABOUT: &'static str = "Show how far the processing of documents is";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        if let (true, Some(id)) = (self.retry, &self.id) {
            let request = json!({"operation": "retry-processing", "processing-id": id});
            session.http()?.service("librarian", request).await?;
        }
        if let (true, Some(id)) = (self.wait, &self.id) {
            let ended = wait(session, id).await?;
            return finish(session, &ended);
        }
        if self.wait {
            for record in records(session).await? {
                wait(session, &text(&record, "id")).await?;
            }
        }
        let mut all = records(session).await?;
        if let Some(id) = &self.id {
            all.retain(|record| text(record, "id") == *id);
            if all.is_empty() {
                return Err(missing(id));
            }
        }
        let failed = self.wait
            && all
                .iter()
                .any(|record| text(record, "status") != "complete");
        session
            .out
            .show(&Value::from(all.clone()), || overview(&all))?;
        if failed { Err(unfinished()) } else { Ok(()) }
    }
}

fn unfinished() -> Error {
    Error::Check("not everything was processed".to_owned())
}

async fn records(session: &Session) -> Result<Vec<Value>> {
    listing::processings(&session.http()?).await
}

/// The record once it has come to its end. How far it is is told on the way.
async fn wait(session: &mut Session, id: &str) -> Result<Value> {
    let awaited = Awaited {
        id: id.to_owned(),
        name: id.to_owned(),
    };
    let mut records = waiting::wait(session, &[awaited]).await?;
    records.pop().ok_or_else(|| missing(id))
}

/// What is wrong with a processing that did not come to a good end, on one line.
pub(super) async fn troubles(session: &Session, record: &Value) -> String {
    // A listing holds only the first faults; the record itself has more.
    let request = json!({"operation": "processing-status", "processing-id": text(record, "id")});
    let whole = match session.http() {
        Ok(http) => http.service("librarian", request).await.ok(),
        Err(_) => None,
    };
    let whole = whole.and_then(|reply| list(&reply, "processing-metadatas").first().cloned());
    let record = whole.as_ref().unwrap_or(record);
    let faults = list(record, "errors").iter();
    let mut told: Vec<String> = faults.map(|one| text(one, "message")).collect();
    told.dedup();
    match told.as_slice() {
        [] => match text(record, "error") {
            error if error.is_empty() => text(record, "status"),
            error => error,
        },
        [one] => one.clone(),
        [first, more @ ..] => format!("{first} (and {} more)", more.len()),
    }
}

fn finish(session: &mut Session, ended: &Value) -> Result<()> {
    session.out.show(ended, || shown(ended))?;
    match text(ended, "status").as_str() {
        "complete" | "submitted" => Ok(()),
        _ => Err(unfinished()),
    }
}

fn overview(records: &[Value]) -> String {
    if records.is_empty() {
        return "No processing objects.".to_owned();
    }
    let rows = records.iter().map(|record| {
        [
            text(record, "id"),
            text(record, "document-id"),
            text(record, "collection"),
            text(record, "status"),
            counts(record),
            list(record, "errors").len().to_string(),
        ]
    });
    table(
        [
            "id",
            "document",
            "collection",
            "status",
            "progress",
            "errors",
        ],
        rows,
    )
}

fn shown(record_: &Value) -> String {
    let faults: Vec<_> = list(record_, "errors")
        .iter()
        .take(FAULTS)
        .map(fault)
        .collect();
    let mut rows = vec![
        ("id", text(record_, "id")),
        ("document-id", text(record_, "document-id")),
        ("time", time(record_)),
        ("flow", text(record_, "flow")),
        ("collection", text(record_, "collection")),
        ("tags", texts(record_, "tags").join(", ")),
    ];
    let mut add = |name: &'static str, value: String| {
        if !value.is_empty() {
            rows.push((name, value));
        }
    };
    add("status", text(record_, "status"));
    add("progress", counts(record_));
    add("error", text(record_, "error"));
    add("errors", faults.join("\n"));
    record(&rows)
}

fn fault(one: &Value) -> String {
    let subject = text(one, "subject");
    let place = if subject.is_empty() {
        text(one, "processor")
    } else {
        subject
    };
    cut(&format!("{place}: {}", text(one, "message")), 300)
}

/// `pages 3/3, chunks 7, triples 41`.
fn counts(record: &Value) -> String {
    let Some(progress) = record.get("progress").and_then(Value::as_object) else {
        return String::new();
    };
    let plain = progress
        .iter()
        .filter(|(kind, _)| !kind.ends_with("-total"));
    let shown = plain.map(
        |(kind, count)| match progress.get(&format!("{kind}-total")) {
            Some(total) => format!("{kind} {count}/{total}"),
            None => format!("{kind} {count}"),
        },
    );
    shown.collect::<Vec<_>>().join(", ")
}

fn time(record: &Value) -> String {
    let seconds = record.get("time").and_then(Value::as_i64).unwrap_or(0);
    match chrono::DateTime::from_timestamp(seconds, 0) {
        Some(time) if seconds > 0 => time.format("%Y-%m-%d %H:%M:%S").to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_shows_how_far_it_is_and_what_failed() {
        let one = json!({"id": "p", "document-id": "d", "flow": "f", "collection": "c", "tags": ["t"],
            "status": "processing", "progress": {"chunks": 3, "chunks-total": 7, "triples": 41},
            "errors": [{"subject": "urn:chunk:1", "message": "no"}, {"processor": "graph", "message": "x"}]});
        assert_eq!(counts(&one), "chunks 3/7, triples 41");
        let text = shown(&one);
        assert!(
            text.contains("urn:chunk:1: no") && text.contains("graph: x"),
            "{text}"
        );
        let foreign =
            shown(&json!({"id": "p", "document-id": "d", "flow": "f", "collection": "c"}));
        assert!(!foreign.contains("status"), "{foreign}");
        assert!(overview(&[one]).contains("chunks 3/7"));
    }
}
