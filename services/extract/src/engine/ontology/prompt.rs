//! Elements as the prompt gets them.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::element::{Element, Kind, local};
use super::model::Ontologies;

/// Longest comment that is shown, in characters.
const COMMENT: usize = 300;

/// The prompt's values: `classes`, `object_properties` and `datatype_properties` by name.
pub fn terms(ontologies: &Ontologies, chosen: &BTreeSet<usize>) -> Map<String, Value> {
    let (mut classes, mut relations, mut attributes) = (Map::new(), Map::new(), Map::new());
    for at in chosen {
        let element = &ontologies.elements()[*at];
        let part = match element.kind {
            Kind::Class => &mut classes,
            Kind::Relation => &mut relations,
            Kind::Attribute => &mut attributes,
        };
        part.insert(element.name.clone(), term(ontologies, element));
    }
    Map::from_iter([
        ("classes".to_owned(), Value::Object(classes)),
        ("object_properties".to_owned(), Value::Object(relations)),
        ("datatype_properties".to_owned(), Value::Object(attributes)),
    ])
}

fn term(ontologies: &Ontologies, element: &Element) -> Value {
    let label = element.labels.first().map_or("", |label| &label.text);
    let comment = element.comments.first().map_or("", |comment| &comment.text);
    let comment: String = comment.chars().take(COMMENT).collect();
    let mut term = json!({"uri": element.iri, "label": label, "comment": comment});
    match element.kind {
        Kind::Class => term["subclass_of"] = names(ontologies, &element.parents).into(),
        Kind::Relation => {
            term["domain"] = names(ontologies, &element.domains).into();
            term["range"] = names(ontologies, &element.ranges).into();
        }
        Kind::Attribute => {
            term["domain"] = names(ontologies, &element.domains).into();
            let ranges: Vec<&str> = element.ranges.iter().map(|range| local(range)).collect();
            term["range"] = ranges.join(" or ").into();
        }
    }
    term
}

fn names(ontologies: &Ontologies, iris: &[String]) -> String {
    let classes = ontologies.classes(iris);
    let names: Vec<&str> = classes
        .iter()
        .map(|at| ontologies.elements()[*at].name.as_str())
        .collect();
    names.join(" or ")
}
