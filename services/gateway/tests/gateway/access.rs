//! Who may come in, and where to.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use tg_gateway::{AuthMode, GatewayOptions};
use tg_testkit::place::Place;
use tg_testkit::socket::Socket;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::rest::path_of;
use crate::world::{BOUND, World};

const AGENT: &str = "/api/v1/flow/default/service/agent";
/// Pause while it is waited for what a fake was asked.
const LOOK: Duration = Duration::from_millis(10);
const TRIPLES: &str = "/api/v1/flow/default/service/triples";

async fn every_door_asks_for_a_key(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    for token in ["", "tg_wrong", "a.b.c", "nonsense"] {
        for (path, body) in [
            ("/api/v1/config", json!({"operation": "list"})),
            ("/api/v1/iam", json!({"operation": "whoami"})),
            ("/api/v1/auth/change-password", json!({})),
            ("/api/v1/import-core", json!({})),
            (AGENT, json!({"question": "q"})),
            ("/api/v1/flow/default/service/thru/agent", json!({})),
        ] {
            let (status, body) = world.post(path, token, body).await;
            assert_eq!(
                (status, body),
                (401, json!({"error": "auth failure"})),
                "{path}"
            );
        }
        for path in [
            "/api/metrics",
            "/api/metrics/query?query=up",
            "/metrics",
            "/api/v1/export-core",
            "/api/v1/document-stream?document-id=doc",
            "/api/v1/flow/default/export/triples",
        ] {
            assert_eq!(world.get(path, token).await.0, 401, "{path}");
        }
    }
    for (path, status) in [
        ("/health/live", 200),
        ("/health/ready", 200),
        ("/api/v1/i18n/packs/en", 200),
    ] {
        assert_eq!(world.get(path, "").await.0, status, "{path}");
    }
}

async fn a_workspace_is_a_wall_on_every_door(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    // The caller's own workspace is used when none is named.
    let (_, reply) = world.post(TRIPLES, "tg_reader", json!({})).await;
    assert_eq!(reply["response"][0]["o"]["v"], "acme");
    let (_, reply) = world
        .post("/api/v1/config", "tg_reader", json!({"operation": "list"}))
        .await;
    assert_eq!(reply["directory"], json!(["acme"]));
    // Another one is refused, whether it exists or not.
    for workspace in ["default", "nope"] {
        for (path, body) in [
            (TRIPLES, json!({"workspace": workspace})),
            (AGENT, json!({"question": "q", "workspace": workspace})),
            (
                "/api/v1/config",
                json!({"operation": "list", "workspace": workspace}),
            ),
        ] {
            let (status, body) = world.post(path, "tg_reader", body).await;
            assert_eq!(
                (status, body),
                (403, json!({"error": "access denied"})),
                "{path}"
            );
        }
        let path = format!("/api/v1/document-stream?document-id=doc&workspace={workspace}");
        assert_eq!(world.get(&path, "tg_reader").await.0, 403);
        for bulk in ["import", "export"] {
            let path = format!(
                "/api/v1/flow/default/{bulk}/triples?token=tg_reader&workspace={workspace}"
            );
            assert_eq!(world.get(&path, "").await.0, 403, "{bulk}");
        }
        let socket = world.socket("tg_reader").await;
        let frames = socket
            .send(json!({"service": "triples", "flow": "default", "workspace": workspace, "request": {}}))
            .await
            .unwrap();
        let frames = frames.all(crate::world::BOUND).await.unwrap();
        assert_eq!(frames[0]["error"]["type"], "access-denied");
    }
    // A workspace inside a socket request does not count.
    let socket = world.socket("tg_reader").await;
    let frames = socket
        .ask("triples", "default", json!({"workspace": "default"}))
        .await
        .unwrap();
    assert_eq!(frames[0]["response"]["response"][0]["o"]["v"], "acme");
    let (status, _) = world
        .post("/api/v1/config", "tg_reader", json!({"operation": "put"}))
        .await;
    assert_eq!(status, 403);
    let (status, body) = world
        .post(
            "/api/v1/config",
            "tg_admin",
            json!({"operation": "list", "workspace": "nope"}),
        )
        .await;
    assert_eq!(
        (status, body),
        (404, json!({"error": "workspace not found"}))
    );
}

