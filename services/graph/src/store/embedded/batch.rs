//! Changes to a dataset and their form in the journal: N-Quads, compressed.

use std::cell::RefCell;
use std::io;

use oxigraph::io::{RdfFormat, RdfParser, RdfSerializer};
use oxigraph::model::{NamedOrBlankNode, Quad, Term};
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::get_frame_content_size;

use crate::engine::quota::Usage;
use crate::error::GraphError;
use crate::store::embedded::by_hand;

/// Quads of a row, about.
pub(crate) const ROW_QUADS: usize = 32_768;
/// Bytes of text in a journal row, after which it ends: a row is unpacked as a whole.
pub(crate) const ROW_BYTES: usize = 4 << 20;

/// What a run of quads does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// The quads are added.
    Insert,
    /// The quads are added, and were loaded by hand.
    Load,
    /// The quads are taken out.
    Delete,
    /// The quads stay, and do not count as loaded by hand any more.
    Unmark,
}

impl Op {
    /// As stored.
    pub(crate) fn code(self) -> i64 {
        match self {
            Self::Insert => 1,
            Self::Delete => 0,
            Self::Load => 2,
            Self::Unmark => 3,
        }
    }

    pub(crate) fn from_code(code: i64) -> Self {
        match code {
            0 => Self::Delete,
            2 => Self::Load,
            3 => Self::Unmark,
            _ => Self::Insert,
        }
    }

    /// What quads with so much text add.
    pub(crate) fn adds(self, quads: u64, bytes: u64) -> Usage {
        match self {
            Self::Insert => Usage { quads, bytes },
            Self::Load => Usage {
                quads,
                bytes: bytes + by_hand::MARK * quads,
            },
            Self::Delete | Self::Unmark => Usage::default(),
        }
    }
}

/// Quads with one operation, already in their journal form.
#[derive(Debug, Clone)]
pub struct Run {
    pub(crate) op: Op,
    pub(crate) quads: Vec<Quad>,
    pub(crate) text: Vec<u8>,
}

impl Run {
    fn new(op: Op, quads: Vec<Quad>) -> Self {
        Self {
            op,
            text: encode(&quads),
            quads,
        }
    }

    /// What it adds.
    pub(crate) fn adds(&self) -> Usage {
        self.op
            .adds(self.quads.len() as u64, self.text.len() as u64)
    }
}

/// One atomic change: deletions first, then insertions. Applying it twice is applying it once.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    pub(crate) runs: Vec<Run>,
}

impl Batch {
    /// A batch that adds quads.
    pub fn insert(quads: Vec<Quad>) -> Self {
        Self::new(Vec::new(), quads)
    }

    /// A batch that adds quads that were loaded by hand.
    pub fn load(quads: Vec<Quad>) -> Self {
        let (loaded, others) = quads.into_iter().partition(by_hand::matters);
        Self::of([(Op::Load, loaded), (Op::Insert, others)])
    }

    /// A batch that takes quads out.
    pub fn delete(quads: Vec<Quad>) -> Self {
        Self::new(quads, Vec::new())
    }

    /// A batch that takes quads out, and of others that they were loaded by hand.
    pub(crate) fn take_back(delete: Vec<Quad>, unmark: Vec<Quad>) -> Self {
        Self::of([(Op::Delete, delete), (Op::Unmark, unmark)])
    }

    /// A batch that takes quads out, then adds others.
    pub fn new(delete: Vec<Quad>, insert: Vec<Quad>) -> Self {
        Self::of([(Op::Delete, delete), (Op::Insert, insert)])
    }

    fn of(runs: [(Op, Vec<Quad>); 2]) -> Self {
        let runs = runs.into_iter().filter(|(_, quads)| !quads.is_empty());
        Self {
            runs: runs.map(|(op, quads)| Run::new(op, quads)).collect(),
        }
    }

    /// Number of quads named.
    pub fn len(&self) -> usize {
        self.runs.iter().map(|run| run.quads.len()).sum()
    }

    /// What it adds, if all of it is new.
    pub(crate) fn adds(&self) -> Usage {
        let runs = self.runs.iter();
        runs.fold(Usage::default(), |sum, run| sum.and(run.adds()))
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

/// About how long the text of a quad is. Triples within it are left out.
pub(crate) fn length(quad: &Quad) -> usize {
    let subject = match &quad.subject {
        NamedOrBlankNode::NamedNode(name) => name.as_str().len(),
        NamedOrBlankNode::BlankNode(_) => 0,
    };
    let object = match &quad.object {
        Term::Literal(literal) => literal.value().len(),
        Term::NamedNode(name) => name.as_str().len(),
        _ => 0,
    };
    subject + quad.predicate.as_str().len() + object
}

/// Quads as N-Quads text.
pub(crate) fn encode(quads: &[Quad]) -> Vec<u8> {
    let mut serializer = RdfSerializer::from_format(RdfFormat::NQuads)
        .for_writer(Vec::with_capacity(quads.len() * 96));
    for quad in quads {
        // Writing to memory does not fail.
        let _ = serializer.serialize_quad(quad);
    }
    serializer.finish().unwrap_or_default()
}

thread_local! {
    /// Kept by the few threads that compress: a new one costs more than the text of a small change.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    /// The same for reading rows, of which most are small.
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Compresses text for the journal.
pub(crate) fn pack(text: &[u8]) -> Result<Vec<u8>, GraphError> {
    let packed = COMPRESSOR.with_borrow_mut(|kept| {
        let compressor = match kept {
            Some(compressor) => compressor,
            None => kept.insert(Compressor::new(1)?),
        };
        compressor.compress(text)
    });
    packed.map_err(|error| {
        tracing::error!(%error, "compressing a journal row failed");
        GraphError::Closed
    })
}

/// The text of a journal row. One that does not say how long it is, or says that it is longer than rows are, is read as a stream.
fn plain(body: &[u8]) -> io::Result<Vec<u8>> {
    let size = get_frame_content_size(body).ok().flatten();
    let size = size.and_then(|size| usize::try_from(size).ok());
    let Some(size) = size.filter(|size| *size <= ROW_BYTES) else {
        return zstd::stream::decode_all(body);
    };
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = match kept {
            Some(decompressor) => decompressor,
            None => kept.insert(Decompressor::new()?),
        };
        decompressor.decompress(body, size)
    })
}

/// The quads of a journal row, and how long their text is. Blank nodes keep their labels.
pub(crate) fn unpack(body: &[u8]) -> Result<(Vec<Quad>, usize), GraphError> {
    if body.is_empty() {
        return Ok((Vec::new(), 0));
    }
    let damaged = |why: String| {
        GraphError::Journal(tg_storage::StorageError::Corrupt(format!(
            "a row of the graph journal: {why}"
        )))
    };
    let text = plain(body).map_err(|error| damaged(error.to_string()))?;
    // What is in the journal was validated when it was written.
    let quads = RdfParser::from_format(RdfFormat::NQuads)
        .lenient()
        .for_slice(&text)
        .collect::<Result<_, _>>();
    Ok((
        quads.map_err(|error| damaged(error.to_string()))?,
        text.len(),
    ))
}
