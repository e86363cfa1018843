//! The doors of the OpenAI API: shapes, statuses, streams, what a key is held to, and nothing of the system.

use std::sync::Arc;

use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_schemas::msg::{
    ChatCompletionRequest, ChatCompletionResponse, ChatToolCall, ChatUsage, ModelHealth, ModelInfo,
    UsageRequest, UsageResponse, UsageTotal,
};
use tg_schemas::{Error, ErrorCode};
use tg_testkit::fakes::Played;
use tg_testkit::place::Place;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fakes::Given;
use crate::world::{BOUND, World};

const CHAT: &str = "/v1/chat/completions";

fn end() -> ChatCompletionResponse {
    ChatCompletionResponse {
        end_of_stream: true,
        ..ChatCompletionResponse::default()
    }
}

/// What is told of models.
fn told(operation: &str) -> ChatCompletionResponse {
    let model = |id: &str| ModelInfo {
        id: id.into(),
        ..ModelInfo::default()
    };
    let health = |model: &str| ModelHealth {
        model: model.into(),
        provider: "p".into(),
        available: true,
        reason: None,
    };
    match operation {
        "list-models" => ChatCompletionResponse {
            models: vec![model("two"), model("one")],
            ..end()
        },
        _ => ChatCompletionResponse {
            health: vec![health("one"), health("two")],
            ..end()
        },
    }
}

/// A model of a chat that echoes the last message in two pieces; `fail` fails at once, `cut` after a piece, `tool` calls
/// one, and `rest` is left alone for 40 seconds. Keeps what it is asked.
pub fn chats(
    asked: Given<ChatCompletionRequest>,
) -> Arc<Played<ChatCompletionRequest, ChatCompletionResponse>> {
    Played::new(move |cx, ask: ChatCompletionRequest| {
        asked.lock().push((cx.workspace().to_owned(), ask.clone()));
        let failed = |code, failure: Option<&str>, retry_after| ChatCompletionResponse {
            error: Some(Error::new(code, "it failed at http://10.0.0.1/v1")),
            failure: failure.map(str::to_owned),
            retry_after,
            ..end()
        };
        if ask.operation != "completion" {
            return Ok(vec![told(&ask.operation)]);
        }
        let said = ask.messages.last().map(|turn| turn.content.clone());
        let said = said.unwrap_or_default();
        let piece = |text: &str| ChatCompletionResponse {
            delta: text.into(),
            ..ChatCompletionResponse::default()
        };
        let call = ChatToolCall {
            id: "c1".into(),
            name: "add".into(),
            arguments: "{}".into(),
        };
        let (calls, reason) = match said.as_str() {
            "tool" => (vec![call], "tool_calls"),
            _ => (Vec::new(), "stop"),
        };
        let last = ChatCompletionResponse {
            tool_calls: calls,
            finish_reason: Some(reason.into()),
            model: Some("one".into()),
            cost: (said == "dear").then_some(0.125),
            usage: Some(ChatUsage {
                input: if said == "uncounted" { 0 } else { 3 },
                output: 2,
                total: 5,
                estimated: said == "uncounted",
                ..ChatUsage::default()
            }),
            ..end()
        };
        Ok(match (said.as_str(), ask.streaming) {
            ("fail", _) => vec![failed(ErrorCode::Provider, None, None)],
            ("unknown", _) => vec![failed(ErrorCode::Provider, Some("model_not_found"), None)],
            ("long", _) => {
                let failure = Some("context_window_too_small");
                vec![failed(ErrorCode::Provider, failure, None)]
            }
            ("rest", _) => vec![failed(ErrorCode::Unavailable, None, Some(40))],
            ("over", _) => vec![ChatCompletionResponse {
                error: Some(Error::new(
                    ErrorCode::Busy,
                    "Stopped by the budget of its key",
                )),
                ..failed(ErrorCode::Busy, Some("budget_exhausted"), Some(60))
            }],
            ("cut", _) => vec![piece("half "), failed(ErrorCode::Provider, None, None)],
            (_, true) => vec![piece(&said), piece("!"), last],
            (_, false) => vec![ChatCompletionResponse {
                content: format!("{said}!"),
                ..last
            }],
        })
    })
}

