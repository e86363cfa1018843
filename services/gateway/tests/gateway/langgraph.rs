//! The endpoints of LangGraph clients, over sessions that the test plays. The released client: `it/langgraph_clients_work.rs`.

use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use crate::played_sessions::{BUSY, REPEATED, THREAD};
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

/// As agent-chat-ui and other clients ask before a run and beside it.
async fn threads_are_found_and_the_server_says_what_it_is(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let (status, ok) = world.get("/langgraph/ok", "").await;
    assert_eq!((status, &ok["ok"]), (200, &json!(true)));
    let (status, info) = world.get("/langgraph/info", "tg_admin").await;
    assert_eq!((status, info["version"].is_string()), (200, true));
    let (status, _) = world.get("/langgraph/info", "tg_wrong").await;
    assert_eq!(status, 401);
    let search = "/langgraph/threads/search";
    let of = |more: Value| {
        let mut body = json!({"metadata": {"graph_id": "lists"}, "limit": 100});
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        body
    };
    let (status, found) = world.post(search, "tg_admin", of(json!({}))).await;
    assert_eq!((status, &found[0]["thread_id"]), (200, &json!(THREAD)));
    assert_eq!(found[0]["values"]["messages"][0]["type"], "human");
    assert_eq!(
        (&found[0]["status"], &found[1]["status"]),
        (&json!("idle"), &json!("busy"))
    );
    let (_, found) = world
        .post(search, "tg_admin", of(json!({"status": "busy"})))
        .await;
    assert_eq!(found.as_array().unwrap().len(), 1);
    let (_, found) = world
        .post(search, "tg_admin", of(json!({"offset": 2})))
        .await;
    assert_eq!(found, json!([]));
    let (status, _) = world.post(search, "tg_scoped", of(json!({}))).await;
    assert_eq!(status, 403);
    let system = json!({"metadata": {"created_by": "system"}});
    let (_, found) = world
        .post("/langgraph/assistants/search", "tg_admin", system)
        .await;
    assert_eq!(found[0]["assistant_id"], "concise");
}

async fn a_run_goes_on_from_the_last_state_and_can_be_ended(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let mut body = run("ann");
    body["checkpoint"] = json!({"checkpoint_id": "m2", "checkpoint_ns": ""});
    body["stream_subgraphs"] = json!(true);
    let runs = at("/runs");
    let (status, told) = world.post(&runs, "tg_admin", body.clone()).await;
    assert_eq!(status, 200, "{told}");
    body["checkpoint"] = json!({"checkpoint_id": "m1"});
    let (status, told) = world.post(&runs, "tg_admin", body.clone()).await;
    assert_eq!(status, 400);
    let told = told["detail"].as_str().unwrap();
    assert!(told.starts_with("checkpoint: "), "{told}");
    // One that is over stays as it is, and one in progress ends.
    let (status, _) = world
        .post(&at("/runs/m1/cancel"), "tg_admin", json!({}))
        .await;
    assert_eq!(status, 200);
    let busy = format!("/langgraph/threads/{BUSY}/runs/m1/cancel?wait=0&action=interrupt");
    let (status, told) = world.post(&busy, "tg_admin", json!({})).await;
    assert_eq!((status, told), (200, json!({})));
    let rollback = format!("/langgraph/threads/{BUSY}/runs/m1/cancel?action=rollback");
    let (status, _) = world.post(&rollback, "tg_admin", json!({})).await;
    assert_eq!(status, 400);
    let (status, _) = world
        .post(&at("/runs/m9/cancel"), "tg_admin", json!({}))
        .await;
    assert_eq!(status, 404);
}

/// A client that lost the answer to a run sends its request again: by then its own answer came behind the checkpoint.
async fn a_run_with_a_checkpoint_is_found_under_its_request(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let mut body = run("ann");
    body["checkpoint"] = json!({"checkpoint_id": "m1"});
    body["multitask_strategy"] = json!("interrupt");
    for rest in ["/runs", "/runs/wait", "/runs/stream"] {
        for (id, status) in [(REPEATED, 200), ("other", 400)] {
            let request = world.http.post(world.url(&at(rest))).json(&body);
            let request = request.bearer_auth("tg_admin").header("x-request-id", id);
            let response = request.timeout(BOUND).send().await.unwrap();
            assert_eq!(response.status(), status, "{rest} {id}");
            let text = response.text().await.unwrap();
            let is_named = text.contains("checkpoint: must be the last one");
            assert_eq!(is_named, status == 400, "{rest} {id}: {text}");
        }
    }
}

