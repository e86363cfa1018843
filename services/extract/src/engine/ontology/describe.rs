//! What an ontology says of its elements, as triples of the default graph.

use tg_schemas::vocabulary::{rdf, rdfs};
use tg_schemas::{Term, Triple};

use super::element::{Kind, Label};
use super::model::Ontologies;
use super::turtle::{OWL, RDFS};

/// The elements: kind, labels, comments, what they are kinds of, from where to where properties lead.
pub fn describe(ontologies: &Ontologies) -> Vec<Triple> {
    let mut triples = Vec::new();
    for element in ontologies.elements() {
        let mut say = |predicate: &str, object: Term| {
            let (subject, predicate) = (Term::iri(element.iri.as_str()), Term::iri(predicate));
            triples.push(Triple::new(subject, predicate, object));
        };
        let class = match element.kind {
            Kind::Class => "Class",
            Kind::Relation => "ObjectProperty",
            Kind::Attribute => "DatatypeProperty",
        };
        say(rdf::TYPE, Term::iri(format!("{OWL}{class}")));
        if element.labels.is_empty() {
            say(rdfs::LABEL, Term::literal(element.label()));
        }
        for label in &element.labels {
            say(rdfs::LABEL, text(label));
        }
        for comment in &element.comments {
            say(rdfs::COMMENT, text(comment));
        }
        let above = match element.kind {
            Kind::Class => "subClassOf",
            _ => "subPropertyOf",
        };
        for (predicate, iris) in [
            (format!("{RDFS}{above}"), &element.parents),
            (format!("{OWL}equivalentClass"), &element.equivalent),
            (format!("{RDFS}domain"), &element.domains),
            (format!("{RDFS}range"), &element.ranges),
        ] {
            for iri in iris {
                say(&predicate, Term::iri(iri.as_str()));
            }
        }
        if let Some(inverse) = &element.inverse {
            say(&format!("{OWL}inverseOf"), Term::iri(inverse.as_str()));
        }
    }
    triples
}

fn text(label: &Label) -> Term {
    Term::Literal {
        value: label.text.clone(),
        datatype: String::new(),
        language: label.language.clone(),
    }
}
