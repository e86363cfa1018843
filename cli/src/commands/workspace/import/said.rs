//! What a bundle says of itself, its configuration and its documents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::done::Failed;
use super::reading::{Item, Items};
use crate::client::{Error, Result};
use crate::commands::workspace::bundle::{self, Member, is_records};
use crate::fields::text;

/// Most bytes of a member that says something.
const SAID: u64 = 64 << 20;
/// Digits of the short name of a content.
const SHORT: usize = 12;

/// What a bundle says, without triples and contents, and what of it cannot be imported.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) manifest: Value,
    pub(super) config: Vec<Value>,
    pub(super) documents: BTreeMap<String, Value>,
    /// A short name of each document's content: the beginning of its hash.
    pub(super) contents: BTreeMap<String, String>,
    /// The hash of each document's content, SHA-256 in hexadecimal digits.
    pub(super) hashes: BTreeMap<String, String>,
    /// Collections with triples.
    pub(super) collections: BTreeSet<String>,
    /// Configuration and triples that cannot be imported.
    pub(super) bad: Vec<Failed>,
    /// Documents that cannot be imported.
    pub(super) bad_documents: Vec<Failed>,
}

impl Said {
    /// Reads a bundle to its end. What is wrong with a part of it is noted.
    ///
    /// # Errors
    /// [`Error::File`] where it is no bundle or ends early.
    pub(super) async fn read(path: &Path) -> Result<Self> {
        let mut said = Self::default();
        let mut items = Items::open(path, |_| true);
        let mut part = Part::default();
        while let Some(item) = items.next().await.map_err(|error| untouched(path, error))? {
            match item {
                Item::Begin(member, length) => part = Part::begin(member, length),
                Item::Bytes(bytes) => part.take(bytes),
                Item::Bad(why) => part.bad(why),
                Item::End => said.add(std::mem::take(&mut part)),
                Item::Triples(_) => {}
            }
        }
        said.check(path)?;
        said.sort_out();
        Ok(said)
    }

    /// A part that is read to its end.
    fn add(&mut self, part: Part) {
        let Some(member) = part.member else {
            return;
        };
        match member {
            Member::Content(id) => {
                let hash = hex::encode(part.hash.finalize());
                self.contents.insert(id.clone(), hash[..SHORT].to_owned());
                self.hashes.insert(id, hash);
            }
            Member::Triples(collection, _) => {
                if let Some(first) = part.first_bad {
                    let what = format!("triples of collection {collection}");
                    let why = format!("{} lines cannot be read, the first: {first}", part.bad);
                    self.bad.push(Failed::new(what, why));
                }
                self.collections.insert(collection);
            }
            Member::Manifest | Member::Config(_) | Member::Metadata(_) => {
                self.add_said(member, part.length, &part.body);
            }
        }
    }

    /// A part that says something.
    fn add_said(&mut self, member: Member, length: u64, body: &[u8]) {
        let read = match length > SAID {
            true => Err(format!("has {length} bytes, more than {SAID}")),
            false => serde_json::from_slice::<Value>(body).map_err(|error| error.to_string()),
        };
        let read = read.and_then(|value| match value.is_object() {
            true => Ok(value),
            false => Err("is not a JSON object".to_owned()),
        });
        match (member, read) {
            (Member::Manifest, Ok(value)) => self.manifest = value,
            (Member::Config(_), Ok(value)) => self.config.push(value),
            (Member::Metadata(id), Ok(value)) if text(&value, "id") == id => {
                self.documents.insert(id, value);
            }
            (Member::Metadata(id), Ok(_)) => {
                let why = "what is said of it is of another document";
                self.bad_documents.push(Failed::new(id, why));
            }
            (Member::Metadata(id), Err(why)) => self.bad_documents.push(Failed::new(id, why)),
            (member, Err(why)) => self.bad.push(Failed::new(member.path(), why)),
            (Member::Content(_) | Member::Triples(..), Ok(_)) => {}
        }
    }

