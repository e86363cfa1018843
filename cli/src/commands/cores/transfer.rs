//! Cores to and from files: `tg get-kg-core`, `tg put-kg-core`, `tg get-de-core`, `tg put-de-core`.
//!
//! The files are those of the official commands. What only this system knows of vectors (chunk, types,
//! attributes, model) goes in under keys that others pass over.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use tg_core_file::msgpack;
use tg_core_file::record::{to_put, to_record};

use super::SERVICE;
use super::file::Records;
use crate::args::{Common, Options};
use crate::client::{Call, Error, Result, Socket};
use crate::registry::Command;
use crate::session::Session;

/// Records put side by side.
const WINDOW: usize = 10;
/// Bytes of them.
const BYTES: usize = 16 << 20;

/// Arguments of `tg get-kg-core`.
#[derive(Debug, Args)]
pub struct GetKgCore {
    #[command(flatten)]
    common: Common,
    /// Core
    #[arg(long, visible_alias = "identifier", value_name = "ID")]
    id: String,
    /// File to write
    #[arg(short = 'o', long, value_name = "FILE")]
    output: PathBuf,
}

impl Command for GetKgCore {
    const NAME: &'static str = "get-kg-core";
    const ABOUT: &'static str = "Save a knowledge core with its documents to a file";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        get(session, "get-kg-core", &self.id, &self.output).await
    }
}

/// Arguments of `tg get-de-core`.
#[derive(Debug, Args)]
pub struct GetDeCore {
    #[command(flatten)]
    common: Common,
    /// Core
    #[arg(long, visible_alias = "identifier", value_name = "ID")]
    id: String,
    /// File to write
    #[arg(short = 'o', long, value_name = "FILE")]
    output: PathBuf,
}

impl Command for GetDeCore {
    const NAME: &'static str = "get-de-core";
    const ABOUT: &'static str = "Save a core of document embeddings to a file";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        get(session, "get-de-core", &self.id, &self.output).await
    }
}

/// Arguments of `tg put-kg-core`.
#[derive(Debug, Args)]
pub struct PutKgCore {
    #[command(flatten)]
    common: Common,
    /// Core; it takes this name, whatever the file says
    #[arg(long, visible_alias = "identifier", value_name = "ID")]
    id: String,
    /// File to read
    #[arg(short = 'i', long, value_name = "FILE")]
    input: PathBuf,
}

impl Command for PutKgCore {
    const NAME: &'static str = "put-kg-core";
    const ABOUT: &'static str = "Put a knowledge core with its documents from a file";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        put(session, "put-kg-core", &self.id, &self.input).await
    }
}

/// Arguments of `tg put-de-core`.
#[derive(Debug, Args)]
pub struct PutDeCore {
    #[command(flatten)]
    common: Common,
    /// Core; it takes this name, whatever the file says
    #[arg(long, visible_alias = "identifier", value_name = "ID")]
    id: String,
    /// File to read
    #[arg(short = 'i', long, value_name = "FILE")]
    input: PathBuf,
}

impl Command for PutDeCore {
    const NAME: &'static str = "put-de-core";
    const ABOUT: &'static str = "Put a core of document embeddings from a file";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        put(session, "put-de-core", &self.id, &self.input).await
    }
}

/// What went over, by kind of record.
type Counts = BTreeMap<&'static str, u64>;

async fn get(session: &mut Session, operation: &str, id: &str, output: &Path) -> Result<()> {
    // A file that is not whole never bears the name asked for.
    let mut partial = output.as_os_str().to_owned();
    partial.push(".part");
    let partial = PathBuf::from(partial);
    let outcome = save(session, operation, id, &partial).await;
    match outcome {
        Ok(counts) => {
            std::fs::rename(&partial, output).map_err(|error| Error::file(output, error))?;
            done(session, "Got", id, &counts)
        }
        Err(error) => {
            let _ = std::fs::remove_file(&partial);
            Err(error)
        }
    }
}

