//! The endpoints of other words for models than chat completions: vectors of texts, and messages made of blocks. Shapes,
//! failures, keys in their own header, and who is let in.

use serde_json::{Value, json};
use tg_gateway::{AuthMode, ROUTES};
use tg_schemas::operations::ALL;
use tg_testkit::place::Place;

use crate::world::{BOUND, World};

const MESSAGES: &str = "/v1/messages";
const RESPONSES: &str = "/v1/responses";
const EMBEDDINGS: &str = "/v1/embeddings";
/// What the server says of itself, to callers of any workspace.
const OF_NO_WORKSPACE: [&str; 2] = ["/langgraph/ok", "/langgraph/info"];

fn ask(said: &str) -> Value {
    json!({"model": "one", "max_tokens": 64, "messages": [{"role": "user", "content": said}]})
}

/// The events of a stream: what each is called, and what it says.
async fn events(world: &World, path: &str, body: &Value) -> Vec<(String, Value)> {
    let request = world.http.post(world.url(path)).json(body).timeout(BOUND);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    let text = response.text().await.unwrap();
    let events = text.split("\n\n").filter_map(|event| {
        let (name, data) = event.split_once('\n')?;
        let data = data.strip_prefix("data: ")?;
        let name = name.strip_prefix("event: ")?.to_owned();
        Some((name, serde_json::from_str(data).unwrap()))
    });
    events.collect()
}

async fn texts_become_vectors_as_numbers_or_base64(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    world.embeds("p/m/2").await;
    let (status, whole) = world
        .post(
            EMBEDDINGS,
            "",
            json!({"model": "m", "input": ["a", "b"], "user": "u"}),
        )
        .await;
    assert_eq!(status, 200, "{whole}");
    assert_eq!(
        (&whole["object"], &whole["model"]),
        (&json!("list"), &json!("p/m/2"))
    );
    assert_eq!(
        whole["data"][1],
        json!({"object": "embedding", "index": 1, "embedding": [1.0, 0.0]})
    );
    let packed = json!({"model": "default", "input": "a", "encoding_format": "base64"});
    let (_, packed) = world.post(EMBEDDINGS, "", packed).await;
    assert_eq!(packed["data"][0]["embedding"], "AACAPwAAAAA=");
    for (body, status, code, field) in [
        (
            json!({"model": "other", "input": "a"}),
            404,
            "model_not_found",
            "model",
        ),
        (
            json!({"model": "m", "input": [1, -2]}),
            400,
            "validation_error",
            "input",
        ),
        (
            json!({"model": "m", "input": "a", "dimensions": 3}),
            400,
            "validation_error",
            "dimensions",
        ),
    ] {
        let (told, body) = world.post(EMBEDDINGS, "", body).await;
        assert_eq!((told, &body["error"]["code"]), (status, &json!(code)));
        assert_eq!(body["error"]["param"], field);
    }
}

async fn messages_have_the_shapes_of_the_api_whole_and_streamed(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let (status, whole) = world.post(MESSAGES, "", ask("hi")).await;
    assert_eq!(status, 200, "{whole}");
    assert_eq!(whole["content"], json!([{"type": "text", "text": "hi!"}]));
    assert_eq!(
        (&whole["stop_reason"], &whole["usage"]["output_tokens"]),
        (&json!("end_turn"), &json!(2))
    );
    let (_, called) = world.post(MESSAGES, "", ask("tool")).await;
    let call = &called["content"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&call["type"], &call["name"], &called["stop_reason"]),
        (&json!("tool_use"), &json!("add"), &json!("tool_use"))
    );

    let mut body = ask("hi");
    body["stream"] = json!(true);
    let told = events(&world, MESSAGES, &body).await;
    let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "message_start",
            "ping",
            "content_block_start",
            "content_block_delta",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ]
    );
    let said = told
        .iter()
        .filter_map(|(_, event)| event["delta"]["text"].as_str());
    assert_eq!(said.collect::<String>(), "hi!");

    let mut body = ask("cut");
    body["stream"] = json!(true);
    let told = events(&world, MESSAGES, &body).await;
    let (name, fault) = told.last().unwrap();
    assert_eq!(
        (name.as_str(), &fault["error"]["type"]),
        ("error", &json!("api_error"))
    );
    assert!(!fault.to_string().contains("10.0.0.1"), "{fault}");

    let path = "/v1/messages/count_tokens";
    let (status, counted) = world.post(path, "", ask(&"x".repeat(400))).await;
    assert_eq!((status, &counted["input_tokens"]), (200, &json!(101)));
}

