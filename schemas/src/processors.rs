//! The table of processors: who speaks on what. Declaring, checking blueprints, stopping and tests read
//! it; nothing guesses from names.

use crate::topic::Class;

/// What a spec of a processor does with its topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Answers questions read from a `request` topic.
    Serves,
    /// Sends the answers of [`Role::Serves`] (interop only) to a `response` topic.
    Answers,
    /// Reads records from a `flow` topic.
    Reads,
    /// Writes records to a `flow` topic.
    Writes,
    /// Asks questions on a `request` topic.
    Asks,
    /// Hears the answers of [`Role::Asks`] on a `response` topic.
    Hears,
}

impl Role {
    /// Class of the topic such a spec needs.
    pub fn class(self) -> Class {
        match self {
            Self::Serves | Self::Asks => Class::Request,
            Self::Answers | Self::Hears => Class::Response,
            Self::Reads | Self::Writes => Class::Flow,
        }
    }

    /// Whether the processor has a queue for it.
    pub fn consumes(self) -> bool {
        matches!(self, Self::Serves | Self::Reads)
    }
}

/// Where instances of a processor live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One per system.
    System,
    /// One per workspace.
    Workspace,
    /// One per flow, from a config row `processor:<id>`.
    Flow,
}

/// One named spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// Name as used in blueprints and queue names.
    pub name: &'static str,
    /// Direction.
    pub role: Role,
    /// Message body.
    pub message: &'static str,
}

/// One processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessorSpec {
    /// Processor id; part of queue names.
    pub id: &'static str,
    /// Where instances live.
    pub scope: Scope,
    /// Whether this release hosts it. Others appear in blueprints and arrive later.
    pub hosted: bool,
    /// Its specs.
    pub specs: &'static [Spec],
    /// Its parameters.
    pub parameters: &'static [&'static str],
}

impl ProcessorSpec {
    /// A spec by name.
    pub fn spec(&self, name: &str) -> Option<&'static Spec> {
        self.specs.iter().find(|spec| spec.name == name)
    }
}

/// Looks a processor up by id.
pub fn processor(id: &str) -> Option<&'static ProcessorSpec> {
    PROCESSORS.iter().find(|processor| processor.id == id)
}

/// Topic bases of services that are not part of any flow: a flow may use them, it never owns them.
pub const SERVICE_BASES: &[&str] = &[
    "config",
    "flow",
    "librarian",
    "collection",
    "knowledge",
    "iam",
];

/// Bases of the record topics that blueprints wire, and what travels there.
const RECORD_BASES: &[(&str, &str)] = &[
    ("chunk-load", "Chunk"),
    ("document-embeddings-store", "DocumentEmbeddings"),
    ("document-load", "Document"),
    ("entity-contexts-load", "EntityContexts"),
    ("graph-embeddings-store", "GraphEmbeddings"),
    ("row-embeddings-store", "RowEmbeddings"),
    ("rows-store", "ExtractedObject"),
    ("text-document-load", "TextDocument"),
    ("triples-store", "Triples"),
];

/// Bases of record topics that the mesh adds itself, each with a reader in this release.
const OWN_BASES: &[&str] = &[
    STEP_BASE,
    DEAD_LETTER_BASE,
    crate::msg::LIBRARY_TEXTS,
    crate::msg::RUN_TALLY,
];

/// Whether a record on a flow topic of this base has a reader in this release: if no queue takes it, it was not
/// accepted. On every other topic a record without a reader is rightly dropped.
pub fn must_be_read(base: &str) -> bool {
    let read = |message: &str| {
        PROCESSORS
            .iter()
            .filter(|processor| processor.hosted)
            .flat_map(|processor| processor.specs)
            .any(|spec| spec.role == Role::Reads && spec.message == message)
    };
    OWN_BASES.contains(&base)
        || RECORD_BASES
            .iter()
            .any(|(known, message)| *known == base && read(message))
}

/// Base of the record topic, added to every flow, that carries an agent's steps.
pub const STEP_BASE: &str = "agent-step";
/// Who reads the record topic `retract`, which the mesh adds to every flow: the stores. A flow that has one of
/// them has its queue from the start, so that what is to be forgotten waits for a store that is away.
pub const RETRACT_READERS: &[&str] = &[
    "doc-embeddings-write",
    "graph-embeddings-write",
    "kw-index",
    "row-embeddings-write",
    "rows-write",
    "triples-write",
];
/// Base of the record topic, added to every flow, that carries one usage record per model call.
pub const USAGE_BASE: &str = "usage";
/// Base of the system's record topic for what cannot be handled now.
pub const DEAD_LETTER_BASE: &str = "put-aside";

/// The processor that keeps dead letters.
pub const DEAD_LETTER_READER: &str = "flow-svc";

/// System topics of records with their one reader, whose queue every process declares: what is written there waits for a
/// reader that has not started yet.
pub const ALWAYS_QUEUED: [(&str, &str); 2] = [
    (DEAD_LETTER_BASE, DEAD_LETTER_READER),
    (crate::msg::LIBRARY_TEXTS, crate::msg::RUN_TALLY_READER),
];

const fn spec(name: &'static str, role: Role, message: &'static str) -> Spec {
    Spec {
        name,
        role,
        message,
    }
}

include!("processors_table.rs");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_of_retractions_are_processors() {
        for id in RETRACT_READERS {
            assert!(processor(id).is_some(), "{id}");
        }
    }

    /// Every record topic that a shipped blueprint has a hosted processor read, by the blueprint's own text.
    #[test]
    fn what_a_hosted_processor_reads_must_be_read() {
        let text = include_str!("../../blueprints/blueprints.json");
        let all: serde_json::Value = serde_json::from_str(text).unwrap();
        let blueprints = all["flow-blueprint"].as_object().unwrap().values();
        let parts = blueprints.flat_map(|blueprint| {
            ["flow", "blueprint"].map(|part| blueprint[part].as_object().into_iter().flatten())
        });
        let mut seen = 0;
        for (name, row) in parts.flatten() {
            let id = name.split(':').next().unwrap_or_default();
            let Some(known) = processor(id).filter(|known| known.hosted) else {
                continue;
            };
            for (spec, topic) in row["topics"].as_object().into_iter().flatten() {
                if known.spec(spec).is_none_or(|spec| spec.role != Role::Reads) {
                    continue;
                }
                let base = topic.as_str().and_then(|topic| topic.split(':').nth(2));
                assert!(base.is_some_and(must_be_read), "{id} {spec}: {topic}");
                seen += 1;
            }
        }
        assert!(seen > 10, "{seen} topics of records in the blueprints");
        assert!(must_be_read(DEAD_LETTER_BASE) && !must_be_read(USAGE_BASE));
    }

    #[test]
    fn ids_and_specs_are_unique() {
        for (at, processor) in PROCESSORS.iter().enumerate() {
            assert!(
                PROCESSORS[at + 1..]
                    .iter()
                    .all(|other| other.id != processor.id)
            );
            for (at, spec) in processor.specs.iter().enumerate() {
                assert!(
                    processor.specs[at + 1..]
                        .iter()
                        .all(|other| other.name != spec.name)
                );
            }
        }
    }
}
