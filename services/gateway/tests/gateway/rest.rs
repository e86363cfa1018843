//! REST: statuses, bodies, the last message, events.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_testkit::place::Place;

use crate::world::{BOUND, World};

async fn statuses_and_bodies_follow_the_contract(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let (status, body) = world
        .post(
            "/api/v1/config",
            "",
            json!({"operation": "list", "type": "x"}),
        )
        .await;
    assert_eq!(status, 200);
    assert_eq!(
        body,
        json!({"version": 7, "values": [], "directory": ["default"], "config": {}})
    );
    for (path, sent, status, error) in [
        ("/api/v1/config", "{", 400, "invalid json"),
        ("/api/v1/config", "[]", 400, "body must be an object"),
        ("/api/v1/config", "{}", 400, "missing operation"),
        (
            "/api/v1/config",
            r#"{"operation": "x"}"#,
            400,
            "unknown operation; those of config are get, list, getvalues, getvalues-all-ws, config, put, delete",
        ),
        (
            "/api/v1/nothing",
            r#"{"operation": "x"}"#,
            400,
            "unknown operation; the services are iam, audit, requests, answers, config, flow, librarian, \
             collection-management, traces, usage, knowledge, threads, sessions, violations",
        ),
        (
            "/api/v1/config",
            r#"{"operation": "list", "workspace": "nope"}"#,
            404,
            "workspace not found",
        ),
        (
            "/api/v1/flow/default/service/nope",
            "{}",
            404,
            "unknown kind; the kinds are agent, text-completion, chat-completion, prompt, mcp-tool, triples, sparql, text-load, \
             document-load, graph-rag, document-rag, embeddings, graph-embeddings, document-embeddings, \
             row-embeddings, keyword-index, rows, nlp-query, structured-query, structured-diag, reranker, \
             image-to-text, cloze, decision-scoring, field-extraction",
        ),
        (
            "/api/v1/flow/nope/service/agent",
            r#"{"question": "q"}"#,
            200,
            "Invalid flow default/nope",
        ),
        (
            "/api/v1/flow/default/service/prompt",
            r#"{"id": "q"}"#,
            200,
            "This kind not supported by flow",
        ),
    ] {
        let request = world.http.post(world.url(path)).body(sent);
        let response = request.send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{path} {sent}");
        assert_eq!(
            response.headers()["content-type"],
            "application/json; charset=utf-8"
        );
        assert!(response.headers().contains_key("x-request-id"));
        let body: serde_json::Value = response.json().await.unwrap();
        assert_eq!(body, json!({"error": error}), "{path} {sent}");
    }
    let (status, body) = world.get("/nowhere", "").await;
    assert_eq!((status, body), (404, json!("404: Not Found")));
    let (status, _) = world.get("/api/v1/config", "").await;
    assert_eq!(status, 405);
}

async fn the_pages_and_the_descriptions_are_there_for_everybody(place: Place) {
    for mode in [AuthMode::None, AuthMode::Iam] {
        let world = World::start(&place.another().await, mode).await;
        for (path, kind) in [
            ("/", "text/html; charset=utf-8"),
            ("/index.html", "text/html; charset=utf-8"),
            ("/docs", "text/html; charset=utf-8"),
            ("/openapi.yaml", "application/yaml"),
            ("/asyncapi.yaml", "application/yaml"),
        ] {
            let response = world.http.get(world.url(path)).send().await.unwrap();
            assert_eq!(response.status(), 200, "{path}");
            let header = |name: &str| {
                let value = response.headers().get(name);
                value.map_or("", |value| value.to_str().unwrap()).to_owned()
            };
            assert_eq!(header("content-type"), kind, "{path}");
            let policy = header("content-security-policy");
            for part in [
                "default-src 'none'",
                "script-src 'self'",
                "connect-src 'self'",
                "frame-ancestors 'none'",
            ] {
                assert!(policy.contains(part), "{path}: {policy}");
            }
            assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        }
    }
}

