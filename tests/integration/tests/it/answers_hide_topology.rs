//! Bad input through real endpoints: a clear error that names the field, no crash, nothing of the topology.

use anyhow::Result;
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tg_testkit::shared_node::VirtualHost;
use tg_testkit::socket::Socket;
use tg_testkit::topology::check;

use crate::edge::first_key;
use crate::world::{Bus, World, launch, on_both_buses};

/// What the log may not have. Whoever runs the system reads it, so it may say where the system listens and reaches others
/// (`127.0.0.1`), where its files are (`/tmp`, in a test) and which of them is meant (`.sqlite`): without these nobody could mend
/// it. Names of queues and the broker's URL say nothing that an operator needs and the URL has a password; keys and what
/// a provider wrote are of no use to anybody there.
const NOT_IN_THE_LOG: &[&str] = &[
    "nt.request",
    "tg.request",
    "nt.response",
    "nt.notify",
    "nt.flow",
    ".inbox.",
    ".claim.",
    "guest:",
    "amqp",
    "sk-test",
    "hunter2",
];

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
    of_runs_and_threads(&socket).await?;
    of_the_tools_of_editors(&world).await?;
    let metrics = format!("{}metrics", world.server.url());
    let metrics = tg_testkit::process::client()?.get(metrics).send().await?;
    let metrics = metrics.error_for_status()?.text().await?;
    assert!(metrics.contains("tg_"), "{metrics}");
    check("metrics", &metrics);
    let log = world.server.log();
    for word in NOT_IN_THE_LOG {
        let line = log.lines().find(|line| line.contains(word));
        assert!(line.is_none(), "the log has {word:?}: {line:?}");
    }
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

/// Values that nobody should send: names of queues, paths, addresses, what breaks out of a text, and what is too long.
fn hostile() -> [String; 8] {
    [
        "tg.request:tg:agent:default:default".to_owned(),
        "../../../tmp/data/agent.sqlite".to_owned(),
        "amqp://guest:guest@127.0.0.1:5672/%2f".to_owned(),
        "' OR 1=1 --".to_owned(),
        "{id}".to_owned(),
        "a\u{0}b".to_owned(),
        "\u{202e}\u{fc}".to_owned(),
        "x".repeat(70_000),
    ]
}

fn about_runs_and_threads() -> Vec<(&'static str, Value)> {
    let run = "0b4f0c9e-6c2e-4f43-8a53-1d1f6e8b7c11";
    vec![
        (
            "requests",
            json!({"operation": "list-requests", "workspace": "default"}),
        ),
        (
            "requests",
            json!({"operation": "cancel-request", "id": run}),
        ),
        ("requests", json!({"operation": "list-runs", "run": run})),
        ("requests", json!({"operation": "list-tasks", "run": run})),
        ("requests", json!({"operation": "cancel-run", "run": run})),
        (
            "requests",
            json!({"operation": "confirm-run", "run": run, "answer": "yes"}),
        ),
        ("requests", json!({"operation": "why-run", "run": run})),
        (
            "requests",
            json!({"operation": "why-request", "request-id": run}),
        ),
        (
            "requests",
            json!({"operation": "read-run", "run": run, "offset": "0"}),
        ),
        ("requests", json!({"operation": "replay-run", "run": run})),
        (
            "requests",
            json!({"operation": "expand-summary", "run": run}),
        ),
        (
            "requests",
            json!({"operation": "remake-summary", "run": run, "model": "m"}),
        ),
        (
            "usage",
            json!({"operation": "list-usage", "by": "tool", "since": "2026-01-01"}),
        ),
        (
            "threads",
            json!({"operation": "send-message", "flow": "default", "to": "agent", "type": "agentrequest",
            "thread": run, "payload": {"question": "x"}}),
        ),
        (
            "threads",
            json!({"operation": "list-listeners", "flow": "default"}),
        ),
        (
            "threads",
            json!({"operation": "list-refused-listeners", "flow": "default"}),
        ),
        (
            "threads",
            json!({"operation": "close-thread", "flow": "default", "thread": run}),
        ),
        (
            "threads",
            json!({"operation": "show-thread", "flow": "default", "thread": run}),
        ),
        (
            "traces",
            json!({"operation": "list-ended-runs", "after": run, "day": "2026-01-01"}),
        ),
        (
            "traces",
            json!({"operation": "revoke-signing-key", "key-id": run, "revoked-from": "2026-01-01T00:00:00Z"}),
        ),
        (
            "violations",
            json!({"operation": "list-violations", "collection": "default", "after": "7"}),
        ),
        (
            "violations",
            json!({"operation": "replay-violations", "flow": "default", "id": "7"}),
        ),
        (
            "violations",
            json!({"operation": "discard-violations", "id": "7"}),
        ),
        (
            "answers",
            json!({"operation": "judge-answer", "answer": "It is.", "passages": "x"}),
        ),
        (
            "audit",
            json!({"operation": "list-events", "workspace": "default", "since": "2030-01-31", "kind": "refused"}),
        ),
    ]
}

/// What is asked about runs, tasks, use, threads, traces and violations: each text of each question is hostile once.
async fn of_runs_and_threads(socket: &Socket) -> Result<()> {
    for (service, question) in about_runs_and_threads() {
        let fields: Vec<String> = question
            .as_object()
            .map(|all| all.keys().cloned().collect())
            .unwrap_or_default();
        for (field, value) in fields
            .iter()
            .flat_map(|field| hostile().map(|value| (field, value)))
        {
            let mut asked = question.clone();
            asked[field] = json!(value);
            let sent = serde_json::to_vec(&asked)?;
            let told = socket.ask_service(service, asked).await?.to_string();
            let leak = tg_testkit::topology::told(&told, &sent);
            assert!(leak.is_none(), "{service}, {field}: {leak:?} in {told}");
        }
    }
    Ok(())
}

/// The endpoint of the Model Context Protocol: names of methods, tools and arguments.
async fn of_the_tools_of_editors(world: &World) -> Result<()> {
    let url = format!("{}mcp", world.server.url());
    let client = tg_testkit::process::client()?;
    for value in hostile() {
        let calls = [
            json!({"jsonrpc": "2.0", "id": 1, "method": value}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": value, "arguments": {}}}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "ask_agent", "arguments": {"question": "x", "flow": value}}}),
        ];
        for call in calls {
            let body = call.to_string();
            let asked = client.post(&url).header("content-type", "application/json");
            let asked = asked.header("accept", "application/json, text/event-stream");
            let told = asked.body(body.clone()).send().await?.text().await?;
            let leak = tg_testkit::topology::told(&told, body.as_bytes());
            assert!(leak.is_none(), "{leak:?} in {told}");
        }
    }
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
