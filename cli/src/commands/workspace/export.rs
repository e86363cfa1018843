//! `tg export-workspace`: a workspace into a bundle. What is large goes through files beside it, never
//! through memory.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};
use tg_schemas::Triple;

use super::bundle::{self, Member, config_path, graph_of, is_quoted};
use crate::args::{Common, Options, subject};
use crate::client::{Error, Http, Result};
use crate::commands::config::masked::take_secret;
use crate::commands::graph::{Pattern, each_batch, quad_line};
use crate::commands::library::listing;
use crate::fields::{counted, list, text};
use crate::registry::Command;
use crate::session::Session;

/// Triples a batch.
const BATCH: u64 = 1000;

subject!(
    file
    /// What is written.
    BundleFile,
    "Bundle to write, e.g. workspace.tgx",
    short = 'o',
    long = "output"
);

/// Arguments of `tg export-workspace`.
#[derive(Debug, Args)]
pub struct ExportWorkspace {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    output: BundleFile,
    /// Flow to ask for triples
    #[arg(short = 'f', long, default_value = "default", value_name = "ID")]
    flow_id: String,
    /// Export this collection, too, if it is not registered; may be given several times
    #[arg(short = 'c', long = "collection", value_name = "ID")]
    collections: Vec<String>,
    /// Only the configuration
    #[arg(long)]
    config_only: bool,
    /// Maximum number of triples of a collection
    #[arg(long, default_value_t = 1_000_000, value_name = "COUNT")]
    triples_limit: u64,
}

impl Command for ExportWorkspace {
    const NAME: &'static str = "export-workspace";
    const ABOUT: &'static str = "Save a workspace as a bundle";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        // A bundle that is not whole never bears the name asked for.
        let mut partial = self.output.path().as_os_str().to_owned();
        partial.push(".part");
        let partial = PathBuf::from(partial);
        match self.write(session, &partial).await {
            Ok((manifest, parts)) => {
                let replaced = self.output.path().exists();
                std::fs::rename(&partial, self.output.path())
                    .map_err(|error| Error::file(self.output.path(), error))?;
                let told = || {
                    let how = if replaced { " (replaced)" } else { "" };
                    let path = self.output.path().display();
                    format!("{} to {path}{how}.", summary(&manifest, parts))
                };
                session.out.show(&manifest, told)
            }
            Err(error) => {
                let _ = std::fs::remove_file(&partial);
                Err(error)
            }
        }
    }
}

