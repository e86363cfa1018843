//! `tg show-library-documents`.

use clap::Args;
use serde_json::Value;
use tg_document::kind;

use crate::args::{Common, Options};
use crate::client::Result;
use crate::commands::library::listing;
use crate::fields::{text, texts};
use crate::layout::{Width, listing, record};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg show-library-documents`.
#[derive(Debug, Args)]
pub struct ShowLibraryDocuments {
    #[command(flatten)]
    common: Common,
    /// Show all that is known of each
    #[arg(long)]
    long: bool,
}

impl Command for ShowLibraryDocuments {
    const NAME: &'static str = "show-library-documents";
    const ABOUT: &'static str = "Show the documents of the library";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let documents = listing::documents(&session.http()?, false).await?;
        session
            .out
            .lay(&Value::from(documents.as_slice()), |width| {
                match (documents.is_empty(), self.long) {
                    (true, _) => "No documents.".to_owned(),
                    (false, true) => boxes(&documents, width),
                    (false, false) => rows(&documents, width),
                }
            })
    }
}

/// A row for each, the title first.
fn rows(documents: &[Value], width: Width) -> String {
    let rows = documents.iter().map(|document| {
        let title = match text(document, "title") {
            title if title.is_empty() => text(document, "comments"),
            title => title,
        };
        let day = time(document).chars().take(10).collect();
        let kind = text(document, "kind");
        [
            title,
            kind::name(&kind).to_owned(),
            day,
            text(document, "id"),
        ]
    });
    listing(["title", "kind", "added", "id"], rows, width)
}

fn boxes(documents: &[Value], width: Width) -> String {
    let shown: Vec<String> = documents
        .iter()
        .map(|document| {
            record(
                &[
                    ("id", text(document, "id")),
                    ("time", time(document)),
                    ("title", text(document, "title")),
                    ("kind", text(document, "kind")),
                    ("note", text(document, "comments")),
                    ("tags", texts(document, "tags").join(", ")),
                ],
                width,
            )
        })
        .collect();
    shown.join("\n\n")
}

fn time(document: &Value) -> String {
    let seconds = document.get("time").and_then(Value::as_i64).unwrap_or(0);
    match chrono::DateTime::from_timestamp(seconds, 0) {
        Some(time) if seconds > 0 => time.format("%Y-%m-%d %H:%M:%S").to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_without_time_or_title_is_shown_all_the_same() {
        let documents = [
            json!({"id": "d1", "kind": "text/plain", "metadata": [], "tags": ["a", "b"]}),
            json!({"id": "d2", "kind": "application/pdf", "title": "FHS 3.0", "time": 1_700_000_000}),
        ];
        let shown = boxes(&documents, None);
        assert!(shown.contains("a, b"));
        assert!(shown.contains("2023-11-14 22:13:20"));
        let shown = rows(&documents, None);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines,
            [
                "title    kind  added       id",
                "         text              d1",
                "FHS 3.0  PDF   2023-11-14  d2"
            ]
        );
    }
}