async fn a_run_ends_with_its_client_where_that_was_asked_for(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let mut body = run("sleeper");
    body["on_disconnect"] = json!("cancel");
    let stream = world
        .http
        .post(world.url("/langgraph/threads/slow/runs/stream"));
    let stream = stream.bearer_auth("tg_admin").json(&body);
    let mut response = stream.timeout(BOUND).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let first = response.chunk().await.unwrap().unwrap();
    assert!(first.starts_with(b"event: metadata"), "{first:?}");
    assert_eq!(*world.fakes.turns_ended.borrow(), 0);
    drop(response);
    world.reached(&world.fakes.turns_ended, 1).await;
    // A client that waits to the end leaves nothing behind.
    let wait = world.http.post(world.url(&at("/runs/wait")));
    body["assistant_id"] = json!("ann");
    let wait = wait.bearer_auth("tg_admin").json(&body);
    let response = wait.timeout(BOUND).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let place_of = format!("/threads/{THREAD}/runs/m1");
    assert_eq!(response.headers()["content-location"], *place_of);
    let values: Value = response.json().await.unwrap();
    assert_eq!(values["messages"][1]["content"], "a\nb");
    assert_eq!(*world.fakes.turns_ended.borrow(), 1);
}

async fn messages_are_streamed_as_far_as_they_are_written(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let mut body = run("ann");
    body["stream_mode"] = json!("messages");
    let stream = world.http.post(world.url(&at("/runs/stream")));
    let stream = stream.bearer_auth("tg_admin").json(&body);
    let response = stream.timeout(BOUND).send().await.unwrap();
    let text = response.text().await.unwrap();
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    let expected = [
        "metadata",
        "messages/metadata",
        "messages/partial",
        "messages/complete",
        "end",
    ];
    assert_eq!(names, expected, "{text}");
}

async fn a_thread_is_copied_with_its_messages(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let (status, copied) = world.post(&at("/copy"), "tg_admin", json!({})).await;
    assert_eq!(status, 200, "{copied}");
    assert_eq!(
        (&copied["thread_id"], &copied["metadata"]["graph_id"]),
        (&json!("copy-of-2"), &json!("ann"))
    );
    let none = "/langgraph/threads/none/copy";
    let (status, told) = world.post(none, "tg_admin", json!({})).await;
    assert_eq!((status, &told["code"]), (404, &json!("session_not_found")));
    let (status, _) = world.post(&at("/copy"), "tg_scoped", json!({})).await;
    assert_eq!(status, 403);
}

/// A client may send one request id with all its requests.
async fn threads_of_one_request_id_are_threads_of_their_own(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let mut threads = Vec::new();
    for topic in ["x", "y"] {
        let request = world.http.post(world.url("/langgraph/threads"));
        let request = request.bearer_auth("tg_admin").header("x-request-id", "r");
        let metadata = json!({"graph_id": "fresh", "topic": topic});
        let request = request.json(&json!({"metadata": metadata}));
        let response = request.timeout(BOUND).send().await.unwrap();
        assert_eq!(response.headers()["x-request-id"], "r");
        let told: Value = response.json().await.unwrap();
        let thread = told["thread_id"].as_str();
        threads.push(thread.unwrap_or_else(|| panic!("{told}")).to_owned());
    }
    assert_ne!(threads[0], threads[1]);
}

on_both_buses!(
    threads_of_one_request_id_are_threads_of_their_own,
    a_thread_is_copied_with_its_messages,
    messages_are_streamed_as_far_as_they_are_written,
    a_run_ends_with_its_client_where_that_was_asked_for,
    threads_are_found_and_the_server_says_what_it_is,
    a_run_goes_on_from_the_last_state_and_can_be_ended,
    a_run_with_a_checkpoint_is_found_under_its_request,
    assistants_are_agents_and_threads_are_sessions,
    a_run_is_a_turn,
);