impl ExportWorkspace {
    /// Returns the manifest, and how many of the documents are parts of others.
    async fn write(&self, session: &mut Session, path: &Path) -> Result<(Value, u64)> {
        let mut bundle = Bundle::create(path)?;
        let http = session.http()?;
        let reply = http.all("config", json!({"operation": "config"})).await?;
        let Some(Value::Object(mut config)) = reply.get("config").cloned() else {
            return Err(Error::Protocol("no config in the reply".to_owned()));
        };
        // A bundle lies in files and goes to others: it holds no credential, whoever makes it.
        let ask = json!({"operation": "config", "masked": true});
        let masked = http.all("config", ask).await?;
        let Some(Value::Object(masked)) = masked.get("config") else {
            return Err(Error::Protocol("no config in the reply".to_owned()));
        };
        let masked = take_secret(&mut config, masked);
        if !masked.is_empty() {
            let items = masked.join(", ");
            session
                .out
                .talk(format!("Left out, as a bundle holds no secrets: {items}"));
        }
        let items = bundle.config(&config)?;
        let mut manifest = json!({
            "format": bundle::FORMAT,
            "format_version": bundle::VERSION,
            "workspace": session.options.workspace.clone().unwrap_or_else(|| "default".to_owned()),
            "config_version": reply.get("version"),
            "exported_at": chrono::Utc::now().format("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "contents": {"config": true, "knowledge": !self.config_only},
            "config": {"items": items, "left_out": masked},
        });
        let mut parts = 0;
        if !self.config_only {
            let collections = self.registered(&http).await?;
            let mut triples = Map::new();
            for collection in &collections {
                let count = self.triples(session, &mut bundle, collection).await?;
                triples.insert(collection.clone(), json!(count));
            }
            let documents;
            (documents, parts) = self.documents(session, &http, &mut bundle).await?;
            manifest["knowledge"] =
                json!({"collections": collections, "documents": documents, "triples": triples});
        }
        let body = serde_json::to_vec_pretty(&manifest).unwrap_or_default();
        bundle.add(&Member::Manifest.path(), &body)?;
        bundle.finish()?;
        Ok((manifest, parts))
    }

    async fn registered(&self, http: &Http) -> Result<Vec<String>> {
        let request = json!({"operation": "list-collections"});
        let reply = http.all("collection-management", request).await?;
        let mut all: Vec<String> = list(&reply, "collections")
            .iter()
            .map(|one| text(one, "collection"))
            .chain(self.collections.iter().cloned())
            .collect();
        all.sort();
        all.dedup();
        Ok(all)
    }

    async fn triples(
        &self,
        session: &mut Session,
        bundle: &mut Bundle,
        collection: &str,
    ) -> Result<u64> {
        let pattern = Pattern {
            collection: collection.to_owned(),
            limit: self.triples_limit,
            ..Pattern::default()
        };
        let call = pattern.streamed(&self.flow_id, BATCH);
        let mut socket = session.socket().await?;
        let (mut plain, mut quoted) = (Spool::new()?, Spool::new()?);
        let (mut count, mut left) = (0, 0);
        let progress = session.out.progress(collection, None);
        each_batch(&mut socket, &call, |batch| {
            for triple in batch.iter().filter_map(Triple::from_api) {
                let graph = graph_of(collection, triple.g.as_deref());
                let to = match is_quoted(&triple) {
                    true => &mut quoted,
                    false => &mut plain,
                };
                match quad_line(&triple, &graph) {
                    Some(line) => {
                        to.write(&line)?;
                        count += 1;
                    }
                    None => left += 1,
                }
            }
            progress.inc(batch.len() as u64);
            Ok(())
        })
        .await?;
        progress.finish_and_clear();
        socket.close().await;
        for (spool, is_quoted) in [(plain, false), (quoted, true)] {
            let member = Member::Triples(collection.to_owned(), is_quoted);
            bundle.spooled(&member.path(), spool)?;
        }
        session.out.talk(format!(
            "Collection {collection}: {}",
            counted(count, "triple")
        ));
        if left > 0 {
            session.out.talk(format!(
                "  {left} triples cannot be written as RDF and were left out"
            ));
        }
        if count + left >= self.triples_limit {
            let text = "  as many as --triples-limit allows; there may be more";
            session.out.talk(text);
        }
        Ok(count)
    }

    async fn documents(
        &self,
        session: &mut Session,
        http: &Http,
        bundle: &mut Bundle,
    ) -> Result<(usize, u64)> {
        let documents = listing::documents(http, true).await?;
        let progress = session
            .out
            .progress("documents", Some(documents.len() as u64));
        for document in &documents {
            let id = text(document, "id");
            let said = bundle::to_bundle(document);
            let body = serde_json::to_vec_pretty(&said).unwrap_or_default();
            bundle.add(&Member::Metadata(id.clone()).path(), &body)?;
            let mut spool = Spool::new()?;
            let query = [("document-id", id.as_str())];
            let mut stream = http.get_stream("api/v1/document-stream", &query).await?;
            while let Some(bytes) = http.next_bytes(&mut stream).await? {
                spool.write(&bytes)?;
            }
            bundle.spooled_always(&Member::Content(id).path(), spool)?;
            progress.inc(1);
        }
        progress.finish_and_clear();
        let parts = documents
            .iter()
            .filter(|one| !text(one, "parent-id").is_empty());
        Ok((documents.len(), parts.count() as u64))
    }
}

/// What is in a bundle, `parts` of whose documents are parts of others.
fn summary(manifest: &Value, parts: u64) -> String {
    let items = counted(
        manifest["config"]["items"].as_u64().unwrap_or(0),
        "config item",
    );
    let Some(knowledge) = manifest.get("knowledge") else {
        return format!("Exported {items}");
    };
    let triples = knowledge["triples"].as_object();
    let triples: u64 = triples
        .into_iter()
        .flatten()
        .filter_map(|(_, count)| count.as_u64())
        .sum();
    let documents = knowledge["documents"].as_u64().unwrap_or(0);
    let with = match parts {
        0 => String::new(),
        parts => format!(" with {}", counted(parts, "part")),
    };
    format!(
        "Exported {items}, {} of {}, {}{with}",
        counted(triples, "triple"),
        counted(list(knowledge, "collections").len() as u64, "collection"),
        counted(documents.saturating_sub(parts), "document"),
    )
}

/// A bundle being written.
struct Bundle {
    path: PathBuf,
    tar: tar::Builder<GzEncoder<BufWriter<File>>>,
}

impl Bundle {
    fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).map_err(|error| Error::file(path, error))?;
        let packed = GzEncoder::new(BufWriter::new(file), Compression::default());
        Ok(Self {
            path: path.to_owned(),
            tar: tar::Builder::new(packed),
        })
    }

    /// One file for each item, with its name inside: the file's own name is for people.
    fn config(&mut self, config: &Map<String, Value>) -> Result<usize> {
        let mut count = 0;
        for (kind, rows) in config {
            for (key, value) in rows.as_object().into_iter().flatten() {
                let value = match value {
                    Value::String(text) => {
                        serde_json::from_slice(text.as_bytes()).unwrap_or_else(|_| value.clone())
                    }
                    other => other.clone(),
                };
                let entry = json!({"type": kind, "key": key, "value": value});
                let body = format!("{entry:#}");
                self.add(&config_path(kind, key), body.as_bytes())?;
                count += 1;
            }
        }
        Ok(count)
    }

    fn add(&mut self, name: &str, body: &[u8]) -> Result<()> {
        self.append(name, body.len() as u64, body)
    }

    /// Adds what was spooled, if that is anything.
    fn spooled(&mut self, name: &str, spool: Spool) -> Result<()> {
        match spool.length {
            0 => Ok(()),
            _ => self.spooled_always(name, spool),
        }
    }

    fn spooled_always(&mut self, name: &str, spool: Spool) -> Result<()> {
        let length = spool.length;
        let file = spool.rewound()?;
        self.append(name, length, std::io::BufReader::new(file))
    }

    fn append(&mut self, name: &str, length: u64, body: impl std::io::Read) -> Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(length);
        header.set_mode(0o644);
        header.set_mtime(u64::try_from(chrono::Utc::now().timestamp()).unwrap_or(0));
        let added = self.tar.append_data(&mut header, name, body);
        added.map_err(|error| Error::file(&self.path, error))
    }

    fn finish(self) -> Result<()> {
        let path = self.path;
        let failed = |error: std::io::Error| Error::file(&path, error);
        let packed = self.tar.into_inner().map_err(failed)?;
        let mut file = packed.finish().map_err(failed)?;
        file.flush().map_err(failed)?;
        file.get_ref().sync_all().map_err(failed)
    }
}

/// A file that is gone with its handle, for what must be measured before it is added.
struct Spool {
    file: BufWriter<File>,
    length: u64,
}

impl Spool {
    fn new() -> Result<Self> {
        let file = tempfile::tempfile().map_err(Error::Output)?;
        Ok(Self {
            file: BufWriter::new(file),
            length: 0,
        })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.length += bytes.len() as u64;
        self.file.write_all(bytes).map_err(Error::Output)
    }

    fn rewound(self) -> Result<File> {
        let mut file = self
            .file
            .into_inner()
            .map_err(|error| Error::Output(error.into_error()))?;
        file.seek(SeekFrom::Start(0)).map_err(Error::Output)?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_counts_what_is_in_the_bundle() {
        let manifest = json!({"config": {"items": 3}});
        assert_eq!(summary(&manifest, 0), "Exported 3 config items");
        let manifest = json!({"config": {"items": 3}, "knowledge": {"collections": ["a", "b"],
            "documents": 4, "triples": {"a": 5, "b": 6}}});
        let expected =
            "Exported 3 config items, 11 triples of 2 collections, 1 document with 3 parts";
        assert_eq!(summary(&manifest, 3), expected);
    }
}
