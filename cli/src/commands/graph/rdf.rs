//! Between the wire's terms and those of the RDF parser and serialiser. Pure.

use std::collections::HashMap;
use std::io::{BufReader, Read};
use std::path::Path;

use oxigraph::io::{RdfFormat, RdfParseError, RdfParser, RdfSerializer};
use oxigraph::model::{
    BaseDirection, BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad,
    Term as OxTerm, Triple as OxTriple,
};
use sha2::{Digest, Sha256};
use tg_schemas::vocabulary::xsd;
use tg_schemas::{Term, Triple, directed, is_drawn_label};

use crate::client::{Error, Result};

/// Gives blank nodes labels that are the same each time the same file is loaded for the same
/// document, and differ from those of any other file.
#[derive(Debug)]
pub(super) struct Labels {
    /// `None`: they stay what they are.
    prefix: Option<String>,
    seen: HashMap<String, usize>,
}

impl Labels {
    /// Labels for one file of one document.
    pub(super) fn new(document: &str, file: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update((document.len() as u64).to_be_bytes());
        hash.update(document);
        hash.update(file);
        Self {
            prefix: Some(format!("b{}", hex::encode(&hash.finalize()[..8]))),
            seen: HashMap::new(),
        }
    }

    /// The labels of the file itself: what is hashed is hashed with them.
    fn kept() -> Self {
        Self {
            prefix: None,
            seen: HashMap::new(),
        }
    }

    fn label(&mut self, node: &BlankNode) -> Term {
        let Some(prefix) = &self.prefix else {
            return Term::Blank(node.as_str().to_owned());
        };
        let next = self.seen.len();
        let number = *self.seen.entry(node.as_str().to_owned()).or_insert(next);
        Term::Blank(format!("{prefix}n{number}"))
    }
}

/// A parsed quad as a triple of the wire.
pub(super) fn from_quad(quad: Quad, labels: &mut Labels) -> Triple {
    let graph = match quad.graph_name {
        GraphName::NamedNode(name) => Some(name.into_string()),
        GraphName::BlankNode(node) => match labels.label(&node) {
            Term::Blank(label) => Some(format!("_:{label}")),
            _ => None,
        },
        GraphName::DefaultGraph => None,
    };
    Triple {
        s: Some(from_subject(quad.subject, labels)),
        p: Some(Term::Iri(quad.predicate.into_string())),
        o: Some(from_term(quad.object, labels)),
        g: graph,
    }
}

fn from_subject(subject: NamedOrBlankNode, labels: &mut Labels) -> Term {
    match subject {
        NamedOrBlankNode::NamedNode(name) => Term::Iri(name.into_string()),
        NamedOrBlankNode::BlankNode(node) => labels.label(&node),
    }
}

fn from_term(term: OxTerm, labels: &mut Labels) -> Term {
    match term {
        OxTerm::NamedNode(name) => Term::Iri(name.into_string()),
        OxTerm::BlankNode(node) => labels.label(&node),
        OxTerm::Literal(literal) => from_literal(&literal),
        OxTerm::Triple(triple) => Term::Quoted(Box::new(Triple::new(
            from_subject(triple.subject, labels),
            Term::Iri(triple.predicate.into_string()),
            from_term(triple.object, labels),
        ))),
    }
}

/// Text needs no datatype on the wire.
fn from_literal(literal: &Literal) -> Term {
    let mut language = literal.language().unwrap_or_default().to_owned();
    match literal.direction() {
        Some(BaseDirection::Ltr) => language.push_str("--ltr"),
        Some(BaseDirection::Rtl) => language.push_str("--rtl"),
        None => {}
    }
    let datatype = match literal.datatype().as_str() {
        xsd::STRING => String::new(),
        _ if !language.is_empty() => String::new(),
        datatype => datatype.to_owned(),
    };
    Term::Literal {
        value: literal.value().to_owned(),
        datatype,
        language,
    }
}

/// A triple as a line of N-Quads in a graph; `None` if RDF cannot say it.
pub(crate) fn quad_line(triple: &Triple, graph: &str) -> Option<Vec<u8>> {
    let quad = to_triple(triple)?.in_graph(NamedNode::new(graph).ok()?);
    let mut writer = RdfSerializer::from_format(RdfFormat::NQuads).for_writer(Vec::new());
    writer.serialize_quad(&quad).ok()?;
    writer.finish().ok()
}

