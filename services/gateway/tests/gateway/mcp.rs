//! `/mcp` as clients find it: what a refusal tells them, and what they read without calling a tool.

use std::sync::Arc;

use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_mesh::Processor;
use tg_schemas::msg::{ChunkMatch, KeywordIndexRequest, KeywordIndexResponse};
use tg_schemas::processors::kw_index;
use tg_testkit::fakes::Played;
use tg_testkit::place::Place;

use crate::world::{BOUND, World, record};

async fn a_client_without_a_key_is_told_where_to_read_about_the_endpoint(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    // A client compares the name of the resource with the address that it was given.
    for query in ["", "?workspace=acme&flow=default"] {
        let request = world.http.post(world.url(&format!("/mcp{query}")));
        let request = request.json(&message).timeout(BOUND);
        let refused = request.send().await.unwrap();
        assert_eq!(refused.status(), 401);
        let told = refused.headers()["www-authenticate"].to_str().unwrap();
        let path = format!("/.well-known/oauth-protected-resource/mcp{query}");
        let document = world.url(&path);
        assert_eq!(told, format!("Bearer resource_metadata=\"{document}\""));
        let (status, about) = world.get(&path, "").await;
        let resource = json!(world.url(&format!("/mcp{query}")));
        assert_eq!((status, &about["resource"]), (200, &resource));
    }
    let expired = world.http.post(world.url("/mcp")).bearer_auth("tg_nobody");
    let expired = expired.json(&message).timeout(BOUND);
    let refused = expired.send().await.unwrap();
    assert_eq!(refused.status(), 401);
    let told = refused.headers()["www-authenticate"].to_str().unwrap();
    assert!(told.ends_with("/mcp\", error=\"invalid_token\""), "{told}");
    for path in ["", "/mcp"] {
        let path = format!("/.well-known/oauth-protected-resource{path}");
        let (status, about) = world.get(&path, "").await;
        assert_eq!(
            (status, &about["resource"]),
            (200, &json!(world.url("/mcp")))
        );
        assert_eq!(about["bearer_methods_supported"], json!(["header"]));
        let scopes = about["scopes_supported"].as_array().unwrap();
        assert!(scopes.contains(&json!("documents:read")), "{about}");
        assert_eq!(about["authorization_servers"], json!([world.url("")]));
    }
    // It signs users in for clients (`oauth.rs`), and is no provider of identities.
    let path = "/.well-known/openid-configuration";
    assert_eq!(world.get(path, "").await.0, 404);
}

/// The default flow finds one passage by any words from now on.
async fn finds_a_passage(world: &World) {
    let played: Arc<Played<KeywordIndexRequest, KeywordIndexResponse>> =
        Played::new(|_, ask: KeywordIndexRequest| {
            let one = ChunkMatch {
                chunk_id: "passage".into(),
                ..ChunkMatch::default()
            };
            Ok(vec![KeywordIndexResponse {
                chunks: (ask.query == "grey").then_some(one).into_iter().collect(),
                ..KeywordIndexResponse::default()
            }])
        });
    let service = Processor::new(kw_index::PROCESSOR).serves(kw_index::REQUEST, played);
    world.mesh.host(service).await.unwrap();
    let topic = "request:tg:keyword-index:default:default";
    let row = json!({"topics": {"request": topic}, "parameters": {}, "epoch": 1});
    world
        .put(("default", "processor:kw-index", "default"), Some(row))
        .await;
    let mut flow = record("default", "default", 1);
    flow["interfaces"]["keyword-index"] =
        json!({"request": topic, "response": "response:tg:keyword-index:default:default"});
    world.put(("default", "flow", "default"), Some(flow)).await;
    let attached = world.mesh.presence().until(BOUND, |view| {
        view.attached("kw-index", "default", "default", 1)
    });
    assert!(attached.await, "the keyword index did not attach");
}

async fn chatgpt_searches_and_fetches_by_its_own_tools(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    finds_a_passage(&world).await;
    let call = async |tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let (status, told) = world.post("/mcp", "tg_admin", message).await;
        assert_eq!(status, 200, "{told}");
        told["result"].clone()
    };
    let found = call("search", json!({"query": "grey"})).await;
    let result = json!({"id": "passage", "title": "Skagen", "text": "# Skagen\nIt is grey.",
        "url": "threadgraph://document/passage"});
    assert_eq!(found["structuredContent"], json!({"results": [result]}));
    let none = call("search", json!({"query": "blue"})).await;
    assert_eq!(none["structuredContent"], json!({"results": []}));
    let fetched = call("fetch", json!({"id": "passage"})).await;
    assert_eq!(fetched["structuredContent"], result);
    let unknown = call("fetch", json!({"id": "nothing"})).await;
    assert_eq!(unknown["isError"], true);
}

