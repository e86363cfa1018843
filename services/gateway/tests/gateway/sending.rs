//! Answers that wait until their readers take them: bounded together, whatever door they leave by.

use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_testkit::place::Place;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::bulk::url;
use crate::fakes::LONG;
use crate::socket::{Raw, Small, agent, hear, raw, say};
use crate::world::{BOUND, World};

/// With a mebibyte for all answers together, half of which is shared out to connections.
async fn small(place: &Place) -> World {
    World::with(place, AuthMode::None, |options| {
        options.settings.sending_mb = 1;
        options.settings.connections = 64;
    })
    .await
}

/// Eight clients read nothing of what would be half a gigabyte; returns when nothing more is sent to them.
async fn eight_that_read_nothing(world: &World) -> Vec<Raw> {
    let mut slow = Vec::new();
    for _ in 0..8 {
        let mut socket = raw(world, "/api/v1/socket").await;
        say(&mut socket, agent(json!("flood"), "flood")).await;
        slow.push(socket);
    }
    Small::new(world).await.until_floods_halt(world).await;
    slow
}

/// Who asks for little has it at once; who asks for more has it when one of them goes on, and so has that one.
async fn answers_that_wait_for_slow_readers_are_bounded_together(place: Place) {
    let world = small(&place).await;
    let slow = eight_that_read_nothing(&world).await;
    let flooded = &world.fakes.agent.flooded;
    let before = *flooded.borrow();
    let mut other = raw(&world, "/api/v1/socket").await;
    say(&mut other, agent(json!("small"), "q")).await;
    while hear(&mut other).await["complete"] != true {}
    say(&mut other, agent(json!("large"), &"x".repeat(300_000))).await;
    // Each goes on by itself: what one waits for may be held by another that has not read yet.
    let (heard, mut progress) = watch::channel([0_usize; 8]);
    let mut readers = JoinSet::new();
    for (at, mut socket) in slow.into_iter().enumerate() {
        let heard = heard.clone();
        readers.spawn(async move {
            loop {
                assert_eq!(hear(&mut socket).await["id"], "flood");
                heard.send_modify(|heard| heard[at] += 1);
            }
        });
    }
    while hear(&mut other).await["complete"] != true {}
    let then = *progress.borrow();
    let nobody_was_cut =
        progress.wait_for(|now| now.iter().zip(then).all(|(now, then)| *now > then));
    // What is returned holds a lock that the readers need.
    let nobody_was_cut = tokio::time::timeout(BOUND, nobody_was_cut).await.is_ok();
    assert!(nobody_was_cut, "one of them reads nothing any more");
    assert!(readers.try_join_next().is_none());
    // What was under way to them is read before anything more is made.
    let mut made = flooded.subscribe();
    let goes_on = made.wait_for(|now| *now > before);
    let goes_on = tokio::time::timeout(BOUND, goes_on).await.is_ok();
    assert!(goes_on, "nothing more is made");
}

/// What a door answers to who asks there for something long.
fn asked_at_every_door(world: &World) -> Vec<(&'static str, reqwest::RequestBuilder)> {
    let (agent, librarian) = ("/api/v1/flow/default/service/agent", "/api/v1/librarian");
    let question = json!({"question": "x".repeat(LONG)});
    let document = json!({"operation": "stream-document", "document-id": "long"});
    let post = |path: &str, body: &Value| world.http.post(world.url(path)).json(body);
    let get = |path: &str| world.http.get(world.url(path));
    let flow = |path: &str| get(&format!("/api/v1/flow/default/{path}"));
    let events = "text/event-stream";
    vec![
        ("a whole dialog", post(agent, &question)),
        ("events", post(agent, &question).header("accept", events)),
        ("a service", post(librarian, &document)),
        (
            "events of a service",
            post(librarian, &document).header("accept", events),
        ),
        ("lines", flow("export/triples?stored=true&collection=long")),
        ("a graph", flow("graph/long?default")),
        ("a query", flow("sparql/long?query=ASK%20%7B%7D")),
        (
            "a document",
            get("/api/v1/document-stream?document-id=long"),
        ),
        ("a core", get("/api/v1/export-core?id=core")),
    ]
}

async fn every_door_waits_for_the_same_room(place: Place) {
    let world = small(&place).await;
    let slow = eight_that_read_nothing(&world).await;
    let mut doors = JoinSet::new();
    for (door, request) in asked_at_every_door(&world) {
        doors.spawn(async move {
            let response = request.timeout(BOUND).send().await.unwrap();
            assert_eq!(response.status(), 200, "{door}");
            let bytes = response.bytes().await.unwrap();
            assert!(bytes.len() >= LONG, "{door}: {} bytes", bytes.len());
            door
        });
    }
    let export = url(
        &world,
        "/api/v1/flow/default/export/triples?stored=true&collection=long",
    );
    doors.spawn(async move {
        let (mut socket, _) = tokio_tungstenite::connect_async(export).await.unwrap();
        let frame = tokio::time::timeout(BOUND, socket.next()).await.unwrap();
        assert!(frame.unwrap().unwrap().len() >= LONG);
        "an export"
    });
    // Nothing can be waited for: what must not happen has these turns to happen.
    Small::new(&world).await.take_turns().await;
    let early = doors.try_join_next();
    assert!(early.is_none(), "found room: {early:?}");
    // What is small waits for nobody, at any kind of door.
    let question = json!({"question": "q"});
    let path = "/api/v1/flow/default/service/agent";
    let (status, reply) = world.post(path, "", question.clone()).await;
    assert_eq!((status, &reply["content"]), (200, &json!("q")));
    let events = world.http.post(world.url(path)).json(&question);
    let events = events.header("accept", "text/event-stream").timeout(BOUND);
    let events = events.send().await.unwrap().text().await.unwrap();
    assert!(events.ends_with("event: end\ndata: {}\n\n"), "{events}");
    drop(slow);
    let mut answered = 0;
    while let Some(door) = doors.join_next().await {
        door.unwrap();
        answered += 1;
    }
    assert_eq!(answered, 10);
}

/// While there is no room for an event, its reader sees that the connection lives.
async fn signs_of_life_come_while_an_event_waits_for_room(place: Place) {
    let world = World::with(&place, AuthMode::None, |options| {
        options.settings.sending_mb = 1;
        options.settings.connections = 64;
        options.heartbeat = Duration::from_millis(50);
    })
    .await;
    let slow = eight_that_read_nothing(&world).await;
    let question = json!({"question": "x".repeat(LONG)});
    let asked = world
        .http
        .post(world.url("/api/v1/flow/default/service/agent"))
        .json(&question)
        .header("accept", "text/event-stream");
    let response = asked.timeout(BOUND).send().await.unwrap();
    let mut pieces = response.bytes_stream();
    let mut heard = String::new();
    while heard.matches(": ping\n\n").count() < 3 {
        let piece = tokio::time::timeout(BOUND, pieces.next()).await.unwrap();
        heard.push_str(std::str::from_utf8(&piece.unwrap().unwrap()).unwrap());
    }
    assert!(heard.len() < LONG);
    drop(slow);
    while let Some(piece) = pieces.next().await {
        heard.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
    }
    assert!(heard.len() > LONG && heard.ends_with("event: end\ndata: {}\n\n"));
}

tg_testkit::on_both_buses!(
    answers_that_wait_for_slow_readers_are_bounded_together,
    every_door_waits_for_the_same_room,
    signs_of_life_come_while_an_event_waits_for_room,
);
