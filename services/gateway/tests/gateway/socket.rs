//! The multiplexed socket.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_testkit::place::Place;
use tokio_tungstenite::tungstenite::Message;

use crate::world::{BOUND, World};

pub type Raw =
    tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

pub async fn raw(world: &World, path: &str) -> Raw {
    let url = format!("ws://{}{path}", world.handle.local_addr());
    tokio_tungstenite::connect_async(url).await.unwrap().0
}

pub async fn say(socket: &mut Raw, frame: Value) {
    socket.send(Message::text(frame.to_string())).await.unwrap();
}

pub async fn hear(socket: &mut Raw) -> Value {
    loop {
        let message = tokio::time::timeout(BOUND, socket.next()).await.unwrap();
        if let Message::Text(text) = message.unwrap().unwrap() {
            return serde_json::from_str(&text).unwrap();
        }
    }
}

pub fn agent(id: Value, question: &str) -> Value {
    json!({"id": id, "service": "agent", "flow": "default", "request": {"question": question}})
}

/// So many small answers pass, one after the other, while nothing else happens: whatever could happen had as many turns.
const TURNS: usize = 200;
/// Parts that floods send at most before they halt.
const HALT: usize = 100_000;

/// A client that asks for little, and has each answer at once.
pub struct Small(Raw);

impl Small {
    pub async fn new(world: &World) -> Self {
        Self(raw(world, "/api/v1/socket").await)
    }

    pub async fn answer(&mut self) {
        say(&mut self.0, agent(json!("small"), "q")).await;
        assert_eq!(hear(&mut self.0).await["response"]["content"], "let me ");
        while hear(&mut self.0).await["complete"] != true {}
    }

    pub async fn take_turns(&mut self) {
        for _ in 0..TURNS {
            self.answer().await;
        }
    }

    /// Waits until the fake agent has begun to flood its clients, and sends them nothing more.
    pub async fn until_floods_halt(&mut self, world: &World) {
        let flooded = &world.fakes.agent.flooded;
        world.reached(flooded, 1).await;
        let mut before = 0;
        while *flooded.borrow() != before {
            before = *flooded.borrow();
            assert!(before < HALT, "nothing held the flood back");
            self.take_turns().await;
        }
    }
}

/// The official Python clients answer no ping while they parse a file, or between two calls.
async fn who_answers_no_ping_is_still_served(place: Place) {
    let ping = Duration::from_millis(20);
    let world = World::with(&place, AuthMode::None, |options| options.ping = ping).await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    // Nothing is read, so nothing is answered, for twenty beats.
    tokio::time::sleep(ping * 20).await;
    say(&mut socket, agent(json!("late"), "nonce-late")).await;
    assert_eq!(hear(&mut socket).await["id"], "late");
}

async fn fifty_streams_on_one_socket_keep_their_answers(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let socket = world.socket("").await;
    let mut streams = Vec::new();
    for n in 0..50 {
        let request = json!({"question": format!("nonce-{n}"), "streaming": true});
        let envelope = json!({"service": "agent", "flow": "default", "request": request});
        streams.push((n, socket.send(envelope).await.unwrap()));
    }
    for (n, frames) in streams {
        let frames = frames.all(BOUND).await.unwrap();
        assert_eq!(frames.len(), 5);
        assert_eq!(
            tg_testkit::socket::text_of(&frames, "answer"),
            format!("nonce-{n}")
        );
        let complete = frames
            .iter()
            .filter(|frame| frame["complete"] == true)
            .count();
        assert_eq!(complete, 1);
    }
}

async fn the_first_frame_after_auth_is_its_answer(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    say(&mut socket, agent(json!(1), "early")).await;
    let early = hear(&mut socket).await;
    assert_eq!(early["error"]["type"], "auth-required");
    assert_eq!(
        (&early["id"], &early["complete"]),
        (&json!(1), &json!(true))
    );
    for token in ["", "tg_wrong"] {
        say(&mut socket, json!({"type": "auth", "token": token})).await;
        assert_eq!(
            hear(&mut socket).await,
            json!({"type": "auth-failed", "error": "auth failure"})
        );
    }
    say(&mut socket, json!({"type": "auth", "token": "tg_reader"})).await;
    assert_eq!(
        hear(&mut socket).await,
        json!({"type": "auth-ok", "default_workspace": "acme"})
    );
    // A failed attempt leaves the identity in force.
    say(&mut socket, json!({"type": "auth", "token": "tg_wrong"})).await;
    hear(&mut socket).await;
    say(&mut socket, agent(json!("x"), "still here")).await;
    assert_eq!(hear(&mut socket).await["response"]["content"], "let me ");
}

