//! Web pages of other origins: those that the operator names, and all others.

use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use serde_json::json;
use tg_gateway::{AuthMode, GatewayOptions};
use tg_testkit::place::Place;

use crate::world::{BOUND, World};

const CHAT: &str = "/v1/chat/completions";
const PAGE: &str = "https://chat.example";

fn named(options: &mut GatewayOptions) {
    options.settings.cors_origins = format!("http://localhost:3000, {PAGE}");
}

/// What a browser sends before a page sends a request.
fn asks_first(world: &World, path: &str, origin: &str) -> RequestBuilder {
    let request = world.http.request(Method::OPTIONS, world.url(path));
    request
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,x-flow")
}

fn chat(world: &World, origin: &str) -> RequestBuilder {
    let body = json!({"model": "one", "messages": [{"role": "user", "content": "hi"}]});
    let request = world.http.post(world.url(CHAT)).json(&body);
    request
        .header("origin", origin)
        .header("sec-fetch-site", "cross-site")
}

async fn sent(request: RequestBuilder) -> (u16, HeaderMap) {
    let response = request.timeout(BOUND).send().await.unwrap();
    (response.status().as_u16(), response.headers().clone())
}

/// The origin whose pages may read an answer.
fn read_by(headers: &HeaderMap) -> Option<&str> {
    let origin = headers.get("access-control-allow-origin")?;
    Some(origin.to_str().unwrap())
}

async fn a_page_of_a_named_origin_asks_first_and_reads_answers(place: Place) {
    let world = World::with(&place, AuthMode::Iam, named).await;
    for path in [CHAT, "/langgraph/threads", "/mcp"] {
        let (status, headers) = sent(asks_first(&world, path, PAGE)).await;
        assert_eq!((status, read_by(&headers)), (204, Some(PAGE)), "{path}");
        assert_eq!(
            headers["access-control-allow-headers"],
            "authorization,x-flow"
        );
        let methods = headers["access-control-allow-methods"].to_str().unwrap();
        assert!(methods.contains("POST"), "{methods}");
        assert_eq!(headers["vary"], "origin");
    }
    let (status, headers) = sent(chat(&world, PAGE).bearer_auth("tg_admin")).await;
    assert_eq!((status, read_by(&headers)), (200, Some(PAGE)));
    let shown = headers["access-control-expose-headers"].to_str().unwrap();
    assert!(shown.contains("x-request-id"), "{shown}");
    // It reads that it has no key, and has no other way in.
    let (status, headers) = sent(chat(&world, PAGE)).await;
    assert_eq!((status, read_by(&headers)), (401, Some(PAGE)));
}

async fn a_page_of_no_named_origin_reads_nothing(place: Place) {
    let world = World::with(&place, AuthMode::Iam, named).await;
    for other in ["https://evil.example", "http://chat.example", "null"] {
        let (status, headers) = sent(asks_first(&world, CHAT, other)).await;
        assert_eq!((status, read_by(&headers)), (405, None), "{other}");
        let (status, headers) = sent(chat(&world, other)).await;
        assert_eq!((status, read_by(&headers)), (403, None), "{other}");
    }
    for path in ["/api/v1/config", "/a1/agents/ann/chat", "/v1x"] {
        let (status, headers) = sent(asks_first(&world, path, PAGE)).await;
        assert_ne!(status, 204, "{path}");
        assert_eq!(read_by(&headers), None, "{path}");
    }
    // Where no origin is named, nobody is.
    let world = World::start(&place.another().await, AuthMode::Iam).await;
    let (status, headers) = sent(asks_first(&world, CHAT, PAGE)).await;
    assert_eq!((status, read_by(&headers)), (405, None));
    assert!(!headers.contains_key("vary"));
}

/// Without authentication a named page is trusted as a program on this machine, and by no other name of the machine.
async fn without_authentication_a_named_page_is_a_program(place: Place) {
    let world = World::with(&place, AuthMode::None, named).await;
    let (status, headers) = sent(chat(&world, PAGE)).await;
    assert_eq!((status, read_by(&headers)), (200, Some(PAGE)));
    let (status, _) = sent(chat(&world, "https://evil.example")).await;
    assert_eq!(status, 403);
    let (status, _) = sent(chat(&world, PAGE).header("host", "chat.example")).await;
    assert_eq!(status, 403);
    let config = world.http.post(world.url("/api/v1/config"));
    let config = config.json(&json!({"operation": "list"}));
    let (status, _) = sent(config.header("origin", PAGE)).await;
    assert_eq!(status, 403);
}

tg_testkit::on_both_buses!(
    a_page_of_a_named_origin_asks_first_and_reads_answers,
    a_page_of_no_named_origin_reads_nothing,
    without_authentication_a_named_page_is_a_program,
);
