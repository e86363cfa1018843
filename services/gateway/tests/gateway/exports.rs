//! Exports: what passes from now on, and what is stored.

use futures::StreamExt;
use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_schemas::Topic;
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
    let rows = json!({"metadata": meta, "schema_name": "cities", "values": [{"name": "Rome"}],
        "confidence": 0.8, "source_span": "Rome is"});
    for (kind, frame) in [
        ("document-embeddings", chunk),
        ("graph-embeddings", entity),
        ("entity-contexts", context),
        ("rows", rows),
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

/// What no client can be shown is counted, and told with the end; what comes after it is shown.
async fn records_that_cannot_be_read_are_told_at_the_end(place: Place) {
    use tg_mesh::bus::{Envelope, PublishMode, Target};
    let world = World::start(&place, AuthMode::None).await;
    let path = format!("{EXPORT}/triples");
    let (mut socket, _) = tokio_tungstenite::connect_async(url(&world, &path))
        .await
        .unwrap();
    let lines = world.http.get(world.url(&path)).timeout(BOUND).send();
    let mut lines = lines.await.unwrap();
    let topic = Topic::parse("flow:tg:triples-store:default:default").unwrap();
    for body in [&b"\x00\xff\x01noise"[..], b"{\"metadata\": 3}"] {
        let envelope = Envelope {
            body: body.to_vec().into(),
            ..Envelope::default()
        };
        let to = Target::Topic(topic.clone());
        let sent = world
            .mesh
            .bus()
            .publish(&to, envelope, PublishMode::Confirmed);
        sent.await.unwrap();
    }
    write(&world, "triples", "default", &batch(vec![triple(1)])).await;
    let message = tokio::time::timeout(BOUND, socket.next()).await.unwrap();
    let text = message.unwrap().unwrap().into_text().unwrap();
    assert!(text.contains("urn:1"), "{text}");
    let line = tokio::time::timeout(BOUND, lines.chunk()).await.unwrap();
    assert!(line.unwrap().unwrap().starts_with(b"{"));
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
    assert!(
        close.reason.as_str().ends_with(" (unreadable 2)"),
        "{close}"
    );
    let text = tokio::time::timeout(BOUND, lines.text()).await.unwrap();
    let text = text.unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["unreadable"], &last["error"]["type"], &last["frames"]),
        (&json!(2), &json!("flow-stopped"), &json!(1))
    );
}

