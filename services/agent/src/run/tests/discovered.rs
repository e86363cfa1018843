//! Tools that a server says it has.

use std::time::Duration;

use serde_json::{Value, json};
use tg_mesh::Ask;
use tg_schemas::msg::{AgentRequest, McpTool};
use tg_testkit::config::Config;
use tg_testkit::place::Place;

use super::delegated::observed;
use super::replayed;
use super::world::{Say, World, question, rows};

const LOOK: &str = "Thought: look\nAction: srv_look\nArgs: {\"at\": \"4\"}";
const PAY: &str = "Thought: pay\nAction: srv_pay\nArgs: {}";
const END: &str = "Final Answer: done";
/// Longer than an answer of a server is taken for true.
const STALE: Duration = Duration::from_millis(1_200);

fn config(more: Value) -> Config {
    let config = rows();
    let mut row = json!({"name": "srv", "type": "mcp-server", "mcp": "far"});
    let more = more.as_object().unwrap().clone();
    row.as_object_mut().unwrap().extend(more);
    config.put("tool", "srv", &row.to_string());
    config
}

fn tool(name: &str, read_only: bool) -> McpTool {
    let schema = json!({"type": "object", "required": ["at"],
        "properties": {"at": {"type": "integer", "description": "Where"}}});
    let none = json!({"type": "object"});
    McpTool {
        name: name.to_owned(),
        description: format!("Does {name}."),
        schema: if read_only { schema } else { none }.to_string(),
        read_only,
        idempotent: false,
    }
}

async fn world(place: &Place, more: Value, script: Vec<Say>) -> World {
    let world = World::among(place, script, config(more), Vec::new()).await;
    *world.listed.lock() = Some(vec![tool("look", true), tool("pay", false)]);
    world
}

/// Names of the tools that the model was offered when it was asked for the last time.
fn offered(world: &World) -> Vec<String> {
    let asked = world.asked.lock();
    let tools = asked.last().unwrap()["tools"].as_array().unwrap();
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
    names
        .filter(|name| name.starts_with("srv"))
        .map(str::to_owned)
        .collect()
}

fn granting(grant: &[&str]) -> AgentRequest {
    AgentRequest {
        grant: grant.iter().map(|name| (*name).to_owned()).collect(),
        ..question("q", true)
    }
}

async fn a_tool_of_a_server_is_described_used_and_replayed(place: Place) {
    let script = [LOOK, PAY, END].map(Say::Text).into();
    let world = world(&place, json!({}), script).await;
    let ask = replayed::asks("listed", false);
    let chunks = replayed::run(&world, question("q", true), ask).await;
    let seen = observed(&chunks);
    assert_eq!(seen[0], "look says 4");
    // It does not say that it changes nothing.
    assert!(
        seen[1].contains("there is no tool 'srv_pay'"),
        "{}",
        seen[1]
    );
    assert_eq!(offered(&world), ["srv_look"]);
    let first = world.asked.lock()[0]["tools"].clone();
    let first = first.as_array().unwrap().iter();
    let look = first.into_iter().find(|tool| tool["name"] == "srv_look");
    let expected = json!({"name": "srv_look", "description": "Does look.",
        "arguments": [{"name": "at", "type": "integer", "description": "Where"}]});
    assert_eq!(look, Some(&expected));
    let called = world.tools.asked.lock().clone();
    let called: Vec<_> = called
        .iter()
        .filter(|ask| ask.operation.is_empty())
        .map(|ask| (&*ask.server, &*ask.name, &*ask.parameters))
        .collect();
    assert_eq!(called, [("far", "look", r#"{"at":4}"#)]);
    // Replayed by what the server said then.
    *world.listed.lock() = None;
    replayed::same_again(&world, "listed", &chunks).await;
}

async fn what_writes_is_granted_or_asks(place: Place) {
    let script = [PAY, END, PAY, END].map(Say::Text).into();
    let world = world(&place, json!({}), script).await;
    let seen = world.run(&granting(&["srv_pay"])).await;
    assert_eq!(observed(&seen), ["pay says 4"]);
    // Of another name that the server may choose, nothing was granted.
    world.run(&granting(&["pay", "srv"])).await;
    assert_eq!(offered(&world), ["srv_look"]);

    // A row that says so asks before what writes, and has only what it names.
    let more = json!({"confirm": true, "tools": ["pay", "none"]});
    let asking = self::world(&place.another().await, more, vec![Say::Text(END)]).await;
    asking.run(&question("q", true)).await;
    assert_eq!(offered(&asking), ["srv_pay"]);
    let more = json!({"writes": true});
    let wary = self::world(&place.another().await, more, vec![Say::Text(END)]).await;
    wary.run(&question("q", true)).await;
    assert!(offered(&wary).is_empty());
}

async fn what_a_server_has_later_is_for_later_runs(place: Place) {
    let script = vec![
        Say::Text(END),
        Say::Text(LOOK),
        Say::Text("Action: srv_new\nArgs: {}"),
        Say::Text(END),
        Say::Text(END),
    ];
    let world = world(&place, json!({"writes": false}), script).await;
    world.run(&question("q", true)).await;
    assert_eq!(offered(&world), ["srv_look", "srv_pay"]);
    // It is away, and what it had stands in for it.
    tokio::time::sleep(STALE).await;
    *world.listed.lock() = None;
    let mut answer = world.ask(&question("q", true));
    let mut seen = Vec::new();
    while let Some(part) = answer.next().await {
        let part = part.unwrap();
        if part.message_type == "observation" {
            let more = vec![tool("look", true), tool("new", true)];
            *world.listed.lock() = Some(more);
            seen.push(part.content);
        }
    }
    assert_eq!(seen[0], "look says 4");
    assert!(
        seen[1].contains("there is no tool 'srv_new'"),
        "{}",
        seen[1]
    );
}

/// Where users have tokens of their own, what the server has for one is not offered to another.
async fn each_user_is_offered_what_the_server_has_for_them(place: Place) {
    let rows = config(json!({"writes": false}));
    let row = json!({"url": "http://far/", "user-tokens": true});
    rows.put("mcp", "far", &row.to_string());
    let script = [END; 2].map(Say::Text);
    let world = World::among(&place, script, rows, Vec::new()).await;
    // At once: what is asked for all is taken for true that long.
    for (user, name) in [("ann", "look"), ("bob", "pay")] {
        *world.listed.lock() = Some(vec![tool(name, true)]);
        let ask = Ask {
            user_id: Some(user.to_owned()),
            ..Ask::default()
        };
        let mut answer = world.ask_with(&question("q", true), ask);
        while let Some(part) = answer.next().await {
            part.unwrap();
        }
        assert_eq!(offered(&world), [format!("srv_{name}")]);
    }
}

tg_testkit::on_both_buses!(
    each_user_is_offered_what_the_server_has_for_them,
    a_tool_of_a_server_is_described_used_and_replayed,
    what_writes_is_granted_or_asks,
    what_a_server_has_later_is_for_later_runs,
);
