//! Requests of model APIs in the forms that some clients have and others do not: functions in the place of tools, choices among
//! some of them, calls of earlier turns that were cut off, and prompts in the place of chats.

use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_testkit::place::Place;

use crate::world::{BOUND, World};

const CHAT: &str = "/v1/chat/completions";

/// The data of the events of a stream.
async fn events(world: &World, path: &str, body: &Value) -> Vec<Value> {
    let request = world.http.post(world.url(path)).json(body).timeout(BOUND);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    let text = response.text().await.unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let data = data.filter(|data| data.starts_with('{'));
    data.map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

async fn a_client_of_functions_calls_one_and_sends_its_result(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let functions = json!([{"name": "add", "parameters": {"type": "object"}}]);
    let mut body = json!({"model": "one", "functions": functions, "function_call": "auto",
        "messages": [{"role": "user", "content": "tool"}]});
    let (status, whole) = world.post(CHAT, "", body.clone()).await;
    assert_eq!(status, 200, "{whole}");
    let choice = &whole["choices"][0];
    let call = json!({"name": "add", "arguments": "{}"});
    assert_eq!(
        (
            &choice["message"]["function_call"],
            &choice["finish_reason"]
        ),
        (&call, &json!("function_call"))
    );
    let asked = world.fakes.chats.lock().last().unwrap().1.clone();
    assert_eq!(
        (asked.tools.len(), asked.tools[0].name.as_str()),
        (1, "add")
    );

    body["messages"] = json!([
        {"role": "user", "content": "tool"},
        {"role": "assistant", "content": null, "function_call": call},
        {"role": "function", "name": "add", "content": "tool"},
    ]);
    body["stream"] = json!(true);
    let told = events(&world, CHAT, &body).await;
    let streamed = told
        .iter()
        .find_map(|event| event["choices"][0]["delta"].get("function_call"));
    assert_eq!(streamed, Some(&call));
    let asked = world.fakes.chats.lock().last().unwrap().1.clone();
    let [_, called, result] = &asked.messages[..] else {
        panic!("{:?}", asked.messages);
    };
    assert_eq!(
        result.tool_call_id.as_deref(),
        Some(called.tool_calls[0].id.as_str())
    );
}

async fn a_choice_offers_the_tools_that_it_allows(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let below = |name: &str| json!({"type": "function", "function": {"name": name}});
    let flat = |name: &str| json!({"type": "function", "name": name});
    let chat = json!({"model": "one", "messages": [{"role": "user", "content": "hi"}],
        "tools": [below("add"), below("see")],
        "tool_choice": {"type": "allowed_tools",
            "allowed_tools": {"mode": "required", "tools": [below("see")]}}});
    let response = json!({"model": "one", "input": "hi", "tools": [flat("add"), flat("see")],
        "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [flat("see")]}});
    for (path, body) in [(CHAT, chat), ("/v1/responses", response)] {
        let (status, told) = world.post(path, "", body).await;
        assert_eq!(status, 200, "{path}: {told}");
        let asked = world.fakes.chats.lock().last().unwrap().1.clone();
        assert_eq!(asked.tool_choice.as_deref(), Some("required"), "{path}");
        let names: Vec<&str> = asked.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["see"], "{path}");
    }
}

async fn arguments_that_were_cut_off_reach_the_model_as_json(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let cut = "{\"path\": \"a";
    let call =
        json!({"id": "c", "type": "function", "function": {"name": "see", "arguments": cut}});
    let body = json!({"model": "one", "messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "the arguments are not JSON"},
    ]});
    let (status, told) = world.post(CHAT, "", body).await;
    assert_eq!(status, 200, "{told}");
    let asked = world.fakes.chats.lock().last().unwrap().1.clone();
    let arguments = &asked.messages[1].tool_calls[0].arguments;
    let read: Value = serde_json::from_str(arguments).unwrap();
    assert_eq!(read, json!({"cut_off": cut}));
}

async fn a_completion_has_the_shape_of_the_api_whole_and_streamed(place: Place) {
    const PATH: &str = "/v1/completions";
    let world = World::start(&place, AuthMode::None).await;
    let mut body = json!({"model": "one", "prompt": "hi", "max_tokens": 7, "logprobs": null});
    let (status, whole) = world.post(PATH, "", body.clone()).await;
    assert_eq!(status, 200, "{whole}");
    assert_eq!(
        (&whole["object"], &whole["usage"]["total_tokens"]),
        (&json!("text_completion"), &json!(5))
    );
    assert_eq!(
        whole["choices"],
        json!([{"text": "hi!", "index": 0, "logprobs": null, "finish_reason": "stop"}])
    );
    let asked = world.fakes.chats.lock().last().unwrap().1.clone();
    assert_eq!(
        (asked.messages[0].role.as_str(), asked.max_tokens),
        ("user", Some(7))
    );

    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true});
    let told = events(&world, PATH, &body).await;
    let said: String = told
        .iter()
        .filter_map(|event| event["choices"][0]["text"].as_str())
        .collect();
    assert_eq!(said, "hi!");
    assert_eq!(told.last().unwrap()["usage"]["total_tokens"], 5);

    for (key, value) in [("prompt", json!([1, 2])), ("suffix", json!("end"))] {
        let mut body = body.clone();
        body[key] = value;
        let (status, told) = world.post(PATH, "", body).await;
        assert_eq!((status, &told["error"]["param"]), (400, &json!(key)));
    }
    let agent = json!({"model": "agent/default", "prompt": "why?"});
    let (status, told) = world.post(PATH, "", agent).await;
    assert_eq!(status, 200, "{told}");
    assert_eq!(told["choices"][0]["text"], "why?");
}

async fn a_tool_that_takes_a_text_is_called_with_one(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let format = json!({"type": "grammar", "syntax": "lark", "definition": "start: \"a\""});
    let tools =
        json!([{"type": "custom", "name": "add", "format": format}, {"type": "web_search"}]);
    let mut body = json!({"model": "one", "input": "tool", "tools": tools});
    let (status, whole) = world.post("/v1/responses", "", body.clone()).await;
    assert_eq!(status, 200, "{whole}");
    let call = whole["output"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&call["type"], &call["call_id"], &call["name"]),
        (&json!("custom_tool_call"), &json!("c1"), &json!("add"))
    );
    let asked = world.fakes.chats.lock().last().unwrap().1.clone();
    let [tool] = &asked.tools[..] else {
        panic!("{:?}", asked.tools);
    };
    assert!(tool.description.contains("start: \"a\""), "{tool:?}");
    let parameters = tool.parameters.clone().unwrap();
    assert_eq!(parameters["required"], json!(["input"]));

    body["stream"] = json!(true);
    let told = events(&world, "/v1/responses", &body).await;
    let kinds = told.iter().filter_map(|event| event["type"].as_str());
    let kinds: Vec<&str> = kinds.filter(|kind| kind.contains("custom")).collect();
    assert_eq!(
        kinds,
        [
            "response.custom_tool_call_input.delta",
            "response.custom_tool_call_input.done"
        ]
    );
}

tg_testkit::on_both_buses!(
    a_tool_that_takes_a_text_is_called_with_one,
    a_completion_has_the_shape_of_the_api_whole_and_streamed,
    a_client_of_functions_calls_one_and_sends_its_result,
    a_choice_offers_the_tools_that_it_allows,
    arguments_that_were_cut_off_reach_the_model_as_json,
);
