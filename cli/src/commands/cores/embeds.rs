//! `tg save-doc-embeds` and `tg load-doc-embeds`: vectors of chunks as they pass through a flow, to a file and
//! from one.
//!
//! Records are `["de", {"m": metadata, "c": [{"c": chunk, "i": chunk, "v": vector}]}]`: older commands know a
//! chunk as `c`, files of cores as `i`, so either reads what is written here.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tg_schemas::limits;

use super::file::Records;
use super::partial::{Partial, Writer};
use crate::args::{InFlow, Options, SourceFile, TargetFile};
use crate::client::{Error, Passed, Result, Settled};
use crate::commands::collections::make_known;
use crate::fields::{list, text};
use crate::files::{Allowance, Bounded};
use crate::registry::Command;
use crate::session::Session;

/// The interface of a flow that vectors of chunks go through.
const KIND: &str = "document-embeddings";
/// Longest record of a JSON file, in bytes; the gateway takes no longer frame.
const LONGEST: u64 = limits::SOCKET_ANSWER as u64;

/// How records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Msgpack,
    Json,
}

/// Arguments of `tg save-doc-embeds`.
#[derive(Debug, Args)]
pub struct SaveDocEmbeds {
    #[command(flatten)]
    flow: InFlow,
    #[command(flatten)]
    output: TargetFile,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Msgpack)]
    format: Format,
    /// Only vectors of this collection [default: all]
    #[arg(short = 'C', long, value_name = "ID")]
    collection: Option<String>,
    /// End after so many seconds in which nothing passed [default: go on until Ctrl-C or the flow's end]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    idle: Option<u64>,
    /// End after so many records
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

impl Command for SaveDocEmbeds {
    const NAME: &'static str = "save-doc-embeds";
    const ABOUT: &'static str = "Save the document embeddings that pass through a flow";

