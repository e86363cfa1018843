//! A flow with the two processors, a library, and readers that keep what arrives.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tg_ingest::Options;
use tg_mesh::Processor;
use tg_schemas::msg::{Chunk, Document, DocumentMetadata, Metadata, TextDocument, Triples};
use tg_schemas::processors::{self, ProcessorSpec};
use tg_schemas::{Class, Term, Triple};
use tg_testkit::config::Config;
use tg_testkit::fakes::{Library, RecordingConsumer};
use tg_testkit::flow::{TestFlow, Wiring};
use tg_testkit::place::Place;

const WIRING: &[Wiring] = &[
    (
        "document-decoder",
        &[
            ("input", Class::Flow, "document-load"),
            ("output", Class::Flow, "text-document-load"),
            ("triples", Class::Flow, "triples-store"),
            ("librarian-request", Class::Request, "librarian"),
        ],
    ),
    (
        "chunker",
        &[
            ("input", Class::Flow, "text-document-load"),
            ("output", Class::Flow, "chunk-load"),
            ("triples", Class::Flow, "triples-store"),
            ("librarian-request", Class::Request, "librarian"),
        ],
    ),
    ("triples-write", &[("input", Class::Flow, "triples-store")]),
    ("kw-index", &[("input", Class::Flow, "chunk-load")]),
];

pub struct System {
    flow: TestFlow,
    library: Arc<Library>,
    triples: Arc<RecordingConsumer<Triples>>,
    chunks: Arc<RecordingConsumer<Chunk>>,
}

impl System {
    pub async fn start(place: &Place, parameters: &[(&str, &str)]) -> Self {
        let options = Options {
            program: PathBuf::from(env!("CARGO_BIN_EXE_ingest-decode")),
            args: Vec::new(),
            ..Options::of_this_program("")
        };
        Self::with(place, parameters, options).await
    }

    /// With children that a shell script starts, which finds the decoder in `$DECODE`; what follows are its arguments.
    pub async fn scripted(place: &Place, script: &str) -> Self {
        let decode = env!("CARGO_BIN_EXE_ingest-decode");
        let options = Options {
            program: PathBuf::from("/bin/sh"),
            args: vec![
                "-c".to_owned(),
                format!("DECODE='{decode}'; {script}"),
                "sh".to_owned(),
            ],
            ..Options::of_this_program("")
        };
        Self::with(place, &[], options).await
    }

    async fn with(place: &Place, parameters: &[(&str, &str)], options: Options) -> Self {
        let (library, triples, chunks) = (
            Arc::<Library>::default(),
            RecordingConsumer::new(),
            RecordingConsumer::new(),
        );
        let named = parameters.iter().map(|(name, value)| (*name, *value));
        let parameters: Value = named.collect();
        let (shelf, store, index) = (library.clone(), triples.clone(), chunks.clone());
        let host = |mesh: &_| {
            let mut hosted = tg_ingest::processors(mesh, options);
            hosted.push(
                Processor::new(ProcessorSpec::unlisted("library"))
                    .serves(processors::librarian::LIBRARIAN, shelf),
            );
            hosted.push(
                Processor::new(processors::triples_write::PROCESSOR)
                    .reads(processors::triples_write::INPUT, store),
            );
            hosted.push(
                Processor::new(processors::kw_index::PROCESSOR)
                    .reads(processors::kw_index::INPUT, index),
            );
            hosted
        };
        let config = Config::new();
        Self {
            flow: TestFlow::start_with(place, config, WIRING, parameters, host).await,
            library,
            triples,
            chunks,
        }
    }

    /// Puts a document into the library.
    pub fn put(&self, id: &str, kind: &str, content: &[u8]) {
        self.library.put(id, kind, STANDARD.encode(content));
    }

    /// Puts a document with a title into the library.
    pub fn put_titled(&self, id: &str, kind: &str, title: &str, content: &[u8]) {
        self.put(id, kind, content);
        self.library.entitle(id, title);
    }