async fn clients_without_an_auth_frame_are_served(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let mut socket = raw(&world, "/api/socket?token=tg_reader").await;
    say(&mut socket, agent(json!("n-1"), "q")).await;
    let frame = hear(&mut socket).await;
    assert_eq!(frame["response"]["chunk_type"], "thought", "{frame}");
}

async fn everybody_is_served_where_nobody_has_a_key(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let mut socket = raw(&world, "/api/socket").await;
    say(&mut socket, agent(json!("n-1"), "q")).await;
    let frame = hear(&mut socket).await;
    assert_eq!(frame["response"]["message_type"], "thought", "{frame}");
}

async fn noise_is_answered_and_never_closes(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    for noise in [
        Message::text("{"),
        Message::text("[]"),
        Message::binary(vec![0xff, 0x00, 0x9c]),
        Message::text(r#"{"request": {}}"#),
        Message::text(r#"{"id": 1}"#),
        Message::text(r#"{"id": 1, "service": "nope", "request": {"operation": "x"}}"#),
        Message::text(
            r#"{"id": 1, "service": "agent", "flow": "a/b", "request": {"question": "q"}}"#,
        ),
        Message::text(r#"{"id": 1, "service": "agent", "flow": "default", "request": {}}"#),
        Message::text(r#"{"type": "cancel"}"#),
    ] {
        socket.send(noise.clone()).await.unwrap();
        let frame = hear(&mut socket).await;
        assert_eq!(frame["complete"], true, "{noise:?}");
        assert!(!frame["error"]["message"].as_str().unwrap().is_empty());
    }
    // A binary frame of JSON is as good as text, and any id comes back.
    let frame = agent(json!({"deep": [1, null]}), "q").to_string();
    socket
        .send(Message::binary(frame.into_bytes()))
        .await
        .unwrap();
    assert_eq!(hear(&mut socket).await["id"], json!({"deep": [1, null]}));
}

async fn cancel_ends_a_question_down_to_its_service(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    say(&mut socket, agent(json!(7), "hang")).await;
    assert_eq!(hear(&mut socket).await["response"]["content"], "hm");
    say(&mut socket, json!({"type": "cancel", "id": 7})).await;
    let frame = hear(&mut socket).await;
    assert_eq!(
        (&frame["id"], &frame["complete"]),
        (&json!(7), &json!(true))
    );
    assert_eq!(frame["error"]["type"], "cancelled");
    world.reached(&world.fakes.agent.cancelled, 1).await;
    say(&mut socket, agent(json!(7), "again")).await;
    assert_eq!(hear(&mut socket).await["response"]["content"], "let me ");
}

async fn closing_cancels_everything_on_the_socket(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    for id in 0..3 {
        say(&mut socket, agent(json!(id), "hang")).await;
    }
    world.reached(&world.fakes.agent.begun, 3).await;
    socket.close(None).await.unwrap();
    world.reached(&world.fakes.agent.cancelled, 3).await;
}

async fn duplicate_ids_are_independent(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    for question in ["a", "b"] {
        say(&mut socket, agent(json!("same"), question)).await;
    }
    let mut answers = Vec::new();
    let mut complete = 0;
    while complete < 2 {
        let frame = hear(&mut socket).await;
        assert_eq!(frame["id"], "same");
        complete += usize::from(frame["complete"] == true);
        if frame["response"]["message_type"] == "answer"
            && let Some(text) = frame["response"]["content"].as_str()
        {
            answers.push(text.to_owned());
        }
    }
    answers.sort();
    assert_eq!(answers, ["a", "b"]);
}

async fn a_full_socket_is_read_more_slowly_and_a_cancel_gets_through(place: Place) {
    let world = World::with(&place, AuthMode::None, |options| {
        options.settings.requests_per_socket = 2
    })
    .await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    for id in 0..2 {
        say(&mut socket, agent(json!(id), "hang")).await;
        assert_eq!(hear(&mut socket).await["id"], id);
    }
    for id in ["third", "fourth", "fifth"] {
        say(&mut socket, agent(json!(id), "q")).await;
    }
    // Nothing of these is heard before one of the others ends; what waits can be cancelled, too.
    say(&mut socket, json!({"type": "cancel", "id": "fourth"})).await;
    let frame = hear(&mut socket).await;
    assert_eq!(
        (&frame["id"], &frame["complete"]),
        (&json!("fourth"), &json!(true))
    );
    assert_eq!(frame["error"]["type"], "cancelled");
    say(&mut socket, json!({"type": "cancel", "id": 0})).await;
    let mut ended = Vec::new();
    while ended.len() < 3 {
        let frame = hear(&mut socket).await;
        assert_ne!(frame["error"]["type"], "busy");
        if frame["complete"] == true {
            ended.push(frame["id"].clone());
        }
    }
    assert_eq!(ended, [json!(0), json!("third"), json!("fifth")]);
}

async fn what_all_sockets_sent_ahead_is_bounded(place: Place) {
    let world = World::with(&place, AuthMode::None, |options| {
        options.settings.requests_per_socket = 1;
        // 2.6 MiB of them for what is large and waits.
        options.settings.receiving_mb = 4;
    })
    .await;
    let mut sockets = Vec::new();
    for _ in 0..2 {
        let mut socket = raw(&world, "/api/v1/socket").await;
        say(&mut socket, agent(json!("runs"), "hang")).await;
        assert_eq!(hear(&mut socket).await["id"], "runs");
        sockets.push(socket);
    }
    let large = "x".repeat(500_000);
    let [one, other] = &mut sockets[..] else {
        panic!("two sockets")
    };
    for id in ["1", "2", "5", "6"] {
        say(one, agent(json!(id), &large)).await;
    }
    // That this is no frame is said when the others were read.
    say(one, json!([])).await;
    assert!(hear(one).await.get("error").is_some());
    for id in ["3", "4"] {
        say(other, agent(json!(id), &large)).await;
    }
    let frame = hear(other).await;
    assert_eq!(
        (&frame["id"], &frame["error"]["type"]),
        (&json!("4"), &json!("busy")),
        "{frame}"
    );
    // A small one still has room, and what waits is answered in its turn.
    say(other, agent(json!("small"), "q")).await;
    for (socket, expected) in [
        (one, &["runs", "1", "2", "5", "6"][..]),
        (other, &["runs", "3", "small"]),
    ] {
        say(socket, json!({"type": "cancel", "id": "runs"})).await;
        let mut ended = Vec::new();
        while ended.len() < expected.len() {
            let frame = hear(socket).await;
            assert_ne!(frame["error"]["type"], "busy", "{frame}");
            if frame["complete"] == true {
                ended.push(frame["id"].clone());
            }
        }
        assert_eq!(ended, expected);
    }
}

async fn two_hundred_requests_at_once_are_all_answered(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    for id in 0..200 {
        say(&mut socket, agent(json!(id), &format!("nonce-{id}"))).await;
    }
    let mut answered = std::collections::BTreeSet::new();
    while answered.len() < 200 {
        let frame = hear(&mut socket).await;
        assert!(frame.get("error").is_none(), "{frame}");
        if frame["complete"] == true {
            answered.insert(frame["id"].as_i64().unwrap());
        }
    }
}

async fn strangers_send_little_and_say_who_they_are_in_time(place: Place) {
    let world = World::with(&place, AuthMode::Iam, |options| {
        options.settings.stranger_seconds = 3;
    })
    .await;
    let code = async |socket: &mut Raw| loop {
        let message = tokio::time::timeout(BOUND, socket.next()).await.unwrap();
        if let Message::Close(Some(close)) = message.unwrap().unwrap() {
            return u16::from(close.code);
        }
    };
    let mut large = raw(&world, "/api/v1/socket").await;
    large.send(Message::text("x".repeat(5000))).await.unwrap();
    assert_eq!(code(&mut large).await, 1009);
    let mut silent = raw(&world, "/api/v1/socket").await;
    assert_eq!(code(&mut silent).await, 1008);
    // Who is known may take their time, and send what they like.
    let mut known = raw(&world, "/api/v1/socket").await;
    say(&mut known, json!({"type": "auth", "token": "tg_admin"})).await;
    assert_eq!(hear(&mut known).await["type"], "auth-ok");
    tokio::time::sleep(Duration::from_secs(4)).await;
    let question = "long ".repeat(20_000);
    say(&mut known, agent(json!("a"), &question)).await;
    assert_eq!(hear(&mut known).await["id"], "a");
}

async fn strangers_take_no_place_of_those_who_are_known(place: Place) {
    let world = World::with(&place, AuthMode::Iam, |options| {
        options.settings.sockets = 2;
        options.settings.strangers = 4;
    })
    .await;
    let mut crowd = Vec::new();
    for _ in 0..12 {
        crowd.push(raw(&world, "/api/v1/socket").await);
    }
    // With the credential in the address, or in the first frame.
    let _first = raw(&world, "/api/v1/socket?token=tg_admin").await;
    let mut second = raw(&world, "/api/v1/socket").await;
    say(&mut second, json!({"type": "auth", "token": "tg_admin"})).await;
    assert_eq!(hear(&mut second).await["type"], "auth-ok");
    // The oldest stranger had to go; it may come again.
    let close = loop {
        let message = tokio::time::timeout(BOUND, crowd[0].next()).await.unwrap();
        if let Message::Close(Some(close)) = message.unwrap().unwrap() {
            break u16::from(close.code);
        }
    };
    assert_eq!(close, 1013);
    // Those who are known have their own bound: one more is told, and may try again.
    let mut third = raw(&world, "/api/v1/socket").await;
    say(&mut third, json!({"type": "auth", "token": "tg_admin"})).await;
    assert_eq!(hear(&mut third).await["error"]["type"], "busy");
    drop(second);
    let freed = async {
        loop {
            say(&mut third, json!({"type": "auth", "token": "tg_admin"})).await;
            if hear(&mut third).await["type"] == "auth-ok" {
                break;
            }
        }
    };
    tokio::time::timeout(BOUND, freed).await.unwrap();
}

async fn a_frame_that_would_need_too_much_memory_is_refused_before_it_takes_it(place: Place) {
    let world = World::with(&place, AuthMode::None, |options| {
        options.settings.parsing_mb = 8
    })
    .await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    let bomb = format!(
        r#"{{"id": 1, "service": "agent", "flow": "default", "request": {{"x": [{}0]}}}}"#,
        "[0],".repeat(500_000)
    );
    socket.send(Message::text(bomb)).await.unwrap();
    let frame = hear(&mut socket).await;
    assert_eq!(
        (&frame["id"], &frame["error"]["type"]),
        (&json!(1), &json!("too-large"))
    );
    say(&mut socket, agent(json!(2), "q")).await;
    assert_eq!(hear(&mut socket).await["id"], 2);
}

async fn a_message_beyond_the_limit_closes_with_1009(place: Place) {
    let world = World::with(&place, AuthMode::None, |options| {
        options.settings.frame_bytes = 10_000
    })
    .await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    socket
        .send(Message::text("x".repeat(20_000)))
        .await
        .unwrap();
    let message = tokio::time::timeout(BOUND, socket.next()).await.unwrap();
    match message.unwrap().unwrap() {
        Message::Close(Some(close)) => assert_eq!(u16::from(close.code), 1009),
        other => panic!("{other:?}"),
    }
}

async fn a_client_that_does_not_read_stops_its_own_stream_only(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let mut slow = raw(&world, "/api/v1/socket").await;
    say(&mut slow, agent(json!(1), "flood")).await;
    world.reached(&world.fakes.agent.flooded, 64).await;
    // The flood comes to a halt at the bounds between the agent and the client.
    let mut quick = Small::new(&world).await;
    quick.until_floods_halt(&world).await;
    quick.answer().await;
    drop(slow);
    world.reached(&world.fakes.agent.cancelled, 1).await;
}

async fn a_named_timeout_bounds_the_question(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    let mut frame = agent(json!(1), "hang");
    frame["timeout"] = json!(1);
    say(&mut socket, frame).await;
    let mut last = hear(&mut socket).await;
    while last["complete"] != true {
        last = hear(&mut socket).await;
    }
    let error = last.get("error").unwrap_or(&last["response"]["error"]);
    assert!(
        error["type"] == "timeout" || error["type"] == "cancelled",
        "{last}"
    );
}

async fn detached_work_goes_on_without_its_client(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    let mut detached = agent(json!("d"), "hang");
    detached["detach"] = json!(true);
    say(&mut socket, detached).await;
    assert_eq!(hear(&mut socket).await["response"]["content"], "hm");
    say(&mut socket, agent(json!("a"), "hang")).await;
    assert_eq!(hear(&mut socket).await["id"], "a");
    socket.close(None).await.unwrap();
    // The attached one is cancelled, the other is not.
    world.reached(&world.fakes.agent.cancelled, 1).await;
    // Its last words may still be on their way when it is told to stop.
    let settled = async {
        while world.mesh.load().1 > 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), settled)
        .await
        .unwrap();
    assert_eq!(world.mesh.load().1, 1);
    assert_eq!(*world.fakes.agent.cancelled.borrow(), 1);
}

tg_testkit::on_both_buses!(
    who_answers_no_ping_is_still_served,
    fifty_streams_on_one_socket_keep_their_answers,
    the_first_frame_after_auth_is_its_answer,
    clients_without_an_auth_frame_are_served,
    everybody_is_served_where_nobody_has_a_key,
    noise_is_answered_and_never_closes,
    cancel_ends_a_question_down_to_its_service,
    closing_cancels_everything_on_the_socket,
    duplicate_ids_are_independent,
    a_full_socket_is_read_more_slowly_and_a_cancel_gets_through,
    two_hundred_requests_at_once_are_all_answered,
    what_all_sockets_sent_ahead_is_bounded,
    strangers_send_little_and_say_who_they_are_in_time,
    strangers_take_no_place_of_those_who_are_known,
    a_frame_that_would_need_too_much_memory_is_refused_before_it_takes_it,
    a_message_beyond_the_limit_closes_with_1009,
    a_client_that_does_not_read_stops_its_own_stream_only,
    a_named_timeout_bounds_the_question,
    detached_work_goes_on_without_its_client,
);
