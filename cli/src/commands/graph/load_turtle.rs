//! `tg load-turtle`: RDF files into the graph, streamed through the import socket.
//!
//! A file is never held whole. A broken import is tried again from its file's start a few times,
//! which adds nothing twice: triples are a set, and blank nodes get the same labels each time.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use oxigraph::io::RdfFormat;
use serde_json::{Value, json};
use tg_provider_http::{Again, Backoff};
use tg_schemas::Triple;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::loaded_from::{LARGEST, LoadedFrom};
use super::rdf_file::RdfFile;
use super::{Pattern, each_batch};
use crate::args::{InCollection, Options};
use crate::client::{Error, Result, Settled};
use crate::commands::collections::make_known;
use crate::registry::Command;
use crate::session::Session;
use crate::terminal::Bar;

/// Triples in one frame.
const FRAME: usize = 1000;
/// Frames that may wait between parser and socket.
pub(super) const AHEAD: usize = 4;

/// Last triples of the latest frames, looked for before the command says that it is done.
type Marks = VecDeque<Triple>;
/// What was sent, and what the stores said of it if the gateway tells.
type Loaded = (u64, Marks, Option<Settled>);
/// Frames looked for.
const MARKS: usize = 16;
/// How long the graph may take to show what it has been given.
const VISIBLE: Duration = Duration::from_secs(30);

/// Whether the file is recorded as the source of its facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum Recorded {
    /// If it has at most 4 MiB
    #[default]
    Small,
    /// Always; the graph takes up to twice as much room
    Always,
    /// Never
    Never,
}

/// Arguments of `tg load-turtle`.
#[derive(Debug, Args)]
pub struct LoadTurtle {
    #[command(flatten)]
    place: InCollection,
    /// Id of the document that the triples come from [default: the file's name]
    #[arg(short = 'i', long, value_name = "ID")]
    document_id: Option<String>,
    /// Whether to record the file as the source of its facts, so that answers can cite it
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    source: Recorded,
    /// How often a broken import is tried again
    #[arg(long, default_value_t = 2, value_name = "COUNT")]
    retries: u32,
    /// Turtle files; .nt, .nq, .trig and .jsonld files are read as what they are
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl Command for LoadTurtle {
    const NAME: &'static str = "load-turtle";
    const ABOUT: &'static str = "Load RDF files into the graph";

    fn options(&self) -> Options {
        Options::from(&self.place)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let (mut loaded, mut whole) = (Vec::new(), Ok(()));
        for file in &self.files {
            let name = file.file_name().unwrap_or(file.as_os_str());
            let name = name.to_string_lossy();
            let loader = Loader {
                place: &self.place,
                document_id: self.document_id.as_deref().unwrap_or(&name),
                retries: self.retries,
                source: self.source,
                graph: None,
                format: None,
            };
            let (one, stored) = loader.run(session, std::slice::from_ref(file)).await?;
            loaded.extend(one);
            whole = whole.and(stored);
        }
        session
            .out
            .show(&Value::from(loaded), || "Triples loaded.".to_owned())?;
        whole
    }
}

/// What is loaded, and where.
pub(super) struct Loader<'a> {
    pub(super) place: &'a InCollection,
    pub(super) document_id: &'a str,
    pub(super) retries: u32,
    /// Whether files are recorded as sources.
    pub(super) source: Recorded,
    /// Graph of triples that name none.
    pub(super) graph: Option<&'a str>,
    /// What the files are; what their names say if absent.
    pub(super) format: Option<RdfFormat>,
}