async fn save(session: &Session, operation: &str, id: &str, path: &Path) -> Result<Counts> {
    let mut socket = session.socket().await?;
    let call = Call::global(SERVICE, json!({"operation": operation, "id": id}));
    let mut replies = socket.start(&call).await?;
    let mut file = None;
    let mut counts = Counts::new();
    let failed = |error: std::io::Error| Error::file(path, error);
    let progress = session.out.progress("records", None);
    let mut bytes = Vec::new();
    while let Some(reply) = replies.next().await? {
        // Nothing is created for a core that does not exist.
        let file = match &mut file {
            Some(file) => file,
            None => file.insert(BufWriter::new(File::create(path).map_err(failed)?)),
        };
        let Some(record) = reply.as_object().and_then(to_record) else {
            continue;
        };
        bytes.clear();
        msgpack::encode(&record, &mut bytes);
        file.write_all(&bytes).map_err(failed)?;
        count(&mut counts, &record);
        progress.inc(1);
    }
    progress.finish_and_clear();
    let file = file.ok_or_else(|| Error::Protocol("no reply".to_owned()))?;
    let file = file
        .into_inner()
        .map_err(|error| Error::file(path, error.error()))?;
    file.sync_all().map_err(failed)?;
    Ok(counts)
}

async fn put(session: &mut Session, operation: &str, id: &str, input: &Path) -> Result<()> {
    let mut records = Records::open(input)?;
    let mut socket = session.socket().await?;
    let progress = session.out.progress("records", None);
    let mut counts = Counts::new();
    let (mut window, mut bytes) = (Vec::new(), 0);
    while let Some((record, size)) = records.next()? {
        let number = record.get(0).cloned().unwrap_or(Value::Null);
        let body = to_put(record, id).map_err(|fault| records.wrong(fault.message))?;
        if body.get("operation") != Some(&json!(operation)) {
            return Err(records.wrong(misplaced(operation)));
        }
        // A document follows its metadata, a child its parent; everything else is in no order.
        let in_order = body.keys().any(|key| key.starts_with("library"));
        if in_order || window.len() == WINDOW || bytes + size > BYTES {
            progress.inc(window.len() as u64);
            ask(&mut socket, &mut window).await?;
            bytes = 0;
        }
        count(&mut counts, &json!([number]));
        window.push(Call::global(SERVICE, Value::Object(body)));
        bytes += size;
        if in_order {
            progress.inc(1);
            ask(&mut socket, &mut window).await?;
            bytes = 0;
        }
    }
    ask(&mut socket, &mut window).await?;
    progress.finish_and_clear();
    done(session, "Put", id, &counts)
}

async fn ask(socket: &mut Socket, window: &mut Vec<Call>) -> Result<()> {
    for outcome in socket.ask_all(window).await? {
        outcome?;
    }
    window.clear();
    Ok(())
}

fn misplaced(operation: &str) -> &'static str {
    match operation {
        "put-kg-core" => "holds document embeddings; put them with tg put-de-core",
        _ => "holds no document embeddings; put it with tg put-kg-core",
    }
}

fn count(counts: &mut Counts, record: &Value) {
    let kind = match record.get(0).and_then(Value::as_str) {
        Some("t") => "triples",
        Some("ge") => "graph-embeddings",
        Some("de") => "document-embeddings",
        Some("lm") => "library-metadata",
        Some("lb") => "library-blob",
        _ => return,
    };
    *counts.entry(kind).or_default() += 1;
}

fn done(session: &mut Session, what: &str, id: &str, counts: &Counts) -> Result<()> {
    let shown = json!({"id": id, "records": counts});
    session.out.show(&shown, || sentence(what, counts))
}

fn sentence(what: &str, counts: &Counts) -> String {
    if counts.is_empty() {
        return format!("{what}: nothing.");
    }
    let named: Vec<String> = counts
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    format!("{what}: {} records.", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_counted_by_kind() {
        let mut counts = Counts::new();
        for tag in ["t", "ge", "t", "lm", "zz"] {
            count(&mut counts, &json!([tag, {}]));
        }
        assert_eq!(
            sentence("Put", &counts),
            "Put: 1 graph-embeddings, 1 library-metadata, 2 triples records."
        );
        assert_eq!(sentence("Got", &Counts::new()), "Got: nothing.");
    }
}
