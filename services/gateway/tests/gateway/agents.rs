//! The doors of agents and sessions: what makes a request, statuses, headers, and errors in the words of the surface.

use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_schemas::operations::ALL;
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use crate::openai::as_sent;
use crate::played_sessions::FAILS;
use crate::world::{BOUND, World};

/// A request with headers; status, headers and body.
async fn sent(
    world: &World,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<Value>,
) -> (u16, reqwest::header::HeaderMap, Value) {
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let mut request = client.build().unwrap().request(method, world.url(path));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if let Some(body) = body {
        request = request.json(&body);
    }
    let response = request.timeout(BOUND).send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let text = response.text().await.unwrap();
    let body = serde_json::from_slice(text.as_bytes()).unwrap_or(Value::Null);
    (status, headers, body)
}

const SESSIONS: &str = "/a1/agents/ann/sessions";

fn told(text: &Value) -> Value {
    serde_json::from_slice(text.as_str().unwrap_or_default().as_bytes()).unwrap()
}

async fn path_headers_query_and_body_make_the_request(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let user = ("SPASS-User-Id", "bob");
    let body = Some(json!({"title": "t", "user_id": "eve", "odd": 1}));
    let (status, headers, made) = sent(&world, "POST", SESSIONS, &[user], body).await;
    assert_eq!((status, &made["id"]), (201, &json!("s")));
    assert!(headers.contains_key("x-request-id"));
    let asked = told(&made["title"]);
    assert_eq!(
        (&asked["name"], &asked["user_id"]),
        (&json!("ann"), &json!("bob"))
    );
    assert_eq!(
        (&asked["title"], &asked["workspace"]),
        (&json!("t"), &json!("default"))
    );
    // Without a body at all, and in another workspace.
    let other = [user, ("SPASS-Tenant", "acme")];
    let (status, _, made) = sent(&world, "POST", SESSIONS, &other, None).await;
    assert_eq!(
        (status, &told(&made["title"])["workspace"]),
        (201, &json!("acme"))
    );
    let path = format!("{SESSIONS}/s/messages?limit=2&live=true");
    let (status, _, listed) = sent(&world, "GET", &path, &[user], None).await;
    let asked = told(&listed["session_id"]);
    assert_eq!(
        (status, &asked["limit"], &asked["live"]),
        (200, &json!(2), &json!(true))
    );
    let (status, _, gone) = sent(&world, "DELETE", &format!("{SESSIONS}/s"), &[user], None).await;
    assert_eq!((status, gone), (204, Value::Null));
}

async fn line_038_an_answer_says_what_it_cost(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let user = [("SPASS-User-Id", "bob")];
    let compact = format!("{SESSIONS}/s/compact");
    for (path, body) in [
        ("/a1/agents/ann/chat", json!({"message": "x"})),
        (compact.as_str(), json!({})),
    ] {
        let (status, headers, _) = sent(&world, "POST", path, &user, Some(body)).await;
        assert_eq!(status, 200, "{path}");
        let header = |name: &str| headers[name].to_str().unwrap().to_owned();
        assert_eq!(header("spass-cost-sub-calls"), "2", "{path}");
        assert_eq!(header("spass-cost-usd"), "0.25", "{path}");
        assert_eq!(header("spass-cost-source"), "upstream", "{path}");
        assert!(!headers.contains_key("spass-cost-eur"), "{path}");
    }
    // A stream says it in its last event, and again in trailers.
    let path = "/a1/agents/priced/chat/stream";
    for reads_trailers in [true, false] {
        let sent = as_sent(&world, path, &json!({"message": "x"}), reads_trailers).await;
        let (_, end) = sent.rsplit_once("event: done").unwrap();
        assert!(end.contains("\"sub_calls\":2"), "{sent}");
        for trailer in ["spass-cost-usd: 0.25", "spass-cost-sub-calls: 2"] {
            let trailer = format!("\r\n{trailer}\r\n");
            assert_eq!(end.contains(&trailer), reads_trailers, "{sent}");
        }
    }
}