    fn check(&self, path: &Path) -> Result<()> {
        let wrong = |why: String| Err(Error::file(path, why));
        if self.manifest.is_null() {
            return wrong("is not a workspace bundle: it has no manifest.json".to_owned());
        }
        let format = text(&self.manifest, "format");
        if format != bundle::FORMAT {
            return wrong(format!("has the unknown format '{format}'"));
        }
        let version = self.manifest["format_version"].as_i64().unwrap_or(0);
        if version > bundle::VERSION {
            return wrong(format!(
                "has version {version}; this program knows {}",
                bundle::VERSION
            ));
        }
        Ok(())
    }

    /// Leaves documents that can be imported: those with a content, and none that is its own ancestor.
    fn sort_out(&mut self) {
        let mut bad = Vec::new();
        for id in self.documents.keys() {
            if !self.contents.contains_key(id) {
                bad.push(Failed::new(id, "the bundle does not hold its content"));
            }
        }
        let mut left: BTreeSet<String> = self.documents.keys().cloned().collect();
        loop {
            let now = level(&self.documents, &left);
            if now.is_empty() {
                break;
            }
            left.retain(|id| !now.contains(id));
        }
        bad.extend(
            left.into_iter()
                .map(|id| Failed::new(id, "is its own ancestor")),
        );
        for failed in bad {
            if self.documents.remove(&failed.what).is_some() {
                self.bad_documents.push(failed);
            }
        }
    }

    /// Config items that may go to another workspace.
    pub(super) fn items(&self) -> impl Iterator<Item = &Value> {
        self.config
            .iter()
            .filter(|item| !is_records(&text(item, "type")))
    }
}

/// Those of the documents that are left whose parents are not among them.
pub(super) fn level(
    documents: &BTreeMap<String, Value>,
    left: &BTreeSet<String>,
) -> BTreeSet<String> {
    let is_first = |id: &&String| !left.contains(&text(&documents[*id], "parent_id"));
    left.iter().filter(is_first).cloned().collect()
}

/// The bundle is read in whole before anything else happens.
fn untouched(path: &Path, error: Error) -> Error {
    match error {
        Error::File { reason, .. } => Error::file(path, format!("{reason}; nothing was imported")),
        other => other,
    }
}

/// A part of the bundle on its way.
#[derive(Default)]
struct Part {
    member: Option<Member>,
    length: u64,
    /// What it says, if it says something.
    body: Vec<u8>,
    hash: Sha256,
    bad: u64,
    first_bad: Option<String>,
}

impl Part {
    fn begin(member: Member, length: u64) -> Self {
        Self {
            member: Some(member),
            length,
            ..Self::default()
        }
    }

    fn take(&mut self, bytes: Vec<u8>) {
        match self.member {
            Some(Member::Content(_)) => self.hash.update(&bytes),
            _ if self.length > SAID => {}
            _ => self.body.extend(bytes),
        }
    }

