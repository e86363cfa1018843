//! Documents on their way through a flow: start, look, wait, try again, stop.

use std::collections::HashMap;

use clap::Args;
use serde_json::{Value, json};

use crate::args::{Common, InFlow, Options, subject};
use crate::client::{Error, Result};
use crate::commands::library::listing;
use crate::commands::library::standing::{self, is_good, is_open, retry, standing};
use crate::commands::library::waiting::{self, Awaited, Far, missing, tried_again};
use crate::fields::{list, text, texts};
use crate::layout::{Width, cut, listing as listing_of, record};
use crate::registry::Command;
use crate::session::Session;

/// Costs are told in millionths of a dollar.
const MILLION: f64 = 1_000_000.0;
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
    document_id: Option<String>,
    /// Document of the library
    #[arg(
        value_name = "DOCUMENT-ID",
        required = true,
        conflicts_with = "document_id"
    )]
    document: Option<String>,
    /// Id of the processing record [default: made from the document's, and shown]
    #[arg(long = "processing-id", visible_alias = "id", value_name = "ID")]
    id: Option<String>,
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
        let now = chrono::Utc::now();
        let document = self.document.or(self.document_id).unwrap_or_default();
        let made = self.id.is_none();
        let id = self.id.unwrap_or_else(|| made_id(&document, &now));
        let request = json!({
            "operation": "add-processing",
            "dry-run": self.dry_run,
            "processing-metadata": {
                "id": id,
                "document-id": document,
                "time": now.timestamp(),
                "flow": self.flow_id,
                "collection": self.collection,
                "tags": self.tags,
            },
        });
        let reply = session.http()?.service("librarian", request).await?;
        if self.dry_run {
            let estimate = reply.get("estimate").cloned().unwrap_or_else(|| json!({}));
            return session
                .out
                .lay(&estimate, |width| estimated(&estimate, width));
        }
        if self.wait {
            let ended = wait(session, &id).await?;
            return finish(session, &ended);
        }
        let started = json!({"id": id, "status": "processing"});
        session.out.show(&started, || match made {
            true => format!("Processing {document} as {id}."),
            // Who named it knows it.
            false => String::new(),
        })
    }
}

/// An id that nobody has used: the last part of the document's, and the time.
fn made_id(document: &str, now: &chrono::DateTime<chrono::Utc>) -> String {
    let last = document.rsplit(['/', ':', '#']).next().unwrap_or_default();
    let last: String = last
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c))
        .take(40)
        .collect();
    format!("{last}-{}", now.format("%Y%m%d-%H%M%S%3f"))
}

fn estimated(estimate: &Value, width: Width) -> String {
    let counts = estimate.as_object().into_iter().flatten();
    let rows: Vec<_> = counts
        .map(|(name, count)| match (name.as_str(), count.as_i64()) {
            ("microdollars", Some(cost)) => ("cost", format!("${:.4}", cost as f64 / MILLION)),
            (name, _) => (name, count.to_string()),
        })
        .collect();
    record(&rows, width)
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
        session.out.lay(&Value::from(records.clone()), |width| {
            match records.as_slice() {
                [] => "No processing objects.".to_owned(),
                records => records
                    .iter()
                    .map(|one| shown(one, width))
                    .collect::<Vec<_>>()
                    .join("\n\n"),
            }
        })
    }
}

/// Arguments of `tg stop-library-processing`.
#[derive(Debug, Args)]
pub struct StopLibraryProcessing {
    #[command(flatten)]
    flow: InFlow,
    #[command(flatten)]
    processing: ProcessingId,
}

subject!(
    /// The processing that a command is about.
    ProcessingId,
    "Id of the processing record",
    long = "processing-id",
    visible_alias = "id"
);

impl Command for StopLibraryProcessing {
    const NAME: &'static str = "stop-library-processing";
    const ABOUT: &'static str = "Stop following a document's processing and remove its record";