async fn responses_have_the_shapes_of_the_api_whole_and_streamed(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let ask = |said: &str| json!({"model": "one", "input": said});
    let (status, whole) = world.post(RESPONSES, "", ask("hi")).await;
    assert_eq!(status, 200, "{whole}");
    assert_eq!(
        (
            &whole["object"],
            &whole["status"],
            &whole["usage"]["total_tokens"]
        ),
        (&json!("response"), &json!("completed"), &json!(5))
    );
    assert_eq!(whole["output"][0]["content"][0]["text"], "hi!");
    let (_, called) = world.post(RESPONSES, "", ask("tool")).await;
    let call = called["output"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&call["type"], &call["call_id"], &call["name"]),
        (&json!("function_call"), &json!("c1"), &json!("add"))
    );
    let mut body = ask("hi");
    body["stream"] = json!(true);
    let told = events(&world, RESPONSES, &body).await;
    let (first, last) = (&told[0], told.last().unwrap());
    assert_eq!(
        (first.0.as_str(), last.0.as_str()),
        ("response.created", "response.completed")
    );
    let said = told
        .iter()
        .filter(|(name, _)| name == "response.output_text.delta");
    let said: String = said
        .filter_map(|(_, event)| event["delta"].as_str())
        .collect();
    assert_eq!(said, "hi!");
    assert_eq!(last.1["response"]["output"][0]["content"][0]["text"], "hi!");
    body["input"] = json!("cut");
    let told = events(&world, RESPONSES, &body).await;
    let (name, failed) = told.last().unwrap();
    assert_eq!(
        (name.as_str(), &failed["response"]["error"]["code"]),
        ("response.failed", &json!("upstream_error"))
    );
    let mut body = ask("hi");
    body["previous_response_id"] = json!("resp_1");
    let (status, told) = world.post(RESPONSES, "", body).await;
    assert_eq!(
        (status, &told["error"]["param"]),
        (400, &json!("previous_response_id"))
    );
}

/// What the user shows reaches the model as in chats, and agents refuse it.
async fn pictures_of_messages_and_responses_reach_the_model(place: Place) {
    const PNG: &str = "iVBORw0KGgo=";
    let world = World::start(&place, AuthMode::None).await;
    let address = format!("data:image/png;base64,{PNG}");
    let source = json!({"type": "base64", "media_type": "image/png", "data": PNG});
    let block = json!({"type": "image", "source": source});
    let part = json!({"type": "input_image", "image_url": address});
    for (path, key, kind, picture) in [
        (MESSAGES, "messages", "text", block),
        (RESPONSES, "input", "input_text", part),
    ] {
        let content = json!([{"type": kind, "text": "hi"}, picture]);
        let mut body = json!({"model": "one", "max_tokens": 64});
        body[key] = json!([{"role": "user", "content": content}]);
        let (status, told) = world.post(path, "", body.clone()).await;
        assert_eq!(status, 200, "{path}: {told}");
        let asked = world.fakes.chats.lock().last().unwrap().1.clone();
        let turn = &asked.messages[0];
        assert_eq!(
            (turn.content.as_str(), turn.images.as_slice()),
            ("hi", std::slice::from_ref(&address)),
            "{path}"
        );
        body["model"] = json!("agent/default");
        let (status, told) = world.post(path, "", body).await;
        assert_eq!(status, 400, "{path}: {told}");
        assert!(told.to_string().contains("pictures"), "{path}: {told}");
    }
}

