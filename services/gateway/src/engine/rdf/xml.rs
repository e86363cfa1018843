//! What XML can say of RDF: of predicates and types those that end in a name, of texts those without control characters. Whatever
//! else is written as XML no parser reads. Pure.

use oxrdf::vocab::rdf;
use oxrdf::{Literal, NamedNode, NamedOrBlankNode, Term, Triple};

/// Why something cannot be said in XML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoXml {
    /// Nothing at the end of a predicate, or of a type, is the name of an element.
    #[error("<{0}> does not end in a name that XML can have, and would be the name of an element")]
    Name(String),
    /// XML 1.0 knows no such character, however it is written.
    #[error("a text has the character U+{0:04X}, which XML cannot have")]
    Character(u32),
}

/// Whether RDF/XML can say a triple.
pub(super) fn triple(triple: &Triple) -> Result<(), NoXml> {
    if let NamedOrBlankNode::NamedNode(subject) = &triple.subject {
        characters(subject.as_str())?;
    }
    ends_in_name(&triple.predicate)?;
    match &triple.object {
        // The writer makes a type the name of the element of its subject.
        Term::NamedNode(kind) if triple.predicate.as_ref() == rdf::TYPE => ends_in_name(kind),
        object => term(object),
    }
}

/// Whether XML can say a term.
pub(super) fn term(term: &Term) -> Result<(), NoXml> {
    match term {
        Term::NamedNode(node) => characters(node.as_str()),
        Term::BlankNode(_) => Ok(()),
        Term::Literal(literal) => self::literal(literal),
        Term::Triple(inner) => triple(inner),
    }
}

fn literal(literal: &Literal) -> Result<(), NoXml> {
    characters(literal.value())?;
    characters(literal.datatype().as_str())
}

fn characters(text: &str) -> Result<(), NoXml> {
    let known = |c: char| matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    match text.chars().find(|c| !known(*c)) {
        None => Ok(()),
        Some(odd) => Err(NoXml::Character(odd.into())),
    }
}

/// Whether an IRI may become the name of an element: at its end stand characters of names, one of which may begin one.
fn ends_in_name(node: &NamedNode) -> Result<(), NoXml> {
    let iri = node.as_str();
    characters(iri)?;
    let name = iri.rfind(|c| !in_name(c)).map_or(iri, |at| &iri[at..]);
    match name.contains(begins_name) && name.len() < iri.len() {
        true => Ok(()),
        false => Err(NoXml::Name(iri.to_owned())),
    }
}

/// `NCNameStartChar` of Namespaces in XML.
fn begins_name(c: char) -> bool {
    matches!(c, 'A'..='Z' | '_' | 'a'..='z' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}'
        | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}' | '\u{37f}'..='\u{1fff}' | '\u{200c}'..='\u{200d}'
        | '\u{2070}'..='\u{218f}' | '\u{2c00}'..='\u{2fef}' | '\u{3001}'..='\u{d7ff}'
        | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}' | '\u{10000}'..='\u{effff}')
}

/// `NCNameChar`.
fn in_name(c: char) -> bool {
    begins_name(c)
        || matches!(c, '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predicates_end_in_names() {
        let of = |iri: &str| ends_in_name(&NamedNode::new_unchecked(iri));
        for good in [
            "http://e/p",
            "http://e/p#wasBuiltIn",
            "http://e/123abc",
            "urn:x:größe",
            "http://www.w3.org/1999/02/22-rdf-syntax-ns#_1",
            "http://e/a-b.c",
        ] {
            assert_eq!(of(good), Ok(()), "{good}");
        }
        for bad in [
            "http://e/p/123",
            "http://e/p/",
            "http://e/p#",
            "http://e/p?q=1",
            "http://e/%20",
            "urn:isbn:978-3",
            "http://e/-.",
        ] {
            assert_eq!(of(bad), Err(NoXml::Name(bad.to_owned())));
        }
    }

    #[test]
    fn texts_have_no_control_characters() {
        let of = |text: &str| term(&Literal::new_simple_literal(text).into());
        assert_eq!(of("a\tb\r\nc \u{fffd} \u{1f600}"), Ok(()));
        for odd in ['\0', '\u{8}', '\u{b}', '\u{1b}', '\u{fffe}', '\u{ffff}'] {
            assert_eq!(of(&format!("a{odd}")), Err(NoXml::Character(odd.into())));
        }
        let told = NoXml::Character(8).to_string();
        assert_eq!(
            told,
            "a text has the character U+0008, which XML cannot have"
        );
    }
}
