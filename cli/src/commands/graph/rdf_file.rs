//! One RDF file as triples, read on a thread of its own and never held whole: in batches, or only for the lines of some triples.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use oxigraph::io::{JsonLdProfileSet, RdfFormat, RdfParser};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde_json::Value;
use tg_schemas::Triple;
use tokio::sync::mpsc;

use super::by_line::ByLine;
use super::rdf::{Labels, from_quad};
use crate::client::{Error, Result};
use crate::files::pass_mark;

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
/// Reads one file on a thread of its own.
pub(super) struct RdfFile {
    path: PathBuf,
    file: File,
    labels: Labels,
    /// Graph of triples that name none.
    graph: Option<String>,
    format: RdfFormat,
}

impl RdfFile {
    /// Opens a file. `graph`: graph of triples that name none; `format`: what the file's name says if absent.
    pub(super) fn open(
        path: &Path,
        document_id: &str,
        graph: Option<&str>,
        format: Option<RdfFormat>,
    ) -> Result<Self> {
        let name = path.file_name().map(|name| name.to_string_lossy());
        Ok(Self {
            path: path.to_owned(),
            file: File::open(path).map_err(|error| Error::file(path, error))?,
            labels: Labels::new(document_id, &name.unwrap_or_default()),
            graph: graph.map(str::to_owned),
            format: format.unwrap_or_else(|| format_of(path)),
        })
    }

    /// Hands over each triple until the file ends or `take` says that it is enough.
    pub(super) fn each(self, take: impl FnMut(Triple) -> bool) -> Result<()> {
        let reader = self.opened()?;
        self.each_of(reader, take)
    }

    /// The lines on which the triples with these numbers end, counted from 1 among those of which something is `made`.
    pub(super) fn lines(
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

    /// The file behind its byte order mark, unless its first bytes say that it is something else.
    fn opened(&self) -> Result<BufReader<File>> {
        let wrong = |error| Error::file(&self.path, error);
        let mut reader = BufReader::new(self.file.try_clone().map_err(wrong)?);
        pass_mark(&mut reader).map_err(wrong)?;
        match not_read(reader.fill_buf().map_err(wrong)?) {
            Some(why) => Err(Error::file(&self.path, why)),
            None => Ok(reader),
        }
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

/// Why a file is not read that begins so: the error of the parser would be about its first character.
fn not_read(head: &[u8]) -> Option<&'static str> {
    let text = head.trim_ascii_start();
    if text.starts_with(b"<?xml ")
        || text.starts_with(b"<rdf:RDF\n")
        || text.starts_with(b"<rdf:RDF ")
    {
        Some("is RDF/XML, which is not read; convert it to Turtle")
    } else if head.starts_with(b"\x1f\x8b") {
        Some("is compressed; unpack it first")
    } else if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        Some("is UTF-16; save it as UTF-8")
    } else {
        None
    }
}

/// The format by the name of the file; Turtle where the name says nothing.
fn format_of(path: &Path) -> RdfFormat {
    let extension = path.extension().and_then(|extension| extension.to_str());
    match extension.map(str::to_ascii_lowercase).as_deref() {
        Some("nt") => RdfFormat::NTriples,
        Some("nq") => RdfFormat::NQuads,
        Some("trig") => RdfFormat::TriG,
        Some("jsonld") => RdfFormat::JsonLd {
            profile: JsonLdProfileSet::empty(),
        },
        _ => RdfFormat::Turtle,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tg_schemas::Term;

    use super::*;

    const SIZE: usize = 1000;

    fn parse(name: &str, text: &str) -> Result<Vec<Value>> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        let parser = RdfFile::open(&path, "doc", None, None).expect("opened");
        let (frames, mut ready) = mpsc::channel(64);
        parser.batches(SIZE, &frames, |triple| Some(triple.to_api()))?;
        drop(frames);
        let mut triples = Vec::new();
        while let Ok(batch) = ready.try_recv() {
            assert!(batch.len() <= SIZE);
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
            let parser = RdfFile::open(&path, "doc", None, None).expect("opened");
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
    fn json_ld_is_known_by_the_name_of_the_file() {
        let text = r#"{"@id": "urn:s", "urn:p": {"@id": "urn:o"}}"#;
        let triples = parse("a.jsonld", text).expect("parsed");
        assert_eq!(triples.len(), 1);
        assert_eq!(triples[0]["o"]["i"], "urn:o");
    }

    #[test]
    fn what_is_another_kind_of_file_says_so() {
        for (name, text, told) in [
            ("a.owl", "<?xml version=\"1.0\"?>\n<rdf:RDF/>", "RDF/XML"),
            ("a.ttl", "\u{feff} <rdf:RDF xmlns:rdf=\"x\"/>", "RDF/XML"),
        ] {
            let error = parse(name, text).expect_err("refused").to_string();
            assert!(error.contains(told) && error.contains(name), "{error}");
        }
        assert!(not_read(b"\x1f\x8b\x08").is_some_and(|why| why.contains("compressed")));
        assert!(not_read(b"\xff\xfe<\0").is_some_and(|why| why.contains("UTF-16")));
        for fine in [&b"<?xml=1> <urn:p> 1 ."[..], b"<rdf:RDF> a <urn:c> .", b""] {
            assert_eq!(not_read(fine), None);
        }
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
            let parser = RdfFile::open(&path, "doc", None, None).expect("opened");
            let numbers = numbers.iter().copied().collect();
            let found = parser.lines(&numbers, |triple| triple.o != Some(Term::literal("no")));
            found.expect("parsed").into_iter().collect::<Vec<_>>()
        };
        let nt = "<urn:s> <urn:p> \"1\" .\n\n# words\n<urn:s> <urn:p> \"no\" .\n<urn:s> <urn:p> \"2\" .\n<urn:s> <urn:p> \"3\" .";
        assert_eq!(lines("a.nt", nt, &[1, 2, 3]), [(1, 1), (2, 5), (3, 6)]);
        let ttl = "@prefix e: <urn:e:> .\ne:s e:p 1 ;\n  e:q \"\"\"two\nlines\"\"\" ,\n 3 .\ne:t e:p e:s .\n";
        assert_eq!(
            lines("a.ttl", ttl, &[1, 2, 3, 4]),
            [(1, 2), (2, 4), (3, 5), (4, 6)]
        );
        let many: String = (0..9_999)
            .map(|n| format!("<urn:s> <urn:p> {n} .\n"))
            .collect();
        assert_eq!(
            lines("b.ttl", &many, &[1, 4_999, 9_999]),
            [(1, 1), (4_999, 4_999), (9_999, 9_999)]
        );
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
