//! `tg import-workspace`: a bundle into a workspace. The bundle is read several times from its start and
//! never held: for what is said in it, for the triples, and for the documents of each level, parents first.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use flate2::bufread::GzDecoder;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::bundle::{self, Member, back, is_records};
use crate::args::{Common, Options};
use crate::client::{Error, Http, Result};
use crate::commands::graph::each_quad;
use crate::fields::{list, text, texts};
use crate::registry::Command;
use crate::session::Session;

/// From this size on a document goes in parts.
const WHOLE: u64 = 2 << 20;
/// Bytes of a part.
const PART: usize = 3 << 20;
/// Bytes of what is said in a bundle, each.
const SAID: u64 = 64 << 20;
/// Triples in one frame.
const FRAME: usize = 1000;
/// Items that may wait between the bundle and the gateway.
const AHEAD: usize = 4;

/// Arguments of `tg import-workspace`.
#[derive(Debug, Args)]
pub struct ImportWorkspace {
    #[command(flatten)]
    common: Common,
    /// Bundle to read
    #[arg(short = 'i', long, value_name = "FILE")]
    input: PathBuf,
    /// Flow to import and process with
    #[arg(short = 'f', long, default_value = "default", value_name = "ID")]
    flow_id: String,
    /// Replace items and documents that are there already
    #[arg(long)]
    overwrite: bool,
    /// Only the configuration
    #[arg(long)]
    config_only: bool,
    /// Process the documents that are imported
    #[arg(long)]
    process: bool,
    /// Collection to process them to
    #[arg(long, default_value = "default", value_name = "ID")]
    process_collection: String,
    /// Only say what would be imported
    #[arg(long)]
    dry_run: bool,
}

impl Command for ImportWorkspace {
    const NAME: &'static str = "import-workspace";
    const ABOUT: &'static str = "Put a bundle into a workspace";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let said = Said::read(&self.input).await?;
        said.check(&self.input)?;
        if session.options.workspace.is_none() {
            let from = text(&said.manifest, "workspace");
            session.options.workspace = Some(from).filter(|from| !from.is_empty());
        }
        let http = session.http()?;
        let mut done = Done::default();
        self.config(&http, &said, &mut done).await?;
        if !self.config_only {
            self.collections(&http, &said).await?;
            self.triples(session, &mut done).await?;
            self.documents(session, &http, &said, &mut done).await?;
        }
        let shown = json!({
            "config": done.items, "config-skipped": done.items_left, "triples": done.triples,
            "documents": done.documents, "documents-skipped": done.documents_left,
            "dry-run": self.dry_run,
        });
        let verb = if self.dry_run {
            "Would import"
        } else {
            "Imported"
        };
        session.out.show(&shown, || done.sentence(verb))
    }
}

/// What was imported, and what was there already.
#[derive(Debug, Default)]
struct Done {
    items: usize,
    items_left: usize,
    triples: u64,
    documents: usize,
    documents_left: usize,
}

impl Done {
    fn sentence(&self, verb: &str) -> String {
        format!(
            "{verb} {} config items ({} skipped), {} triples, {} documents ({} skipped).",
            self.items, self.items_left, self.triples, self.documents, self.documents_left
        )
    }
}

/// What a bundle says, without triples and contents.
#[derive(Debug, Default)]
struct Said {
    manifest: Value,
    config: Vec<Value>,
    documents: BTreeMap<String, Value>,
    /// Collections with triples.
    collections: BTreeSet<String>,
}

