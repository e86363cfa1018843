//! All agents of the operator's files. One fault keeps the whole catalogue back, and each is reported with its file.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::Arc;

use super::agent_file::{self, FieldError};
use super::definition::Definition;

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileError {
    /// Name of the file.
    pub file: String,
    /// The field; empty: the file as a whole.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => write!(f, "{}: {}", self.file, self.reason),
            field => write!(f, "{}: {field}: {}", self.file, self.reason),
        }
    }
}

/// The agents by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalogue(BTreeMap<String, Arc<Definition>>);

impl Catalogue {
    /// Reads files, each with its name, in the order of their names. `allowed` are the models that an agent may ask for;
    /// empty: all.
    ///
    /// # Errors
    /// Everything that is wrong with all of them.
    pub fn read<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
        allowed: &[String],
    ) -> Result<Self, Vec<FileError>> {
        let mut agents: BTreeMap<String, Arc<Definition>> = BTreeMap::new();
        let mut first: BTreeMap<String, String> = BTreeMap::new();
        let mut errors = Vec::new();
        for (file, text) in files {
            let mut fail = |one: FieldError| {
                errors.push(FileError {
                    file: file.to_owned(),
                    field: one.field,
                    reason: one.reason,
                });
            };
            let agent = match agent_file::read(text) {
                Ok(agent) => agent,
                Err(all) => {
                    all.into_iter().for_each(fail);
                    continue;
                }
            };
            let asked = std::iter::once(("model", &agent.model));
            let asked = asked.chain(agent.models.iter().map(|model| ("models", model)));
            for (field, model) in asked {
                if !allowed.is_empty() && !allowed.contains(model) {
                    fail(FieldError {
                        field: field.to_owned(),
                        reason: format!("'{model}' is not one of the allowed models"),
                    });
                }
            }
            match agents.entry(agent.name.clone()) {
                Entry::Vacant(free) => {
                    first.insert(agent.name.clone(), file.to_owned());
                    free.insert(Arc::new(agent));
                }
                Entry::Occupied(taken) => {
                    let other = first.get(taken.key()).map_or("", String::as_str);
                    fail(FieldError {
                        field: "name".to_owned(),
                        reason: format!("'{}' is the name of the agent in {other}", taken.key()),
                    });
                }
            }
        }
        match errors.is_empty() {
            true => Ok(Self(agents)),
            false => Err(errors),
        }
    }

    /// The same agents, for whom the models of their flows answer.
    #[must_use]
    pub fn of_flows(self) -> Self {
        let answered = |(name, agent): (String, Arc<Definition>)| {
            let agent = Definition {
                of_flow: true,
                ..(*agent).clone()
            };
            (name, Arc::new(agent))
        };
        Self(self.0.into_iter().map(answered).collect())
    }

    /// An agent by name.
    pub fn get(&self, name: &str) -> Option<&Arc<Definition>> {
        self.0.get(name)
    }

    /// All of them, in the order of their names.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.0.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: (&str, &str) = ("a.yaml", "name: zoe\nmodel: m1\n");
    const B: (&str, &str) = ("b.yaml", "name: ann\nmodel: m2\ndescription: d\n");

    #[test]
    fn agents_are_listed_in_the_order_of_their_names() {
        let catalogue = Catalogue::read([A, B], &[]).unwrap();
        let names: Vec<_> = catalogue.all().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["ann", "zoe"]);
        assert_eq!(catalogue.get("ann").unwrap().description, "d");
        assert!(catalogue.get("bob").is_none());
    }

    #[test]
    fn line_004_a_bad_name_a_duplicate_and_an_unknown_model_are_reported_together() {
        let files = [
            A,
            ("b.yaml", "name: zoe\nmodel: m1\n"),
            ("c.yaml", "name: a b\nmodel: m1\n"),
            ("d.yaml", "name: d\nmodel: m9\n"),
        ];
        let allowed = ["m1".to_owned()];
        let errors = Catalogue::read(files, &allowed).unwrap_err();
        let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            told[0],
            "b.yaml: name: 'zoe' is the name of the agent in a.yaml"
        );
        assert!(told[1].starts_with("c.yaml: name: must have at most"));
        assert_eq!(
            told[2],
            "d.yaml: model: 'm9' is not one of the allowed models"
        );
        assert_eq!(told.len(), 3);
    }
}
