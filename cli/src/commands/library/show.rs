//! `tg show-library-documents`.

use clap::Args;
use serde_json::Value;

use crate::args::{Common, Options};
use crate::client::Result;
use crate::commands::library::listing;
use crate::fields::{text, texts};
use crate::layout::record;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg show-library-documents`.
#[derive(Debug, Args)]
pub struct ShowLibraryDocuments {
    #[command(flatten)]
    common: Common,
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
            .show(&Value::from(documents.as_slice()), || render(&documents))
    }
}

fn render(documents: &[Value]) -> String {
    if documents.is_empty() {
        return "No documents.".to_owned();
    }
    let shown: Vec<String> = documents
        .iter()
        .map(|document| {
            record(&[
                ("id", text(document, "id")),
                ("time", time(document)),
                ("title", text(document, "title")),
                ("kind", text(document, "kind")),
                ("note", text(document, "comments")),
                ("tags", texts(document, "tags").join(", ")),
            ])
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
        let shown = render(&[
            json!({"id": "d1", "kind": "text/plain", "metadata": [], "tags": ["a", "b"]}),
            json!({"id": "d2", "kind": "text/plain", "time": 1_700_000_000}),
        ]);
        assert!(shown.contains("a, b"));
        assert!(shown.contains("2023-11-14 22:13:20"));
        assert_eq!(render(&[]), "No documents.");
    }
}
