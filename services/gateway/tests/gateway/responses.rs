//! Responses that are stored: turns of sessions, over sessions that the test plays.

use std::time::Duration;

use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use crate::world::{BOUND, World};

const RESPONSES: &str = "/v1/responses";
/// The one turn of the played session.
const FIRST: &str = "resp_thread_m1";

/// A request to a stored response.
async fn sent(world: &World, method: &str, rest: &str, token: &str) -> (u16, Value) {
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let request = world
        .http
        .request(method, world.url(&format!("{RESPONSES}/{rest}")));
    let response = request.bearer_auth(token).timeout(BOUND).send();
    let response = response.await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn a_response_of_an_agent_of_a_file_is_a_turn_that_others_follow(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let post = async |body: &Value| world.post(RESPONSES, "tg_admin", body.clone()).await;
    let mut ask = json!({"model": "agent/keeper", "input": "x"});
    let (status, first) = post(&ask).await;
    assert_eq!((status, &first["id"]), (200, &json!(FIRST)), "{first}");
    assert_eq!(first["output"][0]["content"][0]["text"], "a\nb");
    assert_eq!(
        (&first["store"], &first["conversation"]["id"]),
        (&json!(true), &json!("thread"))
    );
    ask["stream"] = json!(true);
    let request = world.http.post(world.url(RESPONSES));
    let request = request.bearer_auth("tg_admin").json(&ask).timeout(BOUND);
    let text = request.send().await.unwrap().text().await.unwrap();
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    assert_eq!(
        (names[0], names[names.len() - 1]),
        ("response.created", "response.completed")
    );
    let named = format!("\"id\":\"{FIRST}\"");
    assert_eq!(text.matches(&named).count(), 3, "{text}");

    for follows in [
        json!({"previous_response_id": FIRST}),
        json!({"conversation": {"id": "thread"}}),
        json!({"conversation": "thread"}),
    ] {
        let mut ask = json!({"model": "agent/ann", "input": [{"role": "user", "content": "y"}]});
        for (key, value) in follows.as_object().unwrap() {
            ask[key] = value.clone();
        }
        let (status, next) = post(&ask).await;
        assert_eq!(status, 200, "{next}");
        assert_eq!(next["conversation"]["id"], "thread");
        assert_eq!(
            next["previous_response_id"],
            follows["previous_response_id"]
        );
    }
    // Agents of the workspace have no sessions.
    let ask = json!({"model": "agent/maven", "input": "x"});
    let (status, told) = post(&ask).await;
    assert_eq!((status, &told["store"]), (200, &json!(false)), "{told}");
}

/// The turn of a stored response goes on without its client; what is not stored ends with it.
async fn a_stored_response_refuses_the_header_that_would_end_it(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    for (ask, header, status) in [
        (
            json!({"model": "agent/ann", "store": true}),
            ("x-on-disconnect", "cancel"),
            400,
        ),
        (
            json!({"model": "agent/ann", "conversation": "thread"}),
            ("x-on-disconnect", "cancel"),
            400,
        ),
        (
            json!({"model": "agent/concise"}),
            ("x-on-disconnect", "cancel"),
            400,
        ),
        (
            json!({"model": "agent/keeper", "store": true}),
            ("x-detach", "false"),
            200,
        ),
        (
            json!({"model": "agent/ann", "store": false}),
            ("x-on-disconnect", "cancel"),
            200,
        ),
        (
            json!({"model": "agent/maven"}),
            ("x-on-disconnect", "cancel"),
            200,
        ),
    ] {
        let mut body = ask.clone();
        body["input"] = json!("x");
        let request = world.http.post(world.url(RESPONSES)).json(&body);
        let request = request.bearer_auth("tg_admin").header(header.0, header.1);
        let response = request.timeout(BOUND).send().await.unwrap();
        let told = response.status().as_u16();
        let text = response.text().await.unwrap();
        assert_eq!(told, status, "{ask}: {text}");
        let is_named = text.contains("x-on-disconnect: must be left out");
        assert_eq!(is_named, status == 400, "{ask}: {text}");
    }
}

async fn what_cannot_be_stored_or_followed_is_named(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let agent = |more: Value| {
        let mut ask = json!({"model": "agent/ann", "input": "x"});
        for (key, value) in more.as_object().unwrap() {
            ask[key] = value.clone();
        }
        ask
    };
    for (ask, status, field) in [
        (
            json!({"previous_response_id": "resp_thread_m0"}),
            404,
            "previous_response_id",
        ),
        (
            json!({"previous_response_id": "resp_none_m1"}),
            404,
            "previous_response_id",
        ),
        (
            json!({"previous_response_id": "resp_1"}),
            404,
            "previous_response_id",
        ),
        (json!({"conversation": "none"}), 404, "conversation"),
        (
            json!({"conversation": "thread", "previous_response_id": FIRST}),
            400,
            "conversation",
        ),
        (
            json!({"conversation": "thread", "store": false}),
            400,
            "store",
        ),
        (json!({"instructions": "i", "store": true}), 400, "input"),
        (json!({"model": "agent/maven", "store": true}), 400, "model"),
        (
            json!({"model": "agent/default", "conversation": "thread"}),
            400,
            "conversation",
        ),
        (
            json!({"model": "one", "previous_response_id": FIRST}),
            400,
            "previous_response_id",
        ),
    ] {
        let ask = agent(ask);
        let (told, body) = world.post(RESPONSES, "tg_admin", ask.clone()).await;
        assert_eq!(
            (told, &body["error"]["param"]),
            (status, &json!(field)),
            "{ask}: {body}"
        );
        if (status, field) == (404, "previous_response_id") {
            assert_eq!(body["error"]["code"], "previous_response_not_found");
        }
    }
    let archived = agent(json!({"conversation": "old"}));
    let (status, _) = world.post(RESPONSES, "tg_scoped", archived).await;
    assert_eq!(status, 403);
}

async fn a_stored_response_is_read_cancelled_and_deleted(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let (status, told) = sent(&world, "GET", FIRST, "tg_admin").await;
    assert_eq!((status, &told["id"]), (200, &json!(FIRST)), "{told}");
    assert_eq!(
        (&told["status"], &told["model"]),
        (&json!("completed"), &json!("agent/ann"))
    );
    assert_eq!(told["output"][0]["content"][0]["text"], "a\nb");
    let (_, told) = sent(&world, "GET", "resp_busy_m1", "tg_admin").await;
    assert_eq!(told["status"], "in_progress", "{told}");
    for (rest, how) in [("resp_busy_m1", "cancelled"), (FIRST, "completed")] {
        let rest = format!("{rest}/cancel");
        let (status, told) = sent(&world, "POST", &rest, "tg_admin").await;
        assert_eq!((status, &told["status"]), (200, &json!(how)), "{told}");
    }
    for other in ["resp_thread_m2", "resp_none_m1", "resp_1"] {
        for (method, rest) in [
            ("GET", other.to_owned()),
            ("DELETE", other.to_owned()),
            ("POST", format!("{other}/cancel")),
        ] {
            let (status, told) = sent(&world, method, &rest, "tg_admin").await;
            assert_eq!(
                (status, &told["error"]["code"]),
                (404, &json!("not_found")),
                "{method} {rest}"
            );
            let (status, _) = sent(&world, method, &rest, "tg_scoped").await;
            assert_eq!(status, 403, "{method} {rest}");
            let (status, _) = sent(&world, method, &rest, "tg_wrong").await;
            assert_eq!(status, 401, "{method} {rest}");
        }
    }
    let (status, told) = sent(&world, "DELETE", "resp_busy_m1", "tg_admin").await;
    assert_eq!((status, &told["error"]["code"]), (409, &json!("conflict")));
    let (status, told) = sent(&world, "DELETE", FIRST, "tg_admin").await;
    let deleted = json!({"id": FIRST, "object": "response", "deleted": true});
    assert_eq!((status, told), (200, deleted));
}

/// The turn of a stored response does not end: a client that waits for the whole has an answer all the same.
async fn a_whole_response_has_no_more_time_than_other_answers(place: Place) {
    let world = World::with(&place, AuthMode::Iam, |options| {
        options.timeout = Duration::from_secs(3);
    })
    .await;
    let ask = json!({"model": "agent/sleeper", "input": "x"});
    let (status, told) = world.post(RESPONSES, "tg_admin", ask).await;
    assert_eq!(
        (status, &told["error"]["code"]),
        (504, &json!("upstream_timeout")),
        "{told}"
    );
}

/// The session that was made for a response goes where it keeps no message, and one that was there before stays.
async fn a_response_that_cannot_begin_leaves_no_session(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    for (ask, stays) in [
        (
            json!({"model": "agent/mute", "input": "x", "conversation": "mute"}),
            true,
        ),
        (json!({"model": "agent/mute", "input": "x"}), false),
    ] {
        let (status, told) = world.post(RESPONSES, "tg_admin", ask.clone()).await;
        assert_eq!(
            (status, &told["error"]["code"]),
            (422, &json!("llm_credential_missing")),
            "{ask}: {told}"
        );
        let (status, _) = sent(&world, "GET", "resp_mute_m1", "tg_admin").await;
        assert_eq!(status != 404, stays, "{ask}: {status}");
    }
}

/// A client may send one request id with all its requests. The same request again is the same response.
async fn responses_of_one_request_id_have_sessions_of_their_own(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let mut sessions = Vec::new();
    for input in ["x", "y", "x"] {
        let request = world.http.post(world.url(RESPONSES));
        let request = request.bearer_auth("tg_admin").header("x-request-id", "r");
        let request = request.json(&json!({"model": "agent/fresh", "input": input}));
        let response = request.timeout(BOUND).send().await.unwrap();
        assert_eq!(response.headers()["x-request-id"], "r");
        let told: Value = response.json().await.unwrap();
        let session = told["conversation"]["id"].as_str();
        sessions.push(session.unwrap_or_else(|| panic!("{told}")).to_owned());
    }
    assert_ne!(sessions[0], sessions[1]);
    assert_eq!(sessions[0], sessions[2]);
}

/// The sessions say whether another response came between: they know a request that comes again.
async fn a_response_behind_another_is_the_same_when_it_is_asked_for_again(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let previous = json!("resp_both_m1");
    let mut ask = json!({"model": "agent/ann", "input": "y", "previous_response_id": previous});
    let (status, told) = world.post(RESPONSES, "tg_admin", ask.clone()).await;
    assert_eq!(
        (status, &told["id"]),
        (200, &json!("resp_both_m3")),
        "{told}"
    );
    assert_eq!(told["previous_response_id"], previous);
    ask["input"] = json!("z");
    let (status, told) = world.post(RESPONSES, "tg_admin", ask).await;
    assert_eq!(
        (status, &told["error"]["code"]),
        (409, &json!("conflict")),
        "{told}"
    );
}

/// The same request came twice at once, and the other one was refused: it deletes the session that was made for both.
async fn a_response_begins_again_where_its_session_is_gone(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let ask = json!({"model": "agent/raced", "input": "x"});
    let (status, told) = world.post(RESPONSES, "tg_admin", ask).await;
    assert_eq!(
        (status, &told["id"]),
        (200, &json!("resp_raced_m1")),
        "{told}"
    );
}

/// The request that deleted a response succeeds again, and another one finds none.
async fn a_response_is_deleted_again_under_the_same_request_id(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let delete = async |id: &str| {
        let request = world
            .http
            .delete(world.url(&format!("{RESPONSES}/{FIRST}")));
        let request = request.bearer_auth("tg_admin").header("x-request-id", id);
        let response = request.timeout(BOUND).send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json::<Value>().await.unwrap())
    };
    let deleted = json!({"id": FIRST, "object": "response", "deleted": true});
    for _ in 0..2 {
        assert_eq!(delete("r").await, (200, deleted.clone()));
    }
    let (status, told) = delete("other").await;
    assert_eq!((status, &told["error"]["code"]), (404, &json!("not_found")));
}

on_both_buses!(
    a_response_behind_another_is_the_same_when_it_is_asked_for_again,
    a_response_begins_again_where_its_session_is_gone,
    responses_of_one_request_id_have_sessions_of_their_own,
    a_response_is_deleted_again_under_the_same_request_id,
    a_response_that_cannot_begin_leaves_no_session,
    a_whole_response_has_no_more_time_than_other_answers,
    a_response_of_an_agent_of_a_file_is_a_turn_that_others_follow,
    what_cannot_be_stored_or_followed_is_named,
    a_stored_response_refuses_the_header_that_would_end_it,
    a_stored_response_is_read_cancelled_and_deleted,
);
