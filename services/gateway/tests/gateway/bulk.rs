//! Import and export sockets.

use std::time::{Duration, Instant};

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_schemas::msg::Triples;
use tg_testkit::machine::Machine;
use tg_testkit::place::Place;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::world::{BOUND, World};

pub fn triple(n: usize) -> Value {
    json!({"s": {"t": "i", "i": format!("urn:{n}")}, "p": {"t": "i", "i": "urn:p"},
           "o": {"t": "l", "v": "x"}})
}

pub fn batch(triples: Vec<Value>) -> Value {
    json!({"metadata": {"id": "", "metadata": [], "collection": "c"}, "triples": triples})
}

pub fn url(world: &World, path: &str) -> String {
    format!("ws://{}{path}", world.handle.local_addr())
}

const IMPORT: &str = "/api/v1/flow/default/import/triples";

/// The reader takes records after they are confirmed.
async fn stored(world: &World, batches: usize) -> Vec<Triples> {
    world.fakes.store.until(|all| all.len() >= batches).await
}

async fn every_frame_before_the_close_is_safe(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let (mut socket, _) = tokio_tungstenite::connect_async(url(&world, IMPORT))
        .await
        .unwrap();
    for n in 0..100 {
        let frame = batch((0..10).map(|m| triple(n * 10 + m)).collect());
        socket.send(Message::text(frame.to_string())).await.unwrap();
    }
    socket
        .send(Message::text(triple(9999).to_string()))
        .await
        .unwrap();
    socket.close(None).await.unwrap();
    while let Some(Ok(_)) = socket.next().await {}
    let batches = stored(&world, 101).await;
    let triples: usize = batches.iter().map(|batch| batch.triples.len()).sum();
    assert_eq!(triples, 1001);
    let collections: Vec<_> = batches
        .iter()
        .map(|batch| batch.metadata.as_ref().unwrap().collection.as_str())
        .collect();
    assert!(collections.contains(&"c") && collections.contains(&"default"));
}

async fn a_malformed_frame_closes_with_the_reason_and_earlier_ones_stand(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    for (bad, why) in [
        (
            json!({"metadata": {"id": "", "collection": "c"}}).to_string(),
            "frame 2: triples: is required",
        ),
        (
            batch(vec![json!({"s": "urn:x"})]).to_string(),
            "frame 2: triples[0].p: is required",
        ),
        ("[".to_owned(), "frame 2: invalid JSON"),
    ] {
        let before = world.fakes.store.count();
        let (mut socket, _) = tokio_tungstenite::connect_async(url(&world, IMPORT))
            .await
            .unwrap();
        let good = batch(vec![triple(1)]).to_string();
        socket.send(Message::text(good)).await.unwrap();
        socket.send(Message::text(bad)).await.unwrap();
        let message = tokio::time::timeout(BOUND, socket.next()).await.unwrap();
        let Message::Close(Some(close)) = message.unwrap().unwrap() else {
            panic!("no close frame");
        };
        assert!(close.reason.as_str().contains(why), "{}", close.reason);
        stored(&world, before + 1).await;
    }
}

/// How long whoever is told goodbye may take to answer it, and a little for noticing that it did not.
const GOODBYE: Duration = Duration::from_secs(10 + 2);

