//! Imports of every kind, through both endpoints, and what they say of themselves.

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_testkit::place::Place;
use tokio_tungstenite::tungstenite::Message;

use crate::bulk::{batch, triple, url};
use crate::world::{BOUND, World};

/// One frame of each kind, with its items' name.
pub fn frames() -> [(&'static str, &'static str, Value); 5] {
    let meta = json!({"id": "d", "root": "r", "collection": "c"});
    let term = json!({"t": "i", "i": "urn:a"});
    [
        ("triples", "triples", batch(vec![triple(1)])),
        (
            "graph-embeddings",
            "entities",
            json!({"metadata": meta, "entities": [{"entity": term, "vector": [1, 2], "chunk_id": "k",
                   "rdf_type": ["urn:T"], "attributes": {"x": "y"}}]}),
        ),
        (
            "document-embeddings",
            "chunks",
            json!({"metadata": meta, "chunks": [{"chunk_id": "k", "vectors": [1, 2]}]}),
        ),
        (
            "entity-contexts",
            "entities",
            json!({"metadata": meta, "entities": [{"entity": term, "context": "x", "chunk_id": "k"}]}),
        ),
        (
            "rows",
            "rows",
            json!({"metadata": meta, "schema_name": "s", "values": [{"a": "1", "n": 2}]}),
        ),
    ]
}

/// Path of an import.
pub fn import(kind: &str) -> String {
    format!("/api/v1/flow/default/import/{kind}")
}

/// Waits until every store has a record.
async fn all_stored(world: &World) {
    let fakes = &world.fakes;
    fakes.store.until(|all| !all.is_empty()).await;
    fakes.entities.until(|all| !all.is_empty()).await;
    fakes.chunks.until(|all| !all.is_empty()).await;
    fakes.contexts.until(|all| !all.is_empty()).await;
    fakes.rows.until(|all| !all.is_empty()).await;
}

fn all_fields_are_there(world: &World) {
    let entity = world.fakes.entities.all()[0].clone();
    assert_eq!(entity.metadata.unwrap().root, "r");
    assert_eq!(entity.entities[0].chunk_id, "k");
    assert_eq!(entity.entities[0].rdf_type, ["urn:T"]);
    assert_eq!(entity.entities[0].attributes["x"], "y");
    let chunk = world.fakes.chunks.all()[0].clone();
    assert_eq!(chunk.chunks[0].vector, [1.0, 2.0]);
    let context = world.fakes.contexts.all()[0].clone();
    assert_eq!(context.entities[0].chunk_id, "k");
    let rows = world.fakes.rows.all()[0].clone();
    assert_eq!(rows.values[0]["n"], "2");
    assert_eq!(rows.confidence, 1.0);
}

