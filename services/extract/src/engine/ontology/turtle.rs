//! OWL in Turtle: the same elements, from triples. Restrictions and axioms beyond them are passed over.

use std::collections::{BTreeMap, BTreeSet};

use oxigraph::io::{RdfFormat, RdfParser};
use oxigraph::model::{NamedOrBlankNode, Term};

use super::element::{Element, Kind, Label, Ontology, local};
use tg_schemas::vocabulary::{made, owl, rdf, rdfs, xsd};

pub(super) const XSD: &str = xsd::NAMESPACE;
pub(super) const RDF: &str = rdf::NAMESPACE;
pub(super) const RDFS: &str = rdfs::NAMESPACE;
pub(super) const OWL: &str = owl::NAMESPACE;

/// Most triples that are read.
const MOST: usize = 400_000;
/// Most members of a union.
const UNION: usize = 256;

/// Values by subject and predicate. Blank nodes are written `_:id`.
type Graph = BTreeMap<String, BTreeMap<String, Vec<Term>>>;

/// Reads an ontology. The error says where the text is wrong.
pub(super) fn read(key: &str, text: &str) -> Result<Ontology, String> {
    let graph = parse(text)?;
    let iri = graph
        .iter()
        .find(|(subject, values)| is_a(values, &[&format!("{OWL}Ontology")]) && !is_blank(subject))
        .map(|(subject, _)| subject.clone());
    let mut ontology = Ontology {
        iri: iri.unwrap_or_else(|| format!("{}{key}", made::ONTOLOGY)),
        ..Ontology::default()
    };
    let mut taken = BTreeSet::new();
    for (subject, values) in &graph {
        let Some(kind) = kind(values).filter(|_| !is_blank(subject)) else {
            continue;
        };
        // Two elements of one local name are told apart by their IRIs.
        let short = local(subject).to_owned();
        let name = if taken.insert(short.clone()) {
            short
        } else {
            subject.clone()
        };
        let mut element = Element::new(kind, subject.clone(), name);
        element.labels = texts(values, "label");
        element.comments = texts(values, "comment");
        let of = |space: &str, name: &str| iris(&graph, values, &format!("{space}{name}"));
        element.parents = match kind {
            Kind::Class => of(RDFS, "subClassOf"),
            _ => of(RDFS, "subPropertyOf"),
        };
        element.equivalent = of(OWL, "equivalentClass");
        element.domains = of(RDFS, "domain");
        element.ranges = of(RDFS, "range");
        element.inverse = of(OWL, "inverseOf").into_iter().next();
        ontology.elements.push(element);
    }
    if ontology.elements.is_empty() {
        return Err("declares no class and no property".to_owned());
    }
    Ok(ontology)
}

fn parse(text: &str) -> Result<Graph, String> {
    let mut graph = Graph::new();
    // A byte order mark is no part of a text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (count, quad) in RdfParser::from_format(RdfFormat::Turtle)
        .for_slice(text)
        .enumerate()
    {
        if count >= MOST {
            return Err(format!("has more than {MOST} triples"));
        }
        let quad = quad.map_err(|error| match error.location() {
            Some(at) => format!("line {}: is not valid Turtle", at.start.line + 1),
            None => "is not valid Turtle".to_owned(),
        })?;
        let subject = match quad.subject {
            NamedOrBlankNode::NamedNode(node) => node.into_string(),
            NamedOrBlankNode::BlankNode(node) => format!("_:{}", node.into_string()),
        };
        let values = graph.entry(subject).or_default();
        let values = values.entry(quad.predicate.into_string()).or_default();
        values.push(quad.object);
    }
    Ok(graph)
}

fn is_blank(subject: &str) -> bool {
    subject.starts_with("_:")
}

fn is_a(values: &BTreeMap<String, Vec<Term>>, classes: &[&str]) -> bool {
    let types = values.get(&format!("{RDF}type"));
    types
        .into_iter()
        .flatten()
        .any(|value| matches!(value, Term::NamedNode(node) if classes.contains(&node.as_str())))
}

fn kind(values: &BTreeMap<String, Vec<Term>>) -> Option<Kind> {
    let is = |space: &str, name: &str| is_a(values, &[&format!("{space}{name}")]);
    if is(OWL, "ObjectProperty") {
        Some(Kind::Relation)
    } else if is(OWL, "DatatypeProperty") {
        Some(Kind::Attribute)
    } else if is(OWL, "Class") || is(RDFS, "Class") {
        Some(Kind::Class)
    } else if is(RDF, "Property") {
        let ranges = values.get(&format!("{RDFS}range")).into_iter().flatten();
        let value = |range: &Term| {
            matches!(range, Term::NamedNode(node)
                if node.as_str().starts_with(XSD) || node.as_str() == format!("{RDFS}Literal"))
        };
        let attribute = ranges.into_iter().any(value);
        Some(if attribute {
            Kind::Attribute
        } else {
            Kind::Relation
        })
    } else {
        None
    }
}

/// English and untagged texts first.
fn texts(values: &BTreeMap<String, Vec<Term>>, name: &str) -> Vec<Label> {
    let given = values.get(&format!("{RDFS}{name}")).into_iter().flatten();
    let mut texts: Vec<Label> = given
        .filter_map(|value| match value {
            Term::Literal(literal) => Some(Label {
                text: literal.value().trim().to_owned(),
                language: literal.language().unwrap_or_default().to_owned(),
            }),
            _ => None,
        })
        .filter(|label| !label.text.is_empty())
        .collect();
    texts.sort_by_key(|label| !(label.language.is_empty() || label.language.starts_with("en")));
    texts
}

/// IRIs among the values; a union counts as its members.
fn iris(graph: &Graph, values: &BTreeMap<String, Vec<Term>>, predicate: &str) -> Vec<String> {
    let mut found = Vec::new();
    for value in values.get(predicate).into_iter().flatten() {
        match value {
            Term::NamedNode(node) => found.push(node.as_str().to_owned()),
            Term::BlankNode(node) => {
                let node = graph.get(&format!("_:{}", node.as_str()));
                let unions = node.and_then(|values| values.get(&format!("{OWL}unionOf")));
                for list in unions.into_iter().flatten() {
                    members(graph, list, &mut found);
                }
            }
            _ => {}
        }
    }
    found.dedup();
    found
}

fn members(graph: &Graph, list: &Term, found: &mut Vec<String>) {
    let mut at = list.clone();
    for _ in 0..UNION {
        let Term::BlankNode(node) = &at else { return };
        let Some(cell) = graph.get(&format!("_:{}", node.as_str())) else {
            return;
        };
        let first = |name: &str| {
            cell.get(&format!("{RDF}{name}"))
                .and_then(|all| all.first())
        };
        if let Some(Term::NamedNode(member)) = first("first") {
            found.push(member.as_str().to_owned());
        }
        match first("rest") {
            Some(rest) => at = rest.clone(),
            None => return,
        }
    }
}