    fn options(&self) -> Options {
        Options::from(&self.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let id = self.processing.id();
        let request = json!({"operation": "remove-processing", "processing-id": id});
        session.http()?.service("librarian", request).await?;
        let done = json!({"id": id, "removed": true});
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
    /// Show how far it is until it has come to its end; exit code 1 when that is not `complete`
    #[arg(long, visible_alias = "watch")]
    wait: bool,
    /// Try what failed once more, and nothing else
    #[arg(long, requires = "id")]
    retry: bool,
    /// Only what is under way
    #[arg(long, conflicts_with = "id")]
    active: bool,
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
            let open = records(session).await?;
            let open = open.iter().filter(|record| is_open(record));
            let awaited: Vec<Awaited> = open
                .map(|record| Awaited::by_id(&text(record, "id")))
                .collect();
            waiting::wait(session, &awaited).await?;
        }
        let mut all = records(session).await?;
        if let Some(id) = &self.id {
            all.retain(|record| text(record, "id") == *id);
            if all.is_empty() {
                return Err(missing(id));
            }
        }
        let failed = self.wait && !all.iter().all(is_good);
        if self.active {
            all.retain(is_open);
        }
        let documents = match session.out.is_json() || all.is_empty() {
            true => Vec::new(),
            false => listing::documents(&session.http()?, false).await?,
        };
        session.out.lay(&Value::from(all.clone()), |width| {
            overview(&all, &documents, width)
        })?;
        if !session.out.is_json()
            && let Some(again) = tried_again(&session.http()?, &all).await
        {
            let now = chrono::Utc::now().timestamp_millis();
            session.out.line(again.text(now))?;
        }
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
    let mut records = waiting::wait(session, &[Awaited::by_id(id)]).await?;
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
    standing::troubles(whole.as_ref().unwrap_or(record))
}

fn finish(session: &mut Session, ended: &Value) -> Result<()> {
    session.out.lay(ended, |width| shown(ended, width))?;
    match is_good(ended) {
        true => Ok(()),
        false => Err(unfinished()),
    }
}

/// A row for each, the newest first, with the titles of the documents that are there.
fn overview(records: &[Value], documents: &[Value], width: Width) -> String {
    if records.is_empty() {
        return "No processing objects.".to_owned();
    }
    let titles: HashMap<String, String> = documents
        .iter()
        .map(|document| (text(document, "id"), text(document, "title")))
        .collect();
    let rows = records.iter().rev().map(|record| {
        let document = text(record, "document-id");
        let title = titles.get(&document).filter(|title| !title.is_empty());
        [
            title.unwrap_or(&document).clone(),
            standing(record),
            Far::of(std::slice::from_ref(record)).text(),
            text(record, "id"),
        ]
    });
    listing_of(["document", "status", "progress", "id"], rows, width)
}

fn shown(record_: &Value, width: Width) -> String {
    let kept = list(record_, "errors");
    let mut faults: Vec<_> = kept.iter().take(FAULTS).map(fault).collect();
    let total = record_.get("errors-total").and_then(Value::as_u64);
    let total = total.unwrap_or(kept.len() as u64);
    match total.saturating_sub(faults.len() as u64) {
        0 => {}
        more => faults.push(format!("and {more} more")),
    }
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
    add("status", standing(record_));
    add("progress", counts(record_));
    add("error", text(record_, "error"));
    add("errors", faults.join("\n"));
    add("try", retry(record_).unwrap_or_default());
    record(&rows, width)
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
        let text = shown(&one, None);
        assert!(
            text.contains("urn:chunk:1: no") && text.contains("graph: x"),
            "{text}"
        );
        let foreign = shown(
            &json!({"id": "p", "document-id": "d", "flow": "f", "collection": "c"}),
            None,
        );
        assert!(!foreign.contains("status"), "{foreign}");
        let listed = self::shown(
            &json!({"id": "p", "errors": [{"processor": "x", "message": "no"}], "errors-total": 7}),
            None,
        );
        assert!(listed.contains("and 6 more"), "{listed}");
        let titles = [json!({"id": "d", "title": "A title"})];
        let newer = json!({"id": "q", "document-id": "gone", "status": "complete"});
        let shown = overview(&[one, newer], &titles, None);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines,
            [
                "document  status      progress    id",
                "gone      complete                q",
                "A title   processing  3/7 chunks  p"
            ]
        );
    }
}
