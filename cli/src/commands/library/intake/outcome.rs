//! What became of each document, and of all of them. Pure.

use serde_json::{Value, json};

use super::super::upload::Sent;
use super::document::Document;

/// Most documents that a summary names.
const NAMED: usize = 1000;

/// What became of a document in the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Became {
    Added,
    Changed,
    Unchanged,
    Removed,
    Refused,
}

impl Became {
    fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::Removed => "removed",
            Self::Refused => "refused",
        }
    }
}

/// One document.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    /// As the user named it.
    pub(super) name: String,
    pub(super) became: Became,
    /// Its id in the library; empty if it is not there.
    pub(super) id: String,
    pub(super) document: Option<Document>,
    /// How it went, if it went in chunks.
    pub(super) sent: Option<Sent>,
    /// What is wrong; empty if nothing.
    pub(super) why: String,
    /// Its processings that have begun, or that are under way.
    pub(super) processings: Vec<String>,
}

impl Outcome {
    /// One that did not come into the library.
    pub(super) fn refused(name: String, why: String) -> Self {
        Self {
            name,
            became: Became::Refused,
            id: String::new(),
            document: None,
            sent: None,
            why,
            processings: Vec::new(),
        }
    }

    /// One whose file is gone, and so it is.
    pub(super) fn removed(name: String, id: String) -> Self {
        Self {
            name,
            became: Became::Removed,
            id,
            document: None,
            sent: None,
            why: String::new(),
            processings: Vec::new(),
        }
    }

    /// A line for people.
    pub(super) fn line(&self) -> String {
        let (name, id) = (&self.name, &self.id);
        let about = self.document.as_ref().map(Document::about);
        let about = about.map(|about| format!(" ({about})")).unwrap_or_default();
        let but = match self.why.as_str() {
            "" => String::new(),
            why => format!("; not processed: {why}"),
        };
        match self.became {
            Became::Added => format!("{name}: added as {id}{about}{but}"),
            Became::Changed => format!("{name}: changed, replaced as {id}{about}{but}"),
            Became::Unchanged if self.processings.is_empty() => {
                format!("{name}: unchanged, is {id}{but}")
            }
            Became::Unchanged => format!("{name}: unchanged, is {id}, now processed"),
            Became::Removed => format!("{name}: gone, removed {id}"),
            Became::Refused => format!("{name}: not added: {}", self.why),
        }
    }

    /// The same for programs.
    pub(super) fn json(&self) -> Value {
        let mut told = json!({"file": self.name, "outcome": self.became.as_str()});
        if !self.id.is_empty() {
            told["id"] = json!(self.id);
            told["processings"] = json!(self.processings);
        }
        if let Some(document) = &self.document {
            told["title"] = json!(document.title);
            told["kind"] = json!(document.mime);
            told["content-hash"] = json!(document.hash);
            if let Some(pages) = document.pages {
                told["pages"] = json!(pages);
            }
        }
        if let Some(sent) = self.sent {
            told["upload"] = sent.json();
        }
        if !self.why.is_empty() {
            told["error"] = json!(self.why);
        }
        told
    }
}

/// All documents.
#[derive(Debug, Default)]
pub(super) struct Summary {
    added: usize,
    changed: usize,
    unchanged: usize,
    removed: usize,
    /// Names, and what is wrong: they are not there, or not processed.
    failed: Vec<(String, String)>,
    more_failed: usize,
    /// Names, and what is to be said of them: they are processed all the same.
    warned: Vec<(String, String)>,
}

impl Summary {
    /// Counts one more.
    pub(super) fn count(&mut self, outcome: &Outcome) {
        match outcome.became {
            Became::Added => self.added += 1,
            Became::Changed => self.changed += 1,
            Became::Unchanged => self.unchanged += 1,
            Became::Removed => self.removed += 1,
            Became::Refused => {}
        }
        if !outcome.why.is_empty() {
            self.fail(&outcome.name, &outcome.why);
        }
    }

    /// Counts one that failed later.
    pub(super) fn fail(&mut self, name: &str, why: &str) {
        if self.failed.len() < NAMED {
            self.failed.push((name.to_owned(), why.to_owned()));
        } else {
            self.more_failed += 1;
        }
    }

