//! Changes to a dataset and their form in the journal: N-Quads, compressed.

use std::cell::RefCell;

use oxigraph::io::{RdfFormat, RdfParser, RdfSerializer};
use oxigraph::model::{NamedOrBlankNode, Quad, Term};
use zstd::bulk::Compressor;

use crate::engine::quota::Usage;
use crate::error::GraphError;

/// Quads of a row, about.
pub(crate) const ROW_QUADS: usize = 32_768;
/// Bytes of text in a journal row, after which it ends: a row is unpacked as a whole.
pub(crate) const ROW_BYTES: usize = 4 << 20;

/// What a run of quads does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// The quads are added.
    Insert,
    /// The quads are taken out.
    Delete,
}

impl Op {
    /// As stored.
    pub(crate) fn code(self) -> i64 {
        match self {
            Self::Insert => 1,
            Self::Delete => 0,
        }
    }

    pub(crate) fn from_code(code: i64) -> Self {
        if code == 0 {
            Self::Delete
        } else {
            Self::Insert
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
    /// What its quads take.
    pub(crate) fn usage(&self) -> Usage {
        Usage {
            quads: self.quads.len() as u64,
            bytes: self.text.len() as u64,
        }
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

    /// A batch that takes quads out.
    pub fn delete(quads: Vec<Quad>) -> Self {
        Self::new(quads, Vec::new())
    }

    /// A batch that takes quads out, then adds others.
    pub fn new(delete: Vec<Quad>, insert: Vec<Quad>) -> Self {
        let runs = [(Op::Delete, delete), (Op::Insert, insert)]
            .into_iter()
            .filter(|(_, quads)| !quads.is_empty())
            .map(|(op, quads)| Run {
                op,
                text: encode(&quads),
                quads,
            })
            .collect();
        Self { runs }
    }

    /// Number of quads named.
    pub fn len(&self) -> usize {
        self.runs.iter().map(|run| run.quads.len()).sum()
    }

    /// What it adds, if all of it is new.
    pub(crate) fn adds(&self) -> Usage {
        let inserts = self.runs.iter().filter(|run| run.op == Op::Insert);
        inserts.fold(Usage::default(), |sum, run| sum.and(run.usage()))
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
    let text = zstd::stream::decode_all(body).map_err(|error| damaged(error.to_string()))?;
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
