//! What a text says in the terms of an ontology, as far as its sentences are simple and its words are the
//! ontology's.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::extract::{definitions, lines, statements};
use super::{definition, words};

/// A class, relation or attribute in a prompt.
struct Term<'a> {
    name: &'a str,
    words: Vec<Vec<String>>,
    /// Superclasses of a class, what a property can be said of.
    from: Vec<&'a str>,
    to: Vec<&'a str>,
}

/// Reply to the prompt for ontology facts. The lists are the prompt's lines.
pub(super) fn reply(
    classes: &[&str],
    relations: &[&str],
    attributes: &[&str],
    text: &str,
) -> String {
    let classes: Vec<Term<'_>> = classes.iter().filter_map(term).collect();
    let relations: Vec<Term<'_>> = relations.iter().filter_map(term).collect();
    let attributes: Vec<Term<'_>> = attributes.iter().filter_map(term).collect();
    let is_one = |class: &str, allowed: &[&str]| {
        let above = ancestors(&classes, class);
        allowed.is_empty() || allowed.iter().any(|one| above.contains(one))
    };
    let mut values: Vec<Value> = Vec::new();
    let mut types: BTreeMap<String, &str> = BTreeMap::new();
    for (name, what) in definitions(text) {
        let said = definition::kind(&what);
        // The longest name of a class is the most exact.
        let class = classes
            .iter()
            .filter_map(|class| {
                Some((
                    class,
                    class
                        .words
                        .iter()
                        .filter(|own| within(own, &said))
                        .map(Vec::len)
                        .max()?,
                ))
            })
            .max_by_key(|(_, length)| *length);
        if let Some((class, _)) = class
            && types.insert(name.clone(), class.name).is_none()
        {
            values.push(json!({"type": "entity", "entity": name, "entity_type": class.name}));
        }
    }
    for statement in statements(text) {
        let Some(from) = types.get(&statement.subject) else {
            continue;
        };
        let said = words::content(&statement.predicate);
        let fits = |term: &&Term<'_>| {
            let own = term
                .words
                .iter()
                .any(|own| within(own, &said) || within(&said, own));
            own && !said.is_empty() && is_one(from, &term.from)
        };
        if let (Some(to), Some(relation)) =
            (types.get(&statement.object), relations.iter().find(fits))
            && is_one(to, &relation.to)
        {
            values.push(json!({
                "type": "relationship", "subject": statement.subject, "subject_type": from,
                "relation": relation.name, "object": statement.object, "object_type": to,
            }));
        } else if let (false, Some(attribute)) = (statement.entity, attributes.iter().find(fits)) {
            values.push(json!({
                "type": "attribute", "entity": statement.subject, "entity_type": from,
                "attribute": attribute.name, "value": statement.object,
            }));
        }
    }
    lines(&values)
}

/// A class and those it is a kind of.
fn ancestors<'a>(classes: &[Term<'a>], class: &'a str) -> Vec<&'a str> {
    let mut known = vec![class];
    let mut at = 0;
    while let Some(next) = known.get(at).copied() {
        let term = classes.iter().find(|term| term.name == next);
        for above in term.map_or(&[][..], |term| &term.from) {
            if !known.contains(above) {
                known.push(above);
            }
        }
        at += 1;
    }
    known
}

/// Whether all words stand in a text, in some form.
fn within(own: &[String], said: &[String]) -> bool {
    !own.is_empty()
        && own
            .iter()
            .all(|word| said.iter().any(|other| words::same(other, word)))
}

/// Reads `* name (label), from A or B to C: comment`.
fn term<'a>(line: &'a &'a str) -> Option<Term<'a>> {
    let line = line.strip_prefix("* ")?;
    let line = line.split_once(": ").map_or(line, |(line, _)| line);
    let (head, tail) = line.split_once(", ").unwrap_or((line, ""));
    let (name, label) = match head.split_once(" (") {
        Some((name, label)) => (name, label.trim_end_matches(')')),
        None => (head, ""),
    };
    let own = |text: &str| words::content(text);
    let list = |text: &'a str| -> Vec<&'a str> {
        text.split(" or ")
            .filter(|name| !matches!(*name, "" | "anything"))
            .collect()
    };
    let (from, to) = match tail
        .strip_prefix("from ")
        .and_then(|tail| tail.split_once(" to "))
    {
        Some((from, to)) => (list(from), list(to)),
        None => {
            let owner = tail
                .strip_prefix("of ")
                .and_then(|tail| tail.split_once(", value "));
            (
                owner.map_or(Vec::new(), |(owner, _)| list(owner)),
                Vec::new(),
            )
        }
    };
    Some(Term {
        name,
        words: [own(name), own(label)]
            .into_iter()
            .filter(|words| !words.is_empty())
            .collect(),
        from,
        to,
    })
}