impl Said {
    async fn read(path: &Path) -> Result<Self> {
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
                        "is no workspace bundle: a member is too large",
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

    fn check(&self, path: &Path) -> Result<()> {
        let wrong = |why: String| Err(Error::file(path, why));
        if self.manifest.is_null() {
            return wrong("is no workspace bundle: manifest.json is missing".to_owned());
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
    fn items(&self) -> impl Iterator<Item = &Value> {
        self.config
            .iter()
            .filter(|item| !is_records(&text(item, "type")))
    }
}

impl ImportWorkspace {
    async fn config(&self, http: &Http, said: &Said, done: &mut Done) -> Result<()> {
        let mut known = BTreeSet::new();
        if !self.overwrite {
            let reply = http
                .service("config", json!({"operation": "config"}))
                .await?;
            let config = reply.get("config").and_then(Value::as_object);
            for (kind, rows) in config.into_iter().flatten() {
                let keys = rows.as_object().into_iter().flatten();
                known.extend(keys.map(|(key, _)| (kind.clone(), key.clone())));
            }
        }
        let mut values = Vec::new();
        for item in said.items() {
            let (kind, key) = (text(item, "type"), text(item, "key"));
            if known.contains(&(kind.clone(), key.clone())) {
                done.items_left += 1;
                continue;
            }
            // Stored as JSON text, as everybody does.
            values.push(json!({"type": kind, "key": key, "value": item["value"].to_string()}));
        }
        done.items = values.len();
        if !self.dry_run && !values.is_empty() {
            let request = json!({"operation": "put", "values": values});
            http.service("config", request).await?;
        }
        Ok(())
    }

    /// Makes the collections that are not there yet.
    async fn collections(&self, http: &Http, said: &Said) -> Result<()> {
        let request = json!({"operation": "list-collections"});
        let reply = http.service("collection-management", request).await?;
        let known: BTreeSet<String> = list(&reply, "collections")
            .iter()
            .map(|one| text(one, "collection"))
            .collect();
        let rows = said
            .config
            .iter()
            .filter(|item| text(item, "type") == "collection");
        let mut wanted: BTreeMap<String, Value> = rows
            .map(|item| (text(item, "key"), item["value"].clone()))
            .collect();
        for collection in &said.collections {
            wanted.entry(collection.clone()).or_default();
        }
        for (id, row) in wanted {
            if known.contains(&id) || self.dry_run {
                continue;
            }
            let request = json!({
                "operation": "update-collection",
                "collection": id,
                "name": text(&row, "name"),
                "description": text(&row, "description"),
                "tags": texts(&row, "tags"),
            });
            http.service("collection-management", request).await?;
        }
        Ok(())
    }

    async fn triples(&self, session: &Session, done: &mut Done) -> Result<()> {
        let mut items = Items::open(&self.input, |member| matches!(member, Member::Triples(..)));
        let progress = session.out.progress("triples", None);
        let mut import = None;
        let mut collection = String::new();
        while let Some(item) = items.next().await? {
            match item {
                Item::Begin(Member::Triples(of, _), _) => {
                    collection = of;
                    if !self.dry_run {
                        import = Some(session.import(&self.flow_id, "triples").await?);
                    }
                }
                Item::Triples(triples) => {
                    done.triples += triples.len() as u64;
                    progress.inc(triples.len() as u64);
                    let frame = json!({
                        "metadata": {"id": "workspace-import", "metadata": [], "collection": collection},
                        "triples": triples,
                    });
                    if let Some(import) = &mut import {
                        import.send(&frame).await?;
                    }
                }
                Item::End => {
                    if let Some(import) = import.take() {
                        import.finish().await?;
                    }
                }
                Item::Begin(..) | Item::Bytes(_) | Item::Skipped(_) => {}
            }
        }
        progress.finish_and_clear();
        Ok(())
    }

    async fn documents(
        &self,
        session: &mut Session,
        http: &Http,
        said: &Said,
        done: &mut Done,
    ) -> Result<()> {
        let request = json!({"operation": "list-documents", "include-children": true});
        let reply = http.service("librarian", request).await?;
        let existing: BTreeSet<String> = list(&reply, "document-metadatas")
            .iter()
            .map(|document| text(document, "id"))
            .collect();
        let mut left: BTreeSet<String> = said.documents.keys().cloned().collect();
        if !self.overwrite {
            let before = left.len();
            left.retain(|id| !existing.contains(id));
            done.documents_left = before - left.len();
        }
        while !left.is_empty() {
            let parent = |id: &String| text(&said.documents[id], "parent_id");
            let now: BTreeSet<String> = left
                .iter()
                .filter(|id| !left.contains(&parent(id)))
                .cloned()
                .collect();
            if now.is_empty() {
                let id = left.first().cloned().unwrap_or_default();
                let why = format!("document {id} is below itself");
                return Err(Error::file(&self.input, why));
            }
            left.retain(|id| !now.contains(id));
            if self.dry_run {
                done.documents += now.len();
                continue;
            }
            let level = Level {
                http,
                said,
                existing: &existing,
            };
            done.documents += level.add(session, &self.input, now).await?;
        }
        if self.process && !self.dry_run {
            self.start(http, said).await?;
        }
        Ok(())
    }

    /// Processes the documents that are nobody's part; pages and chunks come of them.
    async fn start(&self, http: &Http, said: &Said) -> Result<()> {
        for (id, document) in &said.documents {
            if !text(document, "parent_id").is_empty() {
                continue;
            }
            let request = json!({
                "operation": "add-processing",
                "processing-metadata": {
                    "id": format!("import of {id}"),
                    "document-id": id,
                    "time": chrono::Utc::now().timestamp(),
                    "flow": self.flow_id,
                    "collection": self.process_collection,
                    "tags": texts(document, "tags"),
                },
            });
            http.service("librarian", request).await?;
        }
        Ok(())
    }
}

/// Documents whose parents are there.
struct Level<'a> {
    http: &'a Http,
    said: &'a Said,
    existing: &'a BTreeSet<String>,
}

impl Level<'_> {
    async fn add(&self, session: &Session, path: &Path, wanted: BTreeSet<String>) -> Result<usize> {
        let progress = session.out.progress("documents", Some(wanted.len() as u64));
        let mut items = Items::open(
            path,
            move |member| matches!(member, Member::Content(id) if wanted.contains(id)),
        );
        let (mut count, mut taking) = (0, None);
        while let Some(item) = items.next().await? {
            match item {
                Item::Begin(Member::Content(id), length) => {
                    if self.existing.contains(&id) {
                        let request = json!({"operation": "remove-document", "document-id": id});
                        self.ask(request).await?;
                    }
                    taking = Some(self.begin(&id, length).await?);
                }
                Item::Bytes(bytes) => {
                    if let Some(taking) = &mut taking {
                        taking.bytes.extend(bytes);
                        self.flush(taking, false).await?;
                    }
                }
                Item::End => {
                    if let Some(mut taking) = taking.take() {
                        self.flush(&mut taking, true).await?;
                        count += 1;
                        progress.inc(1);
                    }
                }
                Item::Begin(..) | Item::Triples(_) | Item::Skipped(_) => {}
            }
        }
        progress.finish_and_clear();
        Ok(count)
    }

    async fn begin(&self, id: &str, length: u64) -> Result<Taking> {
        let document = bundle::to_library(&self.said.documents[id]);
        let mut upload = String::new();
        if length >= WHOLE {
            let request = json!({
                "operation": "begin-upload",
                "document-metadata": document,
                "total-size": length,
                "chunk-size": PART,
            });
            upload = text(&self.ask(request).await?, "upload-id");
            if upload.is_empty() {
                return Err(Error::Protocol("no upload-id".to_owned()));
            }
        }
        Ok(Taking {
            document,
            upload,
            index: 0,
            bytes: Vec::new(),
        })
    }

    /// Hands over what is there of a document; all of it at its end.
    async fn flush(&self, taking: &mut Taking, end: bool) -> Result<()> {
        if taking.upload.is_empty() {
            if !end {
                return Ok(());
            }
            let operation = match text(&taking.document, "parent-id").as_str() {
                "" => "add-document",
                _ => "add-child-document",
            };
            let request = json!({
                "operation": operation,
                "document-metadata": taking.document,
                "content": STANDARD.encode(&taking.bytes),
            });
            return self.ask(request).await.map(|_| ());
        }
        while taking.bytes.len() >= PART || (end && !taking.bytes.is_empty()) {
            let size = taking.bytes.len().min(PART);
            let part: Vec<u8> = taking.bytes.drain(..size).collect();
            let request = json!({
                "operation": "upload-chunk",
                "upload-id": taking.upload,
                "chunk-index": taking.index,
                "content": STANDARD.encode(part),
            });
            self.ask(request).await?;
            taking.index += 1;
        }
        if end {
            let request = json!({"operation": "complete-upload", "upload-id": taking.upload});
            self.ask(request).await?;
        }
        Ok(())
    }

    async fn ask(&self, request: Value) -> Result<Value> {
        self.http.service("librarian", request).await
    }
}

/// A document on its way into the library.
struct Taking {
    document: Value,
    /// Empty where the document goes whole.
    upload: String,
    index: u64,
    bytes: Vec<u8>,
}

/// A piece of a bundle.
enum Item {
    /// A wanted member of so many bytes begins.
    Begin(Member, u64),
    Bytes(Vec<u8>),
    Triples(Vec<Value>),
    End,
    /// A member that was not wanted.
    Skipped(Member),
}

/// One pass over a bundle, read on a thread of its own.
struct Items {
    items: mpsc::Receiver<Result<Item>>,
}

impl Items {
    fn open(path: &Path, wanted: impl Fn(&Member) -> bool + Send + 'static) -> Self {
        let (to, items) = mpsc::channel(AHEAD);
        let path = path.to_owned();
        tokio::task::spawn_blocking(move || {
            let pass = Pass {
                path: &path,
                to: &to,
            };
            if let Err(error) = pass.run(wanted) {
                let _ = to.blocking_send(Err(error));
            }
        });
        Self { items }
    }