async fn every_kind_comes_through_a_socket_with_all_its_fields(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    for (kind, items, frame) in frames() {
        let (mut socket, _) = tokio_tungstenite::connect_async(url(&world, &import(kind)))
            .await
            .unwrap();
        for frame in [frame, json!({"type": "status"}), json!({"type": "end"})] {
            socket.send(Message::text(frame.to_string())).await.unwrap();
        }
        let mut seen = Vec::new();
        while let Some(Ok(message)) = tokio::time::timeout(BOUND, socket.next()).await.unwrap() {
            match message {
                Message::Text(text) => seen.push(serde_json::from_str::<Value>(&text).unwrap()),
                Message::Close(Some(close)) => {
                    assert_eq!(u16::from(close.code), 1000);
                    assert_eq!(close.reason.as_str(), "received 1, sent 1, failed 0");
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(seen[0]["status"]["received"], 1, "{kind}");
        assert_eq!(seen[0]["complete"], false);
        assert_eq!(
            seen[1],
            json!({"status": {"received": 1, "sent": 1, "failed": 0, items: 1}, "complete": true})
        );
    }
    all_stored(&world).await;
    all_fields_are_there(&world);
}

async fn every_kind_comes_as_lines_with_all_its_fields(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    for (kind, items, frame) in frames() {
        let lines = format!("{frame}\n{{\"nothing\": 1}}\n\n{frame}");
        let request = world
            .http
            .post(world.url(&format!("{}?workspace=default", import(kind))))
            .header("content-type", "application/x-ndjson")
            .bearer_auth("tg_admin")
            .body(lines);
        let response = request.timeout(BOUND).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200);
        let reply: Value = response.json().await.unwrap();
        assert_eq!(
            (&reply["received"], &reply["sent"], &reply["failed"]),
            (&json!(3), &json!(2), &json!(1))
        );
        assert_eq!(reply[items], 2, "{kind}");
        assert_eq!(reply["errors"][0]["frame"], 2);
        assert_eq!(reply["complete"], true);
    }
    all_stored(&world).await;
    all_fields_are_there(&world);
    // The wall stands here, too.
    for (token, path, status) in [
        ("", import("rows"), 401),
        ("tg_reader", import("rows"), 403),
        ("tg_admin", import("nothing"), 404),
        ("tg_admin", "/api/v1/flow/nope/import/rows".to_owned(), 404),
    ] {
        assert_eq!(
            world.post(&path, token, json!({})).await.0,
            status,
            "{path}"
        );
    }
}

async fn lines_stop_at_a_fault_when_asked_to_and_a_socket_goes_on(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let good = batch(vec![triple(1)]);
    let (_, reply) = lines(&world, "?errors=stop", format!("{good}\n[\n{good}\n")).await;
    assert_eq!((&reply["received"], &reply["sent"]), (&json!(2), &json!(1)));
    assert!(
        reply["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("frame 2: invalid JSON")
    );
    let path = format!("{}?errors=skip", import("triples"));
    let (mut socket, _) = tokio_tungstenite::connect_async(url(&world, &path))
        .await
        .unwrap();
    for frame in [
        good.to_string(),
        "[".into(),
        good.to_string(),
        json!({"type": "end"}).to_string(),
    ] {
        socket.send(Message::text(frame)).await.unwrap();
    }
    let message = tokio::time::timeout(BOUND, socket.next()).await.unwrap();
    let text = message.unwrap().unwrap().into_text().unwrap();
    let status: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status["status"]["sent"], 2);
    assert_eq!(status["status"]["failed"], 1);
    assert_eq!(status["status"]["errors"][0]["frame"], 2);
}

async fn lines(world: &World, query: &str, body: String) -> (u16, Value) {
    let request = world
        .http
        .post(world.url(&format!("{}{query}", import("triples"))))
        .body(body);
    let response = request.timeout(BOUND).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn a_large_frame_becomes_records_of_bounded_size(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let frame = batch((0..2500).map(triple).collect());
    let (status, reply) = lines(&world, "", frame.to_string()).await;
    assert_eq!((status, &reply["triples"]), (200, &json!(2500)));
    let batches = world.fakes.store.until(|all| all.len() == 3).await;
    let mut sizes: Vec<_> = batches.iter().map(|batch| batch.triples.len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [500, 1000, 1000]);

    // By bytes as well: ten mebibytes of literals.
    let literal = "x".repeat(10 << 10);
    let long = |n: usize| {
        let mut triple = triple(n);
        triple["o"]["v"] = json!(literal);
        triple
    };
    let frame = batch((0..1000).map(long).collect());
    let (status, reply) = lines(&world, "", frame.to_string()).await;
    assert_eq!((status, &reply["triples"]), (200, &json!(1000)));
    let batches = world.fakes.store.until(|all| all.len() == 6).await;
    let mut sizes: Vec<_> = batches.iter().map(|batch| batch.triples.len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [182, 409, 409, 500, 1000, 1000]);
}

async fn text_is_loaded_through_the_library_of_its_workspace(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let path = "/api/v1/flow/default/service/text-load";
    for text in ["hello there", "aGVsbG8gdGhlcmU="] {
        let body = json!({"text": text, "collection": "c", "workspace": "acme"});
        let (status, reply) = world.post(path, "", body).await;
        assert_eq!((status, reply), (200, json!({})));
    }
    let loaded = world.fakes.loaded.lock().clone();
    assert_eq!(loaded.len(), 2);
    for (workspace, load) in loaded.iter() {
        assert_eq!(workspace, "acme");
        assert_eq!(load.content, "aGVsbG8gdGhlcmU=");
        let processing = load.processing_metadata.as_ref().unwrap();
        assert_eq!(
            (processing.flow.as_str(), processing.collection.as_str()),
            ("default", "c")
        );
    }
    // A flow without such an input is told so before anything is stored.
    let path = "/api/v1/flow/default/service/document-load";
    let (status, reply) = world.post(path, "", json!({"data": "aGVsbG8="})).await;
    assert_eq!(
        (status, reply),
        (200, json!({"error": "This kind not supported by flow"}))
    );
}

async fn an_import_is_for_the_workspace_that_it_began_in(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let registered = ("__workspaces__", "workspace", "acme");
    let born = |generation: i64| json!({"enabled": true, "generation": generation});
    world.put(registered, Some(born(7))).await;
    let path = format!("{}?token=tg_admin&workspace=acme&ack=1", import("triples"));
    let (mut socket, _) = tokio_tungstenite::connect_async(url(&world, &path))
        .await
        .unwrap();
    let frame = || Message::text(batch(vec![triple(1)]).to_string());
    socket.send(frame()).await.unwrap();
    let acked = tokio::time::timeout(BOUND, socket.next()).await.unwrap();
    assert!(acked.unwrap().unwrap().is_text());
    let store = &world.fakes.store;
    store.until(|all| !all.is_empty()).await;
    // Deleted and made again under its name: what the old one's import still writes is not for the new one, and whoever
    // writes is told.
    world.put(registered, Some(born(9))).await;
    let _ = socket.send(frame()).await;
    let closed = async {
        loop {
            if let Message::Close(close) = socket.next().await.unwrap().unwrap() {
                return close.unwrap().reason.to_string();
            }
        }
    };
    let reason = tokio::time::timeout(BOUND, closed).await.unwrap();
    assert!(reason.contains("workspace was closed"), "{reason}");
    let late = format!("{}?workspace=acme", import("triples"));
    let (_, reply) = world.post(&late, "tg_admin", batch(vec![triple(2)])).await;
    assert_eq!(reply["sent"], 1);
    store.until(|all| all.len() >= 2).await;
    // The late one was on its way before: it had time to arrive.
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let stored: Vec<_> = store.all().into_iter().map(|one| one.triples).collect();
    assert_eq!(stored.len(), 2);
    assert_ne!(
        stored[0], stored[1],
        "the old one's write reached the new one"
    );
}

tg_testkit::on_both_buses!(
    every_kind_comes_through_a_socket_with_all_its_fields,
    every_kind_comes_as_lines_with_all_its_fields,
    lines_stop_at_a_fault_when_asked_to_and_a_socket_goes_on,
    a_large_frame_becomes_records_of_bounded_size,
    text_is_loaded_through_the_library_of_its_workspace,
    an_import_is_for_the_workspace_that_it_began_in,
);
