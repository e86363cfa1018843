//! What holds for any order of calls: chains of a registry, and payloads through XML.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tg_threads::xml::to_xml;
use tg_threads::{Limits, Name, Registry, Room, ThreadId};

use crate::mapping::{envelope, read};
use crate::world::{Counted, caller};

#[derive(Debug, Clone)]
enum Call {
    Register(usize, u8),
    Extend(usize, u8),
    Prune(usize),
    TerminateBelow(usize),
    Terminate(usize),
}

fn call() -> impl Strategy<Value = Call> {
    let which = 0..40_usize;
    prop_oneof![
        (which.clone(), 0..3_u8).prop_map(|(at, name)| Call::Register(at, name)),
        (which.clone(), 0..3_u8).prop_map(|(at, name)| Call::Extend(at, name)),
        (which.clone(), 0..3_u8).prop_map(|(at, name)| Call::Extend(at, name)),
        which.clone().prop_map(Call::Prune),
        which.clone().prop_map(Call::TerminateBelow),
        which.prop_map(Call::Terminate),
    ]
}

fn named(number: u8) -> Name {
    Name::any(["a", "a.b", "b"][usize::from(number)]).unwrap()
}

/// A schema and a value of it: keys in snake case, lists with something in them.
fn shaped(depth: u32) -> BoxedStrategy<(Value, Value)> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(|n| (json!({"type": "integer"}), json!(n))),
        (-1e9..1e9_f64).prop_map(|n| (json!({"type": "number"}), json!(n))),
        any::<bool>().prop_map(|b| (json!({"type": "boolean"}), json!(b))),
        "[ -~äöü€\r\n\t<&>\"']{0,20}".prop_map(|text| (json!({"type": "string"}), json!(text))),
    ];
    if depth == 0 {
        return leaf.boxed();
    }
    let object = proptest::collection::btree_map("[a-z][a-z0-9_]{0,6}", shaped(depth - 1), 0..4)
        .prop_map(|members| {
            let (mut schemas, mut values) = (Map::new(), Map::new());
            for (key, (schema, value)) in members {
                schemas.insert(key.clone(), schema);
                values.insert(key, value);
            }
            (
                json!({"type": "object", "properties": schemas}),
                Value::Object(values),
            )
        });
    let one = leaf.clone().prop_map(|(schema, value)| {
        (
            json!({"type": "array", "items": schema}),
            json!([value.clone(), value]),
        )
    });
    prop_oneof![leaf, one, object].boxed()
}

proptest! {
    /// A chain has one thread within its tree, a thread one chain; ended ones never come back.
    #[test]
    fn threads_and_chains_are_one_to_one(calls in proptest::collection::vec(call(), 1..200)) {
        let limits = Limits { chain: 6, threads: 20, trees: 5, ..Limits::default() };
        let (mut world, mut registry) = (Counted::default(), Registry::new(limits, Room::default()));
        let root = registry.initialize_root(&Name::any("mesh").unwrap(), &mut world);
        let mut known: Vec<ThreadId> = Vec::new();
        let mut ended: Vec<ThreadId> = Vec::new();
        for call in calls {
            let at = |at: usize| (!known.is_empty()).then(|| known[at % known.len()]);
            match call {
                Call::Register(which, name) => {
                    let given = at(which);
                    let id = registry.register(&caller(given), &named(name), &mut world).unwrap();
                    known.push(id);
                }
                Call::Extend(which, name) => if let Some(id) = at(which) {
                    let before = registry.lookup(id);
                    if let Ok(next) = registry.extend(id, &named(name), &mut world) {
                        let mut longer = before.unwrap();
                        longer.push(named(name));
                        prop_assert_eq!(registry.lookup(next), Some(longer));
                        prop_assert_eq!(registry.extend(id, &named(name), &mut world), Ok(next));
                        known.push(next);
                    }
                },
                Call::Prune(which) => if let Some(id) = at(which) {
                    let before = registry.lookup(id);
                    if let Ok(Some((target, above))) = registry.prune(id, &mut world) {
                        let mut shorter = before.unwrap();
                        shorter.pop();
                        prop_assert_eq!(shorter.last(), Some(&target));
                        prop_assert_eq!(registry.lookup(above), Some(shorter));
                        known.push(above);
                    }
                },
                Call::TerminateBelow(which) => if let Some(id) = at(which) {
                    let was = registry.is_live(id);
                    ended.extend(registry.terminate_below(id));
                    prop_assert_eq!(registry.is_live(id), was);
                },
                Call::Terminate(which) => if let Some(id) = at(which) {
                    ended.extend(registry.terminate(id));
                    prop_assert!(!registry.is_live(id));
                },
            }
            prop_assert!(registry.live() <= 5 * 21);
            for id in &ended {
                prop_assert!(!registry.is_live(*id));
            }
            prop_assert!(registry.is_live(root));
        }
    }

    /// A payload that its schema describes comes back from XML as it was.
    #[test]
    fn payloads_pass_through_xml((schema, value) in shaped(3)) {
        let schema = json!({"properties": {"it": schema}});
        let sent = envelope("a.b", "c", json!({"it": value}));
        let xml = to_xml(&sent).unwrap();
        prop_assert_eq!(read(&xml, &schema).unwrap(), sent);
    }

    /// No text ends the reader of XML.
    #[test]
    fn any_text_is_read_or_refused(text in "[<>/a-z\"= &;!?\\[\\]]{0,60}") {
        let _ = read(&text, &json!({}));
    }
}