    fn options(&self) -> Options {
        Options::from(&self.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let collection = self.collection.as_deref();
        let mut export = session.export(&self.flow.flow_id, KIND, collection).await?;
        let partial = Partial::of(self.output.path());
        let mut file = partial.create()?;
        session
            .out
            .talk("Listening; Ctrl-C ends it and completes the file.");
        let progress = session.out.progress("records", None);
        let mut counts = Counts::default();
        let outcome = loop {
            let next = match self.idle {
                Some(seconds) => {
                    let wait = Duration::from_secs(seconds);
                    match tokio::time::timeout(wait, export.next()).await {
                        Ok(next) => next,
                        Err(_) => break Ok(()),
                    }
                }
                None => export.next().await,
            };
            match next {
                Ok(Passed::Record(frame)) => {
                    // Other gateways do not choose for us.
                    let of = text(&frame["metadata"], "collection");
                    if collection.is_some_and(|wanted| wanted != of) {
                        continue;
                    }
                    if let Err(error) = self.write(&mut file, &frame, &mut counts) {
                        break Err(error);
                    }
                    progress.inc(1);
                    if self.count == Some(counts.records) {
                        break Ok(());
                    }
                }
                Ok(Passed::Ended | Passed::Interrupted) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        progress.finish_and_clear();
        // What passed is kept, but only what ended as it should bears the name asked for.
        file.end()?;
        if let Err(error) = outcome {
            session.out.talk(format!(
                "  {} records are in {}",
                counts.records,
                partial.path().display()
            ));
            return Err(error);
        }
        partial.complete()?;
        export.close().await;
        counts.show(session, "Saved")
    }
}

impl SaveDocEmbeds {
    fn write(&self, file: &mut Writer, frame: &Value, counts: &mut Counts) -> Result<()> {
        let record = to_record(frame);
        counts.see(&record);
        match self.format {
            Format::Msgpack => file.msgpack(&record),
            Format::Json => file.json(&record),
        }
    }
}

/// Arguments of `tg load-doc-embeds`.
#[derive(Debug, Args)]
pub struct LoadDocEmbeds {
    #[command(flatten)]
    flow: InFlow,
    #[command(flatten)]
    input: SourceFile,
    /// How it is written
    #[arg(long, value_enum, default_value_t = Format::Msgpack)]
    format: Format,
    /// Collection to load into [default: what the file says]
    #[arg(short = 'C', long, value_name = "ID")]
    collection: Option<String>,
}

impl Command for LoadDocEmbeds {
    const NAME: &'static str = "load-doc-embeds";
    const ABOUT: &'static str = "Load saved document embeddings through a flow";

    fn options(&self) -> Options {
        Options::from(&self.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut source = Source::open(self.input.path(), self.format)?;
        if let Some(collection) = &self.collection {
            make_known(session, collection).await?;
        }
        let mut import = session.import(&self.flow.flow_id, KIND).await?;
        let progress = session.out.progress("records", None);
        let mut counts = Counts::default();
        let outcome = async {
            while let Some(record) = source.next()? {
                let frame = to_frame(&record, self.collection.as_deref());
                let frame = frame.map_err(|why| {
                    let place = format!("record {}: {why}", counts.records + 1);
                    Error::file(self.input.path(), place)
                })?;
                import.send(&frame).await?;
                counts.see(&record);
                progress.inc(1);
            }
            import.end().await
        }
        .await;
        progress.finish_and_clear();
        if let (Err(_), Some(confirmed)) = (&outcome, import.confirmed()) {
            session.out.talk(format!(
                "  {confirmed} of {} vectors sent were confirmed",
                counts.chunks
            ));
        }
        outcome?;
        let settled = import.into_settled();
        session.tell_settled(settled.as_ref(), "vectors");
        counts.show_settled(session, settled.as_ref())?;
        settled.map_or(Ok(()), |settled| settled.check("vectors"))
    }
}

/// What went over.
#[derive(Debug, Default)]
struct Counts {
    records: u64,
    chunks: usize,
}

impl Counts {
    fn see(&mut self, record: &Value) {
        self.records += 1;
        self.chunks += list(&record[1], "c").len();
    }

    fn show(&self, session: &mut Session, verb: &str) -> Result<()> {
        let shown = json!({"records": self.records, "chunks": self.chunks});
        session.out.show(&shown, || self.text(verb))
    }

    fn show_settled(&self, session: &mut Session, settled: Option<&Settled>) -> Result<()> {
        let shown = json!({"records": self.records, "chunks": self.chunks,
            "settled": settled.map(Settled::show)});
        session.out.show(&shown, || self.text("Loaded"))
    }

    fn text(&self, verb: &str) -> String {
        format!("{verb}: {} records, {} chunks.", self.records, self.chunks)
    }
}

/// The records of a file.
enum Source {
    Msgpack(Box<Records>),
    Json {
        path: PathBuf,
        allowance: Allowance,
        records: serde_json::StreamDeserializer<
            'static,
            serde_json::de::IoRead<BufReader<Box<dyn Read>>>,
            Value,
        >,
    },
}

impl Source {
    fn open(path: &Path, format: Format) -> Result<Self> {
        if format == Format::Msgpack {
            return Ok(Self::Msgpack(Box::new(Records::open(path)?)));
        }
        let file = File::open(path).map_err(|error| Error::file(path, error))?;
        let allowance = Allowance::new(LONGEST);
        let bounded: Box<dyn Read> = Box::new(Bounded::new(file, allowance.clone()));
        let reader = serde_json::Deserializer::from_reader(BufReader::new(bounded));
        Ok(Self::Json {
            path: path.to_owned(),
            allowance,
            records: reader.into_iter(),
        })
    }

    fn next(&mut self) -> Result<Option<Value>> {
        match self {
            Self::Msgpack(records) => Ok(records.next()?.map(|(record, _)| record)),
            Self::Json {
                path,
                allowance,
                records,
            } => {
                allowance.renew();
                let next = records.next().transpose();
                next.map_err(|error| Error::file(&*path, error))
            }
        }
    }
}

/// A frame of an export as a record.
fn to_record(frame: &Value) -> Value {
    let metadata = &frame["metadata"];
    let chunk = |chunk: &Value| {
        let mut short = json!({"c": chunk["chunk_id"], "i": chunk["chunk_id"], "v": vector(chunk)});
        if let Some(attributes) = chunk.get("attributes") {
            short["a"] = attributes.clone();
        }
        short
    };
    let chunks: Vec<Value> = list(frame, "chunks").iter().map(chunk).collect();
    let mut record = json!({
        "m": {"i": metadata["id"], "m": text(metadata, "root"), "c": metadata["collection"]},
        "c": chunks,
    });
    if let Some(model) = frame.get("model") {
        record["x"] = model.clone();
    }
    json!(["de", record])
}

/// `vector`, or what it was called before.
fn vector(chunk: &Value) -> Value {
    let named = chunk.get("vector").or_else(|| chunk.get("vectors"));
    named.cloned().unwrap_or(Value::Null)
}

/// A record as a frame of an import. The error says what is wrong with it.
fn to_frame(record: &Value, collection: Option<&str>) -> Result<Value, String> {
    let body = &record[1];
    if record[0] != "de" || !body.is_object() {
        return Err("holds no document embeddings".to_owned());
    }
    let metadata = &body["m"];
    let own = text(metadata, "c");
    let collection = collection.unwrap_or(if own.is_empty() { "default" } else { &own });
    // Older files have a list of triples where the root belongs.
    let root = metadata["m"].as_str().unwrap_or_default();
    let mut chunks = Vec::new();
    for (at, chunk) in list(body, "c").iter().enumerate() {
        let id = chunk["i"].as_str().or_else(|| chunk["c"].as_str());
        let id = id.ok_or_else(|| format!("chunk {at} has no id"))?;
        let vectors = match chunk["v"].as_array().map(Vec::as_slice) {
            None | Some([]) => return Err(format!("chunk {at} has no vector")),
            // Older files have several vectors for a chunk.
            Some(many @ [Value::Array(_), ..]) => many.to_vec(),
            Some(_) => vec![chunk["v"].clone()],
        };
        for vector in vectors {
            let mut long = json!({"chunk_id": id, "vector": vector});
            if let Some(attributes) = chunk.get("a") {
                long["attributes"] = attributes.clone();
            }
            chunks.push(long);
        }
    }
    let mut frame = json!({
        "metadata": {"id": text(metadata, "i"), "root": root, "metadata": [], "collection": collection},
        "chunks": chunks,
    });
    if let Some(model) = body.get("x") {
        frame["model"] = model.clone();
    }
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passed_can_be_loaded_again_and_put_into_a_core() {
        let frame = json!({
            "metadata": {"id": "urn:d", "root": "urn:r", "metadata": [], "collection": "c"},
            "chunks": [{"chunk_id": "urn:k", "vector": [0.5, 1.0], "vectors": [0.5, 1.0],
                        "attributes": {"x": 1}}],
            "model": "m",
        });
        let record = to_record(&frame);
        assert_eq!(record[1]["c"][0]["c"], "urn:k");
        let back = to_frame(&record, None).expect("a frame");
        assert_eq!(back["metadata"], frame["metadata"]);
        assert_eq!(
            back["chunks"],
            json!([{"chunk_id": "urn:k", "vector": [0.5, 1.0], "attributes": {"x": 1}}])
        );
        assert_eq!(back["model"], "m");
        assert_eq!(
            to_frame(&record, Some("d")).expect("a frame")["metadata"]["collection"],
            "d"
        );
        let put = tg_core_file::record::to_put(record, "core").expect("a record of a core");
        assert_eq!(put["document-embeddings"]["chunks"][0]["chunk_id"], "urn:k");
    }

    #[test]
    fn files_of_older_commands_are_read() {
        let old = json!(["de", {"m": {"i": "urn:d", "m": [], "c": ""},
                                "c": [{"c": "urn:k", "v": [[1.0], [2.0]]}]}]);
        let frame = to_frame(&old, None).expect("a frame");
        assert_eq!(frame["metadata"]["collection"], "default");
        assert_eq!(frame["metadata"]["root"], "");
        assert_eq!(
            frame["chunks"],
            json!([{"chunk_id": "urn:k", "vector": [1.0]}, {"chunk_id": "urn:k", "vector": [2.0]}])
        );
        for (wrong, why) in [
            (json!(["t", {}]), "holds no document embeddings"),
            (json!(["de", {"c": [{"v": [1.0]}]}]), "chunk 0 has no id"),
            (json!(["de", {"c": [{"c": "k"}]}]), "chunk 0 has no vector"),
        ] {
            assert_eq!(to_frame(&wrong, None).expect_err("refused"), why);
        }
    }
}