async fn line_093_a_run_that_a_guard_stopped_is_an_answer(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let user = [("SPASS-User-Id", "bob")];
    for (agent, is_stopped) in [("circles", true), ("ann", false)] {
        for path in ["chat", "sessions/s/messages"] {
            let path = format!("/a1/agents/{agent}/{path}");
            let body = Some(json!({"message": "x"}));
            let (status, _, told) = sent(&world, "POST", &path, &user, body).await;
            assert_eq!(status, 200, "{path}: {told}");
            assert_eq!(told["stopped"] == true, is_stopped, "{path}: {told}");
            assert_eq!(told["finish_reason"] == "loop", is_stopped, "{told}");
        }
    }
}

async fn line_023_an_archived_session_is_a_redirect(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let path = format!("{SESSIONS}/old/messages");
    let body = Some(json!({"message": "x"}));
    let user = [("SPASS-User-Id", "bob")];
    let (status, headers, told) = sent(&world, "POST", &path, &user, body).await;
    assert_eq!(status, 308);
    assert_eq!(headers["location"], "/a1/agents/ann/sessions/new/messages");
    assert_eq!(told["successor_session_id"], "new");
    assert_eq!(told["error"]["code"], "session_archived");
}

/// 24: an ordinary client repeats the request where it is told to.
async fn line_024_a_client_that_follows_lands_on_the_successor(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let path = format!("{SESSIONS}/old/messages");
    let request = reqwest::Client::new().post(world.url(&path));
    let request = request
        .header("SPASS-User-Id", "bob")
        .json(&json!({"message": "x"}));
    let response = request.timeout(BOUND).send().await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    let body: Value = response.json().await.unwrap();
    let asked = told(&body["content"]);
    assert_eq!(
        (&asked["session_id"], &asked["message"]),
        (&json!("new"), &json!("x"))
    );
}

/// 69: what a stream looks like, and how one is refused.
async fn line_069_a_stream_has_events_with_names(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let stream = |session: &str| {
        let path = format!("{SESSIONS}/{session}/messages/stream");
        let request = reqwest::Client::new().post(world.url(&path));
        let request = request
            .header("SPASS-User-Id", "bob")
            .json(&json!({"message": "x"}));
        request.timeout(BOUND).send()
    };
    let response = stream("s").await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/event-stream");
    assert_eq!(
        (header("cache-control"), header("x-accel-buffering")),
        ("no-cache".into(), "no".into())
    );
    let text = response.text().await.unwrap();
    let expected = "event: user-message\ndata: {\"content\":\"x\"}\n\n\
                    event: token\ndata: {\"delta\":\"a\\nb\"}\n\n\
                    event: done\ndata: {\"content\":\"a\\nb\"}\n\n";
    assert_eq!(text, expected);
    let refused = stream("none").await.unwrap();
    assert_eq!(refused.status().as_u16(), 404);
    let told: Value = refused.json().await.unwrap();
    assert_eq!(told["error"]["code"], "session_not_found");
}

/// 131: the same over the socket.
async fn line_131_a_socket_has_the_same_events(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let socket = world.socket("").await;
    let request = json!({"operation": "send-message", "name": "ann", "session_id": "s", "user_id": "bob",
                         "message": "x", "streaming": true});
    let frames = socket
        .send(json!({"service": "sessions", "request": request}))
        .await
        .unwrap();
    let frames = frames.all(BOUND).await.unwrap();
    let names: Vec<_> = frames
        .iter()
        .map(|one| one["response"]["event"].clone())
        .collect();
    assert_eq!(
        names,
        [json!("user-message"), json!("token"), json!("done")]
    );
    let ends: Vec<_> = frames.iter().map(|one| one["complete"].clone()).collect();
    assert_eq!(ends, [json!(false), json!(false), json!(true)]);
    // A refusal is one frame, with the code that the same request has over HTTP.
    let nameless = format!("{FAILS}user_id_required");
    for (session, code) in [
        ("none", "session_not_found"),
        (nameless.as_str(), "user_id_required"),
    ] {
        let request = json!({"operation": "send-message", "name": "ann", "session_id": session,
                             "message": "x", "streaming": true});
        let envelope = json!({"service": "sessions", "request": request});
        let refused = socket.send(envelope).await.unwrap();
        let refused = refused.all(BOUND).await.unwrap();
        let kinds: Vec<_> = refused
            .iter()
            .map(|one| &one["response"]["error"]["type"])
            .collect();
        assert_eq!(kinds, [code], "{refused:?}");
    }
}