    async fn next(&mut self) -> Result<Option<Item>> {
        self.items.recv().await.transpose()
    }
}

struct Pass<'a> {
    path: &'a Path,
    to: &'a mpsc::Sender<Result<Item>>,
}

impl Pass<'_> {
    /// `false`: nobody takes it any more.
    fn send(&self, item: Item) -> bool {
        self.to.blocking_send(Ok(item)).is_ok()
    }

    fn run(&self, wanted: impl Fn(&Member) -> bool) -> Result<()> {
        let failed = |error: std::io::Error| Error::file(self.path, error);
        let file = File::open(self.path).map_err(failed)?;
        let mut tar = tar::Archive::new(GzDecoder::new(BufReader::new(file)));
        for entry in tar.entries().map_err(failed)? {
            let mut entry = entry.map_err(failed)?;
            if !entry.header().entry_type().is_file() {
                continue;
            }
            let path = entry.path().map_err(failed)?.to_string_lossy().into_owned();
            let Some(member) = Member::read(&path) else {
                continue;
            };
            if !wanted(&member) {
                if !self.send(Item::Skipped(member)) {
                    return Ok(());
                }
                continue;
            }
            let is_triples = matches!(member, Member::Triples(..));
            let length = entry.size();
            let goes_on = self.send(Item::Begin(member, length))
                && match is_triples {
                    true => self.triples(entry, &path)?,
                    false => self.bytes(&mut entry)?,
                }
                && self.send(Item::End);
            if !goes_on {
                return Ok(());
            }
        }
        Ok(())
    }

    fn bytes(&self, entry: &mut impl Read) -> Result<bool> {
        loop {
            let mut bytes = Vec::new();
            let read = entry.by_ref().take(1 << 20).read_to_end(&mut bytes);
            read.map_err(|error| Error::file(self.path, error))?;
            if bytes.is_empty() {
                return Ok(true);
            }
            if !self.send(Item::Bytes(bytes)) {
                return Ok(false);
            }
        }
    }

    fn triples(&self, entry: impl Read, name: &str) -> Result<bool> {
        let mut batch = Vec::with_capacity(FRAME);
        let mut goes_on = true;
        each_quad(entry, name, self.path, |triple| {
            batch.push(back(triple).to_api());
            if batch.len() == FRAME {
                let full = std::mem::replace(&mut batch, Vec::with_capacity(FRAME));
                goes_on = self.send(Item::Triples(full));
            }
            goes_on
        })?;
        Ok(goes_on && (batch.is_empty() || self.send(Item::Triples(batch))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

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
