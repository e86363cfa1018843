//! The endpoints of LangGraph clients, over sessions that the test plays. The released client: `it/langgraph_clients_work.rs`.

use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use crate::agents::THREAD;
use crate::world::{BOUND, World};

fn run(assistant: &str) -> Value {
    json!({"assistant_id": assistant, "input": {"messages": [{"role": "user", "content": "x"}]},
        "stream_mode": ["values", "updates", "messages-tuple"]})
}

fn at(rest: &str) -> String {
    format!("/langgraph/threads/{THREAD}{rest}")
}

async fn assistants_are_agents_and_threads_are_sessions(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let search = "/langgraph/assistants/search";
    let (status, found) = world.post(search, "tg_admin", json!({"limit": 9})).await;
    assert_eq!(
        (status, &found[0]["assistant_id"]),
        (200, &json!("concise"))
    );
    let (status, told) = world.post(search, "tg_wrong", json!({})).await;
    assert_eq!((status, &told["code"]), (401, &json!("unauthorized")));
    let (_, thread) = world.get(&at(""), "tg_admin").await;
    assert_eq!(thread["metadata"]["graph_id"], "ann");
    assert_eq!(thread["status"], "idle");
    let (_, state) = world.get(&at("/state"), "tg_admin").await;
    let messages = &state["values"]["messages"];
    assert_eq!(
        (&messages[0]["type"], &messages[1]["type"]),
        (&json!("human"), &json!("ai"))
    );
    assert_eq!(state["next"], json!([]));
    let history = at("/history");
    let (_, states) = world.post(&history, "tg_admin", json!({"limit": 10})).await;
    assert_eq!(states[0]["checkpoint"]["checkpoint_id"], "m2");
    let (status, told) = world.get("/langgraph/threads/none", "tg_admin").await;
    assert_eq!(
        (status, &told["detail"]),
        (404, &json!("there is no such session"))
    );
    let (status, _) = world.get("/langgraph/nothing", "tg_admin").await;
    assert_eq!(status, 404);
}

async fn a_run_is_a_turn(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let stream = world.http.post(world.url(&at("/runs/stream")));
    // These clients send their key in a header of their own.
    let stream = stream.header("x-api-key", "tg_admin").json(&run("ann"));
    let response = stream.timeout(BOUND).send().await.unwrap();
    let place_of = format!("/threads/{THREAD}/runs/m1");
    assert_eq!(response.headers()["content-location"], *place_of);
    let text = response.text().await.unwrap();
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    let expected = ["metadata", "values", "messages", "updates", "values", "end"];
    assert_eq!(names, expected, "{text}");
    assert!(text.contains(r#""run_id":"m1""#), "{text}");
    let (_, known) = world.get(&at("/runs/m1"), "tg_admin").await;
    assert_eq!(known["status"], "success");
    let (_, joined) = world.get(&at("/runs/m1/join"), "tg_admin").await;
    assert_eq!(joined["messages"][1]["content"], "a\nb");
    let (status, told) = world.get(&at("/runs/m2"), "tg_admin").await;
    assert_eq!((status, &told["code"]), (404, &json!("not_found")));
    let wait = at("/runs/wait");
    let (status, told) = world.post(&wait, "tg_admin", run("zoe")).await;
    assert_eq!(
        (status, &told["code"]),
        (400, &json!("session_agent_mismatch"))
    );
    // Of two first runs with different assistants the thread keeps one.
    let empty = "/langgraph/threads/empty/runs/wait";
    let (status, told) = world.post(empty, "tg_admin", run("zoe")).await;
    assert_eq!((status, &told["code"]), (409, &json!("conflict")));
    let (status, told) = world.post(&wait, "tg_admin", json!({})).await;
    assert_eq!(
        (status, &told["detail"]),
        (400, &json!("assistant_id: is required"))
    );
    let (status, _) = world.post(&wait, "tg_scoped", run("ann")).await;
    assert_eq!(status, 403);
}

on_both_buses!(
    assistants_are_agents_and_threads_are_sessions,
    a_run_is_a_turn,
);