impl Loader<'_> {
    /// Loads files; says how much of each, and why not all of it is stored.
    pub(super) async fn run(
        &self,
        session: &mut Session,
        files: &[PathBuf],
    ) -> Result<(Vec<Value>, Result<()>)> {
        make_known(session, &self.place.collection).await?;
        let (mut loaded, mut whole) = (Vec::new(), Ok(()));
        for file in files {
            session.out.talk(format!("Loading {}...", file.display()));
            let (triples, marks, mut settled) = self.load(session, file).await?;
            self.look_up(file, settled.as_mut(), |_| true).await?;
            session.tell_settled(settled.as_ref(), "triples");
            match &settled {
                Some(settled) => whole = whole.and(settled.check("triples")),
                None => self.wait_until_stored(session, &marks).await?,
            }
            session
                .out
                .talk(format!("  {triples} triples from {}", file.display()));
            let source = self.record_source(session, file).await?;
            session.tell_settled(source.as_ref(), "sources");
            if let Some(source) = &source {
                whole = whole.and(source.check("sources"));
            }
            loaded.push(
                json!({"file": file.display().to_string(), "triples": triples,
                "settled": settled.as_ref().map(Settled::show)}),
            );
        }
        Ok((loaded, whole))
    }

    /// Looks up the lines of what the stores refused or did not confirm. The file is read a second time,
    /// as nobody keeps the line of each triple meanwhile. `made`: whether something was sent of a triple.
    pub(super) async fn look_up(
        &self,
        file: &Path,
        settled: Option<&mut Settled>,
        made: impl FnMut(&Triple) -> bool + Send + 'static,
    ) -> Result<()> {
        let Some(settled) = settled.filter(|settled| !settled.is_whole()) else {
            return Ok(());
        };
        let (parser, numbers) = (self.parser(file)?, settled.numbers());
        let looking = tokio::task::spawn_blocking(move || parser.lines(&numbers, made));
        settled.found_at(read_by(file, looking).await?);
        Ok(())
    }

    /// Records the file as the source of its facts, once these are stored.
    async fn record_source(&self, session: &mut Session, file: &Path) -> Result<Option<Settled>> {
        let size = std::fs::metadata(file).map_err(|error| Error::file(file, error))?;
        match self.source {
            Recorded::Always => {}
            Recorded::Small if size.len() <= LARGEST => {}
            Recorded::Never => return Ok(None),
            Recorded::Small => {
                session.out.talk(
                    "  The file is large: answers cannot cite it. --source always records it.",
                );
                return Ok(None);
            }
        }
        let (parser, source) = (self.parser(file)?, LoadedFrom::file(self.document_id, file));
        let flow = &self.place.flow.flow_id;
        let mut import = session.import(flow, "triples").await?;
        let described = source.described().iter().map(Triple::to_api).collect();
        import.send(&self.frame("triples", described)).await?;
        let (frames, mut ready) = mpsc::channel(AHEAD);
        let reading = tokio::task::spawn_blocking(move || {
            let held = |fact: Triple| source.holds(&fact).map(|held| held.to_api());
            parser.batches(FRAME, &frames, held)
        });
        while let Some(held) = ready.recv().await {
            import.send(&self.frame("triples", held)).await?;
        }
        read_by(file, reading).await?;
        import.end().await?;
        Ok(import.into_settled())
    }

    fn backoff(&self) -> Backoff {
        Backoff {
            attempts: self.retries.saturating_add(1),
            base: Duration::from_secs(2),
            cap: Duration::from_secs(32),
        }
    }

    async fn load(&self, session: &mut Session, file: &Path) -> Result<Loaded> {
        let mut attempt = 0;
        loop {
            let error = match self.try_load(session, file).await {
                Ok(loaded) => return Ok(loaded),
                Err(error) => error,
            };
            let again = matches!(&error, Error::Service { .. })
                && error.code().is_some_and(is_passing)
                || matches!(&error, Error::Unreachable { .. });
            let again = if again { Again::Soon } else { Again::Never };
            attempt += 1;
            let pause = self.backoff().pause(again, attempt, Duration::MAX, 1.0);
            let Some(pause) = pause else {
                return Err(error);
            };
            session.out.talk(format!(
                "  {error}; attempt {} of {}",
                attempt + 1,
                self.retries + 1
            ));
            session.pause(pause).await?;
        }
    }

    async fn try_load(&self, session: &Session, file: &Path) -> Result<Loaded> {
        let flow = &self.place.flow.flow_id;
        let mut import = session.import(flow, "triples").await?;
        let progress = session.out.progress("triples", None);
        let outcome = async {
            let (frames, mut ready) = mpsc::channel(AHEAD);
            let parser = self.parser(file)?;
            let parsing = tokio::task::spawn_blocking(move || {
                parser.batches(FRAME, &frames, |triple| Some(triple.to_api()))
            });
            let mut sent = 0;
            let mut marks = Marks::new();
            while let Some(triples) = ready.recv().await {
                let count = triples.len() as u64;
                if marks.len() == MARKS {
                    marks.pop_front();
                }
                marks.extend(triples.last().and_then(Triple::from_api));
                import.send(&self.frame("triples", triples)).await?;
                sent += count;
                progress.inc(count);
            }
            read_by(file, parsing).await?;
            import.end().await?;
            Ok((sent, marks, import.into_settled()))
        }
        .await;
        finish(&progress);
        outcome
    }

    /// A gateway that does not wait for the stores confirms that the triples are safe; questions see them a moment later. Waits for that
    /// moment, bounded: a busy graph is no failure.
    async fn wait_until_stored(&self, session: &mut Session, marks: &Marks) -> Result<()> {
        let mut socket = session.socket().await?;
        let until = Instant::now() + VISIBLE;
        for mark in marks {
            // No object: a store may write numbers in another form than the file.
            let pattern = Pattern {
                s: mark.s.clone(),
                p: mark.p.clone(),
                g: mark.g.clone(),
                collection: self.place.collection.clone(),
                limit: 1,
                ..Pattern::default()
            };
            let call = pattern.streamed(&self.place.flow.flow_id, 1);
            loop {
                let mut there = false;
                each_batch(&mut socket, &call, |batch| {
                    there |= !batch.is_empty();
                    Ok(())
                })
                .await?;
                if there {
                    break;
                }
                if Instant::now() > until {
                    session.out.talk("  the graph is still storing them");
                    return Ok(());
                }
                session.pause(Duration::from_millis(50)).await?;
            }
        }
        Ok(())
    }

    /// A frame of the import socket with things of one kind.
    pub(super) fn frame(&self, kind: &str, things: Vec<Value>) -> Value {
        json!({
            "metadata": {
                "id": self.document_id,
                "metadata": [],
                "collection": self.place.collection,
            },
            kind: things,
        })
    }

    pub(super) fn parser(&self, path: &Path) -> Result<RdfFile> {
        RdfFile::open(path, self.document_id, self.graph, self.format)
    }
}

fn finish(progress: &Bar) {
    progress.finish_and_clear();
}

/// Waits for the thread that reads a file.
pub(super) async fn read_by<T>(file: &Path, reading: JoinHandle<Result<T>>) -> Result<T> {
    let read = reading.await;
    read.map_err(|_| Error::file(file, "cannot be read: the parser failed"))?
}

/// Whether trying again may help.
fn is_passing(code: tg_schemas::ErrorCode) -> bool {
    code.is_transient() || code == tg_schemas::ErrorCode::Interrupted
}
