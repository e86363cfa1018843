//! Closure: a stop never takes what another flow holds.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::super::closure::{Other, released};
use super::super::receipt::Counts;
use super::{planned, shipped};
use tg_schemas::flow_record::Names;

fn other(workspace: &str, names: &Names) -> Other {
    Other {
        workspace: workspace.to_owned(),
        names: Some(names.clone()),
    }
}

/// Shares a topic within the workspace and an instance within the blueprint.
fn sharing() -> String {
    json!({
        "flow": {
            "prompt:{id}": {"topics": {
                "request": "request:tg:prompt:{workspace}:{id}",
                "text-completion-request": "request:tg:llm:{workspace}:{blueprint}",
            }},
        },
        "blueprint": {
            "text-completion:{blueprint}": {"topics": {
                "request": "request:tg:llm:{workspace}:{blueprint}",
            }},
        },
    })
    .to_string()
}

#[test]
fn a_lone_flow_takes_everything_but_the_services_topics() {
    let plan = planned(&shipped("everything"), "everything", "default", "a", 1);
    let gone = released("default", &plan.names, &[]);
    assert_eq!(gone.topics, plan.names.topics);
    assert_eq!(gone.rows.len(), 36);
    assert!(
        !gone
            .topics
            .iter()
            .any(|topic| topic.name().starts_with("librarian"))
    );
    assert_eq!(gone.queues, plan.names.queues);
    assert_eq!(gone.other_queues, plan.names.other_queues);
}

#[test]
fn shared_names_go_with_the_last_flow_that_holds_them() {
    let definition = sharing();
    let a = planned(&definition, "b", "w", "a", 1).names;
    let b = planned(&definition, "b", "w", "f2", 2).names;
    let elsewhere = planned(&definition, "b", "v", "a", 3).names;
    assert_eq!((a.shared_rows.len(), a.shared_topics.len()), (1, 1));
    let first = released("w", &a, &[other("w", &b), other("v", &elsewhere)]);
    assert_eq!(
        (first.rows, first.topics),
        (a.rows.clone(), a.topics.clone())
    );
    assert!(
        first
            .other_queues
            .iter()
            .all(|queue| !queue.name.starts_with("text-completion"))
    );
    let last = released("w", &b, &[other("v", &elsewhere)]);
    assert_eq!(last.rows.len(), 2);
    assert!(last.topics.is_superset(&b.shared_topics));
    assert_eq!(last.other_queues.len(), 3);
}

#[test]
fn a_record_that_does_not_say_protects_what_is_shared() {
    let a = planned(&sharing(), "b", "w", "a", 1).names;
    let mute = Other {
        workspace: "w".to_owned(),
        names: None,
    };
    let gone = released("w", &a, &[mute]);
    assert_eq!((gone.rows, gone.topics), (a.rows, a.topics));
}

#[test]
fn receipts_count_each_delivery_once() {
    let mut counts = Counts::default();
    counts.before.insert("q".into(), 10);
    counts.after.insert("q".into(), 3);
    counts.aside.insert("q".into(), 2);
    counts.parked.insert("q".into(), 5);
    let receipt = counts.receipt();
    assert_eq!(receipt.queues.len(), 1);
    let queue = &receipt.queues[0];
    assert_eq!((queue.finished, queue.parked, queue.discarded), (5, 5, 0));
    // Who counted for itself knows better.
    counts.told.insert("q".into(), 6);
    assert_eq!(counts.receipt().queues[0].finished, 6);
    counts.told.insert("idle".into(), 0);
    assert_eq!(counts.receipt().queues.len(), 1);
    // What was handled before is on it, and all of it is what was sent.
    counts.answered.insert("q".into(), 40);
    counts.answered.insert("quiet".into(), 7);
    let queues = counts.receipt().queues;
    let seen: Vec<_> = queues
        .iter()
        .map(|queue| (queue.subscription.as_str(), queue.sent, queue.answered))
        .collect();
    assert_eq!(seen, [("q", 51, 40), ("quiet", 7, 7)]);
    // Who never knew of the stop counted all it did, also what was finished during it.
    counts.told.remove("q");
    let queue = counts.receipt().queues.remove(0);
    assert_eq!((queue.sent, queue.answered, queue.finished), (45, 35, 5));
    // Somebody was killed: it may have been more, also where nothing is known.
    assert!(!counts.receipt().at_least);
    counts.uncounted = ["mute".to_owned(), "q".to_owned()].into();
    let receipt = counts.receipt();
    let seen = receipt.queues.iter();
    let seen: Vec<_> = seen
        .map(|queue| (queue.subscription.as_str(), queue.sent, queue.at_least))
        .collect();
    assert_eq!(
        seen,
        [("mute", 0, true), ("q", 45, true), ("quiet", 7, false)]
    );
    assert!(receipt.at_least);
    counts.uncounted.clear();
    counts.all_uncounted = true;
    let receipt = counts.receipt();
    assert!(receipt.at_least && receipt.queues.len() == 2);
    assert!(receipt.queues.iter().all(|queue| queue.at_least));
}