/// What the store of rows gives page by page is one export, and an import takes its frames as they are.
async fn stored_rows_are_dumped_and_come_back(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let path = format!("{EXPORT}/rows?stored=1&collection=c");
    let lines = world.http.get(world.url(&path)).timeout(BOUND).send();
    let text = lines.await.unwrap().text().await.unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (last, frames) = lines.split_last().unwrap();
    assert_eq!(last, &json!({"frames": 2, "complete": true}));
    assert_eq!(frames[0]["values"], json!([{"id": "1"}, {"id": "2"}]));
    assert_eq!(frames[1]["schema_name"], "towns");
    for frame in frames {
        assert_eq!(frame["metadata"]["collection"], "c");
        write(&world, "rows", "default", frame).await;
    }
    let written = world.fakes.rows.until(|all| all.len() == 2).await;
    // Two requests: which of their records a reader has handled first says nothing.
    let of = |schema: &str| {
        written
            .iter()
            .find(|one| one.schema_name == schema)
            .unwrap()
    };
    let first = frames[0]["schema_name"].as_str().unwrap();
    assert_eq!(of(first).values[1]["id"], "2");
    assert_eq!(of("towns").values.len(), 1);
    let (mut socket, _) = tokio_tungstenite::connect_async(url(&world, &path))
        .await
        .unwrap();
    let mut seen = Vec::new();
    while let Some(Ok(message)) = tokio::time::timeout(BOUND, socket.next()).await.unwrap() {
        match message {
            Message::Text(text) => seen.push(serde_json::from_str::<Value>(&text).unwrap()),
            Message::Close(Some(close)) => assert_eq!(close.reason.as_str(), "sent 2"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, frames);
}

/// What is stored of a kind, as lines.
async fn stored(world: &World, kind: &str, collection: &str) -> Vec<Value> {
    let path = format!("{EXPORT}/{kind}?stored=1&collection={collection}");
    let lines = world.http.get(world.url(&path)).timeout(BOUND).send();
    let text = lines.await.unwrap().text().await.unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Stored vectors leave page by page, as an import takes them; of a store that knows no pages nothing is said to be whole.
async fn stored_vectors_are_dumped_and_come_back(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let lines = stored(&world, "graph-embeddings", "c").await;
    let (last, frames) = lines.split_last().unwrap();
    assert_eq!(last, &json!({"frames": 2, "complete": true}));
    assert_eq!(
        frames[1],
        json!({"metadata": {"id": "", "root": "", "collection": "c"}, "model": "m", "entities": [
            {"entity": {"t": "i", "i": "urn:c"}, "vector": [0.5, 1.0], "chunk_id": "k", "rdf_type": ["urn:T"],
             "text": "words"}]})
    );
    for frame in frames {
        write(&world, "graph-embeddings", "default", frame).await;
    }
    let written = world.fakes.entities.until(|all| all.len() == 2).await;
    let entities = written.iter().flat_map(|one| &one.entities);
    let mut seen: Vec<_> = entities
        .map(|one| {
            let entity = one.entity.as_ref().unwrap().to_api().to_string();
            (entity, one.text.as_str(), one.chunk_id.as_str())
        })
        .collect();
    seen.sort();
    let wanted = ["urn:a", "urn:b", "urn:c"];
    let wanted = wanted.map(|id| (json!({"t": "i", "i": id}).to_string(), "words", "k"));
    assert_eq!(seen, wanted);
    let foreign = stored(&world, "graph-embeddings", "foreign").await;
    assert_eq!(
        foreign[0]["error"]["type"], "not-implemented",
        "{foreign:?}"
    );
}

/// Stored contexts leave as the texts of their vectors, as an import takes them.
async fn stored_contexts_are_dumped_and_come_back(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let lines = stored(&world, "entity-contexts", "c").await;
    let (last, frames) = lines.split_last().unwrap();
    assert_eq!(last, &json!({"frames": 2, "complete": true}));
    assert_eq!(
        frames[1],
        json!({"metadata": {"id": "", "root": "", "collection": "c"}, "entities": [
            {"entity": {"t": "i", "i": "urn:c"}, "context": "words", "chunk_id": "k", "rdf_type": ["urn:T"]}]})
    );
    for frame in frames {
        write(&world, "entity-contexts", "default", frame).await;
    }
    let written = world.fakes.contexts.until(|all| all.len() == 2).await;
    let mut seen: Vec<_> = written
        .iter()
        .flat_map(|one| &one.entities)
        .map(|one| {
            let entity = one.entity.as_ref().unwrap().to_api().to_string();
            (entity, one.context.as_str(), one.chunk_id.as_str())
        })
        .collect();
    seen.sort();
    let wanted = ["urn:a", "urn:b", "urn:c"];
    let wanted = wanted.map(|id| (json!({"t": "i", "i": id}).to_string(), "words", "k"));
    assert_eq!(seen, wanted);
    let foreign = stored(&world, "entity-contexts", "foreign").await;
    assert_eq!(
        foreign[0]["error"]["type"], "not-implemented",
        "{foreign:?}"
    );
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
    records_that_cannot_be_read_are_told_at_the_end,
    a_workspace_that_is_closed_ends_its_exports,
    a_workspace_that_is_closed_ends_what_others_read_there,
    every_listener_sees_what_passes_and_only_its_own_workspace,
    embeddings_leave_with_all_their_fields_and_those_older_tools_read,
    what_is_stored_is_dumped_and_ends,
    stored_rows_are_dumped_and_come_back,
    stored_vectors_are_dumped_and_come_back,
    stored_contexts_are_dumped_and_come_back,
    a_flow_that_begins_to_stop_ends_its_exports,
);
