//! The disk below the embedded bus is full: what cannot be stored is refused in words that help, what
//! needs no disk goes on, and everything works again once there is room.

use std::sync::Arc;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_testkit::faults::{Faults, FaultyBus};
use tg_testkit::place::Place;
use tokio_tungstenite::tungstenite::Message;

use crate::bulk::{batch, triple, url};
use crate::world::{BOUND, World};

const IMPORT: &str = "/api/v1/flow/default/import/triples";

fn full(full: bool) -> Faults {
    Faults {
        full,
        ..Faults::default()
    }
}

async fn lines(world: &World) -> Value {
    let body = batch(vec![triple(1)]).to_string();
    let request = world.http.post(world.url(IMPORT)).body(body);
    let response = request.timeout(BOUND).send().await.unwrap();
    response.json().await.unwrap()
}

/// Sends one frame and the end; what the socket says, and how it closes.
async fn socket(world: &World) -> (Vec<Value>, u16, String) {
    let (mut socket, _) = tokio_tungstenite::connect_async(url(world, IMPORT))
        .await
        .unwrap();
    for frame in [batch(vec![triple(2)]), json!({"type": "end"})] {
        socket.send(Message::text(frame.to_string())).await.unwrap();
    }
    let mut seen = Vec::new();
    while let Some(Ok(message)) = tokio::time::timeout(BOUND, socket.next()).await.unwrap() {
        match message {
            Message::Text(text) => seen.push(serde_json::from_str(&text).unwrap()),
            Message::Close(Some(close)) => {
                return (seen, close.code.into(), close.reason.to_string());
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("the socket ended without a word");
}

async fn a_full_disk_is_said_at_the_doors_and_passes(place: Place) {
    let bus = FaultyBus::new(place.connect().await, 1);
    let world = World::on(Arc::new(bus.clone()), AuthMode::None, |_| {}).await;
    assert_eq!(lines(&world).await["sent"], 1);

    bus.set(full(true));
    let refused = lines(&world).await;
    assert_eq!(
        (&refused["sent"], &refused["failed"]),
        (&json!(0), &json!(1)),
        "{refused}"
    );
    let said = refused.to_string();
    assert!(said.contains("storage-error"), "{said}");
    assert!(said.contains("the disk may be full"), "{said}");
    let (seen, code, reason) = socket(&world).await;
    assert_ne!(code, 1000, "{reason}");
    assert!(reason.contains("the disk may be full"), "{seen:?} {reason}");
    for text in [said, reason] {
        for inside in ["triples-store", "flow:tg", "nt.", "/tmp", "journal"] {
            assert!(!text.contains(inside), "{text}");
        }
    }
    // What needs no disk goes on.
    let query = json!({"limit": 1});
    let (status, answer) = world
        .post("/api/v1/flow/default/service/triples", "", query)
        .await;
    assert_eq!(status, 200, "{answer}");

    bus.set(full(false));
    assert_eq!(lines(&world).await["sent"], 1);
    let (_, code, reason) = socket(&world).await;
    assert_eq!(
        (code, reason.as_str()),
        (1000, "received 1, sent 1, failed 0")
    );
    world.fakes.store.until(|all| all.len() >= 3).await;
    // What was refused is nowhere, what was accepted is there once.
    assert_eq!(world.fakes.store.count(), 3);
}

tg_testkit::on_both_buses!(a_full_disk_is_said_at_the_doors_and_passes,);
