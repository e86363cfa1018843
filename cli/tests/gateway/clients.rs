//! The clients against a gateway made by hand: what they send, when they stop, what errors become.

use std::time::Duration;

use crate::fake::{Fake, Heard, Say, bounded, options};
use serde_json::{Value, json};
use tg_cli::client::{Call, Error, Http, Import, Socket, Tell};
use tg_cli::interrupt::Interrupt;

async fn socket(fake: &Fake) -> Socket {
    Socket::connect(&options(&fake.url), Interrupt::never())
        .await
        .expect("connected")
}

fn call(request: Value) -> Call {
    Call::in_flow("default", "agent", request)
}

async fn read_all(socket: &mut Socket, call: &Call) -> (Vec<Value>, Option<Error>) {
    let mut replies = socket.start(call).await.expect("sent");
    let mut read = Vec::new();
    loop {
        match bounded(replies.next()).await {
            Ok(Some(reply)) => read.push(reply),
            Ok(None) => return (read, None),
            Err(error) => return (read, Some(error)),
        }
    }
}

#[tokio::test]
async fn the_first_frame_is_the_token_and_a_bad_one_is_refused() {
    let fake = Fake::socket(|_| Vec::new()).await;
    socket(&fake).await.close().await;
    let auth = json!({"type": "auth", "token": "tg_key"});
    assert_eq!(fake.heard()[0], Heard::Frame(auth));

    let mut bad = options(&fake.url);
    bad.token = Some("bad".to_owned());
    let error = Socket::connect(&bad, Interrupt::never())
        .await
        .expect_err("refused");
    assert_eq!(error.exit_code(), 5);
}

#[tokio::test]
async fn a_workspace_is_sent_only_when_the_user_names_one() {
    let fake = Fake::socket(|_| vec![Say::Last(json!({}))]).await;
    socket(&fake)
        .await
        .ask(&call(json!({"question": "?"})))
        .await
        .expect("a reply");
    let mut named = options(&fake.url);
    named.workspace = Some("acme".to_owned());
    let mut socket = Socket::connect(&named, Interrupt::never())
        .await
        .expect("connected");
    socket
        .ask(&call(json!({"question": "?"})))
        .await
        .expect("a reply");
    let frames: Vec<Value> = fake
        .heard()
        .into_iter()
        .filter_map(|heard| match heard {
            Heard::Frame(frame) if frame.get("id").is_some() => Some(frame),
            _ => None,
        })
        .collect();
    assert_eq!(
        frames[0],
        json!({"id": "req-1", "service": "agent", "flow": "default", "request": {"question": "?"}})
    );
    assert_eq!(frames[1]["workspace"], "acme");
}

#[tokio::test]
async fn reading_stops_at_any_sign_of_the_end() {
    for end in ["end_of_dialog", "end_of_session"] {
        let fake = Fake::socket(move |_| {
            vec![
                Say::Part(json!({"content": "a"})),
                Say::Part(json!({"content": "b", end: true})),
                Say::Part(json!({"content": "never read"})),
            ]
        })
        .await;
        let (read, error) = read_all(&mut socket(&fake).await, &call(json!({}))).await;
        assert!(error.is_none());
        assert_eq!(read.len(), 2, "{end}");
    }
}

#[tokio::test]
async fn errors_are_found_wherever_they_stand() {
    let shapes = [
        json!({"id": "req-1", "error": {"type": "access-denied", "message": "no"}, "complete": true}),
        json!({"id": "req-1", "response": {"error": {"type": "access-denied", "message": "no"}}}),
        json!({"error": {"type": "access-denied", "message": "no"}, "complete": true}),
    ];
    for shape in shapes {
        let frame = shape.clone();
        let fake = Fake::socket(move |_| {
            vec![Say::Part(json!({"content": "a"})), Say::Raw(frame.clone())]
        })
        .await;
        let (read, error) = read_all(&mut socket(&fake).await, &call(json!({}))).await;
        assert_eq!(read.len(), 1);
        assert_eq!(error.expect("an error").exit_code(), 5, "{shape}");
    }
}

#[tokio::test]
async fn an_error_that_is_null_is_none() {
    let fake = Fake::socket(|_| vec![Say::Last(json!({"error": null, "values": []}))]).await;
    assert!(socket(&fake).await.ask(&call(json!({}))).await.is_ok());
}

#[tokio::test]
async fn many_calls_are_told_apart_by_their_ids() {
    let held = std::sync::Mutex::new(Vec::new());
    let fake = Fake::socket(move |frame| {
        let mut held = held.lock().expect("held");
        held.push(frame.clone());
        // The window is 10 calls; they are answered in reverse once all are there, or at the last.
        if held.len() < 10 && frame["request"]["n"] != 24 {
            return Vec::new();
        }
        let answer = |frame: Value| {
            Say::Raw(json!({"id": frame["id"], "complete": true, "response": frame["request"]}))
        };
        held.drain(..).rev().map(answer).collect()
    })
    .await;
    let calls: Vec<Call> = (0..25).map(|n| call(json!({"n": n}))).collect();
    let replies = bounded(socket(&fake).await.ask_all(&calls))
        .await
        .expect("replies");
    let numbers: Vec<u64> = replies
        .into_iter()
        .map(|reply| reply.expect("a reply")["n"].as_u64().expect("a number"))
        .collect();
    assert_eq!(numbers, (0..25).collect::<Vec<u64>>());
}

#[tokio::test]
async fn a_connection_that_ends_is_an_error_not_an_end() {
    let fake = Fake::socket(|_| vec![Say::Part(json!({"content": "a"})), Say::Close]).await;
    let (read, error) = read_all(&mut socket(&fake).await, &call(json!({}))).await;
    assert_eq!(read.len(), 1);
    assert_eq!(error.expect("an error").exit_code(), 7);
}

