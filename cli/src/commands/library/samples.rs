//! `tg load-sample-documents`: puts the documents that come with this program into the library.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use serde_json::{Value, json};
use tg_schemas::ErrorCode;

use super::metadata::Known;
use crate::args::{Common, Options};
use crate::client::Result;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg load-sample-documents`.
#[derive(Debug, Args)]
pub struct LoadSampleDocuments {
    #[command(flatten)]
    common: Common,
}

/// A document of the demo.
struct Sample {
    id: &'static str,
    kind: &'static str,
    title: &'static str,
    about: &'static str,
    tags: &'static [&'static str],
    content: &'static [u8],
}

static SAMPLES: &[Sample] = &[
    Sample {
        id: "urn:demo:clocks",
        kind: "application/pdf",
        title: "Uncommon clocks",
        about: "Clocks that differ from universal time by other than whole hours.",
        tags: &["sample", "time zones", "clocks"],
        content: include_bytes!("../../../../demo/documents/uncommon-clocks.pdf"),
    },
    Sample {
        id: "urn:demo:tz",
        kind: "text/markdown",
        title: "How the tz database is kept",
        about: "Who keeps the rules of the world's time zones, and how they change.",
        tags: &["sample", "time zones", "tz database"],
        content: include_bytes!("../../../../demo/documents/how-the-tz-database-is-kept.md"),
    },
];

impl Command for LoadSampleDocuments {
    const NAME: &'static str = "load-sample-documents";
    const ABOUT: &'static str = "Put the documents that come with this program into the library";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let http = session.http()?;
        let mut all = Vec::new();
        for sample in SAMPLES {
            let outcome = http.service("librarian", sample.request()).await;
            let added = match outcome {
                Ok(_) => true,
                // A library that has it needs it no second time.
                Err(error) if error.code() == Some(ErrorCode::Conflict) => false,
                Err(error) => return Err(error),
            };
            all.push(json!({"id": sample.id, "title": sample.title, "added": added}));
            if !session.out.is_json() {
                let what = if added { "loaded" } else { "is there already" };
                session
                    .out
                    .line(format!("{} ({}): {what}", sample.title, sample.id))?;
            }
        }
        session.out.show(&Value::from(all), String::new)
    }
}

impl Sample {
    fn request(&self) -> Value {
        let known = Known::of(self.title, self.about, self.tags);
        json!({
            "operation": "add-document",
            "document-metadata": {
                "id": self.id,
                "time": chrono::Utc::now().timestamp(),
                "kind": self.kind,
                "title": self.title,
                "comments": self.about,
                "metadata": known.triples(self.id),
                "tags": self.tags,
            },
            "content": STANDARD.encode(self.content),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_what_they_say_and_small() {
        for sample in SAMPLES {
            let pdf = sample.content.starts_with(b"%PDF");
            assert_eq!(pdf, sample.kind == "application/pdf", "{}", sample.id);
            assert!(sample.content.len() < 64 << 10, "{}", sample.id);
            let request = sample.request();
            let triples = request["document-metadata"]["metadata"].as_array();
            let about = triples.expect("triples");
            assert!(about.iter().all(|triple| triple["s"]["i"] == sample.id));
            assert!(about.iter().any(|triple| triple["o"]["v"] == sample.title));
            assert!(about.len() >= 4 + sample.tags.len());
        }
    }
}
