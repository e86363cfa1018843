//! What comes is counted while it comes: bounded together, whatever door it comes in by.

use std::time::Duration;

use futures::StreamExt;
use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_testkit::place::Place;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::bulk::triple;
use crate::socket::{Raw, agent, hear, raw, say};
use crate::world::{BOUND, World};

/// Bytes of a text that leave no room for another of the kind.
const LARGE: usize = 600 << 10;

/// A line of an import that leaves no room for another of the kind; its end is counted with what comes before it.
const LINE: usize = (3 << 20) + 10_000;

/// With eight mebibytes for all that comes: one for a user's messages on sockets, and five for bodies that are not small.
async fn small(place: &Place) -> World {
    World::with(place, AuthMode::None, |options| {
        options.settings.receiving_mb = 8;
    })
    .await
}

/// A text as a frame whose mask changes nothing (RFC 6455, section 5.3).
fn frame(text: &str) -> Vec<u8> {
    let mut bytes = vec![0x81, 0x80 | 127];
    bytes.extend((text.len() as u64).to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(text.as_bytes());
    bytes
}

fn question() -> String {
    agent(json!("large"), &"x".repeat(LARGE)).to_string()
}

/// A frame or line of an import.
fn line(bytes: usize) -> String {
    let mut triple = triple(1);
    triple["o"]["v"] = Value::String("x".repeat(bytes));
    triple.to_string()
}

async fn send(socket: &mut Raw, bytes: &[u8]) {
    socket.get_mut().write_all(bytes).await.unwrap();
}

const IMPORT: &str = "/api/v1/flow/default/import/triples";

/// Nothing can be waited for: what must not happen has this time to happen.
async fn none_of(doors: &mut JoinSet<&'static str>) {
    let early = tokio::time::timeout(Duration::from_secs(1), doors.join_next()).await;
    assert!(early.is_err(), "found room: {early:?}");
}

async fn all_of(mut doors: JoinSet<&'static str>) -> usize {
    let mut through = 0;
    while let Some(door) = doors.join_next().await {
        door.unwrap();
        through += 1;
    }
    through
}

/// What is small waits for nobody, at any door.
async fn small_ones_pass(world: &World) {
    let mut other = raw(world, "/api/v1/socket").await;
    say(&mut other, agent(json!("small"), "q")).await;
    while hear(&mut other).await["complete"] != true {}
    let service = "/api/v1/flow/default/service/agent";
    let (status, _) = world.post(service, "", json!({"question": "q"})).await;
    assert_eq!(status, 200);
}

/// While one message is half there, others as large wait on sockets of any kind.
async fn messages_wait_for_the_same_room(place: Place) {
    let world = small(&place).await;
    let mut half = raw(&world, "/api/v1/socket").await;
    let bytes = frame(&question());
    send(&mut half, &bytes[..LARGE / 2]).await;
    // It is read: what it takes is taken.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut doors = JoinSet::new();
    let mut asks = raw(&world, "/api/v1/socket").await;
    doors.spawn(async move {
        send(&mut asks, &frame(&question())).await;
        while hear(&mut asks).await["complete"] != true {}
        "a question"
    });
    let mut socket = raw(&world, IMPORT).await;
    doors.spawn(async move {
        send(&mut socket, &frame(&line(LARGE))).await;
        say(&mut socket, json!({"type": "end"})).await;
        let told = hear(&mut socket).await;
        assert_eq!(told["status"]["sent"], 1, "{told}");
        "an import"
    });
    none_of(&mut doors).await;
    small_ones_pass(&world).await;
    send(&mut half, &bytes[LARGE / 2..]).await;
    while hear(&mut half).await["complete"] != true {}
    assert_eq!(all_of(doors).await, 2);
}

/// Imports a line that comes in pieces: what sends them, and the answer.
fn lines(world: &World, doors: &mut JoinSet<&'static str>) -> mpsc::Sender<Vec<u8>> {
    let (pieces, body) = mpsc::channel(1);
    let body = tokio_stream(body).map(Ok::<_, std::io::Error>);
    let posted = world.http.post(world.url(IMPORT));
    let posted = posted.body(reqwest::Body::wrap_stream(body));
    doors.spawn(async move {
        let response = posted.timeout(BOUND).send().await.unwrap();
        let told: Value = response.json().await.unwrap();
        assert_eq!(told["sent"], 1, "{told}");
        "lines"
    });
    pieces
}

/// While one line is half there, another as large waits.
async fn lines_wait_for_the_same_room(place: Place) {
    let world = small(&place).await;
    let line = format!("{}\n", line(LINE));
    let (mut first, mut second) = (JoinSet::new(), JoinSet::new());
    let half = lines(&world, &mut first);
    let cut = LINE - 1000;
    half.send(line.as_bytes()[..cut].to_vec()).await.unwrap();
    // It is read: what it takes is taken.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let whole = lines(&world, &mut second);
    whole.send(line.clone().into_bytes()).await.unwrap();
    drop(whole);
    none_of(&mut second).await;
    small_ones_pass(&world).await;
    half.send(line.as_bytes()[cut..].to_vec()).await.unwrap();
    drop(half);
    assert_eq!(all_of(first).await + all_of(second).await, 2);
}

fn tokio_stream<T: Send + 'static>(
    receiver: mpsc::Receiver<T>,
) -> impl futures::Stream<Item = T> + Send + 'static {
    futures::stream::unfold(receiver, |mut receiver| async move {
        Some((receiver.recv().await?, receiver))
    })
}

