//! What clients of a flow see when it stops, and readiness.

use std::time::Duration;

use serde_json::json;
use tg_gateway::AuthMode;
use tg_mesh::{Answer, Ask};
use tg_schemas::msg::{TriplesQueryRequest, TriplesQueryResponse};
use tg_schemas::{ErrorCode, Topic, WorkspaceId};
use tg_testkit::place::Place;

use crate::world::{BOUND, World, record};

async fn whoever_waits_on_a_stopped_flow_is_told(place: Place) {
    for gone in [true, false] {
        let world = World::start(&place.another().await, AuthMode::None).await;
        let socket = world.socket("").await;
        let hang = json!({"service": "agent", "flow": "default", "request": {"question": "hang"}});
        let mut waiting = socket.send(hang.clone()).await.unwrap();
        waiting.next().await.unwrap();
        let http = world.post(
            "/api/v1/flow/default/service/agent",
            "",
            json!({"question": "hang"}),
        );
        let stop = async {
            world.reached(&world.fakes.agent.begun, 2).await;
            let row = if gone {
                None
            } else {
                let mut row = record("default", "default", 1);
                row["status"] = json!("stopping");
                row["drain"] = json!("park");
                Some(row)
            };
            world.put(("default", "flow", "default"), row).await;
        };
        let ((status, reply), ()) = tokio::join!(http, stop);
        assert_eq!(
            (status, &reply["error"]["type"]),
            (200, &json!("flow-stopped"))
        );
        let last = waiting.all(BOUND).await.unwrap();
        assert_eq!(last.last().unwrap()["error"]["type"], "flow-stopped");
        // New questions are refused.
        let frames = socket.send(hang).await.unwrap().all(BOUND).await.unwrap();
        let error = &frames[0]["error"];
        if gone {
            assert_eq!(error["message"], "Invalid flow default/default");
        } else {
            assert_eq!(error["type"], "flow-stopped");
        }
        world.reached(&world.fakes.agent.cancelled, 2).await;
    }
}

async fn a_stop_that_waits_lets_running_questions_end(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let socket = world.socket("").await;
    let hang = json!({"service": "agent", "flow": "default", "request": {"question": "hang"}});
    let mut waiting = socket.send(hang.clone()).await.unwrap();
    waiting.next().await.unwrap();
    let mut row = record("default", "default", 1);
    row["status"] = json!("stopping");
    row["drain"] = json!("wait");
    world.put(("default", "flow", "default"), Some(row)).await;
    let refused = socket.send(hang).await.unwrap().all(BOUND).await.unwrap();
    assert_eq!(refused[0]["error"]["type"], "flow-stopped");
    assert_eq!(*world.fakes.agent.cancelled.borrow(), 0);
    world.put(("default", "flow", "default"), None).await;
    let last = waiting.all(BOUND).await.unwrap();
    assert_eq!(last.last().unwrap()["error"]["type"], "flow-stopped");
}

async fn other_flows_go_on(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    world.start_flow("default", "second", 2).await;
    world.put(("default", "flow", "default"), None).await;
    let socket = world.socket("").await;
    let frames = socket
        .ask("agent", "second", json!({"question": "q"}))
        .await
        .unwrap();
    assert_eq!(frames.last().unwrap()["response"]["end_of_dialog"], true);
}

