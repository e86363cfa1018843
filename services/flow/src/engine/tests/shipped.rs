//! The blueprints that ship are sound and yield the contract's names.

use std::collections::BTreeSet;

use serde_json::Value;
use tg_schemas::Class;
use tg_schemas::processors::processor;

use super::super::catalog::Catalog;
use super::super::check::check;
use super::{planned, shipped};
use tg_schemas::flow_record::RowKey;

#[test]
fn shipped_blueprints_have_no_faults() {
    for (name, entries) in [("everything", 36), ("structured", 20), ("ontology", 21)] {
        for foreign in [false, true] {
            let faults = check(name, &shipped(name), &Catalog::new([], foreign));
            assert!(faults.is_empty(), "{name}: {}", faults.text());
        }
        assert_eq!(
            planned(&shipped(name), name, "default", "default", 1)
                .rows
                .len(),
            entries
        );
    }
}

#[test]
fn the_default_flow_has_the_contracts_queues_and_topics() {
    let plan = planned(
        &shipped("everything"),
        "everything",
        "default",
        "default",
        7,
    );
    let queues: BTreeSet<String> = plan
        .names
        .all_queues()
        .map(|queue| queue.queue(None))
        .collect();
    let records = queues
        .iter()
        .filter(|name| name.starts_with("tg.flow."))
        .count();
    // 15 of the contract, the agent's steps and 6 for what stores forget; 21 for questions, 2 to the graph
    // store of ours, 5 to those who say what they would do, and chats of several turns.
    assert_eq!((records, queues.len() - records), (22, 29));
    for name in [
        "tg.flow.triples-store:default:default.kg-store--default--default--triples-input",
        "tg.request.agent:default:default.agent-manager--default--default--request",
        "tg.flow.agent-step:default:default.agent-manager--default--default--agent-step",
    ] {
        assert!(queues.contains(name), "{name}");
    }
    let declared: BTreeSet<String> = plan
        .queues()
        .iter()
        .map(|queue| queue.name.clone())
        .collect();
    let hosted = |name: &str| {
        let id = name.split("--").next().unwrap_or_default();
        processor(id).is_some_and(|processor| processor.hosted)
    };
    let readers: BTreeSet<String> = plan
        .names
        .all_queues()
        .filter(|queue| queue.topic.class() == Class::Flow && hosted(&queue.name))
        .map(|queue| queue.name.clone())
        .collect();
    assert!(declared.contains("triples-write--default--default--input"));
    assert_eq!(
        declared, readers,
        "only readers that this release hosts get a queue in advance"
    );
    assert!(
        plan.names
            .topics
            .iter()
            .all(|topic| topic.name().ends_with(":default:default"))
    );
    assert!(
        plan.names.shared_topics.is_empty(),
        "workspace services' topics belong to no flow"
    );
    assert!(
        plan.topics()
            .iter()
            .all(|t| matches!(t.class(), Class::Flow | Class::Request))
    );
}

#[test]
fn rows_name_the_topics_that_nobody_of_the_flow_reads() {
    let plan = planned(&shipped("structured"), "structured", "default", "f1", 7);
    let unread = |processor: &str| -> Value {
        let key = RowKey {
            processor: processor.into(),
            variant: "f1".into(),
        };
        let row: Value = serde_json::from_str(&plan.rows[&key]).unwrap();
        row["unread"].clone()
    };
    let triples = serde_json::json!(["flow:tg:triples-store:default:f1"]);
    for writer in ["chunker", "document-decoder", "agent-manager"] {
        assert_eq!(unread(writer), triples, "{writer}");
    }
    assert_eq!(unread("rows-write"), Value::Null);
}

#[test]
fn usage_is_read_where_a_blueprint_wires_somebody_to_it() {
    let alone = shipped("everything");
    let mut definition: Value = serde_json::from_str(&alone).unwrap();
    definition["flow"]["meter:{id}"] =
        serde_json::json!({"topics": {"input": "flow:tg:usage:{workspace}:{id}"}});
    let usage = serde_json::json!(["flow:tg:usage:default:f1"]);
    for (definition, expected) in [(alone, usage), (definition.to_string(), Value::Null)] {
        let plan = planned(&definition, "everything", "default", "f1", 7);
        for writer in ["text-completion", "text-completion-rag", "image-to-text"] {
            let key = RowKey {
                processor: writer.into(),
                variant: "f1".into(),
            };
            let row: Value = serde_json::from_str(&plan.rows[&key]).unwrap();
            assert_eq!(row["unread"], expected, "{writer}");
        }
    }
}

#[test]
fn rows_carry_topics_parameters_and_epoch() {
    let plan = planned(&shipped("everything"), "everything", "default", "f1", 7);
    let row = |processor: &str| -> Value {
        let key = RowKey {
            processor: processor.into(),
            variant: "f1".into(),
        };
        serde_json::from_str(&plan.rows[&key]).unwrap()
    };
    let chunker = row("chunker");
    assert_eq!(
        chunker["topics"]["input"],
        "flow:tg:text-document-load:default:f1"
    );
    assert_eq!(
        chunker["topics"]["librarian-request"],
        "request:tg:librarian:default"
    );
    assert_eq!(chunker["parameters"]["chunk-size"], "2000");
    assert_eq!(chunker["epoch"], 7);
    assert!(chunker.get("unread").is_none(), "{chunker}");
    let llm = row("text-completion");
    assert_eq!(
        llm["parameters"],
        serde_json::json!({"temperature": "0.3"}),
        "empty model left out"
    );
    assert_eq!(
        plan.interfaces["triples-store"]["flow"],
        "flow:tg:triples-store:default:f1"
    );
    assert_eq!(
        plan.interfaces["agent"]["response"],
        "response:tg:agent:default:f1"
    );
    assert_eq!(plan.interfaces.len(), 27);
    assert!(
        plan.expected
            .iter()
            .any(|row| row.processor == "agent-manager")
    );
    assert!(!plan.expected.iter().any(|row| row.processor == "metering"));
}

#[test]
fn the_longest_ids_fit() {
    let workspace = "w".repeat(46);
    let plan = planned(
        &shipped("everything"),
        "everything",
        &workspace,
        &"f".repeat(47),
        1,
    );
    let longest = plan
        .names
        .all_queues()
        .map(|queue| queue.queue(None).len())
        .max();
    assert_eq!(longest, Some(255));
}
