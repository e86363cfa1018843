//! The JSON form: `metadata`, `classes`, `objectProperties`, `datatypeProperties`, each element under its id.

use serde_json::{Map, Value};

use super::element::{Element, Kind, Label, Ontology};
use super::turtle::{OWL, RDF, RDFS, XSD};
use tg_schemas::vocabulary::made;

/// Reads an ontology. The error names the part that is wrong.
pub(super) fn read(key: &str, map: &Map<String, Value>) -> Result<Ontology, String> {
    let iri = map
        .get("metadata")
        .and_then(|metadata| metadata.get("namespace").or(metadata.get("uri")))
        .and_then(Value::as_str)
        .filter(|iri| is_absolute(iri))
        .map_or_else(|| format!("{}{key}", made::ONTOLOGY), str::to_owned);
    let reader = Reader { key, map };
    let mut ontology = Ontology {
        iri,
        ..Ontology::default()
    };
    for (part, kind) in PARTS {
        let elements = match map.get(part) {
            None | Some(Value::Null) => continue,
            Some(Value::Object(elements)) => elements,
            Some(_) => return Err(format!("{part}: must be an object")),
        };
        for (id, value) in elements {
            let element = reader.element(part, kind, id, value)?;
            ontology.elements.push(element);
        }
    }
    if ontology.elements.is_empty() {
        return Err("declares nothing".to_owned());
    }
    Ok(ontology)
}

const PARTS: [(&str, Kind); 3] = [
    ("classes", Kind::Class),
    ("objectProperties", Kind::Relation),
    ("datatypeProperties", Kind::Attribute),
];

struct Reader<'a> {
    key: &'a str,
    map: &'a Map<String, Value>,
}

impl Reader<'_> {
    fn element(&self, part: &str, kind: Kind, id: &str, value: &Value) -> Result<Element, String> {
        let at = || format!("{part}.{id}");
        let value = value
            .as_object()
            .ok_or_else(|| format!("{}: must be an object", at()))?;
        let iri = self.iri_of(id, value);
        if !is_absolute(&iri) {
            return Err(format!("{}.uri: is not an absolute IRI", at()));
        }
        let mut element = Element::new(kind, iri, id.to_owned());
        element.labels = read_labels(value.get("rdfs:label"));
        element.comments = read_labels(value.get("rdfs:comment"));
        let of = |name: &str| -> Vec<String> {
            names(value.get(name))
                .into_iter()
                .map(|name| self.resolve(name))
                .collect()
        };
        element.parents = match kind {
            Kind::Class => of("rdfs:subClassOf"),
            _ => of("rdfs:subPropertyOf"),
        };
        element.equivalent = of("owl:equivalentClass");
        element.domains = of("rdfs:domain");
        element.ranges = of("rdfs:range");
        element.inverse = of("owl:inverseOf").into_iter().next();
        Ok(element)
    }

    fn iri_of(&self, id: &str, value: &Map<String, Value>) -> String {
        let given = value.get("uri").and_then(Value::as_str);
        let given = given.map(str::trim).filter(|iri| !iri.is_empty());
        given.map_or_else(|| self.own(id), str::to_owned)
    }

    fn own(&self, id: &str) -> String {
        format!("{}{}#{id}", made::ONTOLOGY, self.key)
    }

    /// The IRI behind an id of this ontology, a common prefix, or an IRI.
    fn resolve(&self, name: &str) -> String {
        for (part, _) in PARTS {
            let declared = self.map.get(part).and_then(|part| part.get(name));
            if let Some(value) = declared.and_then(Value::as_object) {
                return self.iri_of(name, value);
            }
        }
        let known = [("xsd:", XSD), ("rdfs:", RDFS), ("rdf:", RDF), ("owl:", OWL)];
        for (prefix, space) in known {
            if let Some(rest) = name.strip_prefix(prefix) {
                return format!("{space}{rest}");
            }
        }
        if is_absolute(name) {
            name.to_owned()
        } else {
            self.own(name)
        }
    }
}

/// Whether a text can be an IRI that stands for itself.
pub(super) fn is_absolute(iri: &str) -> bool {
    let scheme = iri.split_once(':').is_some_and(|(scheme, rest)| {
        let letters = scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        !rest.is_empty() && letters && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
    });
    let forbidden = |c: char| c.is_control() || c.is_whitespace() || "<>\"{}|\\^`".contains(c);
    scheme && !iri.contains(forbidden)
}

/// Names in a value: a text, `{"@id": text}`, or a list of such.
fn names(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::String(name)) if !name.trim().is_empty() => vec![name.trim()],
        Some(Value::Array(list)) => list.iter().flat_map(|one| names(Some(one))).collect(),
        Some(Value::Object(map)) => names(map.get("@id").or(map.get("uri"))),
        _ => Vec::new(),
    }
}

/// Texts in a value: a text, `{"value", "lang"}`, or a list of such. English first.
fn read_labels(value: Option<&Value>) -> Vec<Label> {
    let mut labels: Vec<Label> = match value {
        Some(Value::String(text)) => vec![Label {
            text: text.trim().to_owned(),
            language: String::new(),
        }],
        Some(Value::Array(list)) => list.iter().flat_map(|one| read_labels(Some(one))).collect(),
        Some(Value::Object(map)) => {
            let text = |names: [&str; 2]| {
                let found = names.iter().find_map(|name| map.get(*name)?.as_str());
                found.unwrap_or_default().trim().to_owned()
            };
            vec![Label {
                text: text(["value", "@value"]),
                language: text(["lang", "@language"]),
            }]
        }
        _ => Vec::new(),
    };
    labels.retain(|label| !label.text.is_empty());
    labels.sort_by_key(|label| !(label.language.is_empty() || label.language.starts_with("en")));
    labels
}
