//! Bad input through real endpoints: a clear error that names the field, no crash, nothing of the topology.

use anyhow::Result;
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tg_testkit::shared_node::VirtualHost;
use tg_testkit::socket::Socket;

use crate::edge::first_key;
use crate::world::{Bus, World, launch, on_both_buses};

/// What no client may ever read.
const FORBIDDEN: &[&str] = &[
    "nt.request",
    "tg.request",
    "nt.flow",
    ".inbox.",
    "amqp",
    "sqlite",
    "127.0.0.1",
    "/tmp",
    "sk-test",
    "hunter2",
];

pub fn check(what: &str, text: &str) {
    for word in FORBIDDEN {
        assert!(!text.contains(word), "{what} leaks {word:?}: {text}");
    }
}

/// A provider's failure as it is told under `iam`.
async fn nothing_of_it_for_who_has_a_key(node: Option<&VirtualHost>) -> Result<()> {
    let reply = Reply::status(500, "db password=hunter2 at 10.0.0.7:5432");
    let model = ScriptedModel::start(vec![Rule::always(reply)]).await?;
    let server = launch(&model, node)
        .arg("--auth")
        .arg("iam")
        .ready()
        .await?;
    let key = first_key(&server).await?;
    let url = format!("{}api/v1/flow/default/service/agent", server.url());
    let asked = tg_testkit::process::client()?.post(url).bearer_auth(key);
    let text = asked
        .json(&json!({"question": "x"}))
        .send()
        .await?
        .text()
        .await?;
    assert!(text.contains("is failing (HTTP 500)"), "{text}");
    check("provider failure under iam", &text);
    Ok(())
}

async fn of_every_kind(bus: Bus) -> Result<()> {
    let rules = vec![Rule::always(Reply::status(
        500,
        "db password=hunter2 at 10.0.0.7:5432",
    ))];
    let world = World::with(bus, rules).await?;
    let socket = world.socket().await?;
    of_a_provider(bus, &world, &socket).await?;
    of_what_nobody_should_ask(&socket).await?;
    of_noise(&world, &socket).await?;
    let metrics = format!("{}metrics", world.server.url());
    let metrics = tg_testkit::process::client()?.get(metrics).send().await?;
    let metrics = metrics.error_for_status()?.text().await?;
    assert!(metrics.contains("tg_"), "{metrics}");
    check("metrics", &metrics);
    check(
        "log",
        &world
            .server
            .log()
            .replace("127.0.0.1", "")
            .replace("/tmp", "")
            .replace("sqlite", ""),
    );
    Ok(())
}

on_both_buses!(of_every_kind);

/// A provider's body stays inside.
async fn of_a_provider(bus: Bus, world: &World, socket: &Socket) -> Result<()> {
    let frames = socket
        .ask("agent", "default", json!({"question": "x"}))
        .await?;
    let text = serde_json::to_string(&frames)?;
    assert!(
        text.contains("agent-error") || text.contains("llm-error"),
        "{text}"
    );
    // Who runs the system is told where the provider is, and of its place nothing else.
    assert!(text.contains(&world.model.url()), "{text}");
    check("provider failure", &text.replace(&world.model.url(), ""));
    // A second system on the same broker would be another process of the first.
    let node = bus.broker().await?;
    nothing_of_it_for_who_has_a_key(node.as_ref()).await
}

/// Flows, ids, values and topics.
async fn of_what_nobody_should_ask(socket: &Socket) -> Result<()> {
    let long = "x".repeat(300);
    for flow in ["nope", "a:b", "a/b", "a--b", "\u{fc}", &long, "{id}"] {
        let frames = socket.ask("agent", flow, json!({"question": "x"})).await?;
        let text = serde_json::to_string(&frames)?;
        assert!(
            frames.last().is_some_and(|frame| frame["complete"] == true),
            "{text}"
        );
        assert!(text.contains("error"), "{flow}: {text}");
        check(flow, &text);
        let start = json!({"operation": "start-flow", "flow-id": flow, "description": "d",
            "blueprint-name": "everything"});
        if flow != "nope" {
            let reply = socket.ask_service("flow", start).await?;
            let message = error_of(&reply);
            assert!(message.contains("flow-id"), "{flow}: {reply}");
        }
    }

    // Parameter values that would reach another workspace's queue.
    let hostile = json!({"operation": "start-flow", "flow-id": "h", "description": "d",
        "blueprint-name": "everything",
        "parameters": {"llm-model": "x:request:tg:agent:other:default", "chunk-size": "many"}});
    let reply = socket.ask_service("flow", hostile).await?;
    let message = error_of(&reply);
    assert!(
        message.contains("llm-model") || message.contains("chunk-size"),
        "{reply}"
    );

    // A blueprint with a literal topic of somebody else.
    let blueprint = json!({"flow": {"agent-manager:{id}": {"topics": {
        "request": "request:tg:agent:other:default", "response": "response:tg:agent:other:default"}}},
        "blueprint": {}, "interfaces": {}});
    let put = json!({"operation": "put-blueprint", "blueprint-name": "evil",
        "blueprint-definition": blueprint.to_string()});
    let reply = socket.ask_service("flow", put).await?;
    assert!(error_of(&reply).contains("/flow/"), "{reply}");
    Ok(())
}

/// Noise on the socket never closes it.
async fn of_noise(world: &World, socket: &Socket) -> Result<()> {
    for noise in [
        "",
        "{",
        "[]",
        "42",
        "{\"id\": 1}",
        "{\"id\": \"a\", \"request\": 3, \"service\": \"config\"}",
    ] {
        socket.raw(noise).await?;
    }
    socket.raw_bytes(vec![0, 159, 146, 150, 255]).await?;
    let version = socket
        .ask_service("config", json!({"operation": "config"}))
        .await?;
    assert!(
        version["response"]["version"].as_i64().is_some(),
        "{version}"
    );

    // REST: malformed, unknown, too deep.
    let url = format!("{}api/v1/config", world.server.url());
    let client = tg_testkit::process::client()?;
    for body in ["{".to_owned(), "[".repeat(100_000)] {
        let reply = client.post(&url).body(body).send().await?;
        assert_eq!(reply.status(), 400);
        check("a body", &reply.text().await?);
    }
    let (status, reply) = world
        .post("api/v1/config", json!({"operation": "drop-table"}))
        .await?;
    let told = reply["error"].as_str().unwrap_or_default();
    assert!(
        status == 400 && told.starts_with("unknown operation; those of config are get, "),
        "{reply}"
    );
    check("an unknown operation", told);
    Ok(())
}

/// The message of an error, which is looked at as a whole.
fn error_of(frame: &Value) -> String {
    check("an error", &frame.to_string());
    let error = if frame["error"].is_null() {
        &frame["response"]["error"]
    } else {
        &frame["error"]
    };
    error["message"].as_str().unwrap_or_default().to_owned()
}