#[tokio::test]
async fn silence_ends_at_the_timeout() {
    let fake = Fake::socket(|_| Vec::new()).await;
    let mut short = options(&fake.url);
    short.timeout = Duration::from_millis(300);
    let mut socket = Socket::connect(&short, Interrupt::never())
        .await
        .expect("connected");
    let error = bounded(socket.ask(&call(json!({}))))
        .await
        .expect_err("late");
    assert_eq!(error.exit_code(), 8);
    fake.hears(|heard| *heard == Heard::Closed).await;
}

#[tokio::test]
async fn an_interrupt_closes_the_socket_in_good_form() {
    let fake = Fake::socket(|_| vec![Say::Part(json!({"content": "a"}))]).await;
    let (switch, interrupt) = Interrupt::manual();
    let mut socket = Socket::connect(&options(&fake.url), interrupt)
        .await
        .expect("connected");
    let request = call(json!({}));
    let mut replies = socket.start(&request).await.expect("sent");
    assert!(replies.next().await.expect("a reply").is_some());
    switch.send_replace(true);
    let error = bounded(replies.next()).await.expect_err("interrupted");
    assert_eq!(error.exit_code(), 130);
    fake.hears(|heard| *heard == Heard::Closed).await;
}

#[tokio::test]
async fn rest_errors_have_their_exit_codes() {
    let cases = [
        (
            200,
            json!({"error": {"type": "duplicate", "message": "there"}}),
            4,
        ),
        (200, json!({"error": "Invalid flow default/x"}), 3),
        (
            200,
            json!({"error": {"type": "flow-error", "message": "no"}}),
            2,
        ),
        (
            200,
            json!({"error": {"type": "flow-error", "message": "Flow already exists"}}),
            4,
        ),
        (400, json!({"error": "unknown operation"}), 2),
        (401, json!({"error": "auth failure"}), 5),
        (403, json!({"error": "access denied"}), 5),
        (404, json!({"error": "workspace not found"}), 3),
        (
            429,
            json!({"error": {"type": "busy", "message": "later"}}),
            6,
        ),
        (503, json!("<html>no JSON</html>"), 7),
        (200, json!("no JSON"), 1),
    ];
    for (status, body, exit) in cases {
        let reply = body.clone();
        let fake = Fake::rest(move |_, _| (status, reply.clone())).await;
        let http = Http::new(&options(&fake.url), Interrupt::never()).expect("a client");
        let error = http
            .service("config", json!({}))
            .await
            .expect_err("refused");
        assert_eq!(error.exit_code(), exit, "{status} {body} {error}");
    }
}

#[tokio::test]
async fn nobody_there_is_unreachable() {
    let http = Http::new(&options("http://127.0.0.1:9"), Interrupt::never()).expect("a client");
    let error = bounded(http.iam(json!({}))).await.expect_err("unreachable");
    assert!(matches!(error, Error::Unreachable { .. }));
    let error = bounded(Socket::connect(
        &options("http://127.0.0.1:9"),
        Interrupt::never(),
    ))
    .await
    .expect_err("unreachable");
    assert_eq!(error.exit_code(), 7);
    assert!(!error.to_string().contains("tg_key"));
}

#[tokio::test]
async fn flow_ids_are_escaped_and_the_token_is_a_header() {
    let fake = Fake::rest(|_, _| (200, json!({}))).await;
    let http = Http::new(&options(&fake.url), Interrupt::never()).expect("a client");
    http.flow_service("a/b c", "mcp-tool", json!({"name": "t"}))
        .await
        .expect("a reply");
    assert_eq!(
        fake.heard(),
        [Heard::Rest(
            "/api/v1/flow/a%2Fb%20c/service/mcp-tool".to_owned(),
            Some("tg_key".to_owned()),
            json!({"name": "t"}),
        )]
    );
}

#[tokio::test]
async fn an_import_arrives_whole_and_ends_in_good_form() {
    let fake = Fake::socket(|_| Vec::new()).await;
    let mut import = Import::open(
        &options(&fake.url),
        Interrupt::never(),
        "f",
        "triples",
        Tell::Nothing,
    )
    .await
    .expect("open");
    for n in 0..3 {
        import.send(&json!({"n": n})).await.expect("sent");
    }
    bounded(import.finish()).await.expect("finished");
    let heard = fake.heard();
    assert_eq!(heard[1], Heard::Import(json!({"n": 0})));
    assert_eq!(heard[3], Heard::Import(json!({"n": 2})));
    fake.hears(|heard| *heard == Heard::Closed).await;
}

#[tokio::test]
async fn an_import_that_the_gateway_ends_is_an_error() {
    for (flow, exit) in [("cut", 7), ("told", 2)] {
        let fake = Fake::socket(|_| Vec::new()).await;
        let mut import = Import::open(
            &options(&fake.url),
            Interrupt::never(),
            flow,
            "triples",
            Tell::Nothing,
        )
        .await
        .expect("open");
        let error = bounded(async {
            loop {
                if let Err(error) = import.send(&json!({"triples": []})).await {
                    return error;
                }
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert_eq!(error.exit_code(), exit, "{flow}: {error}");
    }
}

#[tokio::test]
async fn an_import_that_is_not_let_in_says_why() {
    let fake = Fake::socket(|_| Vec::new()).await;
    let error = Import::open(
        &options(&fake.url),
        Interrupt::never(),
        "refused",
        "triples",
        Tell::Nothing,
    )
    .await
    .expect_err("refused");
    assert_eq!(error.exit_code(), 5);
}