    /// Something is to be said of one that is well on the whole. Beyond a bound nobody reads it.
    pub(super) fn warn(&mut self, name: &str, what: &str) {
        if self.warned.len() < NAMED {
            self.warned.push((name.to_owned(), what.to_owned()));
        }
    }

    /// Whether nothing was counted.
    pub(super) fn is_empty(&self) -> bool {
        self.added + self.changed + self.unchanged + self.removed + self.failures() == 0
    }

    /// How many failed.
    pub(super) fn failures(&self) -> usize {
        self.failed.len() + self.more_failed
    }

    /// `3 added, 1 unchanged; 1 failed:`, and why.
    pub(super) fn text(&self) -> String {
        let counts = [
            (self.added, "added"),
            (self.changed, "changed"),
            (self.unchanged, "unchanged"),
            (self.removed, "removed"),
            (self.failures(), "failed"),
        ];
        let counts = counts.iter().filter(|(number, _)| *number > 0);
        let counts: Vec<_> = counts
            .map(|(number, of)| format!("{number} {of}"))
            .collect();
        if counts.is_empty() {
            return "There is nothing to add.".to_owned();
        }
        let mut text = counts.join(", ");
        let named = self.failed.iter().chain(&self.warned);
        text.push(match named.clone().next() {
            None => '.',
            Some(_) => ':',
        });
        for (name, why) in named {
            text.push_str(&format!("\n  {name}: {why}"));
        }
        if self.more_failed > 0 {
            text.push_str(&format!("\n  and {} more", self.more_failed));
        }
        text
    }

    /// The same for programs.
    pub(super) fn json(&self) -> Value {
        json!({
            "added": self.added,
            "changed": self.changed,
            "unchanged": self.unchanged,
            "removed": self.removed,
            "failed": self.failures(),
            "warnings": self.warned.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(became: Became, why: &str) -> Outcome {
        let document = Document {
            mime: "text/markdown".to_owned(),
            title: "Lamps".to_owned(),
            pages: None,
            charset: None,
            hash: String::new(),
        };
        Outcome {
            name: "a.md".to_owned(),
            became,
            id: "urn:a".to_owned(),
            document: Some(document),
            sent: None,
            why: why.to_owned(),
            processings: Vec::new(),
        }
    }

    #[test]
    fn a_line_tells_id_title_and_kind() {
        let line = |became, why| outcome(became, why).line();
        assert_eq!(
            line(Became::Added, ""),
            "a.md: added as urn:a (\"Lamps\", Markdown)"
        );
        assert_eq!(
            line(Became::Changed, "no flow"),
            "a.md: changed, replaced as urn:a (\"Lamps\", Markdown); not processed: no flow"
        );
        assert_eq!(line(Became::Unchanged, ""), "a.md: unchanged, is urn:a");
        let removed = Outcome::removed("x".into(), "urn:x".into());
        assert_eq!(removed.line(), "x: gone, removed urn:x");
        let refused = Outcome::refused("x".into(), "is empty".into());
        assert_eq!(refused.line(), "x: not added: is empty");
        assert_eq!(
            refused.json(),
            json!({"file": "x", "outcome": "refused", "error": "is empty"})
        );
        assert_eq!(outcome(Became::Added, "").json()["title"], "Lamps");
    }

    #[test]
    fn a_summary_counts_and_names_what_failed() {
        let mut summary = Summary::default();
        assert_eq!(summary.text(), "There is nothing to add.");
        summary.count(&outcome(Became::Added, ""));
        summary.count(&outcome(Became::Unchanged, ""));
        assert_eq!(summary.text(), "1 added, 1 unchanged.");
        summary.count(&Outcome::refused("x".into(), "is empty".into()));
        summary.fail("a.md", "2 records failed");
        assert_eq!(
            summary.text(),
            "1 added, 1 unchanged, 2 failed:\n  x: is empty\n  a.md: 2 records failed"
        );
        let mut warned = Summary::default();
        warned.count(&outcome(Became::Added, ""));
        warned.warn("a.md", "complete with 1 warning: no");
        let wanted = "1 added:\n  a.md: complete with 1 warning: no";
        assert_eq!((warned.text().as_str(), warned.failures()), (wanted, 0));
        for _ in 0..NAMED {
            summary.fail("y", "z");
        }
        assert!(summary.text().ends_with("\n  and 2 more"));
        assert_eq!(summary.json()["failed"], NAMED + 2);
    }
}
