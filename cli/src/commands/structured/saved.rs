//! `tg save-rows` and `tg load-rows`: all rows of a collection to a file and from one, a JSON document a line, each a
//! frame of the gateway's export and import.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use clap::Args;
use serde_json::{Value, json};

use crate::args::{InCollection, InFlow, Options, SourceFile, TargetFile};
use crate::client::{Error, Passed, Result};
use crate::commands::cores::partial::Partial;
use crate::fields::list;
use crate::files::{Allowance, Bounded};
use crate::registry::Command;
use crate::session::Session;

/// What rows are called at the gateway's import and export.
const KIND: &str = "rows";
/// Longest document of a file, in bytes; the gateway takes no longer frame.
const LONGEST: u64 = 64 << 20;

/// Arguments of `tg save-rows`.
#[derive(Debug, Args)]
pub struct SaveRows {
    #[command(flatten)]
    place: InCollection,
    #[command(flatten)]
    output: TargetFile,
}

impl Command for SaveRows {
    const NAME: &'static str = "save-rows";
    const ABOUT: &'static str = "Save all rows of a collection";

    fn options(&self) -> Options {
        Options::from(&self.place)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let (flow, collection) = (&self.place.flow.flow_id, &self.place.collection);
        let mut export = session.stored(flow, KIND, collection).await?;
        let partial = Partial::of(self.output.path());
        let mut file = partial.create()?;
        let progress = session.out.progress("rows", None);
        let mut rows = 0;
        let outcome = loop {
            match export.next().await {
                Ok(Passed::Record(frame)) => {
                    if let Err(error) = file.json(&frame) {
                        break Err(error);
                    }
                    let more = list(&frame, "values").len();
                    rows += more;
                    progress.inc(more as u64);
                }
                Ok(Passed::Ended) => break Ok(()),
                Ok(Passed::Interrupted) => break Err(Error::Interrupted),
                Err(error) => break Err(error),
            }
        };
        progress.finish_and_clear();
        export.close().await;
        // A part of a collection never looks like the whole.
        if let Err(error) = outcome.and(file.end()) {
            partial.discard();
            return Err(error);
        }
        partial.complete()?;
        let shown = json!({"rows": rows});
        session.out.show(&shown, || format!("Saved: {rows} rows."))
    }
}

/// Arguments of `tg load-rows`.
#[derive(Debug, Args)]
pub struct LoadRows {
    #[command(flatten)]
    flow: InFlow,
    #[command(flatten)]
    input: SourceFile,
    /// Collection to load into [default: what the file says]
    #[arg(short = 'C', long, value_name = "ID")]
    collection: Option<String>,
}

impl Command for LoadRows {
    const NAME: &'static str = "load-rows";
    const ABOUT: &'static str = "Load saved rows";

    fn options(&self) -> Options {
        Options::from(&self.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let path = self.input.path();
        let mut frames = Frames::open(path)?;
        let mut import = session.import_told(&self.flow.flow_id, KIND).await?;
        let progress = session.out.progress("rows", None);
        let mut rows = 0;
        let outcome = async {
            while let Some(mut frame) = frames.next()? {
                if !frame["values"].is_array() {
                    return Err(Error::file(path, "holds something else than rows"));
                }
                if let Some(collection) = &self.collection {
                    frame["metadata"]["collection"] = json!(collection);
                }
                import.send(&frame).await?;
                let more = list(&frame, "values").len();
                rows += more;
                progress.inc(more as u64);
            }
            import.end().await
        }
        .await;
        progress.finish_and_clear();
        if let (Err(_), Some(confirmed)) = (&outcome, import.confirmed()) {
            session
                .out
                .talk(format!("  {confirmed} of {rows} rows sent were confirmed"));
        }
        outcome?;
        let shown = json!({"rows": rows});
        session.out.show(&shown, || format!("Loaded: {rows} rows."))
    }
}

/// The documents of a file.
struct Frames<'a> {
    path: &'a Path,
    allowance: Allowance,
    documents: serde_json::StreamDeserializer<
        'static,
        serde_json::de::IoRead<BufReader<Bounded<File>>>,
        Value,
    >,
}

impl<'a> Frames<'a> {
    fn open(path: &'a Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| Error::file(path, error))?;
        let allowance = Allowance::new(LONGEST);
        let bounded = Bounded::new(file, allowance.clone());
        let reader = serde_json::Deserializer::from_reader(BufReader::new(bounded));
        Ok(Self {
            path,
            allowance,
            documents: reader.into_iter(),
        })
    }

    /// The next frame. The gateway's last line, where a file was fetched without this program, is none.
    fn next(&mut self) -> Result<Option<Value>> {
        loop {
            self.allowance.renew();
            let next = self.documents.next().transpose();
            let next = next.map_err(|error| Error::file(self.path, error))?;
            match next {
                Some(last) if last.get("complete").is_some() => continue,
                next => return Ok(next),
            }
        }
    }
}
