//! Each operation that is declared as a type, at its endpoints: which keys may ask it, how it is refused, and what the audit has of
//! it. The lists are those that operations and failures are declared in: a new one is held to them at once.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_schemas::msg::AuditEntry;
use tg_schemas::operations::{ALL, FailureCode, Meta};
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use crate::audit::kept;
use crate::played_sessions::FAILS;
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

/// Every code of a failure, by the HTTP status that reports it.
const STATUSES: &[(u16, &[&str])] = &[
    (308, &["session_archived"]),
    (
        400,
        &[
            "invalid_cursor",
            "invalid_header",
            "recursion_depth_exceeded",
            "session_agent_mismatch",
            "user_id_required",
            "validation_error",
        ],
    ),
    (401, &["unauthorized"]),
    (403, &["forbidden", "model_not_allowed"]),
    (
        404,
        &[
            "agent_not_found",
            "agent_template_not_found",
            "conversation_not_found",
            "llm_service_not_found",
            "memory_not_found",
            "not_found",
            "reranking_service_not_found",
            "session_not_found",
            "summary_not_found",
            "workspace_not_found",
        ],
    ),
    (405, &["method_not_allowed"]),
    (
        409,
        &[
            "conflict",
            "session_busy",
            "session_compact_conflict",
            "session_compact_disabled",
            "turn_interrupted",
        ],
    ),
    (410, &["session_gone"]),
    (413, &["payload_too_large"]),
    (
        422,
        &[
            "context_window_too_small",
            "llm_credential_missing",
            "llm_provider_unsupported",
        ],
    ),
    (429, &["rate_limited"]),
    (500, &["internal_error"]),
    (502, &["compact_summary_failed", "upstream_error"]),
    (503, &["agent_unavailable", "chat_disabled"]),
    (504, &["upstream_timeout"]),
];

/// The same, one by one.
fn statuses() -> impl Iterator<Item = (u16, &'static str)> {
    let rows = STATUSES.iter();
    rows.flat_map(|(status, codes)| codes.iter().map(move |code| (*status, *code)))
}

/// Asks an operation at one of its endpoints, in the workspace `acme`: the path names it, or `tenant` does, or it is the key's own.
async fn asked(
    world: &World,
    (method, path): (&str, &str),
    key: &str,
    tenant: Option<&str>,
) -> (u16, Value) {
    let path = path.replace("{workspace}", "acme").replace(['{', '}'], "");
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let has_body = !matches!(method.as_str(), "GET" | "DELETE");
    let request = world.http.request(method, world.url(&path));
    let request = request.bearer_auth(key).header("SPASS-User-Id", "bob");
    let request = match tenant {
        Some(workspace) => request.header("SPASS-Tenant", workspace),
        None => request,
    };
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
                let (status, code) = asked(&world, (method, path), key, None).await;
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
    for meta in ALL {
        for (method, path) in endpoints(meta) {
            let refused = asked(&world, (method, path), "tg_neighbour", Some("acme")).await;
            assert_eq!(refused, (403, json!("forbidden")), "{method} {path}");
        }
    }
}

/// The same key, where the request names the operation: over HTTP, and on a socket.
async fn no_operation_is_open_by_its_name_to_a_key_of_another_workspace(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let socket = world.socket("tg_neighbour").await.within("acme");
    for meta in ALL {
        let mut request = json!({"operation": meta.name, "name": "ann"});
        let frame = socket.ask_service(meta.service, request.clone()).await;
        let frame = frame.unwrap();
        assert_eq!(frame["error"]["type"], "access-denied", "{}", meta.name);
        request["workspace"] = json!("acme");
        let path = format!("/api/v1/{}", meta.service);
        let refused = world.post(&path, "tg_neighbour", request.clone()).await;
        let denied = (403, json!({"error": "access denied"}));
        assert_eq!(refused, denied, "{}", meta.name);
        let (status, _) = world.post(&path, "tg_manager", request).await;
        assert_eq!(status, 200, "{}", meta.name);
    }
}

/// 8, 19, 26, 27, 32, 33, 49, 53, 60, 64 and 65: on both surfaces.
async fn each_failure_has_its_status(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let listed: BTreeSet<_> = statuses().map(|(_, code)| code).collect();
    let all: BTreeSet<_> = FailureCode::all().map(FailureCode::as_str).collect();
    assert_eq!(listed, all);
    for (status, code) in statuses() {
        for path in [
            format!("/a1/agents/ann/sessions/{FAILS}{code}"),
            format!("/api/v1/workspaces/acme/agents/{FAILS}{code}"),
        ] {
            let refused = asked(&world, ("GET", &path), "tg_manager", None).await;
            assert_eq!(refused, (status, json!(code)), "{path}");
        }
    }
}

/// One event for each that is let in, and one for each that is refused.
async fn each_operation_is_audited_once(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    for meta in ALL {
        for key in ["tg_manager", "tg_model"] {
            asked(&world, (meta.method, meta.path), key, None).await;
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
    no_operation_is_open_by_its_name_to_a_key_of_another_workspace,
    each_failure_has_its_status,
    each_operation_is_audited_once,
);
