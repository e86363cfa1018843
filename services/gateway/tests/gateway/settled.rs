//! Imports whose clients wait for the stores: what is stored, what a store refused and what nobody confirmed, by frame.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_testkit::place::Place;
use tokio_tungstenite::tungstenite::Message;

use crate::bulk::{batch, triple, url};
use crate::fakes::{LATER, REFUSED, REFUSED_COLLECTION};
use crate::imports::{frames, import};
use crate::world::{BOUND, World};

/// What became of all frames of an import is known by then.
const ALL: Duration = Duration::from_secs(300);

/// A triple that the store does not simply take.
fn odd(subject: &str) -> Value {
    json!({"s": {"t": "i", "i": subject}, "p": {"t": "i", "i": "urn:p"}, "o": {"t": "l", "v": "x"}})
}

async fn world(place: &Place) -> World {
    World::with(place, AuthMode::None, |options| {
        // On a busy machine the stores need a moment between two reports.
        options.settings.import_settle_seconds = 5;
    })
    .await
}

async fn lines(world: &World, kind: &str, query: &str, body: String) -> Value {
    let path = format!("{}?settled=true{query}", import(kind));
    let request = world.http.post(world.url(&path)).body(body);
    let response = request.timeout(ALL).send().await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    response.json().await.unwrap()
}

/// Nothing is waited for any more.
fn forgotten(world: &World) {
    assert_eq!(world.mesh.mesh().awaited().open_count(), 0);
}

async fn every_kind_is_stored_once_its_store_says_so(place: Place) {
    let world = world(&place).await;
    for (kind, items, frame) in frames() {
        let told = lines(&world, kind, "", frame.to_string()).await;
        assert_eq!(
            told,
            json!({"received": 1, "sent": 1, "stored": 1, "refused": 0, "unconfirmed": 0, "failed": 0,
                items: 1, "complete": true}),
            "{kind}"
        );
    }
    // Who was told so did not have to wait for it.
    let fakes = &world.fakes;
    let counts = [
        fakes.store.count(),
        fakes.entities.count(),
        fakes.chunks.count(),
        fakes.contexts.count(),
        fakes.rows.count(),
    ];
    assert_eq!(counts, [1; 5]);
    forgotten(&world);
}

async fn what_a_store_refused_is_told_by_its_line(place: Place) {
    let world = world(&place).await;
    let good = batch(vec![triple(1)]);
    let parts = batch((0..2500).map(triple).chain([odd(REFUSED)]).collect());
    let sent = [
        good.to_string(),
        batch(vec![odd(REFUSED)]).to_string(),
        "[".to_owned(),
        batch(vec![odd(LATER)]).to_string(),
        good.to_string(),
        parts.to_string(),
    ];
    let told = lines(&world, "triples", "", sent.join("\n")).await;
    let counts = [
        "received",
        "sent",
        "stored",
        "refused",
        "unconfirmed",
        "failed",
    ];
    let counts = counts.map(|name| told[name].as_u64().unwrap());
    assert_eq!(counts, [6, 5, 2, 2, 1, 1], "{told}");
    assert_eq!(told["triples"], 2, "only of what is stored");
    assert_eq!(told["refused_frames"], json!([2, 6]));
    assert_eq!(told["unconfirmed_frames"], json!([4]));
    let errors = told["errors"].as_array().unwrap();
    let of = |frame: u64| errors.iter().find(|one| one["frame"] == frame).unwrap();
    assert_eq!(
        of(2)["error"],
        json!({"type": "too-large", "message": "at most so many"})
    );
    assert_eq!(of(2).get("from"), None);
    assert_eq!(of(6)["from"], 2000);
    assert_eq!(of(3)["error"]["type"], "bad-request");
    let later = of(4)["error"]["message"].as_str().unwrap();
    assert!(
        later.contains("may still be stored") && later.contains("not now"),
        "{later}"
    );
    forgotten(&world);
}

