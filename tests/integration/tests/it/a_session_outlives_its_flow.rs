//! The flow that answers a session is stopped: what was said stays, the next turn says why it is not answered, and of the queues only
//! those of the flow go. Once the flow runs again, so does the session.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_schemas::operations::ALL;
use tg_testkit::model::{Reply, Rule, ScriptedModel, final_answer};
use tg_testkit::process::{Launch, Server, client, tg};
use tg_testkit::shared_node::VirtualHost;

use crate::edge::first_key;
use crate::workspaces::{patiently, start};
use crate::world::Bus;

const SESSIONS: &str = "a1/agents/concise-de/sessions";
const BOUND: Duration = Duration::from_secs(60);
/// Between two looks at the broker.
const LOOK: Duration = Duration::from_millis(100);

async fn asked(
    url: &str,
    method: reqwest::Method,
    path: &str,
    body: Value,
) -> Result<(u16, Value)> {
    let request = client()?
        .request(method, format!("{url}{path}"))
        .header("SPASS-User-Id", "ann")
        .json(&body);
    let response = request.send().await?;
    let status = response.status().as_u16();
    Ok((status, response.json().await.unwrap_or_default()))
}

async fn said(url: &str, session: &str) -> Result<usize> {
    let path = format!("{SESSIONS}/{session}/messages");
    let (status, told) = asked(url, reqwest::Method::GET, &path, json!({})).await?;
    ensure!(status == 200, "{status} {told}");
    Ok(told["messages"].as_array().map_or(0, Vec::len))
}

/// Names of queues that hold one of these, the flow's first.
async fn queues(node: &VirtualHost) -> Result<[usize; 2]> {
    let names: Vec<String> = node
        .queues()
        .await?
        .into_iter()
        .map(|one| one.name)
        .collect();
    Ok(["chat-completion:default", ":sessions"].map(|part| {
        let named = names.iter().filter(|name| name.contains(part));
        named.count()
    }))
}

/// 8: each route of sessions needs the header that names the user.
async fn line_008(url: &str, session: &str) -> Result<()> {
    let of_sessions = "/a1/agents/{name}/sessions";
    let routes = ALL.iter().filter(|one| one.path.starts_with(of_sessions));
    let mut seen = 0;
    for route in routes {
        let path = route.path.replace("{name}", "concise-de");
        let path = path.replace("{session_id}", session);
        let path = path.replace("{summary_id}", "x");
        let method = reqwest::Method::from_bytes(route.method.as_bytes())?;
        let request = client()?.request(method, format!("{url}{}", path.trim_start_matches('/')));
        let request = match route.method {
            "POST" => request.json(&json!({"message": "x"})),
            _ => request,
        };
        let response = request.send().await?;
        let status = response.status().as_u16();
        let answer: Value = response.json().await?;
        let at = format!("{} {path}: {status} {answer}", route.method);
        ensure!(status == 400, "{at}");
        ensure!(answer["error"]["code"] == "user_id_required", "{at}");
        seen += 1;
    }
    ensure!(seen >= 8, "{seen}");
    Ok(())
}

async fn line_127(server: &Server, node: Option<&VirtualHost>) -> Result<()> {
    let url = server.url();
    let (status, made) = asked(&url, reqwest::Method::POST, SESSIONS, json!({})).await?;
    ensure!(status == 201, "{status} {made}");
    let session = made["id"].as_str().context("an id")?.to_owned();
    line_008(&url, &session).await?;
    let path = format!("{SESSIONS}/{session}/messages");
    let turn = json!({"message": "Was ist eine Laterne?"});
    let (status, told) = asked(&url, reqwest::Method::POST, &path, turn.clone()).await?;
    ensure!(status == 200, "{status} {told}");
    if let Some(node) = node {
        let [flows, sessions] = queues(node).await?;
        ensure!(flows > 0 && sessions > 0, "{flows} {sessions}");
    }
    let stop = json!({"operation": "stop-flow", "flow-id": "default"});
    patiently(&url, "api/v1/flow", stop).await?;
    let (status, told) = asked(&url, reqwest::Method::POST, &path, turn.clone()).await?;
    ensure!(status == 503, "{status} {told}");
    ensure!(told["error"]["code"] == "agent_unavailable", "{told}");
    ensure!(said(&url, &session).await? == 2);
    let agent = "a1/agents/concise-de";
    let (status, told) = asked(&url, reqwest::Method::GET, agent, json!({})).await?;
    ensure!(status == 200, "{status} {told}");
    if let Some(node) = node {
        let end = Instant::now() + BOUND;
        while queues(node).await?[0] > 0 {
            ensure!(Instant::now() < end, "queues of the flow stay");
            tokio::time::sleep(LOOK).await;
        }
        let [_, sessions] = queues(node).await?;
        ensure!(sessions > 0, "queues of the sessions went");
    }
    start(&url, "default").await?;
    let (status, told) = asked(&url, reqwest::Method::POST, &path, turn).await?;
    ensure!(status == 200, "{status} {told}");
    ensure!(said(&url, &session).await? == 4);
    Ok(())
}