    /// From now on every child counts as stored by a complete processing.
    pub fn complete(&self) {
        self.library.complete();
    }

    pub fn child(&self, id: &str) -> Option<DocumentMetadata> {
        self.library.about(id)
    }

    fn metadata(id: &str) -> Option<Metadata> {
        Some(Metadata {
            id: id.to_owned(),
            root: id.to_owned(),
            collection: "c".to_owned(),
        })
    }

    pub async fn load_text(&self, id: &str, text: &str) {
        let by_itself = !text.is_empty();
        let record = TextDocument {
            metadata: Self::metadata(id),
            text: text.to_owned(),
            document_id: if by_itself {
                String::new()
            } else {
                id.to_owned()
            },
            ..TextDocument::default()
        };
        self.flow.write("text-document-load", &record).await;
    }

    pub async fn load_document(&self, id: &str, data: &str) {
        let record = Document {
            metadata: Self::metadata(id),
            data: data.to_owned(),
            document_id: if data.is_empty() {
                id.to_owned()
            } else {
                String::new()
            },
        };
        self.flow.write("document-load", &record).await;
    }

    /// Waits for so many chunks, in the order they came.
    pub async fn chunks(&self, count: usize) -> Vec<Chunk> {
        let chunks = self.chunks.until(|chunks| chunks.len() >= count).await;
        assert_eq!(chunks.len(), count);
        chunks
    }

    /// Whether a chunk so far has these words.
    pub fn is_kept(&self, words: &str) -> bool {
        let chunks = self.chunks.all();
        chunks.iter().any(|chunk| chunk.chunk.contains(words))
    }

    /// Waits for the chunk of a document that has these words.
    pub async fn chunk_of(&self, document: &str, words: &str) -> Chunk {
        let is = |chunk: &&Chunk| {
            let root = chunk.metadata.as_ref().map(|of| of.root.as_str());
            root == Some(document) && chunk.chunk.contains(words)
        };
        let there = self
            .chunks
            .until(|chunks| chunks.iter().any(|chunk| is(&chunk)));
        let chunks = tokio::time::timeout(Duration::from_secs(60), there).await;
        let chunks = chunks.unwrap_or_else(|_| {
            panic!(
                "{document}: no chunk has {words:?}: {:#?}",
                self.chunks.all()
            )
        });
        chunks.iter().find(is).cloned().expect("it was there")
    }

    /// Waits for chunks that have so many characters, without what overlaps.
    pub async fn chunks_of(&self, characters: usize) -> Vec<Chunk> {
        let enough = |chunks: &[Chunk]| {
            let lengths = chunks.iter().map(|chunk| chunk.chunk.chars().count());
            lengths.sum::<usize>() + 100 > characters + chunks.len().saturating_sub(2) * 900
        };
        self.chunks.until(enough).await
    }

    /// The ids of the chunks, once so many came.
    pub async fn ids(&self, count: usize) -> BTreeSet<String> {
        let chunks = self.chunks(count).await;
        chunks.into_iter().map(|chunk| chunk.document_id).collect()
    }

    pub fn triples_records(&self) -> usize {
        self.triples.count()
    }

    /// What was said of a thing.
    pub fn object(&self, subject: &str, predicate: &str) -> Option<Term> {
        let (subject, predicate) = (Term::iri(subject), Term::iri(predicate));
        let is = |triple: &&Triple| {
            triple.s.as_ref() == Some(&subject) && triple.p.as_ref() == Some(&predicate)
        };
        let records = self.triples.all();
        let mut all = records.iter().flat_map(|record| &record.triples);
        all.find(is).and_then(|triple| triple.o.clone())
    }

    /// Waits for a record that becomes a dead letter and returns its text.
    pub async fn dead_letter(&self) -> String {
        let record = self.flow.dead_letter().await;
        serde_json::to_string(&record).expect("a record is JSON")
    }
}
