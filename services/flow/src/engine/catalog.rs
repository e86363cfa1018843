//! Which processors exist and what their specs do: the contract's table, the workspace's own
//! `processor-spec` rows, and, in a mesh shared with foreign processors, leniency towards the unknown.

use std::collections::BTreeMap;

use serde::Deserialize;
use tg_schemas::processors::{self, ProcessorScope, Role};

/// What is known of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// In the contract's table.
    Table {
        /// This release hosts it.
        hosted: bool,
        /// It can be part of a flow.
        flow: bool,
    },
    /// A `processor-spec` row names it.
    Row,
    /// Nobody names it, but foreign processors are welcome.
    Foreign,
    /// Nobody names it.
    No,
}

/// A spec's role and message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecUse {
    /// What it does with its topic.
    pub role: Role,
    /// Message body; empty if not known.
    pub message: String,
}

/// The processors a blueprint may name.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    rows: BTreeMap<String, BTreeMap<String, SpecUse>>,
    foreign: bool,
}

#[derive(Deserialize)]
struct Row {
    specs: Vec<RowSpec>,
}

#[derive(Deserialize)]
struct RowSpec {
    name: String,
    role: String,
    #[serde(default)]
    message: String,
}

impl Catalog {
    /// From the workspace's `processor-spec` rows. Rows that cannot be read, and rows for processors of
    /// the contract's table, are left out. `foreign`: ids that nobody names are allowed.
    pub fn new<'a>(rows: impl IntoIterator<Item = (&'a str, &'a str)>, foreign: bool) -> Self {
        let mut known = BTreeMap::new();
        for (id, text) in rows {
            if processors::processor(id).is_some() {
                continue;
            }
            match read(text) {
                Some(specs) => {
                    known.insert(id.to_owned(), specs);
                }
                None => tracing::warn!(processor = id, "unreadable processor-spec row"),
            }
        }
        Self {
            rows: known,
            foreign,
        }
    }

    /// What is known of a processor.
    pub fn known(&self, id: &str) -> Known {
        match processors::processor(id) {
            Some(row) => Known::Table {
                hosted: row.hosted,
                flow: row.scope == ProcessorScope::Flow,
            },
            None if self.rows.contains_key(id) => Known::Row,
            None if self.foreign => Known::Foreign,
            None => Known::No,
        }
    }

    /// A spec of a processor, if it is known.
    pub fn spec(&self, processor: &str, spec: &str) -> Option<SpecUse> {
        if let Some(row) = processors::processor(processor) {
            let found = row.spec(spec)?;
            return Some(SpecUse {
                role: found.role,
                message: found.message.to_owned(),
            });
        }
        self.rows.get(processor)?.get(spec).cloned()
    }

    /// Names of all specs of a known processor, for texts.
    pub fn spec_names(&self, processor: &str) -> Vec<String> {
        match processors::processor(processor) {
            Some(row) => row.wired().map(|spec| spec.name.to_owned()).collect(),
            None => self
                .rows
                .get(processor)
                .map_or_else(Vec::new, |specs| specs.keys().cloned().collect()),
        }
    }

    /// Whether unknown processors and specs are welcome.
    pub fn foreign(&self) -> bool {
        self.foreign
    }

    /// Whether somebody of this mesh will read the processor's record queues: it is hosted by this
    /// release or named by a row.
    pub fn expects(&self, processor: &str) -> bool {
        matches!(
            self.known(processor),
            Known::Table {
                hosted: true,
                flow: true
            } | Known::Row
        )
    }
}

fn read(text: &str) -> Option<BTreeMap<String, SpecUse>> {
    let row: Row = serde_json::from_slice(text.as_bytes()).ok()?;
    row.specs
        .into_iter()
        .map(|spec| {
            let role = role(&spec.role)?;
            Some((
                spec.name,
                SpecUse {
                    role,
                    message: spec.message,
                },
            ))
        })
        .collect()
}

fn role(text: &str) -> Option<Role> {
    Some(match text {
        "serves" => Role::Serves,
        "answers" => Role::Answers,
        "reads" => Role::Reads,
        "writes" => Role::Writes,
        "asks" => Role::Asks,
        "hears" => Role::Hears,
        _ => return None,
    })
}

/// Message that a service beside the flows takes on a topic base, if the table names one.
pub fn service_message(base: &str) -> Option<&'static str> {
    processors::service(base).map(|spec| spec.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_add_processors_but_cannot_replace_those_of_the_table() {
        let row = r#"{"specs":[{"name":"in","role":"reads","message":"Chunk"}]}"#;
        let rows = [("mine", row), ("chunker", row), ("broken", "{")];
        let catalog = Catalog::new(rows, false);
        assert_eq!(catalog.known("mine"), Known::Row);
        assert_eq!(catalog.spec("mine", "in").unwrap().role, Role::Reads);
        assert!(catalog.spec("chunker", "in").is_none());
        assert_eq!(catalog.known("broken"), Known::No);
        assert_eq!(Catalog::new([], true).known("broken"), Known::Foreign);
        assert!(catalog.expects("mine") && catalog.expects("agent-manager"));
        assert!(!catalog.expects("metering"));
    }
}
