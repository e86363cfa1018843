//! `tg load-turtle`: RDF files into the graph, streamed through the import socket.
//!
//! A file is never held whole. A broken import is tried again from its file's start a few times,
//! which adds nothing twice: triples are a set, and blank nodes get the same labels each time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use oxigraph::io::{RdfFormat, RdfParser};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde_json::{Value, json};
use tg_provider_http::{Again, Backoff};
use tg_schemas::Triple;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::by_line::ByLine;
use super::loaded_from::{LARGEST, LoadedFrom};
use super::rdf::{Labels, from_quad};
use super::{Pattern, each_batch};
use crate::args::{InCollection, Options};
use crate::client::{Error, Result, Settled};
use crate::commands::collections::make_known;
use crate::files::pass_mark;
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
/// What does not stand for itself in the path of an IRI.
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'&')
    .remove(b'+')
    .remove(b',')
    .remove(b'=')
    .remove(b'@');
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
    /// Turtle files; .nt, .nq and .trig files are read as what they are
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
        let (parser, source) = (
            self.parser(file)?,
            LoadedFrom::file(self.document_id, file),
        );
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

    pub(super) fn parser(&self, path: &Path) -> Result<Parser> {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        Ok(Parser {
            path: path.to_owned(),
            file: File::open(path).map_err(|error| Error::file(path, error))?,
            labels: Labels::new(self.document_id, &name),
            graph: self.graph.map(str::to_owned),
            format: self.format.unwrap_or_else(|| format_of(path)),
        })
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

/// Reads one file on a thread of its own.
pub(super) struct Parser {
    path: PathBuf,
    file: File,
    labels: Labels,
    /// Graph of triples that name none.
    graph: Option<String>,
    format: RdfFormat,
}

impl Parser {
    /// Hands over each triple until the file ends or `take` says that it is enough.
    pub(super) fn each(self, take: impl FnMut(Triple) -> bool) -> Result<()> {
        let reader = self.opened()?;
        self.each_of(reader, take)
    }

    /// The lines on which the triples with these numbers end, counted from 1 among those of which something is `made`.
    fn lines(
        self,
        numbers: &BTreeSet<u64>,
        mut made: impl FnMut(&Triple) -> bool,
    ) -> Result<BTreeMap<u64, u64>> {
        let (reader, line) = ByLine::new(self.opened()?);
        let (mut found, mut number) = (BTreeMap::new(), 0);
        self.each_of(reader, |triple| {
            number += u64::from(made(&triple));
            if numbers.contains(&number) {
                found.entry(number).or_insert_with(|| line.number());
            }
            found.len() < numbers.len()
        })?;
        Ok(found)
    }

    /// The file behind its byte order mark.
    fn opened(&self) -> Result<BufReader<File>> {
        let wrong = |error| Error::file(&self.path, error);
        let mut reader = BufReader::new(self.file.try_clone().map_err(wrong)?);
        pass_mark(&mut reader).map_err(wrong)?;
        Ok(reader)
    }

    fn each_of(mut self, reader: impl Read, mut take: impl FnMut(Triple) -> bool) -> Result<()> {
        let mut parser = RdfParser::from_format(self.format);
        if let Some(base) = base_of(&self.path) {
            let wrong = |error| Error::file(&self.path, error);
            parser = parser.with_base_iri(base).map_err(wrong)?;
        }
        for quad in parser.for_reader(reader) {
            let quad = quad.map_err(|error| Error::file(&self.path, error))?;
            let mut triple = from_quad(quad, &mut self.labels);
            if triple.g.is_none() {
                triple.g.clone_from(&self.graph);
            }
            if !take(triple) {
                break;
            }
        }
        Ok(())
    }

    /// Sends batches of what is made of the triples, until the file ends or nobody takes them any more.
    pub(super) fn batches(
        self,
        size: usize,
        frames: &mpsc::Sender<Vec<Value>>,
        mut made: impl FnMut(Triple) -> Option<Value>,
    ) -> Result<()> {
        let mut batch = Vec::with_capacity(size);
        self.each(|triple| {
            batch.extend(made(triple));
            if batch.len() < size {
                return true;
            }
            let full = std::mem::replace(&mut batch, Vec::with_capacity(size));
            frames.blocking_send(full).is_ok()
        })?;
        if !batch.is_empty() {
            let _ = frames.blocking_send(batch);
        }
        Ok(())
    }
}

/// What relative IRIs of a file that names no base are relative to: the file, as with other readers of RDF.
fn base_of(path: &Path) -> Option<String> {
    let whole = std::path::absolute(path).ok()?;
    let path = percent_encode(whole.as_os_str().as_encoded_bytes(), IN_PATH);
    Some(format!("file://{path}"))
}

/// The format by the name of the file; Turtle where the name says nothing.
fn format_of(path: &Path) -> RdfFormat {
    let extension = path.extension().and_then(|extension| extension.to_str());
    match extension.map(str::to_ascii_lowercase).as_deref() {
        Some("nt") => RdfFormat::NTriples,
        Some("nq") => RdfFormat::NQuads,
        Some("trig") => RdfFormat::TriG,
        _ => RdfFormat::Turtle,
    }
}

#[cfg(test)]
mod tests {
    use tg_schemas::Term;

    use super::*;

    fn parse(name: &str, text: &str) -> Result<Vec<Value>> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        let parser = Parser {
            file: File::open(&path).expect("opened"),
            format: format_of(&path),
            path,
            labels: Labels::new("doc", name),
            graph: None,
        };
        let (frames, mut ready) = mpsc::channel(64);
        parser.batches(FRAME, &frames, |triple| Some(triple.to_api()))?;
        drop(frames);
        let mut triples = Vec::new();
        while let Ok(batch) = ready.try_recv() {
            assert!(batch.len() <= FRAME);
            triples.extend(batch);
        }
        Ok(triples)
    }

    #[test]
    fn terms_of_every_kind_arrive_in_wire_form() {
        let triples = parse(
            "a.ttl",
            "@prefix e: <http://e/> .\n\
             e:a e:b \"x\"@en, 5, <<( e:s e:p \"q\" )>>, [ e:c e:d ] .",
        )
        .expect("parsed");
        let objects: Vec<&Value> = triples.iter().map(|triple| &triple["o"]).collect();
        assert!(objects.contains(&&json!({"t": "l", "v": "x", "ln": "en"})));
        assert!(objects.contains(
            &&json!({"t": "l", "v": "5", "dt": "http://www.w3.org/2001/XMLSchema#integer"})
        ));
        assert!(objects.contains(&&json!({"t": "t", "tr": {
            "s": {"t": "i", "i": "http://e/s"}, "p": {"t": "i", "i": "http://e/p"},
            "o": {"t": "l", "v": "q"}}})));
        assert!(objects.iter().any(|object| object["t"] == "b"));
    }

    #[test]
    fn blank_nodes_keep_their_labels_over_loads_and_differ_between_files() {
        let text = "_:x <http://e/p> [ <http://e/q> _:x ] .";
        let first = parse("a.ttl", text).expect("parsed");
        assert_eq!(first, parse("a.ttl", text).expect("parsed"));
        assert_ne!(first, parse("b.ttl", text).expect("parsed"));
    }

    #[test]
    fn relative_names_are_of_the_file_unless_it_names_a_base() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("Uhren & more.ttl");
        let parsed = |text: &str| {
            std::fs::write(&path, text).expect("written");
            let parser = Parser {
                file: File::open(&path).expect("opened"),
                format: RdfFormat::Turtle,
                path: path.clone(),
                labels: Labels::new("doc", "a"),
                graph: None,
            };
            let mut all = Vec::new();
            parser.each(|triple| {
                all.push(triple);
                true
            })?;
            Ok::<_, Error>(all)
        };
        let names = |text: &str| -> Vec<String> {
            let all = parsed(text).expect("parsed");
            let names = all.into_iter().map(|triple| match triple.s {
                Some(tg_schemas::Term::Iri(iri)) => iri,
                other => panic!("an IRI, not {other:?}"),
            });
            names.collect()
        };
        let here = names("<> <urn:p> 1 . <#a> <urn:p> 1 . <b> <urn:p> 1 . </c> <urn:p> 1 .");
        let [file, part, beside, above] = here.as_slice() else {
            panic!("four, not {here:?}");
        };
        assert!(
            file.starts_with("file:///") && file.ends_with("/Uhren%20&%20more.ttl"),
            "{file}"
        );
        assert_eq!(*part, format!("{file}#a"));
        assert!(
            beside.ends_with("/b") && beside.starts_with("file:///"),
            "{beside}"
        );
        assert_eq!(above, "file:///c");
        assert_eq!(
            names("@base <http://e/x> . <#a> <urn:p> 1 ."),
            ["http://e/x#a"]
        );
    }

    #[test]
    fn a_byte_order_mark_is_passed_over() {
        for name in ["a.ttl", "a.nt"] {
            let triples = parse(name, "\u{feff}<urn:s> <urn:p> <urn:o> .").expect("parsed");
            assert_eq!(triples[0]["s"]["i"], "urn:s", "{name}");
        }
    }

    #[test]
    fn named_graphs_of_trig_are_kept() {
        let triples = parse("a.trig", "<urn:g> { <urn:s> <urn:p> <urn:o> }").expect("parsed");
        assert_eq!(triples[0]["g"], "urn:g");
    }

    #[test]
    fn a_mistake_in_a_file_names_the_file_and_the_place() {
        let error = parse("bad.ttl", "<urn:s> <urn:p> .").expect_err("refused");
        let text = error.to_string();
        assert!(
            text.contains("bad.ttl") && text.contains("line 1"),
            "{text}"
        );
    }

    #[test]
    fn triples_are_found_on_their_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let lines = |name: &str, text: &str, numbers: &[u64]| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            let parser = Parser {
                file: File::open(&path).expect("opened"),
                format: format_of(&path),
                path,
                labels: Labels::new("doc", name),
                graph: None,
            };
            let numbers = numbers.iter().copied().collect();
            let found = parser.lines(&numbers, |triple| triple.o != Some(Term::literal("no")));
            found.expect("parsed").into_iter().collect::<Vec<_>>()
        };
        let nt = "<urn:s> <urn:p> \"1\" .\n\n# words\n<urn:s> <urn:p> \"no\" .\n<urn:s> <urn:p> \"2\" .\n<urn:s> <urn:p> \"3\" .";
        assert_eq!(lines("a.nt", nt, &[1, 2, 3]), [(1, 1), (2, 5), (3, 6)]);
        let ttl = "@prefix e: <urn:e:> .\ne:s e:p 1 ;\n  e:q \"\"\"two\nlines\"\"\" ,\n 3 .\ne:t e:p e:s .\n";
        assert_eq!(lines("a.ttl", ttl, &[1, 2, 3, 4]), [(1, 2), (2, 4), (3, 5), (4, 6)]);
        let many: String = (0..9_999).map(|n| format!("<urn:s> <urn:p> {n} .\n")).collect();
        assert_eq!(lines("b.ttl", &many, &[1, 4_999, 9_999]), [(1, 1), (4_999, 4_999), (9_999, 9_999)]);
        assert_eq!(lines("b.ttl", &many, &[10_000]), []);
    }

    #[test]
    fn many_triples_go_in_frames() {
        let text: String = (0..2500)
            .map(|n| format!("<urn:s> <urn:p> {n} .\n"))
            .collect();
        assert_eq!(parse("big.ttl", &text).expect("parsed").len(), 2500);
    }
}
