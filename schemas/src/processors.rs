//! The table of processors: who speaks on what. Hosting, asking, checking blueprints, stopping and tests read it; nothing
//! guesses from names.
//!
//! Each processor is declared once, as a module with a typed constant for each spec ([`chunker::INPUT`] reads a
//! `TextDocument`, whatever else a handler would like) and its `PROCESSOR`, which says the same without types.
//! Specs that several processors have are in [`shared`].

mod answers;
mod declare;
mod documents;
pub mod fabric;
mod hosts;
mod services;
pub mod shared;
mod spec;
mod stores;

pub use answers::*;
pub use declare::{ProcessorScope, ProcessorSpec};
pub use documents::*;
pub use hosts::service_of;
pub use services::*;
pub use spec::{Asks, Hears, Kind, Reads, Role, Serves, Spec, SpecRow, TopicScope, Writes};
pub use stores::*;

use crate::topic::{Class, Topic};

const GROUPS: &[&[ProcessorSpec]] = &[answers::ALL, documents::ALL, services::ALL, stores::ALL];
const ALL: [ProcessorSpec; declare::count_all(GROUPS)] = declare::join(GROUPS);

/// Every processor that the shipped blueprints name, and the services beside the flows.
pub const PROCESSORS: &[ProcessorSpec] = &ALL;

/// Prefix of the topics by which stores are asked to drop a collection.
const DROP: &str = "drop-";

/// Looks a processor up by id.
pub fn processor(id: &str) -> Option<&'static ProcessorSpec> {
    PROCESSORS.iter().find(|processor| processor.id == id)
}

/// Every spec of every processor that this release hosts.
fn hosted() -> impl Iterator<Item = (&'static ProcessorSpec, &'static SpecRow)> {
    let hosted = PROCESSORS.iter().filter(|processor| processor.hosted);
    hosted.flat_map(|processor| processor.specs.iter().map(move |spec| (processor, spec)))
}

/// What a service that is not part of any flow serves on topics of this base: a flow may use it, it never owns it.
pub fn service(base: &str) -> Option<&'static SpecRow> {
    let beside = hosted().filter(|(processor, _)| processor.scope != ProcessorScope::Flow);
    beside
        .map(|(_, spec)| spec)
        .find(|spec| spec.role == Role::Serves && spec.name == base)
}

/// Whether a record on a flow topic of this base has a reader in this release: if no queue takes it, it was not
/// accepted. On every other topic a record without a reader is rightly dropped.
pub fn must_be_read(base: &str) -> bool {
    hosted().any(|(_, spec)| spec.stream == Some(base))
}

/// Whether a topic of this base has no reader of its own and passes on what is published there.
pub fn is_relay(base: &str) -> bool {
    [shared::STEP_AND_TRACE.name, shared::TRACE.name].contains(&base)
}

/// Topics of records of the system with their one reader, whose queue every process declares: what is written there
/// waits for a reader that has not started yet.
pub fn system_readers() -> impl Iterator<Item = (&'static SpecRow, &'static ProcessorSpec)> {
    hosted()
        .filter(|(_, spec)| spec.role == Role::Reads && spec.place == TopicScope::System)
        .map(|(processor, spec)| (spec, processor))
}

/// Stores that hold what belongs to a collection. Each serves [`crate::msg::CollectionDrop`] on the system topic
/// [`drop_topic`] of its name.
pub fn collection_stores() -> impl Iterator<Item = &'static str> {
    hosted()
        .filter(|(_, spec)| spec.role == Role::Serves && spec.place == TopicScope::System)
        .filter_map(|(_, spec)| spec.name.strip_prefix(DROP))
}

/// Topic by which a store is asked to drop a collection.
pub fn drop_topic(store: &str) -> Topic {
    Topic::system(Class::Request, &format!("{DROP}{store}"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let must = [
            shared::DEAD_LETTERS.name,
            shared::LIBRARY_TEXTS.name,
            shared::RUN_TALLY.name,
            shared::STEP.name,
        ];
        assert!(must.iter().all(|base| must_be_read(base)));
        let may = [shared::USAGE.name, shared::RETRACT.name, "input", "nobody"];
        assert!(!may.iter().any(|base| must_be_read(base)));
    }

    #[test]
    fn ids_and_specs_are_unique() {
        for (at, processor) in PROCESSORS.iter().enumerate() {
            assert!(
                PROCESSORS[at + 1..]
                    .iter()
                    .all(|other| other.id != processor.id)
            );
            let key = |spec: &SpecRow| (spec.name, spec.place, spec.role);
            for (at, spec) in processor.specs.iter().enumerate() {
                let others = &processor.specs[at + 1..];
                assert!(others.iter().all(|other| key(other) != key(spec)));
                // A config row knows its specs by name alone.
                let wired = others.iter().filter(|_| spec.place == TopicScope::Flow);
                let mut wired = wired.filter(|other| other.place == TopicScope::Flow);
                assert!(wired.all(|other| other.name != spec.name));
            }
        }
    }

    #[test]
    fn the_table_says_what_the_constants_say() {
        let chunker = processor("chunker").unwrap();
        assert!(chunker.has(&chunker::INPUT.row()) && !chunker.has(&triples_write::INPUT.row()));
        assert_eq!(
            chunker.spec("librarian-response").unwrap().role,
            Role::Hears
        );
        let writer = processor("triples-write").unwrap();
        assert!(writer.has(&triples_write::RETRACT.row()) && writer.spec("retract").is_none());
        assert_eq!(processor("agent-manager").unwrap().wired().count(), 32);
    }

    #[test]
    fn services_beside_the_flows_are_known_by_the_base_of_their_topic() {
        for base in [
            "config",
            "flow",
            "librarian",
            "collection",
            "knowledge",
            "iam",
        ] {
            assert!(service(base).is_some(), "{base}");
        }
        assert!(
            ["request", "drop-graph", "retract"]
                .iter()
                .all(|base| service(base).is_none())
        );
    }

    #[test]
    fn what_waits_in_the_system_has_one_reader() {
        let mut readers: Vec<_> = system_readers()
            .map(|(spec, processor)| (spec.name, processor.id))
            .collect();
        readers.sort();
        let all = [
            ("library-texts", "librarian"),
            ("put-aside", "flow-svc"),
            ("run-tally", "librarian"),
        ];
        assert_eq!(readers, all);
        let mut stores: Vec<_> = collection_stores().collect();
        stores.sort();
        assert_eq!(stores, ["graph", "keywords", "rows", "sessions", "vectors"]);
    }
}
