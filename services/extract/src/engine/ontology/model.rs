//! Several ontologies as one: every element has one IRI, one name in prompts, and knows its relatives by IRI.

use std::collections::{BTreeSet, HashMap};

use tg_provenance::text_hash;
use tg_schemas::limits;

use super::element::{Element, Kind, Ontology, local};
use super::{json, turtle};

/// Most elements of all ontologies of a workspace together.
const MOST: usize = 20_000;

/// The ontologies of a workspace.
#[derive(Debug, Clone, Default)]
pub struct Ontologies {
    elements: Vec<Element>,
    iris: Vec<String>,
    by_iri: HashMap<String, usize>,
    /// Elements by any of their names in lower case.
    by_name: HashMap<String, Vec<usize>>,
    /// Superclasses and equal classes, by element.
    above: Vec<Vec<usize>>,
    version: String,
    faults: Vec<String>,
}

impl Ontologies {
    /// Reads rows of config type `ontology`: key and value. One that cannot be read is left out and reported.
    pub fn read<'a>(rows: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut all = Self::default();
        let mut texts = String::new();
        let mut owners: HashMap<String, BTreeSet<String>> = HashMap::new();
        let mut keys = Vec::new();
        for (key, value) in rows {
            texts += &format!("{}:{key}{}:{value}", key.len(), value.len());
            match read_one(key, value) {
                Ok(ontology) if all.elements.len() + ontology.elements.len() > MOST => {
                    let elements = ontology.elements.len();
                    let fault = format!("ontology '{key}': is too large ({elements} elements)");
                    all.faults.push(fault);
                }
                Ok(ontology) => {
                    let number = all.iris.len();
                    all.iris.push(ontology.iri);
                    keys.push(key);
                    for mut element in ontology.elements {
                        element.ontology = number;
                        if all.by_iri.contains_key(&element.iri) {
                            continue;
                        }
                        let same = owners.entry(element.name.clone()).or_default();
                        same.insert(element.iri.clone());
                        all.by_iri.insert(element.iri.clone(), all.elements.len());
                        all.elements.push(element);
                    }
                }
                Err(why) => all.faults.push(format!("ontology '{key}': {why}")),
            }
        }
        for element in &mut all.elements {
            // Two elements that are called the same are told apart by their ontology.
            if owners[&element.name].len() > 1 {
                element.name = format!("{}:{}", keys[element.ontology], element.name);
            }
        }
        all.version = text_hash(&texts);
        all.index();
        all
    }

    fn index(&mut self) {
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, element) in self.elements.iter().enumerate() {
            let labels = element.labels.iter().map(|label| label.text.as_str());
            let own = [element.name.as_str(), local(&element.iri)];
            let names: BTreeSet<String> = labels.chain(own).map(normal).collect();
            for name in names {
                by_name.entry(name).or_default().push(at);
            }
        }
        self.by_name = by_name;
        let mut above = vec![Vec::new(); self.elements.len()];
        for (at, element) in self.elements.iter().enumerate() {
            above[at].extend(element.parents.iter().filter_map(|iri| self.at(iri)));
            // Equal classes are equal both ways.
            for same in element.equivalent.iter().filter_map(|iri| self.at(iri)) {
                above[at].push(same);
                above[same].push(at);
            }
        }
        self.above = above;
    }

    /// All elements.
    pub fn elements(&self) -> &[Element] {
        &self.elements
    }

    /// Changes whenever any of the ontologies does.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Why some ontologies cannot be used.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// IRI of the ontology that an element belongs to.
    pub fn ontology_of(&self, at: usize) -> &str {
        &self.iris[self.elements[at].ontology]
    }

    /// Where an IRI is declared.
    pub fn at(&self, iri: &str) -> Option<usize> {
        self.by_iri.get(iri).copied()
    }

    /// The element of a kind that a reply means: by its name, IRI or label. `None` if there is none, or
    /// several.
    pub fn named(&self, kind: Kind, name: &str) -> Option<usize> {
        let name = name.trim().trim_start_matches('<').trim_end_matches('>');
        let of_kind = |at: &usize| self.elements[*at].kind == kind;
        if let Some(at) = self.by_iri.get(name).copied().filter(of_kind) {
            return Some(at);
        }
        let exact = |at: &usize| of_kind(at) && self.elements[*at].name == name;
        let alike = self
            .by_name
            .get(&normal(name))
            .map_or(&[][..], Vec::as_slice);
        let mut exactly = alike.iter().copied().filter(exact);
        if let Some(at) = exactly.next() {
            return Some(at);
        }
        let mut loosely = alike.iter().copied().filter(of_kind);
        match (loosely.next(), loosely.next()) {
            (Some(at), None) => Some(at),
            _ => None,
        }
    }

    /// A class and everything above it, by way of superclasses and equal classes.
    pub fn ancestors(&self, class: usize) -> BTreeSet<usize> {
        let mut known = BTreeSet::from([class]);
        let mut open = vec![class];
        while let Some(at) = open.pop() {
            let above = self.above[at].iter().copied();
            open.extend(above.filter(|next| known.insert(*next)));
        }
        known
    }

    /// Those of the IRIs that are declared as classes. Undeclared ones limit nothing: nobody can name them.
    pub fn classes(&self, iris: &[String]) -> Vec<usize> {
        let declared = iris.iter().filter_map(|iri| self.at(iri));
        declared
            .filter(|at| self.elements[*at].kind == Kind::Class)
            .collect()
    }
}

fn read_one(key: &str, value: &str) -> Result<Ontology, String> {
    if value.len() > limits::CONFIG_VALUE {
        let most = limits::human(limits::CONFIG_VALUE);
        return Err(format!("is longer than {most}"));
    }
    match serde_json::from_slice(value.as_bytes()) {
        Ok(serde_json::Value::Object(map)) => json::read(key, &map),
        Ok(serde_json::Value::String(text)) => turtle::read(key, &text),
        Ok(_) => Err("is neither an object nor Turtle".to_owned()),
        // What begins like JSON is meant to be.
        Err(error) if value.trim_start().starts_with('{') => Err(error.to_string()),
        Err(_) => turtle::read(key, value),
    }
}

/// A name for comparison: lower case, without separators.
fn normal(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '-' | '_' | ' '))
        .flat_map(char::to_lowercase)
        .collect()
}
