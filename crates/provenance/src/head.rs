//! The head of a day: one hash over the ends of all runs that ended on it, and the head that was signed before. Its text is
//! what is signed. Knows no key.

use sha2::{Digest, Sha256};

use crate::stable::text_hash;

/// First line of the text: nothing else that this project signs begins so.
const TITLE: &str = "threadgraph trace head 1";
/// In the place of the head before, where there is none.
const NONE: &str = "none";

/// A run that ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ended {
    /// Its question.
    pub run: String,
    /// Collection of its trace.
    pub collection: String,
    /// Entity hash of its end.
    pub hash: String,
}

/// SHA-256 over a line for each run, in the order in which they ended: the hash of its end, its question and its
/// collection, with a space between and a line feed behind.
#[derive(Debug, Clone, Default)]
pub struct Root(Sha256);

impl Root {
    /// The next run.
    pub fn add(&mut self, run: &Ended) {
        let line = format!("{} {} {}\n", run.hash, run.run, run.collection);
        self.0.update(line.as_bytes());
    }

    /// In hexadecimal.
    pub fn finish(self) -> String {
        hex::encode(self.0.finalize())
    }
}

/// What is signed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// The workspace.
    pub workspace: String,
    /// The day in UTC, `YYYY-MM-DD`.
    pub day: String,
    /// How many runs ended, as far as it was known when the head was signed.
    pub runs: u64,
    /// What [`Root`] makes of them.
    pub root: String,
    /// Hash of the head that was signed before in this workspace, of whatever day; empty for the first.
    pub previous: String,
    /// When it was signed: UTC, RFC 3339.
    pub signed_at: String,
    /// Id of the key.
    pub key: String,
}

/// A text is no head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadError;

impl Head {
    /// What is signed, as UTF-8.
    pub fn text(&self) -> String {
        let previous = match self.previous.as_str() {
            "" => NONE,
            hash => hash,
        };
        format!(
            "{TITLE}\nworkspace: {}\nday: {}\nruns: {}\nroot: {}\nprevious: {previous}\nsigned: {}\nkey: {}\n",
            self.workspace, self.day, self.runs, self.root, self.signed_at, self.key
        )
    }

    /// SHA-256 of the text in hexadecimal: what the next head names.
    pub fn hash(&self) -> String {
        text_hash(&self.text())
    }

    /// Reads a text.
    ///
    /// # Errors
    /// It is none that [`Head::text`] writes.
    pub fn read(text: &str) -> Result<Self, HeadError> {
        let mut lines = text.lines();
        if lines.next() != Some(TITLE) {
            return Err(HeadError);
        }
        let mut field = |name: &str| {
            let line = lines.next().ok_or(HeadError)?;
            let value = line.strip_prefix(name).ok_or(HeadError)?;
            value.strip_prefix(": ").map(str::to_owned).ok_or(HeadError)
        };
        let head = Self {
            workspace: field("workspace")?,
            day: field("day")?,
            runs: field("runs")?.parse().map_err(|_| HeadError)?,
            root: field("root")?,
            previous: field("previous").map(|hash| match hash.as_str() {
                NONE => String::new(),
                _ => hash,
            })?,
            signed_at: field("signed")?,
            key: field("key")?,
        };
        match head.text() == text {
            true => Ok(head),
            false => Err(HeadError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_as_it_was_written_and_no_other_is() {
        let head = Head {
            workspace: "acme".into(),
            day: "2026-11-25".into(),
            runs: 2,
            root: "ab".into(),
            previous: String::new(),
            signed_at: "2026-11-26T00:10:00Z".into(),
            key: "0123456789abcdef".into(),
        };
        let text = head.text();
        assert_eq!(
            text,
            "threadgraph trace head 1\nworkspace: acme\nday: 2026-11-25\nruns: 2\nroot: ab\nprevious: none\n\
             signed: 2026-11-26T00:10:00Z\nkey: 0123456789abcdef\n"
        );
        assert_eq!(Head::read(&text), Ok(head.clone()));
        let later = Head {
            previous: head.hash(),
            ..head
        };
        assert_eq!(Head::read(&later.text()), Ok(later));
        for other in [
            String::new(),
            text.replace("head 1", "head 2"),
            text.replace("runs: 2", "runs: two"),
            text.replace("runs: 2", "runs: 02"),
            format!("{text}more\n"),
            text.trim_end().to_owned(),
        ] {
            assert_eq!(Head::read(&other), Err(HeadError), "{other}");
        }
    }

    #[test]
    fn the_order_of_runs_counts() {
        let ended = |hash: &str| Ended {
            run: "urn:r".into(),
            collection: "default".into(),
            hash: hash.into(),
        };
        let (a, b) = (ended("a"), ended("b"));
        let root_of = |runs: [&Ended; 2]| {
            let mut root = Root::default();
            runs.into_iter().for_each(|run| root.add(run));
            root.finish()
        };
        assert_ne!(root_of([&a, &b]), root_of([&b, &a]));
        let lines = "a urn:r default\nb urn:r default\n";
        assert_eq!(root_of([&a, &b]), text_hash(lines));
    }
}