async fn a_strangers_body_that_trickles_is_cut(place: Place) {
    let world = World::with(&place, AuthMode::Iam, |options| {
        options.settings.stranger_seconds = 1
    })
    .await;
    let mut stream = TcpStream::connect(world.handle.local_addr()).await.unwrap();
    let head = "POST /api/v1/iam HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4000\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reads, mut writes) = stream.split();
    let trickle = async {
        while writes.write_all(b" ").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        std::future::pending::<()>().await;
    };
    let mut answer = Vec::new();
    tokio::select! {
        // An end and a reset are the same here.
        _ = tokio::time::timeout(BOUND, reads.read_to_end(&mut answer)) => {}
        () = trickle => {}
    }
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains("the body arrives too slowly"), "{answer}");
}

async fn public_operations_need_no_key_and_refusals_are_masked(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let (status, body) = world.post("/api/v1/auth/bootstrap", "", json!({})).await;
    assert_eq!(status, 200);
    assert_eq!(body["bootstrap_admin_api_key"], "tg_admin");
    let (_, body) = world
        .post("/api/v1/auth/bootstrap-status", "", json!({}))
        .await;
    assert_eq!(body, json!({"bootstrap_available": true}));
    let (_, body) = world
        .post("/api/v1/iam", "", json!({"operation": "bootstrap-status"}))
        .await;
    assert_eq!(body["bootstrap_available"], true);
    let login = json!({"username": "u", "password": "p"});
    let (status, body) = world.post("/api/v1/auth/login", "", login).await;
    assert_eq!((status, body), (401, json!({"error": "auth failure"})));
    let change = json!({"current_password": "a", "new_password": "b"});
    let (status, _) = world
        .post("/api/v1/auth/change-password", "tg_admin", change)
        .await;
    assert_eq!(status, 401);
    let (_, body) = world
        .post(
            "/api/v1/iam",
            "tg_reader",
            json!({"operation": "whoami", "actor": "admin"}),
        )
        .await;
    assert_eq!(body["user"]["id"], "reader");
}

async fn keys_and_decisions_are_remembered(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    for _ in 0..5 {
        world.post(TRIPLES, "tg_reader", json!({})).await;
    }
    assert_eq!(world.fakes.iam.count("resolve-api-key"), 1);
    assert_eq!(world.fakes.iam.count("authorise"), 1);
}

async fn who_may_in_one_workspace_may_nothing_for_all_of_them(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    for (token, operation, let_in) in [
        ("tg_manager", "get-signing-key", true),
        ("tg_manager", "rotate-signing-key", false),
        ("tg_reader", "rotate-signing-key", false),
        ("tg_admin", "rotate-signing-key", true),
        ("tg_manager", "revoke-signing-key", false),
        ("tg_admin", "revoke-signing-key", true),
    ] {
        let ask = json!({"operation": operation});
        let (status, body) = world.post("/api/v1/traces", token, ask).await;
        assert_eq!(status != 403, let_in, "{token} {operation}: {body}");
    }
}

/// Budgets bind by it: whoever asks is known by what they came with, whatever they say of it.
async fn by_what_a_caller_is_known_nobody_else_says(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let path = "/api/v1/flow/default/service/agent";
    let forged = "key:id of admin";
    let mut body = json!({"question": "q", "streaming": false});
    for field in ["credential", "user_id", "headers", "tg-credential"] {
        body[field] = json!(forged);
    }
    let mut request = world.http.post(world.url(path)).json(&body);
    for header in ["credential", "tg-credential", "x-credential", "user-id"] {
        request = request.header(header, forged);
    }
    let asked = request.bearer_auth("tg_reader").send().await.unwrap();
    assert_eq!(asked.status(), 200);
    let (status, _) = world.post(path, &token_of(&world), body).await;
    assert_eq!(status, 200);
    let known = std::mem::take(&mut *world.fakes.agent.known.lock());
    let own = Some("key:id of reader".to_owned());
    assert_eq!(known[0], (own, Some("reader".to_owned())));
    // A token is no key, and its user has a budget of their own.
    let (credential, user) = &known[1];
    assert_eq!(user.as_deref(), Some("reader"));
    assert!(
        credential
            .as_deref()
            .is_none_or(|known| !known.starts_with("key:"))
    );
}

