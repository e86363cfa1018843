//! Terms of the contract ↔ terms of RDF's serialisers and parsers. What RDF cannot say is none.

use oxrdf::{
    BaseDirection, BlankNode, Literal, NamedNode, NamedOrBlankNode, Term as RdfTerm,
    Triple as RdfTriple,
};
use tg_schemas::{Term, Triple, is_drawn_label};

/// A triple, without its graph.
pub(super) fn triple(triple: &Triple) -> Option<RdfTriple> {
    let subject = match term(triple.s.as_ref()?)? {
        RdfTerm::NamedNode(node) => NamedOrBlankNode::from(node),
        RdfTerm::BlankNode(node) => node.into(),
        RdfTerm::Literal(_) | RdfTerm::Triple(_) => return None,
    };
    let RdfTerm::NamedNode(predicate) = term(triple.p.as_ref()?)? else {
        return None;
    };
    Some(RdfTriple::new(
        subject,
        predicate,
        term(triple.o.as_ref()?)?,
    ))
}

/// A term.
pub(super) fn term(term: &Term) -> Option<RdfTerm> {
    Some(match term {
        Term::Iri(label) if is_drawn_label(label) => BlankNode::new(label).ok()?.into(),
        Term::Iri(iri) => NamedNode::new(iri).ok()?.into(),
        Term::Blank(label) => {
            let label = label.strip_prefix("_:").unwrap_or(label);
            BlankNode::new(label).ok()?.into()
        }
        Term::Literal {
            value,
            datatype,
            language,
        } => literal(value, datatype, language)?.into(),
        Term::Quoted(inner) => RdfTerm::Triple(Box::new(triple(inner)?)),
    })
}

/// A term as N-Triples write it; one that RDF cannot say, in the words of the API.
pub(crate) fn text(of: &Term) -> String {
    term(of).map_or_else(|| of.to_api().to_string(), |term| term.to_string())
}

fn literal(value: &str, datatype: &str, language: &str) -> Option<Literal> {
    if language.is_empty() {
        return Some(match datatype {
            "" => Literal::new_simple_literal(value),
            datatype => Literal::new_typed_literal(value, NamedNode::new(datatype).ok()?),
        });
    }
    let (tag, direction) = match language.split_once("--") {
        Some((tag, "ltr")) => (tag, Some(BaseDirection::Ltr)),
        Some((tag, "rtl")) => (tag, Some(BaseDirection::Rtl)),
        _ => (language, None),
    };
    match direction {
        Some(direction) => {
            Literal::new_directional_language_tagged_literal(value, tag, direction).ok()
        }
        None => Literal::new_language_tagged_literal(value, tag).ok(),
    }
}

/// What a term needs beside its texts, with its part of the triple that it is in.
const BESIDE: usize = 160;

/// How many bytes of memory a parsed triple needs as one of the contract, by an estimate.
pub(super) fn weight(triple: &RdfTriple) -> usize {
    let subject = match &triple.subject {
        NamedOrBlankNode::NamedNode(node) => node.as_str(),
        NamedOrBlankNode::BlankNode(node) => node.as_str(),
    };
    let object = match &triple.object {
        RdfTerm::NamedNode(node) => node.as_str().len(),
        RdfTerm::BlankNode(node) => node.as_str().len(),
        RdfTerm::Literal(literal) => {
            literal.value().len()
                + literal.datatype().as_str().len()
                + literal.language().map_or(0, str::len)
        }
        RdfTerm::Triple(inner) => weight(inner),
    };
    3 * BESIDE + subject.len() + triple.predicate.as_str().len() + object
}

/// A parsed triple in a graph (empty: the default one); blank nodes are named by `label`.
pub(super) fn from_triple(
    triple: RdfTriple,
    graph: &str,
    label: &mut impl FnMut(BlankNode) -> String,
) -> Triple {
    Triple::new(
        from_term(triple.subject.into(), label),
        Term::Iri(triple.predicate.into_string()),
        from_term(triple.object, label),
    )
    .in_graph(graph)
}

fn from_term(term: RdfTerm, label: &mut impl FnMut(BlankNode) -> String) -> Term {
    match term {
        RdfTerm::NamedNode(node) => Term::Iri(node.into_string()),
        RdfTerm::BlankNode(node) => Term::Blank(label(node)),
        RdfTerm::Literal(literal) => {
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
        RdfTerm::Triple(triple) => Term::Quoted(Box::new(from_triple(*triple, "", label))),
    }
}
