//! Terms of the contract ↔ terms of the store, with validation. Never panics: what RDF cannot say is an
//! error that names the field.

use oxigraph::model::{
    BaseDirection, BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad,
    Term as RdfTerm, Triple as RdfTriple,
};
use tg_schemas::{Term, Triple, is_drawn_label};

use crate::error::GraphError;

/// Quoted triples inside quoted triples.
const DEPTH: usize = 16;

/// A fault with the path below the term that was given; the path is built only when there is one.
struct TermError {
    path: String,
    why: String,
}

type Checked<T> = Result<T, TermError>;

fn fault<T>(why: impl Into<String>) -> Checked<T> {
    Err(TermError {
        path: String::new(),
        why: why.into(),
    })
}

trait Below<T> {
    fn below(self, step: &str) -> Checked<T>;
}

impl<T> Below<T> for Checked<T> {
    fn below(self, step: &str) -> Checked<T> {
        self.map_err(|fault| TermError {
            path: format!(".{step}{}", fault.path),
            why: fault.why,
        })
    }
}

fn named<T>(result: Checked<T>, field: &str) -> Result<T, GraphError> {
    result.map_err(|fault| {
        let path = format!("{field}{}", fault.path);
        GraphError::Term {
            field: path.trim_start_matches('.').to_owned(),
            why: fault.why,
        }
    })
}

/// A whole triple as a quad. `field` is the path of the triple, e.g. `triples[3]`; may be empty.
///
/// # Errors
/// [`GraphError::Term`], which names the field.
pub fn quad(field: &str, triple: &Triple) -> Result<Quad, GraphError> {
    named(Repeated::default().checked(triple), field)
}

/// The subject and the graph of the triple before. Triples of a record repeat them, and to read an IRI takes longer than to compare
/// and to copy it.
#[derive(Default)]
pub struct Repeated<'a> {
    subject: Last<'a>,
    graph: Last<'a>,
}

impl<'a> Repeated<'a> {
    /// The next triple as a quad, as [`quad`] reads it.
    ///
    /// # Errors
    /// [`GraphError::Term`], which names the field.
    pub fn quad(&mut self, triple: &'a Triple) -> Result<Quad, GraphError> {
        named(self.checked(triple), "")
    }

    fn checked(&mut self, triple: &'a Triple) -> Checked<Quad> {
        let subject = match &triple.s {
            Some(Term::Iri(iri)) if !is_drawn_label(iri) => self.subject.iri(iri).map(Into::into),
            other => present(other).and_then(checked_subject),
        };
        let subject = subject.below("s")?;
        let (p, o) = checked_rest(triple, 0)?;
        let graph = match triple.g.as_deref() {
            None | Some("") => GraphName::DefaultGraph,
            Some(label) if is_blank(label) => checked_graph(label).below("g")?,
            Some(iri) => self.graph.iri(iri).below("g")?.into(),
        };
        Ok(RdfTriple::new(subject, p, o).in_graph(graph))
    }
}

/// The IRI that was read last.
#[derive(Default)]
struct Last<'a>(Option<(&'a str, NamedNode)>);

impl<'a> Last<'a> {
    fn iri(&mut self, text: &'a str) -> Checked<NamedNode> {
        match &self.0 {
            Some((known, node)) if *known == text => Ok(node.clone()),
            _ => {
                let node = checked_iri(text)?;
                self.0 = Some((text, node.clone()));
                Ok(node)
            }
        }
    }
}

/// A term in object position, where every kind is allowed.
///
/// # Errors
/// [`GraphError::Term`], which names the field.
pub fn object(field: &str, term: &Term) -> Result<RdfTerm, GraphError> {
    named(checked_term(term, 0), field)
}

/// An IRI given as text, e.g. the name of a graph.
///
/// # Errors
/// [`GraphError::Term`], which names the field.
pub fn iri(field: &str, text: &str) -> Result<NamedNode, GraphError> {
    named(checked_iri(text), field)
}

/// The name of a graph: an IRI, or what [`from_quad`] makes of a blank node.
///
/// # Errors
/// [`GraphError::Term`], which names the field.
pub fn graph(field: &str, text: &str) -> Result<GraphName, GraphError> {
    named(checked_graph(text), field)
}

/// A subject. Literals and quoted triples are none.
///
/// # Errors
/// [`GraphError::Term`], which names the field.
pub fn subject(field: &str, term: &Term) -> Result<NamedOrBlankNode, GraphError> {
    named(checked_subject(term), field)
}

fn checked_triple(triple: &Triple, depth: usize) -> Checked<RdfTriple> {
    let s = present(&triple.s).and_then(checked_subject).below("s")?;
    let (p, o) = checked_rest(triple, depth)?;
    Ok(RdfTriple::new(s, p, o))
}

/// Predicate and object.
fn checked_rest(triple: &Triple, depth: usize) -> Checked<(NamedNode, RdfTerm)> {
    let p = present(&triple.p).and_then(checked_predicate).below("p")?;
    let o = present(&triple.o)
        .and_then(|term| checked_term(term, depth))
        .below("o")?;
    Ok((p, o))
}

fn present(term: &Option<Term>) -> Checked<&Term> {
    term.as_ref().map_or_else(|| fault("is required"), Ok)
}

