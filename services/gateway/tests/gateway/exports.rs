//! Exports: what passes from now on, and what is stored.

use futures::StreamExt;
use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_testkit::place::Place;
use tokio_tungstenite::tungstenite::Message;

use crate::bulk::{batch, triple, url};
use crate::world::{BOUND, World};

const EXPORT: &str = "/api/v1/flow/default/export";

async fn write(world: &World, kind: &str, workspace: &str, frame: &Value) {
    let path = format!("/api/v1/flow/default/import/{kind}?workspace={workspace}");
    let (status, reply) = world.post(&path, "", frame.clone()).await;
    assert_eq!((status, &reply["failed"]), (200, &json!(0)), "{reply}");
}

async fn every_listener_sees_what_passes_and_only_its_own_workspace(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let path = format!("{EXPORT}/triples");
    let acme = format!("{EXPORT}/triples?workspace=acme");
    write(&world, "triples", "default", &batch(vec![triple(0)])).await;
    let mut sockets = Vec::new();
    for path in [&path, &path, &acme] {
        let (socket, _) = tokio_tungstenite::connect_async(url(&world, path))
            .await
            .unwrap();
        sockets.push(socket);
    }
    write(&world, "triples", "default", &batch(vec![triple(1)])).await;
    write(&world, "triples", "acme", &batch(vec![triple(2)])).await;
    for (socket, wanted) in sockets.iter_mut().zip(["urn:1", "urn:1", "urn:2"]) {
        let message = tokio::time::timeout(BOUND, socket.next()).await.unwrap();
        let text = message.unwrap().unwrap().into_text().unwrap();
        let frame: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(frame["triples"][0]["s"]["i"], wanted);
        assert_eq!(
            frame["metadata"],
            json!({"id": "", "root": "", "collection": "c"})
        );
    }
    let mut first = sockets.remove(0);
    first.close(None).await.unwrap();
    while let Some(Ok(_)) = first.next().await {}
}

async fn embeddings_leave_with_all_their_fields_and_those_older_tools_read(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let meta = json!({"id": "d", "root": "r", "collection": "c"});
    let chunk = json!({"metadata": meta, "chunks": [{"chunk_id": "k", "vector": [0.5], "attributes": {"a": 1}}]});
    let entity = json!({"metadata": meta, "model": "m", "entities": [{"entity": {"t": "b", "d": "x"},
        "vector": [0.5], "chunk_id": "k", "rdf_type": ["urn:T"]}]});
    let context = json!({"metadata": meta, "entities": [{"entity": {"t": "i", "i": "urn:a"},
        "context": "words", "rdf_type": ["urn:T"]}]});
    for (kind, frame) in [
        ("document-embeddings", chunk),
        ("graph-embeddings", entity),
        ("entity-contexts", context),
    ] {
        let path = format!("{EXPORT}/{kind}?collection=c");
        let (mut socket, _) = tokio_tungstenite::connect_async(url(&world, &path))
            .await
            .unwrap();
        let mut other = frame.clone();
        other["metadata"]["collection"] = "other".into();
        write(&world, kind, "default", &other).await;
        write(&world, kind, "default", &frame).await;
        let message = tokio::time::timeout(BOUND, socket.next()).await.unwrap();
        let text = message.unwrap().unwrap().into_text().unwrap();
        let mut wanted = frame;
        if kind == "document-embeddings" {
            wanted["metadata"]["metadata"] = json!([]);
            wanted["chunks"][0]["vectors"] = json!([0.5]);
        }
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            wanted,
            "{kind}"
        );
    }
}

async fn what_is_stored_is_dumped_and_ends(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let path = format!("{EXPORT}/triples?stored=1&workspace=acme&collection=c");
    let response = world
        .http
        .get(world.url(&path))
        .timeout(BOUND)
        .send()
        .await
        .unwrap();
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let text = response.text().await.unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["triples"][0]["o"]["v"], "acme");
    assert_eq!(lines[0]["metadata"]["collection"], "c");
    assert_eq!(
        lines.last().unwrap(),
        &json!({"frames": lines.len() - 1, "complete": true})
    );
    let path = path.replace("workspace=acme", "workspace=default");
    let (mut socket, _) = tokio_tungstenite::connect_async(url(&world, &path))
        .await
        .unwrap();
    let (mut frames, mut reason) = (0, String::new());
    while let Some(Ok(message)) = tokio::time::timeout(BOUND, socket.next()).await.unwrap() {
        match message {
            Message::Text(_) => frames += 1,
            Message::Close(Some(close)) => reason = close.reason.to_string(),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(reason, format!("sent {frames}"));
}

async fn a_flow_that_begins_to_stop_ends_its_exports(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let path = format!("{EXPORT}/triples");
    let (mut socket, _) = tokio_tungstenite::connect_async(url(&world, &path))
        .await
        .unwrap();
    let lines = world
        .http
        .get(world.url(&path))
        .timeout(BOUND)
        .send()
        .await
        .unwrap();
    let mut record = crate::world::record("default", "default", 1);
    record["status"] = "stopping".into();
    record["drain"] = "wait".into();
    world
        .put(("default", "flow", "default"), Some(record))
        .await;
    let message = tokio::time::timeout(BOUND, socket.next()).await.unwrap();
    let Message::Close(Some(close)) = message.unwrap().unwrap() else {
        panic!("no close frame");
    };
    assert!(close.reason.as_str().contains("flow was stopped"));
    let text = tokio::time::timeout(BOUND, lines.text())
        .await
        .unwrap()
        .unwrap();
    let last: Value = serde_json::from_str(text.trim()).unwrap();
    assert_eq!(last["error"]["type"], "flow-stopped");
}

/// Whoever reads there: with keys it may be somebody whose own workspace is another one.
async fn closed_under(place: &Place, auth_mode: AuthMode) {
    let world = World::start(place, auth_mode).await;
    let path = format!("{EXPORT}/triples?workspace=acme&token=tg_admin");
    let (mut socket, _) = tokio_tungstenite::connect_async(url(&world, &path))
        .await
        .unwrap();
    let row = ("__workspaces__", "workspace", "acme");
    world.put(row, None).await;
    let message = tokio::time::timeout(BOUND, socket.next()).await.unwrap();
    let Message::Close(Some(close)) = message.unwrap().unwrap() else {
        panic!("no close frame");
    };
    assert!(close.reason.as_str().contains("workspace was closed"));
}

async fn a_workspace_that_is_closed_ends_its_exports(place: Place) {
    closed_under(&place, AuthMode::None).await;
}

async fn a_workspace_that_is_closed_ends_what_others_read_there(place: Place) {
    closed_under(&place, AuthMode::Iam).await;
}

tg_testkit::on_both_buses!(
    a_workspace_that_is_closed_ends_its_exports,
    a_workspace_that_is_closed_ends_what_others_read_there,
    every_listener_sees_what_passes_and_only_its_own_workspace,
    embeddings_leave_with_all_their_fields_and_those_older_tools_read,
    what_is_stored_is_dumped_and_ends,
    a_flow_that_begins_to_stop_ends_its_exports,
);