async fn where_nobody_needs_a_key_there_is_no_such_document(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let path = "/.well-known/oauth-protected-resource/mcp";
    let (status, told) = world.get(path, "").await;
    assert_eq!((status, told), (404, Value::from("404: Not Found")));
}

async fn documents_are_resources_and_prompts_name_the_tools(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let ask = async |token: &str, method: &str, params: Value| {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let (status, told) = world.post("/mcp", token, message).await;
        assert_eq!(status, 200, "{told}");
        told
    };
    let begun = ask(
        "tg_admin",
        "initialize",
        json!({"protocolVersion": "2025-11-25"}),
    )
    .await;
    for kind in ["tools", "resources", "prompts"] {
        let capabilities = &begun["result"]["capabilities"];
        assert!(capabilities[kind].is_object(), "{capabilities}");
    }
    // Whoever may read no documents has none.
    let none = ask("tg_scoped", "resources/list", json!({})).await;
    assert_eq!(none["result"], json!({"resources": []}));
    let templates = ask("tg_admin", "resources/templates/list", json!({})).await;
    assert_eq!(
        templates["result"]["resourceTemplates"][0]["uriTemplate"],
        "threadgraph://document/{id}"
    );
    let unknown = ask(
        "tg_admin",
        "resources/read",
        json!({"uri": "https://a.example/"}),
    )
    .await;
    assert_eq!(unknown["error"]["code"], -32002);
    let denied = json!({"uri": "threadgraph://document/doc"});
    let denied = ask("tg_scoped", "resources/read", denied).await;
    assert!(denied.get("result").is_none(), "{denied}");
    let prompts = ask("tg_scoped", "prompts/list", json!({})).await;
    assert_eq!(prompts["result"]["prompts"].as_array().unwrap().len(), 3);
    let arguments = json!({"name": "explore_entity", "arguments": {"entity": "urn:a"}});
    let prompt = ask("tg_scoped", "prompts/get", arguments).await;
    assert_eq!(prompt["result"]["messages"][0]["role"], "user");
}

/// As clients of the revision 2025-03-26 may send them.
async fn a_list_of_messages_is_answered_by_a_list(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let of = |id: i64, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method});
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let unread = json!({"jsonrpc": "2.0", "method": "notifications/initialized", "params": 3});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "ask_agent", "arguments": {"question": "why?"}}});
    let list = json!([
        of(1, "ping"),
        notice,
        unread,
        call,
        3,
        of(4, "initialize"),
        of(5, "none")
    ]);
    let (status, told) = world.post("/mcp", "tg_admin", list.clone()).await;
    assert_eq!(status, 200, "{told}");
    let told = told.as_array().unwrap();
    let ids: Vec<Value> = told.iter().map(|one| one["id"].clone()).collect();
    assert_eq!(json!(ids), json!([1, 2, null, 4, 5]));
    assert_eq!(told[0]["result"], json!({}));
    assert_eq!(told[1]["result"]["isError"], false, "{told:?}");
    let codes: Vec<&Value> = told[2..].iter().map(|one| &one["error"]["code"]).collect();
    assert_eq!(codes, [-32600, -32600, -32601]);
    let (status, told) = world.post("/mcp", "tg_admin", json!([notice])).await;
    assert_eq!((status, told), (202, json!("")));
    for refused in [json!([]), json!(vec![of(1, "ping"); 17])] {
        let (status, told) = world.post("/mcp", "tg_admin", refused).await;
        assert_eq!((status, &told["error"]["code"]), (400, &json!(-32600)));
    }
    // Later revisions have no lists.
    let request = world.http.post(world.url("/mcp")).json(&list);
    let request = request.header("mcp-protocol-version", "2025-06-18");
    let refused = request.bearer_auth("tg_admin").timeout(BOUND).send().await;
    assert_eq!(refused.unwrap().status(), 400);
}

tg_testkit::on_both_buses!(
    a_list_of_messages_is_answered_by_a_list,
    chatgpt_searches_and_fetches_by_its_own_tools,
    documents_are_resources_and_prompts_name_the_tools,
    a_client_without_a_key_is_told_where_to_read_about_the_endpoint,
    where_nobody_needs_a_key_there_is_no_such_document,
);