async fn ready_means_that_the_default_flow_serves(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let (status, body) = world.get("/health/ready", "").await;
    let ready = |refused| json!({"ready": true, "missing": [], "purging_refused": refused});
    assert_eq!((status, body), (200, ready(json!({}))));
    // Stores that purge nothing answer all the same.
    tg_mesh::tell_purging(&world.mesh, "graph", Some("another one")).await;
    let (status, body) = world.get("/health/ready", "").await;
    let refused = json!({"graph": "another one"});
    assert_eq!((status, body), (200, ready(refused)));
    tg_mesh::tell_purging(&world.mesh, "graph", None).await;
    // A full disk fails readiness, whatever runs; it passes with the room.
    tg_mesh::tell_disk(&world.mesh, true).await;
    let (status, body) = world.get("/health/ready", "").await;
    assert_eq!(
        (status, &body["missing"]),
        (503, &json!(["the disk is full"]))
    );
    tg_mesh::tell_disk(&world.mesh, false).await;
    let (status, body) = world.get("/health/ready", "").await;
    assert_eq!((status, body), (200, ready(json!({}))));
    assert_eq!(world.get("/health/live", "").await.0, 200);
    // Another start of the flow, which no agent has attached to yet.
    let row = ("default", "flow", "default");
    world.put(row, Some(record("default", "default", 9))).await;
    let (status, body) = world.get("/health/ready", "").await;
    assert_eq!(status, 503);
    assert_eq!(
        body["missing"],
        json!(["the agent of the default flow is not attached"])
    );
    world.put(row, None).await;
    let (status, body) = world.get("/health/ready", "").await;
    assert_eq!(status, 503);
    assert_eq!(body["missing"], json!(["the default flow is not started"]));
}

async fn closing_lets_running_work_end_within_the_drain_time(place: Place) {
    let world = World::with(&place, AuthMode::None, |options| {
        options.drain = std::time::Duration::from_millis(300);
    })
    .await;
    let socket = world.socket("").await;
    let hang = json!({"service": "agent", "flow": "default", "request": {"question": "hang"}});
    let mut waiting = socket.send(hang).await.unwrap();
    waiting.next().await.unwrap();
    tokio::time::timeout(BOUND, world.handle.close())
        .await
        .unwrap();
    world.reached(&world.fakes.agent.cancelled, 1).await;
    assert!(
        world
            .http
            .get(world.url("/health/live"))
            .send()
            .await
            .is_err()
    );
}

async fn a_question_is_for_the_workspace_that_its_caller_was_let_into(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let registered = ("__workspaces__", "workspace", "acme");
    let born = |generation: i64| json!({"enabled": true, "generation": generation});
    world.put(registered, Some(born(7))).await;
    let body = json!({"workspace": "acme", "p": {"t": "i", "i": "urn:generation"}});
    let path = "/api/v1/flow/default/service/triples";
    let (_, reply) = world.post(path, "tg_admin", body).await;
    assert_eq!(reply["response"][0]["o"]["v"], "7");
    // One that is late for it is refused.
    let topic = Topic::parse("request:tg:triples:acme:default").unwrap();
    let late = |generation| {
        let ask = Ask {
            workspace: Some(WorkspaceId::new("acme").unwrap()),
            generation: Some(generation),
            ..Ask::default()
        };
        let question = TriplesQueryRequest::default();
        let answer: Answer<TriplesQueryResponse> = world.mesh.mesh().ask(&topic, &question, ask);
        answer.last()
    };
    assert_eq!(late(6).await.unwrap_err().code(), ErrorCode::NotFound);
    assert!(late(7).await.is_ok());
}

/// Who is told that a row was written finds it written: the gateway's own view may be behind the service's.
async fn a_write_is_confirmed_when_the_gateway_has_read_it(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let next = world.mesh.config().version() + 1;
    let values = json!([{"type": "x", "key": "k", "value": next.to_string()}]);
    let put = json!({"operation": "put", "values": values});
    let mut confirmed = std::pin::pin!(world.post("/api/v1/config", "", put));
    let early = tokio::time::timeout(Duration::from_millis(500), &mut confirmed).await;
    assert!(early.is_err(), "{early:?} before the row was read");
    world.put(("default", "x", "k"), Some(json!(1))).await;
    let (status, reply) = confirmed.await;
    assert_eq!((status, &reply["version"]), (200, &json!(next)));
}

tg_testkit::on_both_buses!(
    a_write_is_confirmed_when_the_gateway_has_read_it,
    whoever_waits_on_a_stopped_flow_is_told,
    a_stop_that_waits_lets_running_questions_end,
    other_flows_go_on,
    ready_means_that_the_default_flow_serves,
    closing_lets_running_work_end_within_the_drain_time,
    a_question_is_for_the_workspace_that_its_caller_was_let_into,
);
