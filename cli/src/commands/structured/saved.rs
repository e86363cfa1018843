//! `tg save-rows`, `tg load-rows`, `tg save-vectors` and `tg load-vectors`: all that a collection has of a kind to a file and
//! from one, a JSON document a line, each a frame of the gateway's export and import.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tg_schemas::limits;

use crate::args::{InCollection, InFlow, Options, SourceFile, TargetFile};
use crate::client::{Error, Passed, Result, Settled};
use crate::commands::collections::make_known;
use crate::commands::cores::partial::Partial;
use crate::fields::list;
use crate::files::{Allowance, Bounded};
use crate::registry::Command;
use crate::session::Session;

/// Longest document of a file, in bytes; the gateway takes no longer frame.
const LONGEST: u64 = limits::SOCKET_ANSWER as u64;

/// What is in a file.
#[derive(Debug, Clone, Copy)]
struct Kind {
    /// What it is called at the gateway's import and export.
    name: &'static str,
    /// What a frame has its items under.
    list: &'static str,
    /// What people call the items.
    items: &'static str,
}

const ROWS: Kind = Kind {
    name: "rows",
    list: "values",
    items: "rows",
};
const ENTITIES: Kind = Kind {
    name: "graph-embeddings",
    list: "entities",
    items: "vectors",
};
const CHUNKS: Kind = Kind {
    name: "document-embeddings",
    list: "chunks",
    items: "vectors",
};

/// What vectors stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Of {
    /// Entities of the graph
    Entities,
    /// Chunks of documents
    Chunks,
}

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
        save(session, ROWS, &self.place, self.output.path()).await
    }
}

/// Arguments of `tg save-vectors`.
#[derive(Debug, Args)]
pub struct SaveVectors {
    #[command(flatten)]
    place: InCollection,
    #[command(flatten)]
    output: TargetFile,
    /// What the vectors stand for
    #[arg(long, value_enum)]
    of: Of,
}

impl Command for SaveVectors {
    const NAME: &'static str = "save-vectors";
    const ABOUT: &'static str = "Save all vectors of a collection's entities or chunks";

    fn options(&self) -> Options {
        Options::from(&self.place)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let kind = match self.of {
            Of::Entities => ENTITIES,
            Of::Chunks => CHUNKS,
        };
        save(session, kind, &self.place, self.output.path()).await
    }
}

async fn save(
    session: &mut Session,
    kind: Kind,
    place: &InCollection,
    output: &Path,
) -> Result<()> {
    let (flow, collection) = (&place.flow.flow_id, &place.collection);
    let mut export = session.stored(flow, kind.name, collection).await?;
    let partial = Partial::of(output);
    let mut file = partial.create()?;
    let progress = session.out.progress(kind.items, None);
    let mut items = 0;
    let outcome = loop {
        match export.next().await {
            Ok(Passed::Record(frame)) => {
                if let Err(error) = file.json(&frame) {
                    break Err(error);
                }
                let more = list(&frame, kind.list).len();
                items += more;
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
    let shown = json!({ kind.items: items });
    session
        .out
        .show(&shown, || format!("Saved: {items} {}.", kind.items))
}

/// What both loaders take.
#[derive(Debug, Args)]
struct Loads {
    #[command(flatten)]
    flow: InFlow,
    #[command(flatten)]
    input: SourceFile,
    /// Collection to load into [default: what the file says]
    #[arg(short = 'C', long, value_name = "ID")]
    collection: Option<String>,
}

/// Arguments of `tg load-rows`.
#[derive(Debug, Args)]
pub struct LoadRows {
    #[command(flatten)]
    loads: Loads,
}

impl Command for LoadRows {
    const NAME: &'static str = "load-rows";
    const ABOUT: &'static str = "Load saved rows";

    fn options(&self) -> Options {
        Options::from(&self.loads.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        self.loads.run(session, &[ROWS]).await
    }
}

/// Arguments of `tg load-vectors`.
#[derive(Debug, Args)]
pub struct LoadVectors {
    #[command(flatten)]
    loads: Loads,
}

impl Command for LoadVectors {
    const NAME: &'static str = "load-vectors";
    const ABOUT: &'static str = "Load saved vectors of entities or chunks";

    fn options(&self) -> Options {
        Options::from(&self.loads.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        self.loads.run(session, &[ENTITIES, CHUNKS]).await
    }
}

impl Loads {
    /// Loads a file of one of some kinds: which one, its first frame says.
    async fn run(self, session: &mut Session, kinds: &[Kind]) -> Result<()> {
        let path = self.input.path();
        let mut frames = Frames::open(path)?;
        let mut next = frames.next()?;
        let of = |frame: &Value| {
            let mut all = kinds.iter();
            all.find(|kind| frame[kind.list].is_array()).copied()
        };
        let other = || {
            Error::file(
                path,
                format!("holds something else than {}", kinds[0].items),
            )
        };
        let kind = match &next {
            Some(first) => of(first).ok_or_else(other)?,
            None => kinds[0],
        };
        if let Some(collection) = &self.collection {
            make_known(session, collection).await?;
        }
        let mut import = session.import(&self.flow.flow_id, kind.name).await?;
        let progress = session.out.progress(kind.items, None);
        let mut items = 0;
        let outcome = async {
            while let Some(mut frame) = next {
                if !frame[kind.list].is_array() {
                    return Err(other());
                }
                if let Some(collection) = &self.collection {
                    frame["metadata"]["collection"] = json!(collection);
                }
                import.send(&frame).await?;
                let more = list(&frame, kind.list).len();
                items += more;
                progress.inc(more as u64);
                next = frames.next()?;
            }
            import.end().await
        }
        .await;
        progress.finish_and_clear();
        if let (Err(_), Some(confirmed)) = (&outcome, import.confirmed()) {
            session.out.talk(format!(
                "  {confirmed} of {items} {} sent were confirmed",
                kind.items
            ));
        }
        outcome?;
        let settled = import.into_settled();
        session.tell_settled(settled.as_ref(), kind.items);
        let shown = json!({kind.items: items, "settled": settled.as_ref().map(Settled::show)});
        session
            .out
            .show(&shown, || format!("Loaded: {items} {}.", kind.items))?;
        settled.map_or(Ok(()), |settled| settled.check(kind.items))
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