/// The iam service makes one key for requests of one name: only a client of REST gives a name, to one request.
async fn a_request_has_the_name_that_its_client_gives_it(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let ask = json!({"operation": "create-api-key", "key": {"user_id": "u", "name": "n"}});
    let path = world.url("/api/v1/iam");
    let post = || world.http.post(&path).json(&ask).bearer_auth("tg_admin");
    post().header("x-request-id", "mine").send().await.unwrap();
    post().send().await.unwrap();
    let socket = world.socket("tg_admin").await;
    for _ in 0..2 {
        // The stand-in knows no such operation, which is an answer.
        let _ = socket.ask_service("iam", ask.clone()).await;
    }
    let named = world.fakes.iam.named.lock().clone().into_iter();
    let made = named.filter(|(operation, _)| operation == "create-api-key");
    let named: Vec<bool> = made.map(|(_, named)| named).collect();
    assert_eq!(named, [true, false, false, false]);
}

fn token_of(world: &World) -> String {
    let key = tg_jwt::SigningKey::generate().unwrap();
    world.fakes.iam.signing.lock().push(key.clone());
    token(&key)
}

async fn logins_take_no_room_of_those_who_are_known(place: Place) {
    let world = World::with(&place, AuthMode::Iam, |options| {
        options.settings.requests_per_workspace = 2;
    })
    .await;
    let login = json!({"username": "slow", "password": "p"});
    let path = world.url("/api/v1/auth/login");
    let post = || world.http.post(&path).json(&login).send();
    let held = [0, 1].map(|_| tokio::spawn(post()));
    let came = async {
        while world.fakes.iam.count("login") < 2 {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(BOUND, came).await.expect("they came");
    let more = post().await.unwrap();
    assert_eq!(more.status(), 429);
    assert_eq!(more.headers()["retry-after"], "1");
    let list = json!({"operation": "list-users"});
    let (status, body) = world.post("/api/v1/iam", "tg_admin", list).await;
    assert_eq!(status, 200);
    assert_ne!(body["error"]["type"], "busy", "{body}");
    held.into_iter().for_each(|one| one.abort());
}

/// A token of the reader, signed now.
fn token(key: &tg_jwt::SigningKey) -> String {
    let now = tg_mesh::clock::now().timestamp();
    key.sign(&tg_jwt::Claims::new("reader", "acme", 0, now))
        .unwrap()
}

async fn tokens_open_what_their_user_may_and_new_keys_are_learnt(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let [old, new, foreign] = [(); 3].map(|()| tg_jwt::SigningKey::generate().unwrap());
    world.fakes.iam.signing.lock().push(old.clone());
    let list = || json!({"operation": "list"});
    let status = async |token: &str| world.post("/api/v1/config", token, list()).await.0;
    for _ in 0..3 {
        assert_eq!(status(&token(&old)).await, 200);
    }
    let (_, reply) = world.post(TRIPLES, &token(&old), json!({})).await;
    assert_eq!(reply["response"][0]["o"]["v"], "acme");
    let put = json!({"operation": "put"});
    assert_eq!(world.post("/api/v1/config", &token(&old), put).await.0, 403);
    let socket = world.socket(&token(&old)).await;
    let frames = socket.ask("triples", "default", json!({})).await.unwrap();
    assert_eq!(frames[0]["response"]["response"][0]["o"]["v"], "acme");
    // Another key signs now; this gateway was not told.
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.fakes.iam.signing.lock().push(new.clone());
    assert_eq!(status(&token(&new)).await, 200);
    assert_eq!(status(&token(&old)).await, 200);
    // What is signed by nobody costs the iam service nothing, however much of it comes.
    let before = world.fakes.iam.asked.lock().len();
    for _ in 0..50 {
        assert_eq!(status(&token(&foreign)).await, 401);
        let mut turned = token(&old);
        turned.truncate(turned.len() - 4);
        assert_eq!(status(&turned).await, 401);
    }
    let asked = world.fakes.iam.asked.lock().len() - before;
    assert!(asked < 50, "{asked}");
}

async fn a_key_with_scopes_opens_no_more(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let list = json!({"operation": "list"});
    let (status, _) = world.post("/api/v1/config", "tg_scoped", list).await;
    assert_eq!(status, 200);
    let put = json!({"operation": "put"});
    for (path, body) in [("/api/v1/config", put), (TRIPLES, json!({}))] {
        let (status, _) = world.post(path, "tg_scoped", body).await;
        assert_eq!(status, 403, "{path}");
    }
}

async fn without_authentication_web_pages_stay_out(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let address = world.handle.local_addr();
    let ask = async |host: &str, origin: Option<&str>| {
        let mut request = world
            .http
            .post(world.url("/api/v1/config"))
            .header("host", host)
            .json(&json!({"operation": "list"}));
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        request.send().await.unwrap().status().as_u16()
    };
    let own = address.to_string();
    assert_eq!(ask(&own, None).await, 200);
    assert_eq!(ask(&own, Some(&format!("http://{own}"))).await, 200);
    assert_eq!(ask("evil.example", None).await, 403);
    assert_eq!(ask(&own, Some("https://evil.example")).await, 403);
    let socket = tokio_tungstenite::connect_async({
        use tokio_tungstenite::tungstenite::client::IntoClientRequest;
        let mut request = format!("ws://{own}/api/v1/socket")
            .into_client_request()
            .unwrap();
        let origin = "https://evil.example".parse().unwrap();
        request.headers_mut().insert("origin", origin);
        request
    })
    .await;
    assert!(socket.is_err());
}

async fn a_refused_page_reads_an_error_in_the_form_of_the_surface(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let (code, field) = ("forbidden", "request_id");
    let openai = json!({"message": "access denied", "type": "permission_error",
        "param": null, "code": code, field: "r"});
    let anthropic = json!({"type": "permission_error", "message": "access denied"});
    let of_agents = |id: &str| json!({"code": code, "message": "access denied", id: "r"});
    let rpc = json!({"code": -32600, "message": "access denied"});
    for (path, expected) in [
        ("/v1/chat/completions", json!({"error": openai.clone()})),
        ("/v1/nothing", json!({"error": openai})),
        (
            "/v1/messages",
            json!({"type": "error", "error": anthropic, field: "r"}),
        ),
        (
            "/a1/agents/ann/chat",
            json!({"error": of_agents("request_id")}),
        ),
        (
            "/api/v1/workspaces",
            json!({"error": of_agents("requestId")}),
        ),
        (
            "/langgraph/threads",
            json!({"detail": "access denied", "code": code, field: "r"}),
        ),
        ("/mcp", json!({"jsonrpc": "2.0", "error": rpc})),
        ("/api/v1/config", json!({"error": "access denied"})),
    ] {
        for (name, value) in [("host", "evil.example"), ("origin", "http://evil.example")] {
            let request = world.http.post(world.url(path)).timeout(BOUND);
            let request = request.header("x-request-id", "r").header(name, value);
            let answer = request.json(&json!({})).send().await.unwrap();
            assert_eq!(answer.status(), 403, "{path}");
            let body: Value = answer.json().await.unwrap();
            assert_eq!(body, expected, "{path}");
        }
    }
}

/// What a browser sends for a page of another origin that embeds an address or links to it: it names no origin.
const FROM_A_PAGE: [&str; 2] = ["cross-site", "same-site"];

async fn no_route_tells_a_page_of_another_origin_anything(place: Place) {
    for auth_mode in [AuthMode::None, AuthMode::Iam] {
        let world = World::start(&place.another().await, auth_mode).await;
        for route in tg_gateway::ROUTES {
            // A token in an address that reads none is no key.
            let path = format!("{}?query=ASK%7B%7D&token=", path_of(route));
            let method = route.method.parse().unwrap();
            for site in FROM_A_PAGE {
                let request = world
                    .http
                    .request(reqwest::Method::clone(&method), world.url(&path));
                let request = request.header("sec-fetch-site", site).timeout(BOUND);
                let answer = request.send().await.unwrap();
                let refused = answer.status() == 403;
                // Clients of `/mcp` send their users there; the page says no more than its address.
                let is_linked = (route.method, route.path) == ("GET", "/oauth/authorize");
                assert_eq!(
                    refused,
                    !route.page && !is_linked,
                    "{auth_mode:?} {path} {}",
                    answer.status()
                );
            }
        }
        for (path, site) in [("/nothing", "none"), ("/health/live", "same-origin")] {
            let request = world.http.get(world.url(path)).timeout(BOUND);
            let request = request.header("sec-fetch-site", site);
            assert_ne!(request.send().await.unwrap().status(), 403, "{path}");
        }
    }
    let world = World::start(&place, AuthMode::Iam).await;
    let config = world.http.post(world.url("/api/v1/config")).timeout(BOUND);
    let config = config
        .json(&json!({"operation": "list"}))
        .bearer_auth("tg_reader");
    let answer = config.header("sec-fetch-site", "cross-site").send().await;
    assert_eq!(
        answer.unwrap().status(),
        200,
        "a key opens, whoever shows it"
    );
}

async fn every_answer_is_closed_to_pages_that_embed_it(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let mut paths: Vec<_> = tg_gateway::ROUTES.iter().map(path_of).collect();
    paths.push("/nothing".to_owned());
    for path in paths {
        let answer = world.http.get(world.url(&path)).timeout(BOUND).send().await;
        let answer = answer.unwrap();
        let told = |name: &str| {
            answer
                .headers()
                .get_all(name)
                .iter()
                .cloned()
                .collect::<Vec<_>>()
        };
        assert_eq!(
            told("cross-origin-resource-policy"),
            ["same-origin"],
            "{path}"
        );
        assert_eq!(told("x-content-type-options"), ["nosniff"], "{path}");
    }
}

async fn an_open_listener_without_authentication_is_refused(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let options = GatewayOptions::new("0.0.0.0:0".parse().unwrap(), AuthMode::None);
    let served = tg_gateway::serve(world.mesh.mesh().clone(), options).await;
    let error = served.err().unwrap();
    assert!(error.to_string().contains("--auth iam"));
}

/// Doors that are opened with a key: paths that are read, and those that something is sent to.
const READ: [&str; 5] = [
    "/api/metrics/query?query=up",
    "/metrics",
    "/api/v1/export-core?id=c&workspace=default",
    "/api/v1/document-stream?document-id=doc",
    "/api/v1/flow/default/export/triples",
];

fn sent() -> [(&'static str, Value); 4] {
    [
        ("/api/v1/config", json!({"operation": "list"})),
        ("/api/v1/iam", json!({"operation": "whoami"})),
        (AGENT, json!({"question": "q"})),
        (TRIPLES, json!({})),
    ]
}

async fn a_silent_iam_lets_nobody_in(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    world.fakes.iam.silent.store(true, Ordering::Relaxed);
    // The key may be good: its holder must not throw it away.
    let told = |path: &str, (status, body): (u16, Value)| {
        assert_eq!(status, 503, "{path}: {body}");
        let text = body["error"].as_str().unwrap_or_default();
        assert!(text.contains("try again"), "{path}: {body}");
    };
    let world = &world;
    let reads = READ.map(async |path| told(path, world.get(path, "tg_admin").await));
    let sends = sent().map(async |(path, body)| {
        told(path, world.post(path, "tg_admin", body).await);
    });
    let socket = async {
        let socket = Socket::connect(&world.url("/"), "tg_admin").await;
        assert!(socket.is_err(), "a socket is let in");
    };
    tokio::join!(
        futures::future::join_all(reads),
        futures::future::join_all(sends),
        socket
    );
    assert!(
        world.fakes.agent.seen.lock().is_empty(),
        "something came through"
    );
}

tg_testkit::on_both_buses!(
    every_door_asks_for_a_key,
    a_workspace_is_a_wall_on_every_door,
    a_strangers_body_that_trickles_is_cut,
    public_operations_need_no_key_and_refusals_are_masked,
    keys_and_decisions_are_remembered,
    by_what_a_caller_is_known_nobody_else_says,
    a_request_has_the_name_that_its_client_gives_it,
    logins_take_no_room_of_those_who_are_known,
    who_may_in_one_workspace_may_nothing_for_all_of_them,
    tokens_open_what_their_user_may_and_new_keys_are_learnt,
    a_key_with_scopes_opens_no_more,
    without_authentication_web_pages_stay_out,
    a_refused_page_reads_an_error_in_the_form_of_the_surface,
    no_route_tells_a_page_of_another_origin_anything,
    every_answer_is_closed_to_pages_that_embed_it,
    an_open_listener_without_authentication_is_refused,
    a_silent_iam_lets_nobody_in,
);