    fn bad(&mut self, why: String) {
        self.bad += 1;
        self.first_bad.get_or_insert(why);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::PathBuf;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use serde_json::json;

    use super::*;

    fn bundle(members: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("w.tgx");
        let file = File::create(&path).expect("created");
        let mut tar = tar::Builder::new(GzEncoder::new(file, Compression::fast()));
        for (name, body) in members {
            let mut header = tar::Header::new_gnu();
            header.set_size(body.len() as u64);
            header.set_mode(0o644);
            let added = tar.append_data(&mut header, name, body.as_bytes());
            added.expect("added");
        }
        let packed = tar.into_inner().expect("written");
        packed.finish().expect("written");
        (folder, path)
    }

    #[tokio::test]
    async fn a_bundle_is_read_without_its_contents() {
        let id = "d".repeat(150);
        let long = format!("knowledge/library/{id}.meta.json");
        let content = format!("knowledge/library/{id}.content");
        let metadata = json!({"id": id}).to_string();
        let (_folder, path) = bundle(&[
            (
                "manifest.json",
                r#"{"format":"tgx","format_version":1,"workspace":"w"}"#,
            ),
            (
                "config/prompt/a.json",
                r#"{"type":"prompt","key":"a","value":{"x":1}}"#,
            ),
            (
                "config/flow/f.json",
                r#"{"type":"flow","key":"f","value":{}}"#,
            ),
            (&long, &metadata),
            (&content, "content"),
            (
                "knowledge/c/triples.nq",
                "<urn:s> <urn:p> \"o\"@en <urn:trustgraph:collection:c> .\n",
            ),
        ]);
        let said = Said::read(&path).await.expect("read");
        let items: Vec<String> = said.items().map(|item| text(item, "type")).collect();
        assert_eq!(items, ["prompt"]);
        assert!(said.documents.contains_key(&id));
        assert!(said.bad.is_empty() && said.bad_documents.is_empty());
        assert!(said.collections.contains("c"));

        let mut items = Items::open(&path, |member| matches!(member, Member::Triples(..)));
        let mut triples = Vec::new();
        while let Some(item) = items.next().await.expect("read") {
            if let Item::Triples(more) = item {
                triples.extend(more);
            }
        }
        let object = json!({"t": "l", "v": "o", "ln": "en"});
        assert_eq!(triples.len(), 1);
        assert_eq!(triples[0]["o"], object);
        assert!(triples[0].get("g").is_none());
    }

    #[tokio::test]
    async fn what_is_no_bundle_is_refused() {
        let (_folder, path) =
            bundle(&[("manifest.json", r#"{"format":"tgx","format_version":9}"#)]);
        let error = Said::read(&path).await.expect_err("refused").to_string();
        assert!(error.contains("version 9"), "{error}");
        let (_folder, path) = bundle(&[("other", "x")]);
        assert!(Said::read(&path).await.is_err());
        std::fs::write(&path, "no gzip").expect("written");
        assert!(Said::read(&path).await.is_err());
    }

    #[tokio::test]
    async fn what_is_wrong_with_a_part_is_noted() {
        let (_folder, path) = bundle(&[
            ("manifest.json", r#"{"format":"tgx","format_version":1}"#),
            (
                "config/prompt/good.json",
                r#"{"type":"prompt","key":"good","value":1}"#,
            ),
            ("config/prompt/bad.json", "{"),
            (
                "knowledge/c/triples.nq",
                "<urn:s> <urn:p> \"1\" .\n<urn:s> nonsense\n<urn:s> <urn:p> \"2\" .\n",
            ),
            ("knowledge/library/good.meta.json", r#"{"id":"good"}"#),
            ("knowledge/library/good.content", "x"),
            ("knowledge/library/empty.meta.json", r#"{"id":"empty"}"#),
            ("knowledge/library/torn.meta.json", r#"{"id":"#),
            (
                "knowledge/library/one.meta.json",
                r#"{"id":"one","parent_id":"two"}"#,
            ),
            ("knowledge/library/one.content", "x"),
            (
                "knowledge/library/two.meta.json",
                r#"{"id":"two","parent_id":"one"}"#,
            ),
            ("knowledge/library/two.content", "x"),
        ]);
        let said = Said::read(&path).await.expect("read");
        assert_eq!(said.items().count(), 1);
        assert_eq!(said.documents.keys().collect::<Vec<_>>(), ["good"]);
        let bad: Vec<&str> = said.bad.iter().map(|bad| bad.what.as_str()).collect();
        assert_eq!(bad, ["config/prompt/bad.json", "triples of collection c"]);
        assert!(
            said.bad[1].why.starts_with("1 lines cannot be read"),
            "{:?}",
            said.bad
        );
        let bad = said.bad_documents.iter().map(|bad| bad.what.as_str());
        assert_eq!(bad.collect::<Vec<_>>(), ["torn", "empty", "one", "two"]);

        let mut items = Items::open(&path, |member| matches!(member, Member::Triples(..)));
        let mut triples = 0;
        while let Some(item) = items.next().await.expect("read") {
            if let Item::Triples(more) = item {
                triples += more.len();
            }
        }
        assert_eq!(triples, 2);
    }

    #[tokio::test]
    async fn a_bundle_that_is_cut_off_is_refused_as_a_whole() {
        let (_folder, path) = bundle(&[
            ("manifest.json", r#"{"format":"tgx","format_version":1}"#),
            ("knowledge/library/d.meta.json", r#"{"id":"d"}"#),
            ("knowledge/library/d.content", "some content"),
        ]);
        let whole = std::fs::read(&path).expect("read");
        for length in 1..whole.len() {
            std::fs::write(&path, &whole[..length]).expect("written");
            assert!(
                Said::read(&path).await.is_err(),
                "{length} of {}",
                whole.len()
            );
        }
    }
}