/// A random template of any reach, some of them overlapping between flows and workspaces.
fn template() -> impl Strategy<Value = String> {
    let base = prop::sample::select(vec!["a", "b", "librarian"]);
    let tail = prop::sample::select(vec![
        ":{workspace}",
        ":{workspace}:{id}",
        ":{workspace}:{p}",
        ":{workspace}:{blueprint}",
        ":{workspace}:{id}:{p}",
        ":{workspace}:f1",
    ]);
    (base, tail).prop_map(|(base, tail)| format!("flow:tg:{base}{tail}"))
}

fn flows() -> impl Strategy<Value = Vec<(String, String, Names)>> {
    let specs = ["explainability", "next", "response"];
    let names = move |workspace: String, id: String, topics: Vec<String>, p: String| {
        let topics: serde_json::Map<_, _> = specs
            .iter()
            .zip(topics)
            .map(|(spec, topic)| ((*spec).to_owned(), json!(topic)))
            .collect();
        let definition = json!({
            "flow": {"agent-manager:{id}": {"topics": topics}},
            "parameters": {"p": {}},
        });
        let (blueprint, _) = super::Blueprint::parse(&definition.to_string());
        let resolved =
            super::resolve(&blueprint, &super::types(), &super::given(&[("p", &p)])).unwrap();
        let (ws, flow) = (
            super::WorkspaceId::new(&workspace).unwrap(),
            super::FlowId::new(&id).unwrap(),
        );
        let subject = super::Subject {
            workspace: &ws,
            flow: &flow,
            blueprint: "f2",
            epoch: 1,
        };
        let plan = super::plan(
            subject,
            &blueprint,
            &resolved,
            &super::Catalog::new([], true),
        )
        .unwrap();
        (workspace, id, plan.names)
    };
    let one = (
        prop::sample::select(vec!["w", "v", "f1"]).prop_map(str::to_owned),
        prop::sample::select(vec!["f1", "f2", "f3"]).prop_map(str::to_owned),
        prop::collection::vec(template(), 3),
        prop::sample::select(vec!["f1", "f2", "x"]).prop_map(str::to_owned),
    );
    prop::collection::vec(
        one.prop_map(move |(w, id, topics, p)| names(w, id, topics, p)),
        1..8,
    )
}

proptest! {
    #[test]
    fn no_stop_takes_what_a_live_flow_holds(flows in flows(), order in any::<u64>()) {
        // One flow per id: later ones replace earlier ones, as in config.
        let mut live: Vec<(String, String, Names)> = Vec::new();
        for flow in flows {
            live.retain(|known| (&known.0, &known.1) != (&flow.0, &flow.1));
            live.push(flow);
        }
        let all: BTreeSet<_> = live.iter().flat_map(|flow| flow.2.all_topics().cloned()).collect();
        let mut taken = BTreeSet::new();
        let mut order = order;
        while !live.is_empty() {
            let (workspace, _, names) = live.remove((order % live.len() as u64) as usize);
            order /= 7;
            let others: Vec<_> = live.iter().map(|flow| other(&flow.0, &flow.2)).collect();
            let gone = released(&workspace, &names, &others);
            for (_, id, held) in &live {
                for topic in held.all_topics() {
                    prop_assert!(!gone.topics.contains(topic), "{topic} is held by {id}");
                }
            }
            for queue in gone.queues.iter().chain(&gone.other_queues) {
                prop_assert!(names.all_queues().any(|own| own == queue));
            }
            taken.extend(gone.topics);
        }
        // And when all are stopped, nothing is left behind.
        prop_assert_eq!(taken, all);
    }
}
