//! Each operation that is declared as a type, at its endpoints: which keys may ask it, and what the audit has of it. The list is the
//! one that they are declared in: a new operation is held to it at once.

use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_schemas::msg::AuditEntry;
use tg_schemas::operations::{ALL, Meta};
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use crate::audit::kept;
use crate::world::{BOUND, World};

/// A key, and whether it has a capability in the workspace `acme`.
type Key = (&'static str, fn(&str) -> bool);

const KEYS: [Key; 4] = [
    ("tg_manager", |_| true),
    ("tg_reader", |capability| {
        capability == "agent" || capability.ends_with(":read")
    }),
    ("tg_scoped", |capability| capability == "config:read"),
    ("tg_model", |_| false),
];

/// Asks an operation at one of its endpoints, by a key whose own workspace is `acme`.
async fn asked(world: &World, method: &str, path: &str, key: &str) -> (u16, Value) {
    let path = path.replace("{workspace}", "acme").replace(['{', '}'], "");
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let has_body = !matches!(method.as_str(), "GET" | "DELETE");
    let request = world.http.request(method, world.url(&path));
    let request = request.bearer_auth(key).header("SPASS-User-Id", "bob");
    let request = match has_body {
        true => request.json(&json!({})),
        false => request,
    };
    let response = request.timeout(BOUND).send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let told: Value = serde_json::from_slice(text.as_bytes()).unwrap_or_default();
    (status, told["error"]["code"].clone())
}

/// The endpoints of an operation: whole, and as events.
fn endpoints(meta: &Meta) -> impl Iterator<Item = (&'static str, &'static str)> {
    let streams = (!meta.stream.is_empty()).then_some(("POST", meta.stream));
    [(meta.method, meta.path)].into_iter().chain(streams)
}

/// Owner of the workspace, reader, and keys that have less.
async fn each_operation_needs_its_capability(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    for meta in ALL {
        for (method, path) in endpoints(meta) {
            for (key, has) in KEYS {
                let (status, code) = asked(&world, method, path, key).await;
                let refused = (status, &code) == (403, &json!("forbidden"));
                assert!(
                    refused != has(meta.capability) && status != 401,
                    "{key} {method} {path}: {status} {code}"
                );
            }
        }
    }
}

/// Who has every capability in another workspace, and none in this one.
async fn no_operation_is_open_to_a_key_of_another_workspace(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let mut refused = 0;
    for meta in ALL {
        for (method, path) in endpoints(meta) {
            // Without a name in the path an operation is in the workspace of its key.
            if !path.contains("{workspace}") {
                continue;
            }
            let (status, code) = asked(&world, method, path, "tg_neighbour").await;
            assert_eq!((status, code), (403, json!("forbidden")), "{method} {path}");
            refused += 1;
        }
    }
    assert!(refused > 0, "no path names a workspace");
}

/// One event for each that is let in, and one for each that is refused.
async fn each_operation_is_audited_once(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    for meta in ALL {
        for key in ["tg_manager", "tg_model"] {
            asked(&world, meta.method, meta.path, key).await;
        }
    }
    world.handle.close().await;
    let all = kept(&world.fakes.audit.came.borrow());
    for meta in ALL {
        let operation = format!("{}/{}", meta.service, meta.name);
        let of_it = all.iter().filter(|one| one.operation == operation);
        let shown = |one: &AuditEntry| {
            let (actor, workspace) = (one.actor.clone(), one.workspace.clone());
            (actor, workspace, one.reason.clone(), one.count)
        };
        let mut told: Vec<_> = of_it.map(shown).collect();
        told.sort_unstable();
        let row = |actor: &str, reason: &str| {
            let (actor, reason) = (actor.to_owned(), reason.to_owned());
            (actor, "acme".to_owned(), reason, 1_i64)
        };
        let expected = [row("admin", "no-capability"), row("manager", "")];
        assert_eq!(told, expected, "{operation}");
    }
}

on_both_buses!(
    each_operation_needs_its_capability,
    no_operation_is_open_to_a_key_of_another_workspace,
    each_operation_is_audited_once,
);
