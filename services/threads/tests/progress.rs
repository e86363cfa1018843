//! What takes long, and what is in progress.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tg_mesh::Responder;
use tg_schemas::msg::{ListenerMessage, ListenerRequest, ListenerResponse, ThreadsRequest};
use tg_testkit::flow::SOON;
use tg_testkit::place::Place;

use crate::world::{World, forward, respond, send, text, tool};

/// A thread that the test names itself.
const THREAD: &str = "0b4f0c9e-6c2e-4f43-8a53-1d1f6e8b7c11";
/// Between two looks at it.
const PAUSE: Duration = Duration::from_millis(20);

/// Takes numbers, each of which is checked many times.
fn heavy() -> String {
    let all = vec![json!({"type": "number"}); 400];
    let schema = json!({"type": "object", "properties": {"all": {"items": {"allOf": all}}}});
    json!({"description": "Takes numbers.", "types": {"textinput": schema}}).to_string()
}

fn numbers(last: Value) -> Map<String, Value> {
    let mut all = vec![json!(1); 3000];
    all.push(last);
    [("all".to_owned(), Value::Array(all))]
        .into_iter()
        .collect()
}

/// What is checked beside the runtime is checked as everything else: from outside, and from a listener.
async fn a_check_that_takes_long_comes_to_its_end(place: Place) {
    let rows = [("boss", tool("Sends numbers.")), ("heavy", heavy())];
    let mut world = World::start(&place, &rows).await;
    world.listen("heavy", |_| respond("taken")).await;
    world
        .listen("boss", |got| {
            let said = text(&got.payload);
            if got.from_id != "gateway" {
                return respond(&format!("{} {said}", got.r#type));
            }
            let sent = ListenerMessage {
                to: "heavy".to_owned(),
                r#type: "textinput".to_owned(),
                payload: numbers(if said == "good" { json!(1) } else { json!("x") }),
            };
            ListenerResponse {
                forwards: vec![sent],
                ..forward("", "")
            }
        })
        .await;
    assert_eq!(
        world.texts(&send("boss", "good")).await.0,
        ["textinput taken"]
    );
    assert_eq!(world.texts(&send("boss", "bad")).await.0, ["huh "]);
    let from_outside = |last| ThreadsRequest {
        payload: Value::Object(numbers(last)).to_string(),
        ..send("heavy", "")
    };
    let taken = world.texts(&from_outside(json!(1))).await.0;
    assert_eq!(taken, ["taken"]);
    let refused = world.whole(&from_outside(json!("x"))).await.unwrap_err();
    assert_eq!(refused.kind, "request-error");
}

/// Whoever looks into a thread learns which listener has a message, since when, and whether a process has taken it.
async fn a_thread_shows_what_runs_on_it(place: Place) {
    let mut world = World::start(&place, &[("slow", tool("Never answers."))]).await;
    let answer = |_: ListenerRequest, out: Responder<ListenerResponse>| async move {
        out.cancelled().cancelled().await;
        Ok(())
    };
    world.answers("slow", answer).await;
    let message = ThreadsRequest {
        thread: THREAD.to_owned(),
        ..send("slow", "x")
    };
    let on = |operation: &str| ThreadsRequest {
        operation: operation.to_owned(),
        thread: THREAD.to_owned(),
        ..send("", "")
    };
    let looking = async {
        let shown = loop {
            if let Ok(shown) = world.whole(&on("show-thread")).await
                && shown.turns.iter().any(|turn| turn.waits_for == "answer")
            {
                break shown;
            }
            tokio::time::sleep(PAUSE).await;
        };
        world.whole(&on("close-thread")).await.unwrap();
        shown
    };
    let both = async { tokio::join!(world.whole(&message), looking).1 };
    let shown = tokio::time::timeout(SOON, both).await.expect("in time");
    let [turn] = shown.turns.as_slice() else {
        panic!("{shown:?}");
    };
    assert_eq!((turn.listener.as_str(), shown.in_progress), ("slow", 1));
    assert!(turn.since_ms > 0, "{turn:?}");
}

tg_testkit::on_both_buses!(
    a_check_that_takes_long_comes_to_its_end,
    a_thread_shows_what_runs_on_it,
);