/// The quads of a graph in N-Quads, with the blank nodes as they are named there; `file` is named in errors.
pub(crate) fn quads_of(quads: impl Read, graph: &str, file: &Path) -> Result<Vec<Triple>> {
    let mut labels = Labels::kept();
    let parser = RdfParser::from_format(RdfFormat::NQuads).lenient();
    let mut found = Vec::new();
    for quad in parser.for_reader(BufReader::new(quads)) {
        let quad = quad.map_err(|error| Error::file(file, error))?;
        let is_in =
            matches!(&quad.graph_name, GraphName::NamedNode(name) if name.as_str() == graph);
        if is_in {
            found.push(from_quad(quad, &mut labels));
        }
    }
    Ok(found)
}

/// Hands over each quad of N-Quads until they end or `take` says that it is enough; of a line that is none, why.
/// `name` keeps blank nodes apart from those of others; `file` is named in errors. The official export writes a blank
/// node of its loaders as an IRI, which it is not: these are taken, and no other IRI without a scheme.
pub(crate) fn each_quad(
    quads: impl Read,
    name: &str,
    file: &Path,
    mut take: impl FnMut(std::result::Result<Triple, String>) -> bool,
) -> Result<()> {
    let mut labels = Labels::new(name, "");
    let parser = RdfParser::from_format(RdfFormat::NQuads).lenient();
    for quad in parser.for_reader(BufReader::new(quads)) {
        let quad = match quad {
            Ok(quad) => {
                let line = quad.to_string();
                let triple = from_quad(quad, &mut labels);
                let graph = triple.g.as_deref();
                let named =
                    graph.is_none_or(|name| name.starts_with("_:") || to_name(name).is_some());
                match named && to_triple(&triple).is_some() {
                    true => Ok(triple),
                    false => Err(format!("an IRI without a scheme, or no RDF: {line}")),
                }
            }
            Err(RdfParseError::Syntax(error)) => Err(error.to_string()),
            Err(RdfParseError::Io(error)) => {
                return Err(Error::file(file, format!("{name}: {error}")));
            }
        };
        if !take(quad) {
            break;
        }
    }
    Ok(())
}

/// A triple of the wire for the serialiser; `None` if RDF cannot say it.
pub(super) fn to_triple(triple: &Triple) -> Option<OxTriple> {
    let Term::Iri(predicate) = triple.p.as_ref()? else {
        return None;
    };
    Some(OxTriple::new(
        to_subject(triple.s.as_ref()?)?,
        NamedNode::new(predicate).ok()?,
        to_term(triple.o.as_ref()?)?,
    ))
}

/// An IRI, or the blank node that it stands for.
fn to_name(text: &str) -> Option<NamedOrBlankNode> {
    match is_drawn_label(text) {
        true => Some(BlankNode::new(text).ok()?.into()),
        false => Some(NamedNode::new(text).ok()?.into()),
    }
}

fn to_subject(term: &Term) -> Option<NamedOrBlankNode> {
    match term {
        Term::Iri(iri) => to_name(iri),
        Term::Blank(label) => Some(BlankNode::new(label).ok()?.into()),
        Term::Literal { .. } | Term::Quoted(_) => None,
    }
}

fn to_term(term: &Term) -> Option<OxTerm> {
    Some(match term {
        Term::Iri(_) | Term::Blank(_) => to_subject(term)?.into(),
        Term::Literal {
            value,
            datatype,
            language,
        } => match (language.as_str(), datatype.as_str()) {
            ("", "") => Literal::new_simple_literal(value).into(),
            ("", datatype) => {
                Literal::new_typed_literal(value, NamedNode::new(datatype).ok()?).into()
            }
            (language, _) => {
                let (tag, direction) = directed(language);
                let direction = direction.map(|direction| match direction {
                    "rtl" => BaseDirection::Rtl,
                    _ => BaseDirection::Ltr,
                });
                let literal = match direction {
                    Some(direction) => {
                        Literal::new_directional_language_tagged_literal(value, tag, direction)
                    }
                    None => Literal::new_language_tagged_literal(value, tag),
                };
                literal.ok()?.into()
            }
        },
        Term::Quoted(triple) => OxTerm::Triple(Box::new(to_triple(triple)?)),
    })
}
