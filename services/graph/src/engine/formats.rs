//! RDF files in and out. Blank nodes of a file get labels of their own, derived from the load they belong
//! to: two files' `_:b0` never merge, and loading the same file again adds nothing.

use std::collections::HashMap;
use std::io::{Read, Write};

use oxigraph::io::{RdfFormat, RdfParser, RdfSerializer};
use oxigraph::model::{BlankNode, GraphName, NamedOrBlankNode, Quad, Term, Triple};
use tg_storage::blob::BlobId;

use crate::error::GraphError;

/// Formats of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Turtle: one graph.
    Turtle,
    /// TriG: default and named graphs.
    TriG,
    /// N-Triples: one graph, a line a triple.
    NTriples,
    /// N-Quads: default and named graphs, a line a quad.
    NQuads,
}

impl Format {
    /// By file extension.
    pub fn from_extension(extension: &str) -> Option<Self> {
        Some(match extension {
            "ttl" => Self::Turtle,
            "trig" => Self::TriG,
            "nt" => Self::NTriples,
            "nq" => Self::NQuads,
            _ => return None,
        })
    }

    /// Whether it can say in which graph a triple is.
    pub fn has_graphs(self) -> bool {
        matches!(self, Self::TriG | Self::NQuads)
    }

    fn rdf(self) -> RdfFormat {
        match self {
            Self::Turtle => RdfFormat::Turtle,
            Self::TriG => RdfFormat::TriG,
            Self::NTriples => RdfFormat::NTriples,
            Self::NQuads => RdfFormat::NQuads,
        }
    }
}

/// A name for the load of this content: the same content, the same blank nodes.
pub fn load_of(content: &[u8]) -> String {
    BlobId::of(content).to_string()[..20].to_owned()
}

/// The quads of a file, one by one. `base` resolves relative IRIs; `load` names the load (letters and
/// digits). Ends after the first fault.
///
/// # Errors
/// [`GraphError::Syntax`] with the place, from the first quad that cannot be read on.
pub fn read<R: Read>(
    source: R,
    format: Format,
    base: Option<&str>,
    load: &str,
) -> Result<impl Iterator<Item = Result<Quad, GraphError>> + use<R>, GraphError> {
    let mut parser = RdfParser::from_format(format.rdf());
    if let Some(base) = base {
        parser = parser
            .with_base_iri(base)
            .map_err(|error| GraphError::Syntax(format!("base: {error}")))?;
    }
    let source = unmarked(source).map_err(|error| GraphError::Syntax(error.to_string()))?;
    let mut labels = Labels::new(load);
    let mut ended = false;
    let quads = parser.for_reader(source).map(move |quad| {
        let quad = quad.map_err(|error| GraphError::Syntax(error.to_string()))?;
        Ok(labels.quad(quad))
    });
    Ok(quads.take_while(move |quad| {
        let wanted = !ended;
        ended |= quad.is_err();
        wanted
    }))
}

/// A text without the byte order mark that it may begin with.
fn unmarked<R: Read>(mut source: R) -> std::io::Result<impl Read> {
    let mut head = Vec::new();
    source.by_ref().take(3).read_to_end(&mut head)?;
    if head == b"\xef\xbb\xbf" {
        head.clear();
    }
    Ok(std::io::Cursor::new(head).chain(source))
}

/// Writes quads to a file. Formats with one graph drop the graph's name.
///
/// # Errors
/// What the source says, and [`GraphError::Journal`] when the target takes no more.
pub fn write<W: Write>(
    quads: impl Iterator<Item = Result<Quad, GraphError>>,
    format: Format,
    target: W,
) -> Result<W, GraphError> {
    let failed =
        |error: std::io::Error| GraphError::Journal(tg_storage::StorageError::from_io(&error));
    let mut serializer = RdfSerializer::from_format(format.rdf()).for_writer(target);
    for quad in quads {
        let quad = quad?;
        if format.has_graphs() {
            serializer.serialize_quad(&quad).map_err(failed)?;
        } else {
            let triple = Triple::new(quad.subject, quad.predicate, quad.object);
            serializer.serialize_triple(&triple).map_err(failed)?;
        }
    }
    serializer.finish().map_err(failed)
}

/// Blank nodes of one load, numbered as they appear.
struct Labels {
    load: String,
    known: HashMap<BlankNode, BlankNode>,
}

impl Labels {
    fn new(load: &str) -> Self {
        let letters = load.chars().filter(char::is_ascii_alphanumeric);
        Self {
            load: letters.collect(),
            known: HashMap::new(),
        }
    }

    fn blank(&mut self, node: BlankNode) -> BlankNode {
        let number = self.known.len();
        let load = &self.load;
        let fresh = || BlankNode::new_unchecked(format!("l{load}n{number}"));
        self.known.entry(node).or_insert_with(fresh).clone()
    }

    fn quad(&mut self, quad: Quad) -> Quad {
        Quad {
            subject: self.subject(quad.subject),
            predicate: quad.predicate,
            object: self.term(quad.object),
            graph_name: match quad.graph_name {
                GraphName::BlankNode(node) => self.blank(node).into(),
                other => other,
            },
        }
    }

    fn subject(&mut self, subject: NamedOrBlankNode) -> NamedOrBlankNode {
        match subject {
            NamedOrBlankNode::BlankNode(node) => self.blank(node).into(),
            named => named,
        }
    }

    fn term(&mut self, term: Term) -> Term {
        match term {
            Term::BlankNode(node) => self.blank(node).into(),
            Term::Triple(triple) => Term::Triple(Box::new(Triple {
                subject: self.subject(triple.subject),
                predicate: triple.predicate,
                object: self.term(triple.object),
            })),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests;