/// 10: a setting is changed by PUT, and an unknown one is refused.
async fn line_010_settings_of_a_workspace_are_put(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let path = "/v1/tenant/config";
    let body = Some(json!({"compact_keep_last_n": 3, "agent_flow": null}));
    let (status, _, done) = sent(&world, "PUT", path, &[], body).await;
    assert_eq!(status, 200);
    let asked = told(&done["tenant"]);
    let expected = json!({"compact_keep_last_n": 3, "agent_flow": null, "workspace": "default"});
    assert_eq!(asked, expected);
    let (status, _, told) = sent(&world, "PUT", path, &[], Some(json!({"speed": 1}))).await;
    let error = &told["error"];
    assert_eq!(
        (status, &error["code"], &error["type"], &error["param"]),
        (
            400,
            &json!("validation_error"),
            &json!("invalid_request_error"),
            &json!("speed")
        )
    );
    assert!(error["request_id"].is_string(), "{told}");
}

async fn failures_have_the_form_of_the_surface(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let user = ("SPASS-User-Id", "bob");
    let messages = format!("{SESSIONS}/s/messages");
    let lost = format!("{SESSIONS}/lost/messages");
    let none = format!("{SESSIONS}/none");
    let depth = ("SPASS-Caller-Depth", "x");
    let tenant = ("SPASS-Tenant", "nope");
    let message = json!({"message": "x"});
    for (method, path, headers, body, status, code) in [
        (
            "GET",
            none.as_str(),
            vec![user],
            None,
            404,
            "session_not_found",
        ),
        ("GET", "/a1/nothing", vec![], None, 404, "not_found"),
        ("GET", "/a1/agents/%ff", vec![], None, 404, "not_found"),
        (
            "GET",
            "/a1/agents",
            vec![tenant],
            None,
            404,
            "workspace_not_found",
        ),
        (
            "POST",
            messages.as_str(),
            vec![user, depth],
            Some(message.clone()),
            400,
            "invalid_header",
        ),
        (
            "POST",
            messages.as_str(),
            vec![user],
            Some(json!([])),
            400,
            "validation_error",
        ),
        (
            "POST",
            messages.as_str(),
            vec![user],
            Some(json!({"message": 5})),
            400,
            "validation_error",
        ),
        (
            "POST",
            lost.as_str(),
            vec![user],
            Some(message.clone()),
            500,
            "internal_error",
        ),
    ] {
        let (found, _, told) = sent(&world, method, path, &headers, body).await;
        assert_eq!(
            (found, &told["error"]["code"]),
            (status, &json!(code)),
            "{path}: {told}"
        );
        assert!(told["error"]["request_id"].is_string());
        assert!(!told.to_string().contains("/var/"), "{told}");
    }
    // 109: when to ask again.
    let limited = format!("{SESSIONS}/{FAILS}rate_limited");
    let (status, headers, _) = sent(&world, "GET", &limited, &[user], None).await;
    assert_eq!(status, 429);
    assert_eq!(headers["retry-after"], "7");
}

/// 57: a workspace that is not there, on each route that names one.
async fn line_057_no_route_serves_a_workspace_that_is_not_there(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let of_workspaces = ALL.iter().filter(|meta| meta.path.contains("{workspace}"));
    let mut routes = 0;
    for meta in of_workspaces {
        let path = meta.path.replace("{workspace}", "nope");
        let path = path.replace(['{', '}'], "");
        let body = (meta.method != "GET").then(|| json!({}));
        let (status, _, told) = sent(&world, meta.method, &path, &[], body).await;
        assert_eq!(
            (status, &told["error"]["code"]),
            (404, &json!("workspace_not_found")),
            "{} {path}: {told}",
            meta.method
        );
        routes += 1;
    }
    assert!(routes >= 19, "{routes}");
}

