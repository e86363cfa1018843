//! What the gateway decided is told to the iam service, once each, and holds no credential.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_schemas::msg::{AuditEntry, AuditRequest};
use tg_testkit::place::Place;

use crate::world::{BOUND, World};

const AGENT: &str = "/api/v1/flow/default/service/agent";

/// What was kept: of batches that came more than once the last.
pub fn kept(came: &[AuditRequest]) -> Vec<AuditEntry> {
    let batches: BTreeMap<i64, &AuditRequest> =
        came.iter().map(|batch| (batch.sequence, batch)).collect();
    let entries = batches.into_values().flat_map(|batch| &batch.entries);
    entries.cloned().collect()
}

fn count(entries: &[AuditEntry], kind: &str, operation: &str, reason: &str) -> i64 {
    let same = entries.iter().filter(|one| {
        (
            one.kind.as_str(),
            one.operation.as_str(),
            one.reason.as_str(),
        ) == (kind, operation, reason)
    });
    same.map(|one| one.count).sum()
}

async fn what_is_decided_is_told_once_whatever_fails(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    *world.fakes.audit.fails.lock() = 2;
    let post = async |token: &str, path: &str, body: Value| world.post(path, token, body).await.0;
    let list = json!({"operation": "list"});
    for _ in 0..3 {
        assert_eq!(post("tg_reader", "/api/v1/config", list.clone()).await, 200);
    }
    let other = json!({"operation": "list", "workspace": "default"});
    assert_eq!(post("tg_reader", "/api/v1/config", other).await, 403);
    let put = json!({"operation": "put", "values": [{"type": "x", "key": "k", "value": "v"}]});
    assert_eq!(post("tg_reader", "/api/v1/config", put.clone()).await, 403);
    assert_eq!(post("tg_admin", "/api/v1/config", put).await, 200);
    assert_eq!(
        post("tg_reader", AGENT, json!({"question": "q"})).await,
        200
    );
    assert_eq!(post("tg_secret", "/api/v1/config", list.clone()).await, 401);
    assert_eq!(post("", "/api/v1/config", list).await, 401);
    let export = "/api/v1/flow/default/export/triples?workspace=default&stored=1";
    assert_eq!(world.get(export, "tg_reader").await.0, 403);
    assert_eq!(world.get("/metrics", "tg_reader").await.0, 403);
    // What everybody may is no decision.
    assert_eq!(
        post("", "/api/v1/auth/bootstrap-status", json!({})).await,
        200
    );

    let expected = [
        ("read", "config/list", "", 3),
        ("read", "agent", "", 1),
        ("allowed", "config/put", "", 1),
        ("refused", "config/list", "no-capability", 1),
        ("refused", "config/put", "no-capability", 1),
        ("refused", "export/triples", "no-capability", 1),
        ("refused", "metrics", "no-capability", 1),
        ("stranger", "authenticate", "bad-credential", 1),
        ("stranger", "authenticate", "no-credential", 1),
    ];
    let mut came = world.fakes.audit.came.subscribe();
    let all_told = came.wait_for(|came| {
        let kept = kept(came);
        let told = |row: &(&str, &str, &str, i64)| count(&kept, row.0, row.1, row.2) >= row.3;
        // The third time the first batch is kept.
        let tries = came.iter().filter(|batch| batch.sequence == 1).count();
        tries > 2 && expected.iter().all(told)
    });
    let came = tokio::time::timeout(BOUND, all_told).await.expect("told");
    let came = came.unwrap().clone();
    let all = kept(&came);
    for (kind, operation, reason, times) in expected {
        assert_eq!(
            count(&all, kind, operation, reason),
            times,
            "{kind} {operation}"
        );
    }
    assert_eq!(all.iter().map(|one| one.count).sum::<i64>(), 11);
    // What failed came again as it was.
    let first: Vec<_> = came.iter().filter(|batch| batch.sequence == 1).collect();
    assert!(first.len() >= 3, "{}", first.len());
    assert!(first.iter().all(|batch| *batch == first[0]));
    let put = all.iter().find(|one| one.kind == "allowed").unwrap();
    assert_eq!(
        (
            put.actor.as_str(),
            put.credential.as_str(),
            put.workspace.as_str()
        ),
        ("admin", "key:id of admin", "default")
    );
    assert_eq!(
        (put.target_kind.as_str(), put.target.as_str()),
        ("config", "x/k")
    );
    assert_eq!(
        (put.door.as_str(), put.address.as_str()),
        ("rest", "127.0.0.1")
    );
    assert!(!put.request_id.is_empty());
    let text = format!("{came:?}");
    for secret in ["tg_secret", "tg_admin", "tg_reader"] {
        assert!(!text.contains(secret), "{secret} is told");
    }
}

async fn a_clients_own_id_makes_no_two_requests_one(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let put = json!({"operation": "put", "values": [{"type": "x", "key": "k", "value": "v"}]});
    for _ in 0..2 {
        let request = world.http.post(world.url("/api/v1/config")).json(&put);
        let request = request
            .bearer_auth("tg_admin")
            .header("x-request-id", "mine");
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["x-request-id"], "mine");
    }
    let socket = world.socket("tg_admin").await;
    for _ in 0..2 {
        let answer = socket.ask_service("config", put.clone()).await.unwrap();
        assert!(answer.get("error").is_none(), "{answer}");
    }
    let mut came = world.fakes.audit.came.subscribe();
    let told = came.wait_for(|came| count(&kept(came), "allowed", "config/put", "") >= 4);
    let came = tokio::time::timeout(BOUND, told).await.expect("told");
    let all = kept(&came.unwrap());
    let puts: Vec<_> = all.iter().filter(|one| one.kind == "allowed").collect();
    assert!(puts.iter().all(|one| one.count == 1), "{puts:?}");
    let own: BTreeSet<&str> = puts.iter().map(|one| one.request_id.as_str()).collect();
    assert_eq!(own.len(), 4, "{puts:?}");
    assert!(!own.contains("mine"));
    let given = puts.iter().filter(|one| one.client_request_id == "mine");
    assert_eq!(given.count(), 2);
}

async fn without_access_control_nothing_is_decided(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let list = json!({"operation": "list"});
    assert_eq!(world.post("/api/v1/config", "", list).await.0, 200);
    world.handle.close().await;
    assert!(world.fakes.audit.came.borrow().is_empty());
}

async fn the_last_of_it_is_told_before_the_gateway_closes(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let list = json!({"operation": "list"});
    assert_eq!(world.post("/api/v1/config", "tg_admin", list).await.0, 200);
    world.handle.close().await;
    let all = kept(&world.fakes.audit.came.borrow());
    assert_eq!(count(&all, "read", "config/list", ""), 1);
}

tg_testkit::on_both_buses!(
    what_is_decided_is_told_once_whatever_fails,
    a_clients_own_id_makes_no_two_requests_one,
    without_access_control_nothing_is_decided,
    the_last_of_it_is_told_before_the_gateway_closes,
);