fn checked_subject(term: &Term) -> Checked<NamedOrBlankNode> {
    match term {
        Term::Iri(label) if is_drawn_label(label) => Ok(checked_blank(label)?.into()),
        Term::Iri(iri) => Ok(checked_iri(iri)?.into()),
        Term::Blank(label) => Ok(checked_blank(label)?.into()),
        Term::Literal { .. } => fault("a literal cannot be a subject"),
        Term::Quoted(_) => {
            fault("a quoted triple can only be an object (link to it with a node and rdf:reifies)")
        }
    }
}

fn checked_predicate(term: &Term) -> Checked<NamedNode> {
    match term {
        Term::Iri(iri) => checked_iri(iri),
        _ => fault("a predicate must be an IRI"),
    }
}

fn checked_term(term: &Term, depth: usize) -> Checked<RdfTerm> {
    match term {
        Term::Iri(label) if is_drawn_label(label) => Ok(checked_blank(label)?.into()),
        Term::Iri(iri) => Ok(checked_iri(iri)?.into()),
        Term::Blank(label) => Ok(checked_blank(label)?.into()),
        Term::Literal {
            value,
            datatype,
            language,
        } => Ok(checked_literal(value, datatype, language)?.into()),
        Term::Quoted(_) if depth >= DEPTH => {
            fault(format!("quoted triples are nested more than {DEPTH} deep"))
        }
        Term::Quoted(triple) => {
            let inner = checked_triple(triple, depth + 1).below("tr")?;
            Ok(RdfTerm::Triple(Box::new(inner)))
        }
    }
}

fn checked_iri(text: &str) -> Checked<NamedNode> {
    match NamedNode::new(text) {
        Ok(node) => Ok(node),
        Err(_) if text.is_empty() => fault("an IRI is required"),
        Err(error) => fault(format!("not an absolute IRI: {error}")),
    }
}

/// Whether the name of a graph is that of a blank node.
fn is_blank(graph: &str) -> bool {
    graph.starts_with("_:") || is_drawn_label(graph)
}

fn checked_graph(text: &str) -> Checked<GraphName> {
    if is_blank(text) {
        return Ok(checked_blank(text)?.into());
    }
    Ok(checked_iri(text)?.into())
}

fn checked_blank(label: &str) -> Checked<BlankNode> {
    let label = label.strip_prefix("_:").unwrap_or(label);
    BlankNode::new(label).or_else(|_| fault("not a blank node label"))
}

fn checked_literal(value: &str, datatype: &str, language: &str) -> Checked<Literal> {
    if language.is_empty() {
        if datatype.is_empty() {
            return Ok(Literal::new_simple_literal(value));
        }
        let datatype = checked_iri(datatype).below("dt")?;
        return Ok(Literal::new_typed_literal(value, datatype));
    }
    let literal = match split_direction(language) {
        Some((tag, direction)) => {
            Literal::new_directional_language_tagged_literal(value, tag, direction)
        }
        None => Literal::new_language_tagged_literal(value, language),
    };
    literal.or_else(|_| fault("not a language tag").below("ln"))
}

/// `he--rtl` → `he`, right to left.
fn split_direction(language: &str) -> Option<(&str, BaseDirection)> {
    let (tag, direction) = language.split_once("--")?;
    let direction = match direction {
        "ltr" => BaseDirection::Ltr,
        "rtl" => BaseDirection::Rtl,
        _ => return None,
    };
    Some((tag, direction))
}

/// A quad of the store as a triple of the contract.
pub fn from_quad(quad: Quad) -> Triple {
    let graph = match quad.graph_name {
        GraphName::DefaultGraph => None,
        GraphName::NamedNode(node) => Some(node.into_string()),
        GraphName::BlankNode(node) if is_drawn_label(node.as_str()) => Some(node.into_string()),
        GraphName::BlankNode(node) => Some(format!("_:{}", node.as_str())),
    };
    Triple {
        s: Some(from_subject(quad.subject)),
        p: Some(Term::Iri(quad.predicate.into_string())),
        o: Some(from_term(quad.object)),
        g: graph,
    }
}

/// A triple of the store as a triple of the contract.
pub fn from_triple(triple: RdfTriple) -> Triple {
    from_quad(triple.in_graph(GraphName::DefaultGraph))
}

/// A term of the store as a term of the contract.
pub fn from_term(term: RdfTerm) -> Term {
    match term {
        RdfTerm::NamedNode(node) => Term::Iri(node.into_string()),
        RdfTerm::BlankNode(node) => from_blank(node),
        RdfTerm::Literal(literal) => from_literal(literal),
        RdfTerm::Triple(triple) => Term::Quoted(Box::new(from_triple(*triple))),
    }
}

fn from_subject(subject: NamedOrBlankNode) -> Term {
    match subject {
        NamedOrBlankNode::NamedNode(node) => Term::Iri(node.into_string()),
        NamedOrBlankNode::BlankNode(node) => from_blank(node),
    }
}

/// Whoever sent a drawn label in the place of an IRI gets it back there, and asks for it so.
fn from_blank(node: BlankNode) -> Term {
    let label = node.into_string();
    match is_drawn_label(&label) {
        true => Term::Iri(label),
        false => Term::Blank(label),
    }
}

fn from_literal(literal: Literal) -> Term {
    let (value, datatype, language, direction) = literal.destruct();
    let mut language = language.unwrap_or_default();
    match direction {
        Some(BaseDirection::Ltr) => language.push_str("--ltr"),
        Some(BaseDirection::Rtl) => language.push_str("--rtl"),
        None => {}
    }
    Term::Literal {
        value,
        datatype: datatype.map(NamedNode::into_string).unwrap_or_default(),
        language,
    }
}

#[cfg(test)]
mod tests;
