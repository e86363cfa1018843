//! A second config, iam, flow or graph process stands by and says so; it serves when the first is killed, with the same
//! data, and refuses to with an empty store of its own.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tg_testkit::process::{Launch, Server};
use tg_testkit::shared_node::VirtualHost;
use tg_testkit::socket::Socket;

use crate::world::launch;

/// Services with a store of which a second process stands by here.
const OWNERS: [&str; 4] = ["config", "iam", "flow", "graph"];
/// Their processors; the three of the graph share one store, each says so.
const PROCESSORS: usize = 6;
/// The second owner serves within this.
const TAKE_OVER: Duration = Duration::from_secs(3);
/// What these tests wait for comes within this.
const BOUND: Duration = Duration::from_secs(20);

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) -> Result<()> {
    let end = Instant::now() + BOUND;
    while !holds().await {
        ensure!(Instant::now() < end, "not within {BOUND:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

async fn stands_by(second: &Server) -> Result<()> {
    let all = async || second.log().matches("standing by").count() >= PROCESSORS;
    until("each processor says that it stands by", all).await
}

#[tokio::test]
async fn and_one_config_service_answers() -> Result<()> {
    let node = VirtualHost::new().await?;
    let model = ScriptedModel::start(Vec::new()).await?;
    let server = launch(&model, Some(&node)).ready().await?;
    let second = Launch::serve(&OWNERS, &node.url())
        .data(server.data())
        .spawn()
        .await?;
    stands_by(&second).await?;
    // One config service answers, not two: a version goes up by one per put.
    let socket = Socket::connect(&server.url(), "").await?;
    let put = json!({"operation": "put", "values": [{"type": "notes", "key": "a", "value": "1"}]});
    let version = json!({"operation": "config"});
    let before =
        socket.ask_service("config", version.clone()).await?["response"]["version"].clone();
    socket.ask_service("config", put).await?;
    let after = socket.ask_service("config", version).await?["response"]["version"].clone();
    assert_eq!(before.as_i64().map(|v| v + 1), after.as_i64());
    Ok(())
}

/// The owners in a process of their own, everything else in another.
struct Apart {
    node: VirtualHost,
    rest: Server,
    owners: Server,
}

impl Apart {
    async fn start() -> Result<Self> {
        let node = VirtualHost::new().await?;
        let mut rest = Launch::serve(
            &["librarian", "llm", "prompt", "tool", "agent", "gateway"],
            &node.url(),
        )
        .spawn()
        .await?;
        let owners = Launch::serve(&OWNERS, &node.url())
            .data(&rest.data().join("owners"))
            .spawn()
            .await?;
        rest.wait_ready().await?;
        Ok(Self { node, rest, owners })
    }

    async fn second(&self, data: &str) -> Result<Server> {
        Launch::serve(&OWNERS, &self.node.url())
            .data(&self.rest.data().join(data))
            .spawn()
            .await
    }
}

fn triple(n: usize) -> Value {
    json!({"s": {"t": "i", "i": format!("urn:s{n}")}, "p": {"t": "i", "i": "urn:p"}, "o": {"t": "l", "v": "v"}})
}

/// Puts triples and waits until they are there.
async fn put(rest: &Server, count: usize) -> Result<()> {
    let triples: Vec<_> = (0..count).map(triple).collect();
    let line = json!({"metadata": {"id": "x", "collection": "default"}, "triples": triples});
    let url = format!(
        "{}api/v1/flow/default/import/triples?workspace=default",
        rest.url()
    );
    let sent = tg_testkit::process::client()?
        .post(url)
        .body(format!("{line}\n"))
        .send()
        .await?;
    ensure!(sent.status().is_success(), "import: {}", sent.text().await?);
    until("the triples are there", async || {
        seen(rest).await.is_ok_and(|seen| seen == count)
    })
    .await
}

/// How many of the triples are seen.
async fn seen(rest: &Server) -> Result<usize> {
    let ask = json!({"p": {"t": "i", "i": "urn:p"}, "limit": 1000});
    let (status, body) =
        crate::world::post(&rest.url(), "api/v1/flow/default/service/triples", ask).await?;
    ensure!(status == 200 && body["error"].is_null(), "{status} {body}");
    Ok(body["response"].as_array().map_or(0, Vec::len))
}

/// What the three owners beside the graph answer.
async fn served(rest: &Server) -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for (service, ask) in [
        ("config", json!({"operation": "list", "type": "flow"})),
        ("iam", json!({"operation": "list-workspaces"})),
        ("flow", json!({"operation": "list-flows"})),
    ] {
        let path = format!("api/v1/{service}");
        let (status, body) = crate::world::post(&rest.url(), &path, ask).await?;
        ensure!(status == 200 && body["error"].is_null(), "{status} {body}");
        all.push(body);
    }
    Ok(all)
}

/// Held to seconds or less: these have the machine to themselves (`make test`).
mod alone {
    use super::*;

    #[tokio::test]
    async fn and_takes_over_with_the_same_data_when_the_first_is_killed() -> Result<()> {
        let Apart { node, rest, owners } = Apart::start().await?;
        let second = Launch::serve(&OWNERS, &node.url())
            .data(owners.data())
            .spawn()
            .await?;
        stands_by(&second).await?;
        put(&rest, 40).await?;
        let all = served(&rest).await?;

        owners.kill9().await?;
        let killed = Instant::now();
        while !seen(&rest).await.is_ok_and(|seen| seen == 40) {
            ensure!(killed.elapsed() < TAKE_OVER, "{}", second.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        while !served(&rest).await.is_ok_and(|again| again == all) {
            ensure!(killed.elapsed() < TAKE_OVER, "{}", second.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    #[tokio::test]
    async fn and_refuses_with_an_empty_store_of_its_own() -> Result<()> {
        let apart = Apart::start().await?;
        put(&apart.rest, 10).await?;
        let data = apart.owners.data().to_owned();
        let empty = apart.second("empty").await?;
        stands_by(&empty).await?;
        let (node, rest) = (apart.node, apart.rest);
        apart.owners.kill9().await?;
        let refuses = async || empty.log().matches("another store of this name").count() >= 4;
        until("each of the four stores is refused", refuses).await?;
        let (status, body) = crate::world::post(
            &rest.url(),
            "api/v1/config",
            json!({"operation": "list", "type": "flow"}),
        )
        .await?;
        ensure!(status != 200 || !body["error"].is_null(), "served: {body}");

        // The store that had the data takes over at once.
        let _first = Launch::serve(&OWNERS, &node.url())
            .data(&data)
            .spawn()
            .await?;
        until("the data is there again", async || {
            seen(&rest).await.is_ok_and(|seen| seen == 10)
        })
        .await
    }

    #[tokio::test]
    async fn and_a_question_to_a_killed_process_ends_within_a_second() -> Result<()> {
        let node = VirtualHost::new().await?;
        // A model that is silent for long: the question is under way when its process is killed.
        let model = ScriptedModel::start(vec![Rule::always(
            Reply::text("late").delayed(Duration::from_secs(20)),
        )])
        .await?;
        let mut rest = Launch::serve(
            &[
                "config",
                "iam",
                "flow",
                "prompt",
                "tool",
                "agent",
                "librarian",
                "graph",
                "gateway",
            ],
            &node.url(),
        )
        .spawn()
        .await?;
        let llm = Launch::serve(&["llm"], &node.url())
            .env("OPENAI_BASE_URL", model.url())
            .env("OPENAI_API_KEY", "sk-test")
            .env("OPENAI_MODEL", "scripted")
            .data(&rest.data().join("llm"))
            .spawn()
            .await?;
        rest.wait_ready().await?;
        let calls = model.count();
        let url = rest.url();
        let ask = async |url: &str| {
            let ask = json!({"system": "s", "prompt": "p"});
            let path = "api/v1/flow/default/service/text-completion";
            (crate::world::post(url, path, ask).await, Instant::now())
        };
        let first = url.clone();
        let asked = tokio::spawn(async move { ask(&first).await });
        ensure!(
            model.wait_calls(calls + 1, BOUND).await,
            "the model is asked"
        );
        // Long silent: heartbeats have grown apart.
        tokio::time::sleep(Duration::from_secs(3)).await;
        llm.kill9().await?;
        let killed = Instant::now();
        // The question under way, then one that is asked afterwards.
        let under_way = asked.await?;
        let afterwards = Instant::now();
        let new = ask(&url).await;
        for ((answer, at), since) in [(under_way, killed), (new, afterwards)] {
            let (_, body) = answer?;
            let told = body["error"]["type"] == "nobody-serves";
            ensure!(told || body.to_string().contains("nobody serves"), "{body}");
            let took = at.saturating_duration_since(since);
            ensure!(took < Duration::from_secs(1), "ended after {took:?}");
        }
        Ok(())
    }
}