/// What was used: by workspace all of it, else of each session.
pub fn totals() -> Arc<Played<UsageRequest, UsageResponse>> {
    Played::new(|_, ask: UsageRequest| {
        let sum = |name: &str, tokens: i64| UsageTotal {
            name: name.into(),
            model_calls: tokens,
            in_token: 2 * tokens,
            out_token: tokens,
            cache_read: tokens,
            ..UsageTotal::default()
        };
        let usage = match ask.by.as_str() {
            "session" => vec![sum("ann/talk", 2), sum("talk", 3)],
            _ => vec![sum("default", 7)],
        };
        Ok(UsageResponse {
            usage,
            ..UsageResponse::default()
        })
    })
}

fn ask(model: &str, said: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": said}]})
}

/// The text of a stream.
async fn stream(world: &World, body: &Value) -> (u16, String) {
    let request = world.http.post(world.url(CHAT)).json(body).timeout(BOUND);
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

/// What is sent to a client that reads trailers, or does not, as it stands on the wire.
pub async fn as_sent(world: &World, path: &str, body: &Value, reads_trailers: bool) -> String {
    let url = world.url(path);
    let (host, path) = url.trim_start_matches("http://").split_once('/').unwrap();
    let te = if reads_trailers {
        "TE: trailers\r\n"
    } else {
        ""
    };
    let body = body.to_string();
    let length = body.len();
    let request = format!(
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{te}Content-Length: {length}\r\n\r\n{body}"
    );
    let mut stream = TcpStream::connect(host).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    tokio::time::timeout(BOUND, read).await.unwrap().unwrap();
    answer
}

async fn line_045_answers_have_the_shapes_of_the_api_whole_and_streamed(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let price = json!({"input_price": 0.001, "output_price": 0.01});
    world
        .put(("default", "token-cost", "one"), Some(price))
        .await;
    let request = world.http.post(world.url(CHAT)).json(&ask("one", "hi"));
    let response = request.timeout(BOUND).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("spass-cost-usd"), "0.023");
    assert_eq!(header("spass-cost-sub-calls"), "1");
    assert!(response.headers().contains_key("x-request-id"));
    let whole: Value = response.json().await.unwrap();
    assert_eq!(whole["object"], "chat.completion");
    assert_eq!(whole["choices"][0]["message"]["content"], "hi!");
    assert_eq!(whole["usage"]["total_tokens"], 5);

    let mut body = ask("one", "hi");
    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true});
    let (status, text) = stream(&world, &body).await;
    assert_eq!(status, 200);
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    assert!(text.contains("\n: cost {"), "{text}");
    for (reads_trailers, cost) in [(true, "\r\nspass-cost-usd: 0.023\r\n"), (false, "")] {
        let sent = as_sent(&world, CHAT, &body, reads_trailers).await;
        let (_, end) = sent.rsplit_once("data: [DONE]").unwrap();
        assert_eq!(end.contains("spass-cost"), reads_trailers, "{end}");
        assert!(end.contains(cost), "{end}");
        let names = "\r\ntrailer: spass-cost-source, spass-cost-sub-calls, spass-cost-usd, spass-cost-eur\r\n";
        assert!(sent.contains(names), "{sent}");
    }
    let events = text.lines().filter_map(|line| line.strip_prefix("data: {"));
    let events: Vec<Value> = events
        .map(|rest| serde_json::from_str(&format!("{{{rest}")).unwrap())
        .collect();
    let said: String = events
        .iter()
        .filter_map(|event| event["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(said, "hi!");
    assert!(
        events
            .iter()
            .all(|event| event["object"] == "chat.completion.chunk")
    );
    let last = events.last().unwrap();
    assert_eq!(
        (&last["choices"], &last["usage"]["total_tokens"]),
        (&json!([]), &json!(5))
    );

    let (_, called) = world.post(CHAT, "", ask("one", "tool")).await;
    assert_eq!(called["choices"][0]["finish_reason"], "tool_calls");
    let call = &called["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(
        (&call["type"], &call["function"]["name"]),
        (&json!("function"), &json!("add"))
    );
    assert_eq!(world.fakes.chats.lock()[0].1.model.as_deref(), Some("one"));
    // The same chat by the words of flows.
    let path = "/api/v1/flow/default/service/chat-completion";
    let (_, own) = world.post(path, "", ask("one", "hi")).await;
    assert_eq!(
        (&own["content"], &own["usage"]["total"]),
        (&json!("hi!"), &json!(5))
    );
}

/// What the provider says of the cost wins, and it is told in euros where a rate is set.
async fn costs_are_told_as_they_are_known(place: Place) {
    let world = World::with(&place, AuthMode::None, |options| {
        options.settings.usd_eur_rate = 0.5;
    })
    .await;
    let headers = async |said: &str| {
        let request = world.http.post(world.url(CHAT)).json(&ask("one", said));
        let response = request.timeout(BOUND).send().await.unwrap();
        let header = |name: &str| {
            let value = response.headers().get(name)?;
            Some(value.to_str().unwrap().to_owned())
        };
        ["source", "usd", "eur"].map(|name| header(&format!("spass-cost-{name}")))
    };
    let told = |texts: [&str; 3]| texts.map(|text| (!text.is_empty()).then(|| text.to_owned()));
    assert_eq!(headers("hi").await, told(["unknown", "", ""]));
    let row = ("default", "llm-model", "one");
    world.put(row, Some(json!({"local": true}))).await;
    assert_eq!(headers("hi").await, told(["local", "0", "0"]));
    let price = json!({"input_price": 0.001, "output_price": 0.01});
    let row = ("default", "token-cost", "one");
    world.put(row, Some(price)).await;
    assert_eq!(headers("hi").await, told(["table", "0.023", "0.0115"]));
    assert_eq!(headers("dear").await, told(["upstream", "0.125", "0.0625"]));
    // A price needs tokens that the provider reported.
    assert_eq!(headers("uncounted").await, told(["local", "0", "0"]));
    world.put(("default", "llm-model", "one"), None).await;
    assert_eq!(headers("uncounted").await, told(["unknown", "", ""]));
}

async fn what_was_used_is_told_to_who_may_know(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let (status, used) = world.get("/v1/usage", "tg_admin").await;
    assert_eq!(status, 200, "{used}");
    let sum = |n: i64| json!({"input": 2 * n, "output": n, "cacheRead": n, "cacheWrite": 0, "total": 3 * n});
    assert_eq!(
        used,
        json!({"aggregate": sum(7), "sessions": {
            "ann/talk": {"cumulative": sum(2), "calls": 2},
            "talk": {"cumulative": sum(3), "calls": 3},
        }})
    );
    let (status, refused) = world.get("/v1/usage", "tg_model").await;
    assert_eq!(
        (status, &refused["error"]["code"]),
        (403, &json!("forbidden"))
    );
    let (status, _) = world.get("/v1/usage", "nobody").await;
    assert_eq!(status, 401);
}

async fn line_044_a_key_that_is_held_to_a_model_sees_and_asks_that_one(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let ids = |listed: Value| -> Vec<String> {
        let models = listed["data"].as_array().unwrap();
        models
            .iter()
            .map(|one| one["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let (_, all) = world.get("/v1/models", "tg_admin").await;
    assert_eq!(
        (all["object"].as_str(), ids(all.clone())),
        (
            Some("list"),
            [
                "agent/concise",
                "agent/default",
                "agent/maven",
                "one",
                "two"
            ]
            .map(str::to_owned)
            .to_vec()
        )
    );
    let (_, own) = world.get("/v1/models", "tg_model").await;
    assert_eq!(ids(own), ["one"]);
    let (status, _) = world.post(CHAT, "tg_model", ask("one", "hi")).await;
    assert_eq!(status, 200);
    assert_eq!(world.fakes.chats.lock().last().unwrap().0, "acme");
    let (status, body) = world.post(CHAT, "tg_model", ask("two", "hi")).await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (403, &json!("model_not_allowed"))
    );
    // By no other way either.
    for (path, body) in [
        (
            "/api/v1/flow/default/service/text-completion",
            json!({"prompt": "p"}),
        ),
        (
            "/api/v1/flow/default/service/chat-completion",
            ask("two", "hi"),
        ),
        (
            "/api/v1/flow/default/service/chat-completion",
            json!({"operation": "health"}),
        ),
        (
            "/api/v1/flow/default/service/agent",
            json!({"question": "q"}),
        ),
    ] {
        let (_, refused) = world.post(path, "tg_model", body).await;
        assert!(
            refused.get("error").is_some() && refused.get("content").is_none(),
            "{path}"
        );
    }
    let (_, all) = world.get("/v1/models/health", "tg_admin").await;
    assert_eq!(all["models"].as_array().unwrap().len(), 2);
    let (status, health) = world.get("/v1/models/health", "tg_model").await;
    assert_eq!(health["models"].as_array().unwrap().len(), 1);
    let about = world.fakes.chats.lock().last().unwrap().1.models.clone();
    assert_eq!(about, ["one"]);
    assert_eq!(
        (status, &health["models"][0]["available"]),
        (200, &json!(true))
    );
}

/// How a body of so many bytes is answered before it is sent.
async fn announced(world: &World, length: usize) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let url = world.url("");
    let host = url.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer tg_admin\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    let read = tokio::time::timeout(BOUND, stream.read_exact(&mut answer));
    read.await.unwrap().unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

async fn failures_have_the_apis_shape_and_say_nothing_of_the_system(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    for (token, body, status, code) in [
        ("", ask("one", "x"), 401, "unauthorized"),
        ("tg_nobody", ask("one", "x"), 401, "unauthorized"),
        ("tg_scoped", ask("one", "x"), 403, "forbidden"),
        ("tg_admin", json!({"model": "one"}), 400, "validation_error"),
        ("tg_admin", json!([1]), 400, "validation_error"),
        ("tg_admin", ask("one", "fail"), 502, "upstream_error"),
        ("tg_admin", ask("one", "unknown"), 404, "model_not_found"),
        // 95
        (
            "tg_admin",
            ask("one", "long"),
            422,
            "context_window_too_small",
        ),
        ("tg_admin", ask("one", "rest"), 503, "agent_unavailable"),
        ("tg_admin", ask("one", "over"), 429, "rate_limited"),
    ] {
        let request = world.http.post(world.url(CHAT)).json(&body);
        let request = match token {
            "" => request,
            token => request.bearer_auth(token),
        };
        let response = request.timeout(BOUND).send().await.unwrap();
        let headers = response.headers().clone();
        assert_eq!(response.status().as_u16(), status, "{body}");
        let told: Value = response.json().await.unwrap();
        let error = &told["error"];
        assert_eq!(error["code"], code, "{told}");
        assert!(error["type"].is_string() && error["message"].is_string());
        assert_eq!(
            error["request_id"],
            headers["x-request-id"].to_str().unwrap()
        );
        assert!(!told.to_string().contains("10.0.0.1"), "{told}");
        match status {
            401 => assert_eq!(headers["www-authenticate"], "Bearer"),
            // 109
            503 => assert_eq!(headers["retry-after"], "40"),
            429 => assert_eq!(headers["retry-after"], "60"),
            _ => {}
        }
    }
    assert_eq!(announced(&world, 10_000_001).await, "HTTP/1.1 413");
    let (status, body) = world.get("/v1/nothing", "tg_admin").await;
    assert_eq!((status, &body["error"]["code"]), (404, &json!("not_found")));
}

async fn line_046_with_server_tools_the_agent_answers_by_the_model_that_is_named(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let send = async |key: &str, wishes: &str, body: Value| {
        let request = world.http.post(world.url(CHAT)).json(&body);
        let request = request.header("SPASS-Augment", wishes).bearer_auth(key);
        let response = request.timeout(BOUND).send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json::<Value>().await.unwrap())
    };
    let on = "server-tools=on";
    let mut body = ask("one", "why?");
    body["max_tokens"] = json!(9);
    let (status, told) = send("tg_admin", on, body.clone()).await;
    assert_eq!(status, 200, "{told}");
    assert_eq!(told["choices"][0]["message"]["content"], "why?");
    assert_eq!(told["model"], "one");
    let asked = world.fakes.agent.seen.lock().pop().unwrap();
    assert_eq!(
        (asked.model.as_str(), asked.max_tokens, asked.group),
        ("one", Some(9), None)
    );
    assert!(world.fakes.chats.lock().is_empty());
    // Tools of the client are its own to run.
    body["tools"] = json!([{"type": "function", "function": {"name": "add"}}]);
    assert_eq!(send("tg_admin", on, body).await.0, 200);
    // A key without agents is given no tools, and no key more models than it is held to.
    for key in ["tg_scoped", "tg_model"] {
        let (status, told) = send(key, on, ask("one", "hi")).await;
        assert_eq!(status, 403, "{key}: {told}");
    }
    let mut schema = ask("one", "hi");
    schema["response_format"] = json!({"type": "json_object"});
    let (status, told) = send("tg_admin", on, schema).await;
    assert_eq!(
        (status, &told["error"]["code"]),
        (400, &json!("validation_error"))
    );
    assert!(world.fakes.agent.seen.lock().is_empty());
    let chats = world.fakes.chats.lock();
    assert_eq!((chats.len(), chats[0].1.tools.len()), (1, 1));
}

async fn line_046_without_server_tools_a_chat_is_offered_none(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    for (wishes, status) in [("server-tools=off", 200), ("server-tools=maybe", 400)] {
        let request = world.http.post(world.url(CHAT)).json(&ask("one", "hi"));
        let request = request.header("SPASS-Augment", wishes).timeout(BOUND);
        let response = request.send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{wishes}");
    }
    let chats = world.fakes.chats.lock();
    assert_eq!(chats.len(), 1);
    assert!(chats[0].1.tools.is_empty());
    assert!(world.fakes.agent.seen.lock().is_empty());
}

async fn headers_choose_flow_and_workspace_and_a_cut_stream_says_so(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let send = async |name: &str, value: &[u8]| {
        let request = world.http.post(world.url(CHAT)).header(name, value);
        let request = request.json(&ask("one", "hi")).timeout(BOUND);
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let body: Value = response.json().await.unwrap();
        (
            status,
            body["error"]["code"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        )
    };
    for (name, value, status, code) in [
        ("spass-augment", "server-tools=maybe", 400, "invalid_header"),
        ("spass-augment", "server-tools=off, memory=on", 200, ""),
        ("x-flow", "nope", 503, "agent_unavailable"),
        ("spass-tenant", "nope", 404, "workspace_not_found"),
        ("spass-tenant", "acme", 200, ""),
    ] {
        assert_eq!(
            send(name, value.as_bytes()).await,
            (status, code.to_owned()),
            "{name}: {value}"
        );
    }
    assert_eq!(world.fakes.chats.lock().last().unwrap().0, "acme");
    for name in ["spass-tenant", "x-flow", "spass-augment"] {
        let told = send(name, b"\xfc").await;
        assert_eq!(told, (400, "invalid_header".to_owned()), "{name}");
    }
    let mut body = ask("one", "cut");
    body["stream"] = json!(true);
    let (status, text) = stream(&world, &body).await;
    assert_eq!(status, 200);
    let mut events = text.trim_end().rsplit("\n\n");
    assert_eq!(events.next(), Some("data: [DONE]"));
    let fault = events.next().unwrap();
    assert!(fault.starts_with(r#"data: {"error":{"#), "{fault}");
    assert!(
        text.contains("half ") && !text.contains("10.0.0.1"),
        "{text}"
    );
}

/// Whoever may everything at home names another workspace, one that is there and one that is not: both are refused in the
/// same words, and no model is asked.
async fn a_key_of_one_workspace_that_names_another_is_refused(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let send = async |path: &str, workspace: Option<&str>| {
        let url = world.url(path);
        let request = match path {
            CHAT => world.http.post(url).json(&ask("one", "hi")),
            _ => world.http.get(url),
        };
        let request = request.bearer_auth("tg_manager").timeout(BOUND);
        let request = match workspace {
            Some(name) => request.header("SPASS-Tenant", name),
            None => request,
        };
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let mut body: Value = response.json().await.unwrap();
        body["error"]["request_id"] = Value::Null;
        (status, body)
    };
    for path in [CHAT, "/v1/models", "/v1/models/health"] {
        assert_eq!(send(path, None).await.0, 200, "{path}");
        assert_eq!(send(path, Some("acme")).await.0, 200, "{path}");
        let asked = world.fakes.chats.lock().len();
        let (status, other) = send(path, Some("default")).await;
        assert_eq!(
            (status, &other["error"]["code"]),
            (403, &json!("forbidden")),
            "{path}"
        );
        assert_eq!(send(path, Some("nope")).await, (403, other), "{path}");
        assert_eq!(world.fakes.chats.lock().len(), asked, "{path}");
    }
}

tg_testkit::on_both_buses!(
    line_046_with_server_tools_the_agent_answers_by_the_model_that_is_named,
    line_046_without_server_tools_a_chat_is_offered_none,
    a_key_of_one_workspace_that_names_another_is_refused,
    line_045_answers_have_the_shapes_of_the_api_whole_and_streamed,
    line_044_a_key_that_is_held_to_a_model_sees_and_asks_that_one,
    costs_are_told_as_they_are_known,
    what_was_used_is_told_to_who_may_know,
    failures_have_the_apis_shape_and_say_nothing_of_the_system,
    headers_choose_flow_and_workspace_and_a_cut_stream_says_so,
);