/// 128: the trace that a turn names stands in the flow's graph, and explains the turn.
async fn line_128(bus: Bus) -> Result<()> {
    let node = bus.broker().await?;
    let server = Launch::up().over(node.as_ref()).ready().await?;
    let url = server.url();
    let (status, made) = asked(&url, reqwest::Method::POST, SESSIONS, json!({})).await?;
    ensure!(status == 201, "{status} {made}");
    let session = made["id"].as_str().context("an id")?;
    let path = format!("{SESSIONS}/{session}/messages");
    let turn = json!({"message": "Was ist eine Laterne?"});
    let (status, told) = asked(&url, reqwest::Method::POST, &path, turn).await?;
    ensure!(status == 200, "{status} {told}");
    let trace = told["explain_session"].as_str().context("a trace")?;
    let shown = tg(&url, &["show-explain-trace", trace]).await?;
    ensure!(shown.code == Some(0), "{shown:?}");
    ensure!(shown.stdout.contains("Was ist eine Laterne?"), "{shown:?}");
    ensure!(shown.stdout.contains("Conclusion"), "{shown:?}");
    Ok(())
}

/// What the provider of a workspace's LLM service knows the workspace by, and the variable that holds it.
const CREDENTIAL: (&str, &str) = ("TG_KEY_OF_A_SERVICE", "sk-of-a-service-4712");

/// What only the model of a workspace's LLM service says.
const ANSWERED: &str = "Kellerfach4711";

/// What an operator sets to see more of what happens. The client of the broker logs the broker's messages, and stays silent.
const FILTER: &str = "debug,lapin=off";