async fn a_socket_hears_of_each_frame(place: Place) {
    let world = world(&place).await;
    let path = format!("{}?settled=1&ack=1", import("triples"));
    let (mut socket, _) = tokio_tungstenite::connect_async(url(&world, &path))
        .await
        .unwrap();
    let frames = [triple(1), odd(REFUSED), odd(LATER), triple(2)];
    for frame in frames {
        let frame = Message::text(batch(vec![frame]).to_string());
        socket.send(frame).await.unwrap();
    }
    let end = Message::text(json!({"type": "end"}).to_string());
    socket.send(end).await.unwrap();
    let (mut seen, mut reason) = (Vec::new(), String::new());
    while let Some(Ok(message)) = tokio::time::timeout(BOUND, socket.next()).await.unwrap() {
        match message {
            Message::Text(text) => seen.push(serde_json::from_str::<Value>(&text).unwrap()),
            Message::Close(Some(close)) => reason = close.reason.to_string(),
            other => panic!("{other:?}"),
        }
    }
    let has = |wanted: Value| assert!(seen.contains(&wanted), "{wanted}: {seen:#?}");
    assert_eq!(seen[0], json!({"stored": {"frames": 0, "triples": 0}}));
    has(json!({"stored": {"frames": 1, "triples": 1}}));
    has(json!({"stored": {"frames": 2, "triples": 2}}));
    let error = json!({"type": "too-large", "message": "at most so many"});
    has(json!({"refused": {"frame": 2, "errors": [{"error": error}]}}));
    assert!(seen.iter().any(|one| one["unconfirmed"]["frame"] == 3));
    assert!(!seen.iter().any(|one| one["confirmed"].is_object()));
    let last = seen.last().unwrap();
    assert_eq!(
        (&last["status"]["stored"], &last["complete"]),
        (&json!(2), &json!(true))
    );
    assert_eq!(
        reason,
        "received 4, stored 2, refused 1, unconfirmed 1, failed 0"
    );
    forgotten(&world);
}

/// Frames of an import; fewer over RabbitMQ, which knows nothing of their numbers.
const FRAMES: u64 = 10_000;
const OVER_RABBITMQ: u64 = 1_000;

/// Those that a store refuses: the first, the last, three beside each other, and others.
fn bad(frames: u64) -> [u64; 7] {
    [1, 77, 499, 500, 501, 777, frames]
}

/// What is reported of an import of so many frames names the seven, each with a reason, and no other.
fn names_the_seven(told: &Value, frames: u64, kind: &str) {
    let count = |name: &str| told[name].as_u64().unwrap_or_default();
    let counts = ["received", "stored", "refused", "unconfirmed", "failed"].map(count);
    let shown: String = told.to_string().chars().take(4_000).collect();
    assert_eq!(counts, [frames, frames - 7, 7, 0, 0], "{kind}: {shown}");
    let errors = told["errors"].as_array().unwrap();
    let named: BTreeSet<u64> = errors
        .iter()
        .filter(|one| one["error"]["message"] == "at most so many")
        .filter_map(|one| one["frame"].as_u64())
        .collect();
    let seven = BTreeSet::from(bad(frames));
    assert_eq!((named, errors.len()), (seven, 7), "{kind}");
}

