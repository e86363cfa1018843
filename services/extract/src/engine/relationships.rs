//! Relationships: `{subject, predicate, object, object-entity}`.

use std::collections::BTreeMap;

use serde_json::Value;
use tg_schemas::Term;

use super::found::Found;
use super::items::{field, text};
use super::names::{clean, single_spaced};

/// Longest value, in characters.
const LONGEST: usize = 4_000;
/// A longer object is a description rather than a name, when the reply does not say which it is.
const NAME_WORDS: usize = 8;

/// What is said of each entity of a chunk, to be sent to the index once all is read.
#[derive(Debug, Default)]
pub struct EntityDescriptions {
    /// By IRI: the name and the relationships.
    of: BTreeMap<String, (String, Vec<String>)>,
}

/// Adds what one item says. `false` if it says nothing usable.
pub fn read(item: &Value, found: &mut Found, told: &mut EntityDescriptions) -> bool {
    let Some(relationship) = parts(item) else {
        return false;
    };
    let Relationship {
        subject,
        predicate,
        object,
        entity,
    } = relationship;
    let subject_iri = found.named(&subject);
    let predicate_iri = found.named(&predicate);
    let sentence = format!("{subject} {predicate} {object}");
    told.note(&subject_iri, &subject, &sentence);
    let object = if entity {
        let iri = found.named(&object);
        told.note(&iri, &object, &sentence);
        Term::iri(iri)
    } else {
        Term::literal(object)
    };
    found.fact(&subject_iri, &predicate_iri, object);
    true
}

impl EntityDescriptions {
    fn note(&mut self, iri: &str, name: &str, sentence: &str) {
        let (_, sentences) = self
            .of
            .entry(iri.to_owned())
            .or_insert_with(|| (name.to_owned(), Vec::new()));
        if !sentences.iter().any(|known| known == sentence) {
            sentences.push(sentence.to_owned());
        }
    }

    /// Two contexts for each entity: its name, and what is said of it.
    pub fn tell(self, found: &mut Found) {
        for (iri, (name, sentences)) in self.of {
            found.context(&iri, &name, &[]);
            found.context(&iri, &sentences.join("; "), &[]);
        }
    }
}

struct Relationship {
    subject: String,
    predicate: String,
    object: String,
    entity: bool,
}

fn parts(item: &Value) -> Option<Relationship> {
    let subject = clean(&text(item, &["subject"])?)?;
    let predicate = clean(&text(item, &["predicate", "relationship"])?)?;
    let given = field(item, &["object"])?;
    let object = text(item, &["object"])?;
    let object = single_spaced(&object).into_owned();
    if object.is_empty() || object.chars().count() > LONGEST {
        return None;
    }
    let says = field(item, &["object-entity", "object_entity", "objectEntity"]).and_then(truth);
    // A reply that forgot to say is not lost: values are numbers, and what is too long for a name.
    let entity = says.unwrap_or_else(|| {
        given.is_string()
            && object.parse::<f64>().is_err()
            && object.split(' ').count() <= NAME_WORDS
    });
    let name = clean(&object);
    Some(Relationship {
        subject,
        predicate,
        entity: entity && name.is_some(),
        object: name.unwrap_or(object),
    })
}

fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::String(text) => match text.to_ascii_lowercase().as_str() {
            "true" | "yes" => Some(true),
            "false" | "no" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::found::Source;
    use super::*;
    use crate::engine::names::ENTITIES;

    fn object(item: Value) -> Option<Term> {
        let mut found = Found::default();
        read(&item, &mut found, &mut EntityDescriptions::default())
            .then(|| found.facts()[0].o.clone().unwrap())
    }

    #[test]
    fn objects_are_entities_or_values() {
        let item = |object: Value, entity: Value| {
            json!({"subject": "Old Bridge", "predicate": "was built in", "object": object,
                "object-entity": entity})
        };
        let tarn = Term::iri(format!("{ENTITIES}tarn"));
        assert_eq!(object(item(json!("Tarn"), json!(true))), Some(tarn.clone()));
        assert_eq!(
            object(item(json!("Tarn"), json!("True"))),
            Some(tarn.clone())
        );
        assert_eq!(object(item(json!("Tarn"), Value::Null)), Some(tarn));
        for value in [json!("1429"), json!(1429)] {
            assert_eq!(
                object(item(value.clone(), json!(false))),
                Some(Term::literal("1429"))
            );
            assert_eq!(
                object(item(value, Value::Null)),
                Some(Term::literal("1429"))
            );
        }
        let long = "a bridge of three arches that leads over the river";
        assert_eq!(
            object(item(json!(long), Value::Null)),
            Some(Term::literal(long))
        );
        for bad in [json!(""), Value::Null, json!({}), json!([1])] {
            assert_eq!(object(item(bad, json!(true))), None);
        }
        assert_eq!(object(json!({"subject": "a", "object": "b"})), None);
    }

    #[test]
    fn every_entity_is_told_of_once() {
        let mut found = Found::default();
        let mut told = EntityDescriptions::default();
        for (predicate, object, entity) in [
            ("crosses", "River Sell", true),
            ("was built in", "1429", false),
            ("crosses", "River Sell", true),
        ] {
            let item = json!({"subject": "Old Bridge", "predicate": predicate, "object": object,
                "object-entity": entity});
            assert!(read(&item, &mut found, &mut told));
        }
        told.tell(&mut found);
        assert_eq!((found.facts().len(), found.labels().len()), (2, 4));
        let source = Source {
            chunk: "urn:chunk:1".to_owned(),
            metadata: Default::default(),
            fingerprint: String::new(),
        };
        let contexts = found.into_contexts(&source, "kg-extract-relationships");
        let texts: Vec<&str> = contexts.iter().map(|c| c.context.as_str()).collect();
        assert_eq!(
            texts,
            [
                "Old Bridge",
                "Old Bridge crosses River Sell; Old Bridge was built in 1429",
                "River Sell",
                "Old Bridge crosses River Sell",
            ]
        );
    }
}