/// 40: neither what is said in a session, nor the key of who says it, nor the credential of an LLM service is in a log, a metric or a
/// trail.
async fn line_040(bus: Bus) -> Result<()> {
    let node = bus.broker().await?;
    let knows = Reply::text(final_answer("it is known.", ANSWERED));
    let model = ScriptedModel::start(vec![Rule::always(knows)]).await?;
    let (variable, credential) = CREDENTIAL;
    let reference = format!("env:{variable}");
    let launch = Launch::up()
        .env("THREADGRAPH_LOG__FILTER", FILTER)
        .env(variable, credential)
        .env(
            "THREADGRAPH_LLM__CREDENTIALS",
            format!("default={reference}"),
        )
        .env("THREADGRAPH_LLM__PRIVATE_ADDRESSES", "true")
        .over(node.as_ref());
    let server = launch.arg("--auth").arg("iam").ready().await?;
    let (url, key) = (server.url(), first_key(&server).await?);
    let post = async |path: &str, body: Value| -> Result<Value> {
        let request = client()?.post(format!("{url}{path}")).bearer_auth(&key);
        let response = request.header("SPASS-User-Id", "ann").json(&body).send();
        let response = response.await?;
        let status = response.status();
        let told: Value = response.json().await?;
        ensure!(status.is_success(), "{path}: {status} {told}");
        Ok(told)
    };
    let made = post(SESSIONS, json!({"compact_keep_last_n": 0})).await?;
    let session = made["id"].as_str().context("an id")?;
    let path = format!("{SESSIONS}/{session}/messages");
    post(&path, json!({"message": "Was ist eine Geheimlaterne?"})).await?;
    let compact = client()?.post(format!("{url}{SESSIONS}/{session}/compact"));
    let compact = compact.bearer_auth(&key).header("SPASS-User-Id", "ann");
    let status = compact.json(&json!({})).send().await?.status().as_u16();
    // Whether the model at hand can sum up is another question.
    ensure!(matches!(status, 200 | 502), "{status}");
    let chat = "a1/agents/concise-de/chat";
    post(chat, json!({"message": "Wo ist die Geheimlaterne?"})).await?;
    let service = json!({"name": "near", "provider": "openai", "modelName": "m9",
        "endpointBaseUrl": model.url(), "credentialRef": reference});
    let service = post("api/v1/workspaces/default/llm-services", service).await?;
    let agent = json!({"name": "bound", "llmServiceId": service["llmServiceId"]});
    let agent = post("api/v1/workspaces/default/agents", agent).await?;
    let agent = agent["agentId"].as_str().context("an agent")?;
    let chat = format!("a1/agents/{agent}/chat");
    let told = post(&chat, json!({"message": "Ist sie blau?"})).await?;
    ensure!(told.to_string().contains(ANSWERED), "{told}");
    let talks = format!("api/v1/workspaces/default/agents/{agent}/conversations");
    let talk = post(&talks, json!({})).await?;
    let talk = talk["conversationId"].as_str().context("a conversation")?;
    let stream = client()?
        .post(format!("{url}{talks}/{talk}/messages/stream"))
        .bearer_auth(&key)
        .json(&json!({"content": "Wo steht die Geheimlaterne?"}));
    let stream = stream.send().await?.error_for_status()?.text().await?;
    ensure!(stream.contains("event: done"), "{stream}");
    ensure!(stream.contains(ANSWERED), "{stream}");
    let calls = model.calls();
    let shown = calls.last().and_then(|call| call.authorization.as_deref());
    ensure!(
        shown.is_some_and(|shown| shown.contains(credential)),
        "{shown:?}"
    );
    let metrics = client()?.get(format!("{url}metrics")).bearer_auth(&key);
    let metrics = metrics.send().await?.error_for_status()?.text().await?;
    let mut trail = String::new();
    for file in std::fs::read_dir(server.data().join("audit"))? {
        trail += &std::fs::read_to_string(file?.path())?;
    }
    ensure!(trail.contains("agent.turn"), "no turn: {trail}");
    // What iam writes down of changes and refusals, as it stands on the disk.
    let mut audit = String::new();
    for file in std::fs::read_dir(server.data())? {
        let file = file?;
        if file.file_name().to_string_lossy().starts_with("iam.sqlite") {
            audit += &String::from_utf8_lossy(&std::fs::read(file.path())?);
        }
    }
    ensure!(!audit.is_empty(), "no audit was looked at");
    let log = server.log();
    ensure!(log.contains("DEBUG"), "nothing is logged at this level");
    for (place, text) in [
        ("log", &log),
        ("metrics", &metrics),
        ("trail", &trail),
        ("audit", &audit),
    ] {
        for never in ["Geheimlaterne", ANSWERED, key.as_str(), credential] {
            let line = text.lines().find(|line| line.contains(never));
            ensure!(line.is_none(), "{place}: {line:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn line_040_on_the_embedded_bus() -> Result<()> {
    line_040(Bus::Embedded).await
}

#[tokio::test]
async fn line_040_over_rabbitmq() -> Result<()> {
    line_040(Bus::Rabbit).await
}

#[tokio::test]
async fn line_128_on_the_embedded_bus() -> Result<()> {
    line_128(Bus::Embedded).await
}

#[tokio::test]
async fn line_128_over_rabbitmq() -> Result<()> {
    line_128(Bus::Rabbit).await
}

#[tokio::test]
async fn line_127_on_the_embedded_bus() -> Result<()> {
    line_127(&Launch::up().ready().await?, None).await
}

#[tokio::test]
async fn line_127_over_rabbitmq() -> Result<()> {
    let node = VirtualHost::new().await?;
    let server = Launch::up().over(Some(&node)).ready().await?;
    line_127(&server, Some(&node)).await
}