async fn an_agent_answers_as_a_model_in_every_dialect(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let row = json!({"description": "d", "framing": "Review code.", "group": ["code"]});
    world
        .put(("default", "agent-definition", "reviewer"), Some(row))
        .await;
    let body = |model: &str| {
        let messages = json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "why?"}]);
        json!({"model": model, "messages": messages, "input": "why?", "instructions": "Be brief."})
    };
    for (path, text) in [
        ("/v1/chat/completions", "/choices/0/message/content"),
        (MESSAGES, "/content/0/text"),
        (RESPONSES, "/output/1/content/0/text"),
    ] {
        let (status, told) = world.post(path, "tg_admin", body("agent/reviewer")).await;
        assert_eq!(status, 200, "{told}");
        assert_eq!(told.pointer(text), Some(&json!("why?")), "{path}: {told}");
        let asked = world.fakes.agent.seen.lock().last().unwrap().clone();
        assert_eq!(
            (asked.question.as_str(), asked.framing.as_str()),
            ("why?", "Review code.\n\nBe brief.")
        );
        assert_eq!(asked.group, Some(vec!["code".to_owned()]));
        let (status, _) = world.post(path, "tg_admin", body("agent/default")).await;
        assert_eq!(status, 200, "{path}");
        let (status, _) = world.post(path, "tg_admin", body("agent/nobody")).await;
        assert_eq!(status, 404, "{path}");
        // By no row of a workspace does anybody learn of its agents who may not ask them.
        for name in ["agent/reviewer", "agent/nobody"] {
            let (status, _) = world.post(path, "tg_scoped", body(name)).await;
            assert_eq!(status, 403, "{path}");
        }
        let (status, _) = world.post(path, "tg_model", body("agent/default")).await;
        assert_eq!(status, 403, "{path}");
    }
    let (_, listed) = world.get("/v1/models", "tg_admin").await;
    let has = |listed: &Value, name: &str| {
        let mut models = listed["data"].as_array().unwrap().iter();
        models.any(|one| one["id"] == name)
    };
    assert!(has(&listed, "agent/reviewer") && has(&listed, "agent/default"));
    let (_, held) = world.get("/v1/models", "tg_model").await;
    assert!(!has(&held, "agent/default"));
    let of = async |key, model| world.get(&format!("/v1/models/{model}"), key).await;
    let (status, one) = of("tg_admin", "agent/reviewer").await;
    assert_eq!((status, &one["id"]), (200, &json!("agent/reviewer")));
    // What a key may not ask for is as if it were not there.
    let (status, hidden) = of("tg_model", "agent/default").await;
    assert_eq!(status, 404);
    let (_, absent) = of("tg_model", "agent/nobody").await;
    assert_eq!(hidden["error"]["message"], absent["error"]["message"]);
    assert_eq!(hidden["error"]["code"], "model_not_found");
    let mut streamed = body("agent/reviewer");
    streamed["stream"] = json!(true);
    let request = world.http.post(world.url("/v1/chat/completions"));
    let request = request
        .bearer_auth("tg_admin")
        .json(&streamed)
        .timeout(BOUND);
    let text = request.send().await.unwrap().text().await.unwrap();
    assert!(text.contains("\"reasoning_content\":\"let me \""), "{text}");
    assert!(text.contains("\"content\":\"why?\""), "{text}");
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
}

