//! What a bundle says of itself, its configuration and its documents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::reading::{Item, Items};
use crate::client::{Error, Result};
use crate::commands::workspace::bundle::{self, Member, is_records};
use crate::fields::text;

/// Most bytes of a member that says something.
const SAID: u64 = 64 << 20;

/// What a bundle says, without triples and contents.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) manifest: Value,
    pub(super) config: Vec<Value>,
    pub(super) documents: BTreeMap<String, Value>,
    /// Collections with triples.
    pub(super) collections: BTreeSet<String>,
}

impl Said {
    pub(super) async fn read(path: &Path) -> Result<Self> {
        let mut said = Self::default();
        let mut items = Items::open(path, |member| {
            !matches!(member, Member::Content(_) | Member::Triples(..))
        });
        let mut member = None;
        let mut body = Vec::new();
        while let Some(item) = items.next().await? {
            match item {
                Item::Begin(_, length) if length > SAID => {
                    return Err(Error::file(
                        path,
                        "is not a workspace bundle: a member is too large",
                    ));
                }
                Item::Begin(begun, _) => member = Some(begun),
                Item::Bytes(bytes) => body.extend(bytes),
                Item::Triples(_) => {}
                Item::Skipped(Member::Triples(collection, _)) => {
                    said.collections.insert(collection);
                }
                Item::Skipped(_) => {}
                Item::End => {
                    let value: Value =
                        serde_json::from_slice(&body).map_err(|error| Error::file(path, error))?;
                    body.clear();
                    match member.take() {
                        Some(Member::Manifest) => said.manifest = value,
                        Some(Member::Config) => said.config.push(value),
                        Some(Member::Metadata(id)) => {
                            said.documents.insert(id, value);
                        }
                        _ => {}
                    }
                }
            }
        }
        Ok(said)
    }

    pub(super) fn check(&self, path: &Path) -> Result<()> {
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

    /// Config items that may go to another workspace.
    pub(super) fn items(&self) -> impl Iterator<Item = &Value> {
        self.config
            .iter()
            .filter(|item| !is_records(&text(item, "type")))
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
        let long = format!("knowledge/library/{}.meta.json", "d".repeat(150));
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
            (&long, r#"{"id":"d"}"#),
            ("knowledge/library/x.content", "content"),
            (
                "knowledge/c/triples.nq",
                "<urn:s> <urn:p> \"o\"@en <urn:trustgraph:collection:c> .\n",
            ),
        ]);
        let said = Said::read(&path).await.expect("read");
        said.check(&path).expect("a bundle");
        let items: Vec<String> = said.items().map(|item| text(item, "type")).collect();
        assert_eq!(items, ["prompt"]);
        assert!(said.documents.contains_key(&"d".repeat(150)));
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
        let said = Said::read(&path).await.expect("read");
        let error = said.check(&path).expect_err("refused").to_string();
        assert!(error.contains("version 9"), "{error}");
        let (_folder, path) = bundle(&[("other", "x")]);
        let said = Said::read(&path).await.expect("read");
        assert!(said.check(&path).is_err());
        std::fs::write(&path, "no gzip").expect("written");
        assert!(Said::read(&path).await.is_err());
    }
}
