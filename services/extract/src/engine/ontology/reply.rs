//! Holding a model's reply against the ontologies: what fits becomes facts, what does not is left out and
//! told.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tg_schemas::Term;
use tg_schemas::vocabulary::rdf;

use super::datatype;
use super::element::Kind;
use super::model::Ontologies;
use crate::engine::Found;
use crate::engine::items::{Items, field, text};
use crate::engine::names::{clean, entity_iri};

/// Violations whose text is told.
const SHOWN: usize = 20;
/// Violations of a reply that are kept.
const KEPT: usize = 1_000;
/// Longest name in such a text, in characters.
const NAME: usize = 60;

/// A reply, held against the ontologies.
#[derive(Debug, Clone, Default)]
pub struct Checked {
    /// What fits.
    pub found: Found,
    /// How many statements do not.
    pub violations: usize,
    /// Why the first of them do not.
    pub told: Vec<String>,
    /// They themselves, as far as there is room for them.
    pub rejected: Vec<Rejected>,
    /// Elements that the facts use.
    pub used: BTreeSet<usize>,
}

/// A statement that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// The statement, an item of a reply by itself: a JSON object.
    pub statement: String,
    /// Why it does not fit.
    pub reason: String,
}

/// Whether an item of a reply is of a form that is known.
pub fn says_something(item: &Value) -> bool {
    !statements(item).is_empty()
}

/// Holds a reply against the ontologies.
pub fn check(ontologies: &Ontologies, items: &Items) -> Checked {
    let mut check = Check {
        ontologies,
        checked: Checked::default(),
        things: BTreeMap::new(),
    };
    check.checked.found.bad = items.bad;
    let mut all = Vec::new();
    for item in &items.values {
        let statements = statements(item);
        check.checked.found.bad += usize::from(statements.is_empty());
        all.extend(statements);
    }
    // What things are is known before it is looked at whether they may be related.
    for statement in &all {
        if let Statement::Entity { name, class } = statement
            && let Some(at) = ontologies.named(Kind::Class, class)
        {
            check.thing(name).types.insert(at);
        }
    }
    for statement in all {
        if let Err(why) = check.take(&statement) {
            check.checked.violations += 1;
            if check.checked.rejected.len() < KEPT {
                let statement = check.item(&statement).to_string();
                let reason = why.clone();
                check.checked.rejected.push(Rejected { statement, reason });
            }
            if check.checked.told.len() < SHOWN {
                check.checked.told.push(why);
            }
        }
    }
    check.done()
}

enum Statement {
    Entity {
        name: String,
        class: String,
    },
    Relation {
        subject: End,
        relation: String,
        object: End,
    },
    Attribute {
        owner: End,
        attribute: String,
        value: Value,
    },
}

struct End {
    name: String,
    class: Option<String>,
}

impl End {
    fn read(item: &Value, names: &[&str], classes: &[&str]) -> Option<Self> {
        Some(Self {
            name: clean(&text(item, names)?)?,
            class: text(item, classes).filter(|class| !class.trim().is_empty()),
        })
    }
}

/// The statements of an item: one, or those of the older form, which nests lists.
fn statements(item: &Value) -> Vec<Statement> {
    let nested: Vec<Statement> = [
        ("entities", "entity"),
        ("relationships", "relationship"),
        ("attributes", "attribute"),
    ]
    .iter()
    .flat_map(|(list, kind)| {
        let items = item.get(*list).and_then(Value::as_array);
        items
            .into_iter()
            .flatten()
            .filter_map(|item| statement(kind, item))
    })
    .collect();
    if !nested.is_empty() {
        return nested;
    }
    let kind = match field(item, &["type"]).and_then(Value::as_str) {
        Some(kind) => kind,
        None if field(item, &["relation", "predicate"]).is_some() => "relationship",
        None if item.get("attribute").is_some() => "attribute",
        None => "entity",
    };
    statement(kind, item).into_iter().collect()
}