async fn agents_of_files_and_of_the_workspace_are_models(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let (_, listed) = world.get("/v1/models", "tg_admin").await;
    let ids: Vec<&Value> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["id"])
        .collect();
    for id in ["agent/concise", "agent/maven", "agent/default"] {
        assert!(ids.contains(&&json!(id)), "{listed}");
    }
    let messages = json!([{"role": "user", "content": "a?"}, {"role": "assistant", "content": "b"},
        {"role": "user", "content": "why?"}]);
    let mut body = json!({"model": "agent/maven", "messages": messages});
    let (status, told) = world
        .post("/v1/chat/completions", "tg_admin", body.clone())
        .await;
    assert_eq!(status, 200, "{told}");
    let asked = told["choices"][0]["message"]["content"].as_str().unwrap();
    let asked: Value = serde_json::from_str(asked).unwrap();
    assert_eq!(
        (&asked["name"], &asked["message"]),
        (&json!("maven"), &json!("why?"))
    );
    assert_eq!(
        asked["earlier"][1],
        json!({"role": "assistant", "content": "b"})
    );
    assert_eq!(asked["workspace"], "default");
    body["stream"] = json!(true);
    let request = world.http.post(world.url("/v1/chat/completions"));
    let request = request.bearer_auth("tg_admin").json(&body).timeout(BOUND);
    let text = request.send().await.unwrap().text().await.unwrap();
    assert!(text.contains("\"content\":\"a\\nb\""), "{text}");
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
}

async fn a_key_comes_in_its_own_header_and_is_held_to_what_it_may(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let send = async |path: &str, header: (&str, &str), body: &Value| {
        let request = world.http.post(world.url(path)).header(header.0, header.1);
        let request = request.header("anthropic-version", "2023-06-01");
        let response = request.json(body).timeout(BOUND).send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json::<Value>().await.unwrap())
    };
    let asked =
        |model: &str| json!({"model": model, "messages": [{"role": "user", "content": "hi"}]});
    let (status, _) = send(MESSAGES, ("x-api-key", "tg_model"), &asked("one")).await;
    assert_eq!(status, 200);
    assert_eq!(world.fakes.chats.lock().last().unwrap().0, "acme");
    for path in [MESSAGES, "/v1/messages/count_tokens"] {
        for (header, body, status, kind) in [
            (
                ("x-api-key", "tg_nobody"),
                asked("one"),
                401,
                "authentication_error",
            ),
            (
                ("x-other", "tg_model"),
                asked("one"),
                401,
                "authentication_error",
            ),
            (
                ("x-api-key", "tg_scoped"),
                asked("one"),
                403,
                "permission_error",
            ),
            (
                ("x-api-key", "tg_model"),
                asked("two"),
                403,
                "permission_error",
            ),
            (
                ("x-api-key", "tg_admin"),
                json!({"model": "one"}),
                400,
                "invalid_request_error",
            ),
        ] {
            let (told, body) = send(path, header, &body).await;
            assert_eq!(
                (told, &body["error"]["type"]),
                (status, &json!(kind)),
                "{path}: {header:?}"
            );
            assert_eq!(body["type"], "error");
            assert!(body["request_id"].is_string());
        }
    }
    let (status, body) = send(
        "/v1/messages/nothing",
        ("x-api-key", "tg_admin"),
        &json!({}),
    )
    .await;
    assert_eq!(
        (status, &body["error"]["type"]),
        (404, &json!("not_found_error"))
    );
    let texts = json!({"model": "default", "input": "a"});
    for (key, status, code) in [
        ("tg_nobody", 401, "unauthorized"),
        ("tg_scoped", 403, "forbidden"),
        ("tg_model", 403, "forbidden"),
    ] {
        let (told, body) = send(EMBEDDINGS, ("x-api-key", key), &texts).await;
        assert_eq!(
            (told, &body["error"]["code"]),
            (status, &json!(code)),
            "{key}"
        );
    }
}