async fn a_status_says_what_failed_for_who_asks(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    for (path, sent, status) in [
        ("/api/v1/flow/default/service/agent", "{}", 400),
        ("/api/v1/flow/default/service/agent", "{", 400),
        (
            "/api/v1/flow/nope/service/agent",
            r#"{"question": "q"}"#,
            404,
        ),
        ("/api/v1/flow/default/service/prompt", r#"{"id": "q"}"#, 404),
        (
            "/api/v1/config",
            r#"{"operation": "list", "limit": -1}"#,
            200,
        ),
    ] {
        for (told, wanted) in [("true", status), ("false", 200)] {
            let request = world.http.post(world.url(path)).body(sent);
            let response = request.header("x-error-status", told).send().await.unwrap();
            assert_eq!(response.status().as_u16(), wanted, "{path} {sent}");
            let body: serde_json::Value = response.json().await.unwrap();
            assert_eq!(body.get("error").is_some(), status != 200, "{path}: {body}");
        }
    }
}

async fn what_is_not_read_is_told_in_the_last_message(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let body = json!({"operation": "list", "limits": 3, "typ": "prompt", "nothing": 1});
    let (_, reply) = world.post("/api/v1/config", "", body).await;
    assert_eq!(
        reply["warnings"],
        json!([
            "limits: is not read here; limit is",
            "typ: is not read here; type is",
            "nothing: is not read here",
        ])
    );
    let read =
        json!({"operation": "list", "limit": 3, "user": "u", "workspace": "default", "type": null});
    let (_, reply) = world.post("/api/v1/config", "", read).await;
    assert_eq!(reply.get("warnings"), None, "{reply}");
}

async fn faults_of_the_request_name_the_field_with_status_200(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    for (path, body, message) in [
        (
            "/api/v1/flow/default/service/agent",
            json!({}),
            "question: is required",
        ),
        (
            "/api/v1/flow/default/service/agent",
            json!({"question": "q", "streaming": "x"}),
            "streaming: must be true or false",
        ),
        (
            "/api/v1/flow/default/service/triples",
            json!({"s": 3}),
            "s: must be a term",
        ),
        (
            "/api/v1/config",
            json!({"operation": "put", "values": [{"type": "a"}]}),
            "values[0].key: is required",
        ),
        (
            "/api/v1/config",
            json!({"operation": "list", "workspace": 3}),
            "workspace: must be a string",
        ),
        (
            "/api/v1/config",
            json!({"operation": "list", "workspace": "a:b"}),
            "workspace: may contain letters, digits, '.', '_' and '-', and starts with a letter or digit",
        ),
        (
            "/api/v1/flow/a--b/service/agent",
            json!({"question": "q"}),
            "flow-id: must not contain '--'",
        ),
        (
            "/api/v1/flow/%C3%BC/service/agent",
            json!({"question": "q"}),
            "flow-id: may contain letters, digits, '.', '_' and '-', and starts with a letter or digit",
        ),
    ] {
        let (status, reply) = world.post(path, "", body).await;
        assert_eq!(status, 200);
        assert_eq!(
            reply,
            json!({"error": {"type": "bad-request", "message": message}})
        );
    }
}

async fn a_dialog_over_http_is_one_reply_with_whole_texts(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let path = "/api/v1/flow/default/service/agent";
    let (status, reply) = world
        .post(
            path,
            "",
            json!({"question": "forty-two", "streaming": true}),
        )
        .await;
    assert_eq!(status, 200);
    for (key, value) in [
        ("answer", json!("forty-two")),
        ("thought", json!("let me see")),
        ("observation", json!("seen")),
        ("message_type", json!("answer")),
        ("chunk_type", json!("answer")),
        ("chunk-type", json!("answer")),
        ("end_of_dialog", json!(true)),
        ("end-of-dialog", json!(true)),
        ("end-of-message", json!(true)),
    ] {
        assert_eq!(reply[key], value, "{key} of {reply}");
    }
    assert!(!world.fakes.agent.seen.lock()[0].streaming);
    let (_, reply) = world
        .post(path, "", json!({"question": "fail:no luck"}))
        .await;
    assert_eq!(
        reply["error"],
        json!({"type": "agent-error", "message": "no luck"})
    );
}

async fn events_come_one_per_part_and_end_with_an_end_event(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let text = world
        .http
        .post(world.url("/api/v1/flow/default/service/agent"))
        .header("accept", "text/event-stream")
        .json(&json!({"question": "q"}))
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let data: Vec<serde_json::Value> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(data.len(), 6, "{text}");
    let complete: Vec<bool> = data.iter().map(|event| event["complete"] == true).collect();
    assert_eq!(complete, [false, false, false, false, true, false]);
    assert!(text.trim_end().ends_with("event: end\ndata: {}"), "{text}");
    assert!(world.fakes.agent.seen.lock()[0].streaming);
}

async fn leaving_cancels_the_question(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let request = world
        .http
        .post(world.url("/api/v1/flow/default/service/agent"))
        .json(&json!({"question": "hang"}))
        .send();
    let begun = world.reached(&world.fakes.agent.begun, 1);
    tokio::select! {
        _ = request => panic!("was answered"),
        () = begun => {}
    }
    world.reached(&world.fakes.agent.cancelled, 1).await;
}

async fn bodies_beyond_the_limit_are_413(place: Place) {
    let world = World::with(&place, AuthMode::None, |options| {
        options.settings.body_bytes = 1000
    })
    .await;
    let big = json!({"operation": "put", "x": "y".repeat(2000)});
    let (status, reply) = world.post("/api/v1/config", "", big.clone()).await;
    assert_eq!(status, 413);
    assert_eq!(reply["error"]["type"], "too-large");
    let chunked = reqwest::Body::wrap_stream(futures::stream::iter([Ok::<_, std::io::Error>(
        big.to_string(),
    )]));
    let request = world.http.post(world.url("/api/v1/config")).body(chunked);
    assert_eq!(request.send().await.unwrap().status(), 413);
}

async fn a_full_workspace_says_busy_and_others_go_on(place: Place) {
    let world = World::with(&place, AuthMode::None, |options| {
        options.settings.requests_per_workspace = 1
    })
    .await;
    let hanging = world.socket("").await;
    let envelope = json!({"service": "agent", "flow": "default", "request": {"question": "hang"}});
    let _frames = hanging.send(envelope).await.unwrap();
    world.reached(&world.fakes.agent.begun, 1).await;
    let path = "/api/v1/flow/default/service/triples";
    let (status, reply) = world.post(path, "", json!({})).await;
    assert_eq!((status, &reply["error"]["type"]), (200, &json!("busy")));
    let (_, reply) = world.post(path, "", json!({"workspace": "acme"})).await;
    assert_eq!(reply["response"][0]["o"]["v"], "acme");
}

async fn documents_stream_and_missing_ones_are_404(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let (status, body) = world
        .get("/api/v1/document-stream?document-id=doc", "")
        .await;
    assert_eq!((status, body), (200, json!("hello world")));
    let (status, body) = world.get("/api/v1/document-stream?document-id=x", "").await;
    assert_eq!(status, 404);
    assert_eq!(body["error"]["message"], "Document not found");
    assert_eq!(world.get("/api/v1/document-stream", "").await.0, 400);
    let (status, body) = world
        .get("/api/v1/document-stream?document-id=doc&chunk-size=x", "")
        .await;
    assert_eq!(status, 400);
    assert!(
        body["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("chunk-size: ")
    );
    let chunk = json!({"operation": "stream-document", "document-id": "doc", "chunk-index": 1});
    let (_, reply) = world.post("/api/v1/librarian", "", chunk).await;
    assert_eq!(
        (&reply["content"], &reply["chunk-index"]),
        (&json!("bG8g"), &json!(1))
    );
}

/// Clients of others name no model: of all models with vectors as long, the flow's own is meant.
async fn a_vector_without_a_model_is_held_to_that_of_the_flow(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let path = "/api/v1/flow/default/service/graph-embeddings";
    let asked = async |mut body: Value| {
        body["vector"] = json!([1.0, 0.0]);
        let (_, reply) = world.post(path, "", body).await;
        match reply["error"]["message"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(reply["entities"][0]["entity"]["v"].clone()),
        }
    };
    assert_eq!(asked(json!({"model": "n/2"})).await, Ok(json!("n/2")));
    let unknown = asked(json!({})).await.unwrap_err();
    assert!(
        unknown.starts_with("model: is not named, and the flow's own cannot be asked for"),
        "{unknown}"
    );
    world.embeds("m/2").await;
    assert_eq!(asked(json!({})).await, Ok(json!("m/2")));
    assert_eq!(asked(json!({"model": ""})).await, Ok(json!("m/2")));
    assert_eq!(asked(json!({"model": "n/2"})).await, Ok(json!("n/2")));
}

async fn what_nobody_serves_says_so_quickly(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let ask = world.post(
        "/api/v1/flow/default/service/embeddings",
        "",
        json!({"texts": ["x"]}),
    );
    let (status, reply) = tokio::time::timeout(BOUND, ask).await.unwrap();
    assert_eq!(
        (status, &reply["error"]["type"]),
        (200, &json!("nobody-serves"))
    );
}

/// The trace of whoever asks is that of the service; one that cannot be read is not passed on.
async fn a_trace_goes_on_where_it_came_from(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let url = world.url("/api/v1/flow/default/service/agent");
    let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for told in [Some(good), Some("00-noise-01"), None] {
        let body = json!({"question": "traced", "streaming": false});
        let mut request = world.http.post(&url).json(&body).timeout(BOUND);
        if let Some(told) = told {
            request = request.header("traceparent", told);
        }
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
    let traced = std::mem::take(&mut *world.fakes.agent.traced.lock());
    let traced: Vec<String> = traced.into_iter().map(Option::unwrap).collect();
    assert_eq!(traced[0], good);
    for fresh in &traced[1..] {
        assert_eq!((fresh.len(), &fresh[..3]), (good.len(), "00-"), "{fresh}");
    }
    let different: BTreeSet<&String> = traced.iter().collect();
    assert_eq!(different.len(), 3, "{traced:?}");
}

/// A path of a route.
pub fn path_of(route: &tg_gateway::Route) -> String {
    let parts = [
        ("{flow}", "default"),
        ("{kind}", "triples"),
        ("{interface}", "agent"),
        ("{collection}", "default"),
        ("{lang}", "en"),
        ("{run}", "r"),
        ("{workspace}", "default"),
        ("{file}", "icon.svg"),
        ("{*path}", "query"),
    ];
    let path = parts.iter();
    let mut path = path.fold(route.path.to_owned(), |path, (name, value)| {
        path.replace(name, value)
    });
    // What else a path names is an id of something: any will do.
    while let Some((before, rest)) = path.split_once('{') {
        let (_, after) = rest.split_once('}').expect("a parameter has an end");
        path = format!("{before}x{after}");
    }
    path
}

/// Each path that can be asked for is, as a socket: those of the description become one, and no other does.
async fn what_upgrades_is_described_and_nothing_else(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let description = include_str!("../../../../specs/api/asyncapi.yaml");
    let description: Value = serde_yaml_ng::from_str(description).unwrap();
    let channels = description["channels"].as_object().unwrap().values();
    let described: BTreeSet<&str> = channels
        .map(|channel| channel["address"].as_str().unwrap())
        .collect();
    let mut upgraded = BTreeSet::new();
    for route in tg_gateway::ROUTES.iter().filter(|one| one.method == "GET") {
        let path = path_of(route);
        let handshake = [
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        let request = world.http.get(world.url(&path)).timeout(BOUND);
        let request = handshake.iter().fold(request, |request, (name, value)| {
            request.header(*name, *value)
        });
        if request.send().await.unwrap().status() == 101 {
            upgraded.insert(route.path);
        }
    }
    assert_eq!(upgraded, described);
}

/// A cache between keeps no answer that repeats a header which any client may send.
async fn a_description_names_the_host_of_its_client_and_is_kept_nowhere(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let path = "/api/v1/flow/default/sparql/default";
    let request = world.http.get(world.url(path));
    let request = request.header("x-forwarded-host", "a.example");
    let request = request.header("accept", "text/turtle").timeout(BOUND);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["cache-control"], "no-store");
    let told = response.text().await.unwrap();
    assert!(told.contains(&format!("http://a.example{path}")), "{told}");
}

tg_testkit::on_both_buses!(
    a_trace_goes_on_where_it_came_from,
    what_upgrades_is_described_and_nothing_else,
    statuses_and_bodies_follow_the_contract,
    faults_of_the_request_name_the_field_with_status_200,
    a_status_says_what_failed_for_who_asks,
    the_pages_and_the_descriptions_are_there_for_everybody,
    a_description_names_the_host_of_its_client_and_is_kept_nowhere,
    what_is_not_read_is_told_in_the_last_message,
    a_dialog_over_http_is_one_reply_with_whole_texts,
    events_come_one_per_part_and_end_with_an_end_event,
    leaving_cancels_the_question,
    bodies_beyond_the_limit_are_413,
    a_full_workspace_says_busy_and_others_go_on,
    documents_stream_and_missing_ones_are_404,
    what_nobody_serves_says_so_quickly,
    a_vector_without_a_model_is_held_to_that_of_the_flow,
);