/// Sends frames through a socket; what its last message says of them.
async fn through_a_socket(world: &World, kind: &str, frames: &[String]) -> Value {
    let path = format!("{}?settled=1", import(kind));
    let (socket, _) = tokio_tungstenite::connect_async(url(world, &path))
        .await
        .unwrap();
    let (mut to, mut from) = socket.split();
    let send = async {
        for frame in frames {
            to.send(Message::text(frame.as_str())).await.unwrap();
        }
        to.send(Message::text(r#"{"type": "end"}"#)).await.unwrap();
    };
    let hear = async {
        loop {
            let message = tokio::time::timeout(ALL, from.next()).await.unwrap();
            let message = message.expect("it says what became of all").unwrap();
            if let Message::Text(text) = message {
                let mut said: Value = serde_json::from_str(&text).unwrap();
                if said["status"].is_object() {
                    return said["status"].take();
                }
            }
        }
    };
    tokio::join!(send, hear).1
}

/// The kinds that `it/exactly_the_refused_lines_are_named.rs` imports by `tg` alone.
async fn each_door_names_the_frames_that_a_store_refused(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let count = match place {
        Place::Embedded(_) => FRAMES,
        Place::RabbitMq(_) => OVER_RABBITMQ,
    };
    for (kind, _, frame) in frames() {
        if matches!(kind, "triples" | "rows") {
            continue;
        }
        let number = |number: u64| {
            let mut frame = frame.clone();
            if bad(count).contains(&number) {
                frame["metadata"]["collection"] = json!(REFUSED_COLLECTION);
            }
            frame.to_string()
        };
        let all: Vec<String> = (1..=count).map(number).collect();
        let told = lines(&world, kind, "", all.join("\n")).await;
        names_the_seven(&told, count, kind);
        let told = through_a_socket(&world, kind, &all).await;
        names_the_seven(&told, count, kind);
    }
    forgotten(&world);
}

async fn a_refusal_stops_who_wants_to_stop(place: Place) {
    let world = world(&place).await;
    let path = format!("{}?settled=1&errors=stop", import("triples"));
    let (mut socket, _) = tokio_tungstenite::connect_async(url(&world, &path))
        .await
        .unwrap();
    let frame = Message::text(batch(vec![odd(REFUSED)]).to_string());
    socket.send(frame).await.unwrap();
    let message = tokio::time::timeout(BOUND, socket.next()).await.unwrap();
    let Message::Close(Some(close)) = message.unwrap().unwrap() else {
        panic!("no close frame");
    };
    let reason = close.reason.as_str();
    assert!(reason.contains("frame 1: at most so many"), "{reason}");
    let stops = "&errors=stop";
    let body = batch(vec![odd(REFUSED)]).to_string();
    let told = lines(&world, "triples", stops, body).await;
    assert_eq!(told["error"]["message"], "frame 1: at most so many");
}

async fn what_no_store_takes_is_never_told_as_stored(place: Place) {
    let world = world(&place).await;
    let row = ("default", "processor:triples-write", "default");
    world.put(row, None).await;
    let gone =
        |view: &tg_mesh::PresenceView| !view.attached("triples-write", "default", "default", 1);
    assert!(world.mesh.presence().until(BOUND, gone).await);
    let told = lines(&world, "triples", "", batch(vec![triple(1)]).to_string()).await;
    let counts = ["sent", "stored", "refused", "unconfirmed", "triples"];
    let counts = counts.map(|name| told[name].as_u64().unwrap());
    assert_eq!(counts, [1, 0, 0, 1, 0], "{told}");
    forgotten(&world);
    // It waited for its store, which has it now; what that says is of no interest any more.
    let topic = "flow:tg:triples-store:default:default";
    let value = json!({"topics": {"input": topic}, "parameters": {}, "epoch": 1});
    world.put(row, Some(value)).await;
    world.fakes.store.until(|all| all.len() == 1).await;
    let told = lines(&world, "triples", "", batch(vec![triple(2)]).to_string()).await;
    assert_eq!(told["stored"], 1, "{told}");
}

async fn a_graph_says_whether_it_is_stored(place: Place) {
    let world = world(&place).await;
    let path = "/api/v1/flow/default/graph/c?default&settled=true";
    for (subject, status, field, wanted) in [
        ("urn:fine", 200, "stored", json!(true)),
        (
            REFUSED,
            413,
            "error",
            json!({"type": "too-large", "message": "at most so many"}),
        ),
        (LATER, 202, "stored", json!(false)),
    ] {
        let request = world
            .http
            .post(world.url(path))
            .header("content-type", "text/turtle")
            .body(format!("<{subject}> <urn:p> \"x\" ."));
        let response = request.timeout(BOUND).send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{subject}");
        let told: Value = response.json().await.unwrap();
        assert_eq!(told[field], wanted, "{told}");
    }
    let (status, told) = world
        .post(
            &format!("{}?settled=perhaps", import("rows")),
            "",
            json!({}),
        )
        .await;
    assert_eq!(status, 400, "{told}");
    forgotten(&world);
}

async fn a_graph_names_each_part_that_a_store_refused(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    // Three parts, of which the store refuses the first and the last.
    let line = |at: usize| match at {
        77 | 2_100 => format!("<{REFUSED}> <urn:p> {at} .\n"),
        _ => format!("<urn:{at}> <urn:p> {at} .\n"),
    };
    let request = world
        .http
        .post(world.url("/api/v1/flow/default/graph/c?default&settled=true"))
        .header("content-type", "text/turtle")
        .body((0..2_500).map(line).collect::<String>());
    let response = request.timeout(ALL).send().await.unwrap();
    assert_eq!(response.status().as_u16(), 413);
    let told: Value = response.json().await.unwrap();
    let error = json!({"type": "too-large", "message": "at most so many"});
    let errors = json!([{"from": 0, "error": error}, {"from": 2000, "error": error}]);
    assert_eq!(told, json!({"error": error, "errors": errors}));
    forgotten(&world);
}

tg_testkit::on_both_buses!(
    every_kind_is_stored_once_its_store_says_so,
    what_a_store_refused_is_told_by_its_line,
    a_socket_hears_of_each_frame,
    each_door_names_the_frames_that_a_store_refused,
    a_refusal_stops_who_wants_to_stop,
    what_no_store_takes_is_never_told_as_stored,
    a_graph_says_whether_it_is_stored,
    a_graph_names_each_part_that_a_store_refused,
);
