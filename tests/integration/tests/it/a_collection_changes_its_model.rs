//! The embeddings model of a flow changes: its collection is embedded again beside the vectors that serve, which answer until
//! all of it is there, also over a kill and while nobody makes vectors; then the new ones answer. A model that cannot be had
//! any more is an error on the answer.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tg_testkit::model::{Reply, ScriptedModel};
use tg_testkit::process::{Launch, Output, Server, tg};
use tg_testkit::shared_node::VirtualHost;
use tokio::time::Instant;

use crate::world::{Bus, on_both_buses, post};

const COLLECTION: &str = "lanterns";
const OLD: &str = "lexical/1024";
const NEW: &str = "openai/v/2";
const BOUND: Duration = Duration::from_secs(60);
/// Between two looks at how far it is.
const PAUSE: Duration = Duration::from_millis(100);

/// One data directory, one broker, and servers that come and go.
struct Story {
    data: TempDir,
    node: Option<VirtualHost>,
}

impl Story {
    /// With a model behind the embeddings; `None`: the lexical ones.
    async fn up(&self, model: Option<&ScriptedModel>) -> Result<Server> {
        let mut launch = Launch::up().data(self.data.path()).over(self.node.as_ref());
        if let Some(model) = model {
            launch = launch
                .env("THREADGRAPH_EMBEDDINGS__PROVIDER", "openai")
                .env("THREADGRAPH_EMBEDDINGS__URL", model.url())
                .env("THREADGRAPH_EMBEDDINGS__MODEL", "v");
        }
        launch.ready().await
    }
}

async fn done(server: &Server, args: &[&str]) -> Result<Output> {
    let ran = tg(&server.url(), args).await?;
    ensure!(ran.code == Some(0), "{args:?}: {ran:?}");
    Ok(ran)
}

async fn start_flow(server: &Server, parameters: &[&str]) -> Result<()> {
    let mut line = vec!["start-flow", "-n", "everything", "-i", "mine", "-d", "text"];
    line.extend(parameters);
    done(server, &line).await.map(drop)
}

/// What a question comes to, in every way of looking that the door has.
async fn ask(server: &Server, service: &str) -> Result<Value> {
    let body = json!({"query": "Who built the Harrowgate lantern?", "collection": COLLECTION});
    let path = format!("api/v1/flow/mine/service/{service}");
    let (_, answer) = post(&server.url(), &path, body).await?;
    Ok(answer)
}

/// A question is answered with vectors of this model.
async fn answers_by(server: &Server, model: &str) -> Result<()> {
    for service in ["document-rag", "graph-rag"] {
        let answer = ask(server, service).await?;
        ensure!(answer["error"].is_null(), "{service}: {answer}");
        ensure!(
            answer["embeddings_model"] == model,
            "{service}: {answer}\n{}",
            server.log()
        );
    }
    let answer = ask(server, "document-rag").await?;
    let said = answer["response"].as_str().unwrap_or_default();
    ensure!(said.contains("Ottoline Frask"), "{answer}");
    Ok(())
}

async fn far(server: &Server) -> Result<Value> {
    let line = ["reembed-collection", COLLECTION, "--show", "--json"];
    Ok(serde_json::from_str(&done(server, &line).await?.stdout)?)
}