/// Whoever never answers a close is cut off: it holds neither its connection nor its place among the sockets.
async fn who_never_answers_a_close_is_cut_off(place: Place) {
    let world = World::with(&place, AuthMode::None, |options| {
        options.settings.sockets = 1
    })
    .await;
    let allowed = Machine::measured().allows(GOODBYE);
    let mut raw = TcpStream::connect(world.handle.local_addr()).await.unwrap();
    let upgrade = format!(
        "GET {IMPORT} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    raw.write_all(upgrade.as_bytes()).await.unwrap();
    // A text that is no frame, masked with nothing.
    raw.write_all(&[0x81, 0x81, 0, 0, 0, 0, b'['])
        .await
        .unwrap();
    let mut heard = Vec::new();
    while !String::from_utf8_lossy(&heard).contains("invalid JSON") {
        let read = tokio::time::timeout(BOUND, raw.read_buf(&mut heard)).await;
        assert!(read.unwrap().unwrap() > 0, "no close: {heard:?}");
    }
    assert_eq!(
        handshake(&world, IMPORT).await,
        503,
        "it has the only place"
    );
    let told = Instant::now();
    let rest = async { while !matches!(raw.read_buf(&mut heard).await, Ok(0) | Err(_)) {} };
    tokio::time::timeout(BOUND.max(allowed * 2), rest)
        .await
        .expect("an end");
    let took = told.elapsed();
    assert!(took <= allowed, "{took:?} of {allowed:?}");
    tokio::time::timeout(BOUND, async {
        while handshake(&world, IMPORT).await != 101 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("a place for another");
}

async fn confirmations_are_told_to_those_who_ask(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let path = format!("{IMPORT}?ack=true");
    let (mut socket, _) = tokio_tungstenite::connect_async(url(&world, &path))
        .await
        .unwrap();
    for n in 0..3 {
        let frame = batch(vec![triple(n), triple(n + 10)]).to_string();
        socket.send(Message::text(frame)).await.unwrap();
    }
    for n in 1..=3 {
        let message = tokio::time::timeout(BOUND, socket.next()).await.unwrap();
        let text = message.unwrap().unwrap().into_text().unwrap();
        let frame: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(frame, json!({"confirmed": {"frames": n, "triples": 2 * n}}));
    }
}

async fn a_stopped_flow_ends_its_imports(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let (mut socket, _) = tokio_tungstenite::connect_async(url(&world, IMPORT))
        .await
        .unwrap();
    world.put(("default", "flow", "default"), None).await;
    let message = tokio::time::timeout(BOUND, socket.next()).await.unwrap();
    let Message::Close(Some(close)) = message.unwrap().unwrap() else {
        panic!("no close frame");
    };
    assert!(close.reason.as_str().contains("flow was stopped"));
}

pub async fn handshake(world: &World, path: &str) -> u16 {
    match tokio_tungstenite::connect_async(url(world, path)).await {
        Ok(_) => 101,
        Err(Error::Http(response)) => response.status().as_u16(),
        Err(other) => panic!("{other}"),
    }
}

async fn handshakes_are_refused_with_a_status(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    for (path, status) in [
        ("/api/v1/flow/default/import/triples", 401),
        ("/api/v1/flow/default/import/triples?token=tg_wrong", 401),
        ("/api/v1/flow/default/import/triples?token=tg_reader", 403),
        ("/api/v1/flow/default/import/nothing?token=tg_wrong", 404),
        ("/api/v1/flow/nope/import/triples?token=tg_admin", 404),
        ("/api/v1/flow/a--b/import/triples?token=tg_admin", 400),
        ("/api/v1/flow/default/import/rows?token=tg_reader", 403),
        ("/api/v1/flow/default/import/rows?token=tg_admin", 101),
        (
            "/api/v1/flow/default/import/triples?token=tg_admin&errors=x",
            400,
        ),
        ("/api/v1/flow/default/export/triples?token=tg_reader", 101),
        (
            "/api/v1/flow/default/export/triples?token=tg_reader&workspace=default",
            403,
        ),
        (
            "/api/v1/flow/default/export/entity-contexts?token=tg_admin&stored=1",
            101,
        ),
        (
            "/api/v1/flow/default/export/entity-contexts?token=tg_admin&stored=1&graph=urn:g",
            400,
        ),
        ("/api/v1/flow/default/export/rows?token=tg_admin", 101),
        (
            "/api/v1/flow/default/export/rows?token=tg_admin&stored=1&graph=urn:g",
            400,
        ),
        ("/api/v1/flow/default/export/nothing?token=tg_admin", 404),
        ("/api/v1/flow/default/import/triples?token=tg_admin", 101),
    ] {
        assert_eq!(handshake(&world, path).await, status, "{path}");
    }
}

async fn too_many_sockets_are_turned_away(place: Place) {
    let world = World::with(&place, AuthMode::None, |options| {
        options.settings.sockets = 1
    })
    .await;
    let _first = tokio_tungstenite::connect_async(url(&world, "/api/v1/socket"))
        .await
        .unwrap();
    assert_eq!(handshake(&world, "/api/v1/socket").await, 503);
    assert_eq!(handshake(&world, IMPORT).await, 503);
}

tg_testkit::on_both_buses!(
    every_frame_before_the_close_is_safe,
    a_malformed_frame_closes_with_the_reason_and_earlier_ones_stand,
    who_never_answers_a_close_is_cut_off,
    confirmations_are_told_to_those_who_ask,
    a_stopped_flow_ends_its_imports,
    handshakes_are_refused_with_a_status,
    too_many_sockets_are_turned_away,
);