async fn callers_are_let_in_as_at_every_door(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let (status, _, told) = sent(&world, "GET", "/a1/agents", &[], None).await;
    assert_eq!(
        (status, &told["error"]["code"]),
        (401, &json!("unauthorized"))
    );
    let (status, _) = world.get("/a1/agents", "tg_admin").await;
    assert_eq!(status, 200);
    // A key that is held to a model: nobody can say which one the agent will ask.
    for (key, code) in [("tg_model", "forbidden"), ("tg_held", "model_not_allowed")] {
        let message = json!({"message": "x"});
        let (status, told) = world.post("/a1/agents/ann/chat", key, message).await;
        assert_eq!((status, &told["error"]["code"]), (403, &json!(code)));
    }
    assert_eq!(world.get("/a1/agents", "tg_held").await.0, 200);
    // The same of a listener, which may ask the agent.
    let message = json!({"operation": "send-message", "to": "agent", "type": "agentrequest", "payload": {"question": "x"}});
    let (status, told) = world.post("/api/v1/threads", "tg_held", message).await;
    assert_eq!(status, 403, "{told}");
    assert!(
        told["error"].to_string().contains("may not ask an agent"),
        "{told}"
    );
}

/// An agent that is asked through a listener or a session has the roles of the caller, and no others: nobody says them of themselves.
async fn roles_are_the_callers_by_every_way_to_an_agent(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let message = json!({"operation": "send-message", "to": "agent", "type": "agentrequest",
        "payload": {"question": "x"}, "roles": "admin", "grant": ["mail"]});
    let turn = json!({"message": "x", "roles": "admin"});
    let socket_turn = json!({"operation": "send-message", "name": "ann", "session_id": "s",
        "user_id": "bob", "message": "x", "roles": "admin"});
    for (key, roles, grant) in [
        ("tg_reader", "reader", ""),
        ("tg_admin", "reader writer admin", ""),
        ("tg_granting", "", "pay"),
    ] {
        let bearer = format!("Bearer {key}");
        let headers = [
            ("Authorization", bearer.as_str()),
            ("SPASS-User-Id", "bob"),
            ("roles", "admin"),
        ];
        for (path, body) in [
            ("/api/v1/threads", &message),
            ("/a1/agents/ann/chat", &turn),
            ("/a1/agents/ann/sessions/s/messages", &turn),
        ] {
            let (status, _, told) = sent(&world, "POST", path, &headers, Some(body.clone())).await;
            assert_eq!(status, 200, "{key} {path}: {told}");
        }
        let envelope = json!({"service": "sessions", "roles": "admin", "request": socket_turn});
        let socket = world.socket(key).await;
        let frames = socket.send(envelope).await.unwrap();
        assert!(!frames.all(BOUND).await.unwrap().is_empty(), "{key}");
        let roles = Some(roles.to_owned());
        let of_sessions = std::mem::take(&mut *world.sessions.roles.lock());
        assert_eq!(of_sessions, vec![roles.clone(); 3], "{key}");
        let of_listeners = std::mem::take(&mut *world.listeners.roles.lock());
        assert_eq!(of_listeners, [roles], "{key}");
        let asked = std::mem::take(&mut *world.listeners.asked.lock());
        assert_eq!(asked[0].grant.join(" "), grant, "{key}");
    }
    // What leads to no agent needs none.
    let list = json!({"operation": "list-listeners"});
    world.post("/api/v1/threads", "tg_admin", list).await;
    assert_eq!(*world.listeners.roles.lock(), [None::<String>]);
}

on_both_buses!(
    path_headers_query_and_body_make_the_request,
    line_038_an_answer_says_what_it_cost,
    line_093_a_run_that_a_guard_stopped_is_an_answer,
    line_023_an_archived_session_is_a_redirect,
    line_024_a_client_that_follows_lands_on_the_successor,
    line_069_a_stream_has_events_with_names,
    line_131_a_socket_has_the_same_events,
    line_010_settings_of_a_workspace_are_put,
    failures_have_the_form_of_the_surface,
    line_057_no_route_serves_a_workspace_that_is_not_there,
    callers_are_let_in_as_at_every_door,
    roles_are_the_callers_by_every_way_to_an_agent,
);