async fn addresses_are_read_as_clients_spell_them(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let asked = json!({"model": "one", "messages": [{"role": "user", "content": "hi"}]});
    for path in [
        "/v1/v1/messages?beta=true",
        "/v1/messages/",
        "/messages",
        "/v1//chat/completions",
        "/chat/completions/",
    ] {
        let (status, told) = world.post(path, "tg_model", asked.clone()).await;
        assert_eq!(status, 200, "{path}: {told}");
    }
    let (status, listed) = world.get("/v1/models/?limit=9", "tg_model").await;
    assert_eq!((status, &listed["data"][0]["id"]), (200, &json!("one")));
    // What does not take a method says so in the words of its API.
    let (status, told) = world.get("/v1/responses", "tg_model").await;
    assert_eq!(
        (status, &told["error"]["code"]),
        (405, &json!("method_not_allowed"))
    );
    let (status, told) = world.get("/v1/messages", "tg_model").await;
    assert_eq!(
        (status, &told["error"]["type"]),
        (405, &json!("invalid_request_error"))
    );
    let (status, told) = world.get("/langgraph/runs/wait", "tg_admin").await;
    assert_eq!((status, &told["code"]), (405, &json!("method_not_allowed")));
    let (status, told) = world.get("/a1/agents/ann/chat", "tg_admin").await;
    assert_eq!(
        (status, &told["error"]["code"]),
        (405, &json!("method_not_allowed"))
    );
    // Codex tries a socket first, and asks without one where that is refused with 426.
    let socket = world.http.get(world.url("/v1/responses"));
    let socket = socket
        .bearer_auth("tg_model")
        .header("upgrade", "websocket");
    let refused = socket.timeout(BOUND).send().await.unwrap();
    assert_eq!(refused.status(), 426);
    // Clients of Azure have a header of their own.
    let chat = world.http.post(world.url("/v1/chat/completions"));
    let chat = chat.header("api-key", "tg_model").json(&asked);
    let answered = chat.timeout(BOUND).send().await.unwrap();
    assert_eq!(answered.status(), 200);
}

/// At every endpoint of these APIs, and of LangGraph: the table of routes has them. Operations have a test of their own.
async fn a_key_of_one_workspace_that_names_another_is_refused_here_too(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let is_operation = |path: &str| ALL.iter().any(|one| [one.path, one.stream].contains(&path));
    let routes = ROUTES.iter().filter(|route| {
        let of_an_api = ["/v1/", "/langgraph/"];
        let of_an_api = of_an_api.iter().any(|api| route.path.starts_with(*api));
        of_an_api && !OF_NO_WORKSPACE.contains(&route.path) && !is_operation(route.path)
    });
    let said = json!([{"role": "user", "content": "hi"}]);
    let mut seen = 0;
    for route in routes {
        let body = match route.path {
            "/v1/completions" => json!({"model": "one", "prompt": "a"}),
            path if path.starts_with("/v1/") => {
                json!({"model": "one", "input": "a", "messages": said})
            }
            _ => json!({"assistant_id": "ann", "input": {"messages": said}}),
        };
        let url = world.url(&route.path.replace(['{', '}', '*'], ""));
        let method = reqwest::Method::from_bytes(route.method.as_bytes()).unwrap();
        for workspace in ["default", "nope"] {
            let request = world.http.request(method.clone(), &url);
            let request = request.bearer_auth("tg_manager");
            let request = request.header("SPASS-Tenant", workspace);
            let request = match route.method {
                "POST" => request.json(&body),
                _ => request,
            };
            let response = request.timeout(BOUND).send().await.unwrap();
            assert_eq!(response.status(), 403, "{} {url}", route.method);
        }
        seen += 1;
    }
    assert!(seen > 30, "{seen}");
    assert!(world.fakes.chats.lock().is_empty());
}

tg_testkit::on_both_buses!(
    pictures_of_messages_and_responses_reach_the_model,
    an_agent_answers_as_a_model_in_every_dialect,
    agents_of_files_and_of_the_workspace_are_models,
    responses_have_the_shapes_of_the_api_whole_and_streamed,
    texts_become_vectors_as_numbers_or_base64,
    messages_have_the_shapes_of_the_api_whole_and_streamed,
    a_key_comes_in_its_own_header_and_is_held_to_what_it_may,
    addresses_are_read_as_clients_spell_them,
    a_key_of_one_workspace_that_names_another_is_refused_here_too,
);