fn statement(kind: &str, item: &Value) -> Option<Statement> {
    const CLASS: &[&str] = &["entity_type", "entity-type"];
    match kind {
        "entity" => {
            let end = End::read(
                item,
                &["entity", "name"],
                &["entity_type", "entity-type", "class"],
            )?;
            Some(Statement::Entity {
                name: end.name,
                class: end.class?,
            })
        }
        "relationship" => Some(Statement::Relation {
            subject: End::read(item, &["subject"], &["subject_type", "subject-type"])?,
            relation: text(item, &["relation", "predicate"])?,
            object: End::read(item, &["object"], &["object_type", "object-type"])?,
        }),
        "attribute" => Some(Statement::Attribute {
            owner: End::read(item, &["entity", "subject"], CLASS)?,
            attribute: text(item, &["attribute", "property"])?,
            value: field(item, &["value"])?.clone(),
        }),
        _ => None,
    }
}

/// What is known of an entity of the chunk.
#[derive(Default)]
struct Thing {
    name: String,
    types: BTreeSet<usize>,
    sentences: Vec<String>,
    stands: bool,
}

struct Check<'a> {
    ontologies: &'a Ontologies,
    checked: Checked,
    things: BTreeMap<String, Thing>,
}

impl Check<'_> {
    fn thing(&mut self, name: &str) -> &mut Thing {
        self.things
            .entry(entity_iri(name))
            .or_insert_with(|| Thing {
                name: name.to_owned(),
                ..Thing::default()
            })
    }

    fn take(&mut self, statement: &Statement) -> Result<(), String> {
        match statement {
            Statement::Entity { name, class } => {
                let at = self.class(class)?;
                self.is(name, at);
                Ok(())
            }
            Statement::Relation {
                subject,
                relation,
                object,
            } => self.relate(subject, relation, object),
            Statement::Attribute {
                owner,
                attribute,
                value,
            } => self.attribute(owner, attribute, value),
        }
    }

    /// A statement as an item of a reply by itself: with the classes that the whole reply gave its ends.
    fn item(&self, statement: &Statement) -> Value {
        match statement {
            Statement::Entity { name, class } => {
                json!({"type": "entity", "entity": name, "entity_type": class})
            }
            Statement::Relation {
                subject,
                relation,
                object,
            } => json!({
                "type": "relationship", "subject": subject.name, "subject_type": self.class_of(subject),
                "relation": relation, "object": object.name, "object_type": self.class_of(object),
            }),
            Statement::Attribute {
                owner,
                attribute,
                value,
            } => json!({
                "type": "attribute", "entity": owner.name, "entity_type": self.class_of(owner),
                "attribute": attribute, "value": value,
            }),
        }
    }

    fn class_of<'a>(&'a self, end: &'a End) -> Option<&'a str> {
        let known = || {
            let thing = self.things.get(&entity_iri(&end.name))?;
            let class = thing.types.first()?;
            Some(self.ontologies.elements()[*class].iri.as_str())
        };
        end.class.as_deref().or_else(known)
    }

    fn class(&self, name: &str) -> Result<usize, String> {
        self.ontologies
            .named(Kind::Class, name)
            .ok_or_else(|| format!("unknown class '{}'", shown(name)))
    }

    /// An entity is of a class.
    fn is(&mut self, name: &str, class: usize) {
        let element = &self.ontologies.elements()[class];
        let entity = self.checked.found.named(name);
        let class_iri = Term::iri(element.iri.as_str());
        self.checked.found.fact(&entity, rdf::TYPE, class_iri);
        self.checked.used.insert(class);
        let thing = self.thing(name);
        thing.types.insert(class);
        thing.stands = true;
    }

    fn relate(&mut self, subject: &End, relation: &str, object: &End) -> Result<(), String> {
        let ontologies = self.ontologies;
        let at = ontologies
            .named(Kind::Relation, relation)
            .ok_or_else(|| format!("unknown relation '{}'", shown(relation)))?;
        let element = &ontologies.elements()[at];
        let from = self.end(relation, subject, &element.domains)?;
        let to = self.end(relation, object, &element.ranges)?;
        for (end, class) in [(subject, from), (object, to)] {
            if let Some(class) = class {
                self.is(&end.name, class);
            }
        }
        let subject_iri = self.checked.found.named(&subject.name);
        let object_iri = self.checked.found.named(&object.name);
        let found = &mut self.checked.found;
        found.fact(&subject_iri, &element.iri, Term::iri(object_iri));
        self.checked.used.insert(at);
        let sentence = format!("{} {} {}", subject.name, element.label(), object.name);
        for name in [&subject.name, &object.name] {
            self.says(name, &sentence);
        }
        Ok(())
    }

    fn attribute(&mut self, owner: &End, attribute: &str, value: &Value) -> Result<(), String> {
        let ontologies = self.ontologies;
        let at = ontologies
            .named(Kind::Attribute, attribute)
            .ok_or_else(|| format!("unknown attribute '{}'", shown(attribute)))?;
        let element = &ontologies.elements()[at];
        let class = self.end(attribute, owner, &element.domains)?;
        let literal = datatype::literal(&element.ranges, value).map_err(|why| {
            let value = shown(&value.to_string());
            format!("{}: {value} {why}", shown(attribute))
        })?;
        if let Some(class) = class {
            self.is(&owner.name, class);
        }
        let sentence = match &literal {
            Term::Literal { value, .. } => format!("{} {}: {value}", owner.name, element.label()),
            _ => String::new(),
        };
        let entity = self.checked.found.named(&owner.name);
        self.checked.found.fact(&entity, &element.iri, literal);
        self.checked.used.insert(at);
        self.says(&owner.name, &sentence);
        Ok(())
    }

    /// Whether something may stand at an end of a property; the class that was given for it.
    fn end(&self, of: &str, end: &End, allowed: &[String]) -> Result<Option<usize>, String> {
        let given = match &end.class {
            Some(class) => Some(self.class(class)?),
            None => None,
        };
        let allowed = self.ontologies.classes(allowed);
        if allowed.is_empty() {
            return Ok(given);
        }
        let known = self.things.get(&entity_iri(&end.name));
        let known = known
            .map(|thing| &thing.types)
            .into_iter()
            .flatten()
            .copied();
        let types: Vec<usize> = given.map_or_else(|| known.collect(), |class| vec![class]);
        let fits = |class: &usize| {
            let above = self.ontologies.ancestors(*class);
            allowed.iter().any(|one| above.contains(one))
        };
        // Of what nothing is known, nothing is wrong.
        if types.is_empty() || types.iter().any(fits) {
            return Ok(given);
        }
        let name = |at: &usize| self.ontologies.elements()[*at].name.as_str();
        let wanted: Vec<&str> = allowed.iter().map(name).collect();
        let is: Vec<&str> = types.iter().map(name).collect();
        Err(format!(
            "{}: '{}' is {}, not {}",
            shown(of),
            shown(&end.name),
            is.join(" and "),
            wanted.join(" or ")
        ))
    }

    fn says(&mut self, name: &str, sentence: &str) {
        let thing = self.thing(name);
        thing.stands = true;
        if !thing.sentences.iter().any(|known| known == sentence) {
            thing.sentences.push(sentence.to_owned());
        }
    }

    /// Tells the index of the entities that facts speak of, and of nothing else.
    fn done(self) -> Checked {
        let mut checked = self.checked;
        for (entity, thing) in self.things.into_iter().filter(|(_, thing)| thing.stands) {
            let elements = self.ontologies.elements();
            let types: Vec<String> = thing
                .types
                .iter()
                .map(|at| elements[*at].iri.clone())
                .collect();
            let mut said: Vec<String> = thing
                .types
                .iter()
                .map(|at| format!("{} is a {}", thing.name, elements[*at].label()))
                .collect();
            said.extend(thing.sentences);
            checked.found.context(&entity, &thing.name, &types);
            checked.found.context(&entity, &said.join("; "), &types);
        }
        checked
    }
}

fn shown(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .take(NAME)
        .collect()
}