/// A question that is answered late is kept until then, and counts: of those that are large there are not many at once.
async fn questions_under_way_are_bounded_together(place: Place) {
    let world = World::with(&place, AuthMode::None, |options| {
        options.settings.parsing_mb = 1;
    })
    .await;
    let service = "/api/v1/flow/default/service/agent";
    let hanging = || {
        let body = json!({"question": "hang", "group": ["x".repeat(LARGE)]});
        let request = world.http.post(world.url(service)).json(&body);
        request.header("accept", "text/event-stream").send()
    };
    let first = hanging().await.unwrap();
    world.reached(&world.fakes.agent.begun, 1).await;
    let second = tokio::time::timeout(Duration::from_millis(500), hanging()).await;
    assert!(second.is_err(), "there was room for two");
    let (status, _) = world.post(service, "", json!({"question": "q"})).await;
    assert_eq!(status, 200, "what is small passes");
    drop(first);
    let second = tokio::time::timeout(BOUND, hanging()).await;
    let mut parts = second.unwrap().unwrap().bytes_stream();
    assert!(parts.next().await.unwrap().is_ok());
}

/// A short name in Turtle stands for a long one wherever it is written: what that makes is counted before it is made.
async fn a_graph_of_long_names_is_refused_before_it_is_made(place: Place) {
    let world = World::with(&place, AuthMode::None, |options| {
        options.settings.parsing_mb = 64;
    })
    .await;
    let send = |length: usize| {
        let names = vec!["e:c"; 100].join(", ");
        let long = "x".repeat(length);
        let request = world
            .http
            .post(world.url("/api/v1/flow/default/graph/c?default"))
            .header("content-type", "text/turtle")
            .body(format!("@prefix e: <urn:{long}> . e:a e:b {names} ."));
        request.timeout(BOUND).send()
    };
    assert_eq!(send(10).await.unwrap().status().as_u16(), 202);
    let response = send(300_000).await.unwrap();
    assert_eq!(response.status().as_u16(), 413);
    let told: Value = response.json().await.unwrap();
    let message = told["error"]["message"].as_str().unwrap();
    assert!(message.contains("reading it would need"), "{told}");
}

/// A body of which no message could be made is refused by its length, before any of it is kept.
async fn a_query_that_no_message_holds_is_not_read(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let length = 3 * tg_schemas::limits::MESSAGE + 1;
    let head = format!(
        "POST /api/v1/flow/default/sparql/default HTTP/1.1\r\nhost: localhost\r\n\
         content-type: application/sparql-query\r\ncontent-length: {length}\r\n\r\n"
    );
    let mut stream = TcpStream::connect(world.handle.local_addr()).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    let told = tokio::time::timeout(BOUND, stream.read_exact(&mut status));
    told.await.unwrap().unwrap();
    assert_eq!(&status, b"HTTP/1.1 413");
}

tg_testkit::on_both_buses!(
    a_query_that_no_message_holds_is_not_read,
    a_graph_of_long_names_is_refused_before_it_is_made,
    messages_wait_for_the_same_room,
    lines_wait_for_the_same_room,
    questions_under_way_are_bounded_together,
);