/// How far it is, once that is as wanted.
async fn until(server: &Server, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
    let begun = Instant::now();
    loop {
        let told = far(server).await?;
        if wanted(&told) {
            return Ok(told);
        }
        ensure!(begun.elapsed() < BOUND, "{told}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// The server is killed while vectors are made: one question for them is answered, the next one never. Started again it is told
/// that nobody makes them, and is not over.
async fn killed_in_mid_change(
    story: &Story,
    server: Server,
    model: &ScriptedModel,
) -> Result<Server> {
    let before = model.batches();
    model.hold_batches_after(1);
    let first = [
        "reembed-collection",
        COLLECTION,
        "-f",
        "mine",
        "--no-wait",
        "--json",
    ];
    let begun: Value = serde_json::from_str(&done(&server, &first).await?.stdout)?;
    ensure!(begun["model"] == NEW, "{begun}");
    let asked = Instant::now();
    while model.batches() < before + 2 {
        ensure!(asked.elapsed() < BOUND, "no vectors are made");
        tokio::time::sleep(PAUSE).await;
    }
    let middle = far(&server).await?;
    ensure!(middle["state"] == "running", "{middle}");
    ensure!(
        middle["done"].as_i64() < middle["total"].as_i64(),
        "{middle}"
    );
    answers_by(&server, OLD).await?;
    server.kill9().await?;
    model.refuse(Reply::Status {
        code: 401,
        retry_after: None,
        body: String::new(),
    });
    let server = story.up(Some(model)).await?;
    let stuck = until(&server, |told| told["reason"] != "").await?;
    ensure!(stuck["state"] == "running", "{stuck}");
    ensure!(stuck["done"] == middle["done"], "{middle}, {stuck}");
    Ok(server)
}

async fn the_old_answer_until_all_of_the_new_do(bus: Bus) -> Result<()> {
    let model = ScriptedModel::start(Vec::new()).await?;
    let story = Story {
        data: tempfile::tempdir()?,
        node: bus.broker().await?,
    };
    let server = story.up(Some(&model)).await?;
    start_flow(
        &server,
        &[
            "--param",
            "embeddings-model=lexical",
            "--param",
            "chunk-size=200",
        ],
    )
    .await?;
    let file = story.data.path().join("lantern.txt");
    let built = |n: usize| {
        format!(
            "Ottoline Frask built the Harrowgate lantern. The Harrowgate lantern number {n} is a lamp of glass {n}.\n\n"
        )
    };
    let text: String = (0..300).map(built).collect();
    std::fs::write(&file, text)?;
    let path = file.to_string_lossy();
    let add = ["add", &path, "-f", "mine", "-C", COLLECTION, "--wait"];
    done(&server, &add).await?;
    answers_by(&server, OLD).await?;

    // Another model from now on: questions are asked of the vectors that are there.
    done(&server, &["stop-flow", "mine"]).await?;
    start_flow(&server, &["--param", "chunk-size=200"]).await?;
    answers_by(&server, OLD).await?;
    ensure!(far(&server).await?["state"] == "nothing");
    let line = ["reembed-collection", "nowhere", "-f", "mine"];
    let unknown = tg(&server.url(), &line).await?;
    ensure!(unknown.code == Some(3), "{unknown:?}");

    let server = killed_in_mid_change(&story, server, &model).await?;
    server.kill9().await?;

    // Back, it goes on without being asked.
    let model = ScriptedModel::start(Vec::new()).await?;
    let server = story.up(Some(&model)).await?;
    let told = until(&server, |told| told["state"] == "switched").await?;
    ensure!(told["serving"] == json!([NEW]), "{told}");
    let count = told["done"].as_i64().context("no count")?;
    ensure!(count > 100 && told["total"] == count, "{told}");
    answers_by(&server, NEW).await?;
    let again = done(&server, &["reembed-collection", COLLECTION, "-f", "mine"]).await?;
    again.expect("switched")?;

    // The model goes for good: the question says so, and nothing is answered by words in silence.
    server.terminate().await?;
    let server = story.up(None).await?;
    for service in ["document-rag", "graph-rag"] {
        let answer = ask(&server, service).await?;
        let told = answer["error"]["message"].as_str().unwrap_or_default();
        ensure!(
            told.contains(NEW) && told.contains("does not serve any more"),
            "{service}: {answer}"
        );
    }
    // Nor is that the end: the collection is embedded by what is there.
    let line = ["reembed-collection", COLLECTION, "-f", "mine"];
    done(&server, &line).await?.expect(OLD)?;
    answers_by(&server, OLD).await
}

on_both_buses!(the_old_answer_until_all_of_the_new_do);
