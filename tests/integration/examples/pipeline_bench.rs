//! How fast text goes through the pipeline: chunks, one extractor, the graph; with a model that answers at
//! once. `pipeline_bench [embedded|rabbitmq|both] [megabytes]`, beside the binaries it measures.
//!
//! The clock runs from the start of the processing until its status is `complete`, so until every store has
//! confirmed everything. Client and model share the machine with the system.
//! Three rounds, each with a system of its own.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_integration_tests::part_of;
use tg_testkit::bench::{ROUNDS, Rounds, headline};
use tg_testkit::model::{Options, Reply, Rule, ScriptedModel};
use tg_testkit::process::{Launch, Server};
use tg_testkit::rabbitmq::RabbitNode;
use tg_testkit::socket::Socket;

/// Chunker, one extractor with what it asks, and the graph.
const PARTS: &[&str] = &[
    "chunker",
    "kg-extract-definitions",
    "prompt",
    "text-completion",
    "triples-write",
];
const DOCUMENTS: usize = 8;
const BOUND: Duration = Duration::from_secs(300);
/// What the reference takes on such a machine, in KB of text a second.
const REFERENCE: f64 = 45.0;
/// Messages of the broker that a chunk may take.
const ALLOWED: f64 = 8.0;
const SPEED: &str = "text";
const MESSAGES: &str = "messages a chunk";

#[tokio::main]
async fn main() -> Result<()> {
    println!("{}", headline(1));
    let mut args = std::env::args().skip(1);
    let which = args.next().unwrap_or_else(|| "both".to_owned());
    let megabytes: f64 = args.next().map_or(Ok(4.0), |text| text.parse())?;
    if which != "rabbitmq" {
        let mut rounds = Rounds::default();
        for _ in 0..ROUNDS {
            measure(None, megabytes, &mut rounds).await?;
        }
        told("embedded", 3.0, &rounds);
    }
    if which != "embedded" {
        let mut rounds = Rounds::default();
        for _ in 0..ROUNDS {
            let node = RabbitNode::start().await?;
            measure(Some(node), megabytes, &mut rounds).await?;
        }
        told("RabbitMQ", 1.0, &rounds);
    }
    Ok(())
}

/// The figures of one bus beside their targets, which the medians are held against.
fn told(name: &str, target: f64, rounds: &Rounds) {
    println!("pipeline, {name}");
    rounds.print();
    let speed = rounds.median(SPEED).unwrap_or_default();
    println!(
        "  {SPEED}: target {target}: {}, {:.0} x the reference's {REFERENCE} KB/s",
        if speed >= target { "met" } else { "missed" },
        speed * 1_000.0 / REFERENCE,
    );
    if let Some(each) = rounds.median(MESSAGES) {
        println!(
            "  {MESSAGES}: target {ALLOWED}: {}",
            if each <= ALLOWED { "met" } else { "missed" }
        );
    }
}

/// Text in sentences, no two of which are the same.
fn text(document: usize, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 100);
    for sentence in 0.. {
        if text.len() >= bytes {
            break;
        }
        text.push_str(&format!(
            "Item {document}.{sentence} of the register is kept in room {} on shelf {}. ",
            sentence % 97,
            sentence % 31
        ));
    }
    text
}

async fn measure(node: Option<RabbitNode>, megabytes: f64, rounds: &mut Rounds) -> Result<()> {
    let options = Options {
        keep_calls: false,
        counts_tokens: false,
        ..Options::default()
    };
    let answer = json!({"entity": "register", "definition": "a list of items in rooms"});
    let rules = vec![Rule::always(Reply::text(answer.to_string()))];
    let model = ScriptedModel::start_with(options, rules).await?;
    let data = tempfile::tempdir()?;
    let server = launch(&model, node.as_ref(), data.path()).ready().await?;
    let socket = Socket::connect(&server.url(), "").await?;
    prepare(&socket).await?;
    let each = (megabytes * 1_000_000.0 / DOCUMENTS as f64) as usize;
    add(&server, each).await?;

    let before = received(node.as_ref()).await?;
    let begun = Instant::now();
    for document in 0..DOCUMENTS {
        let ask = json!({"operation": "add-processing", "processing-metadata":
            {"id": format!("p{document}"), "document-id": format!("urn:doc:{document}"),
             "flow": "pipeline", "collection": "bench", "tags": []}});
        fine(socket.ask_service("librarian", ask).await?)?;
    }
    let chunks = complete(&socket).await?;
    let took = begun.elapsed().as_secs_f64();
    let received = received(node.as_ref()).await? - before;
    let speed = (each * DOCUMENTS) as f64 / 1_000_000.0 / took;
    rounds.add(SPEED, "MB/s", speed);
    rounds.add("chunks", "of a round", chunks as f64);
    rounds.add("model calls", "of a round", model.count() as f64);
    if node.is_some() {
        rounds.add(MESSAGES, "of the broker", received / chunks as f64);
    }
    server.terminate().await?;
    Ok(())
}

fn launch(model: &ScriptedModel, node: Option<&RabbitNode>, data: &Path) -> Launch {
    let launch = Launch::up()
        .env("OPENAI_BASE_URL", model.url())
        .env("OPENAI_API_KEY", "sk-bench")
        .env("OPENAI_MODEL", "scripted")
        .env("THREADGRAPH_DURABILITY", "process")
        .data(data);
    match node {
        Some(node) => launch.arg("--bus").arg(node.url()),
        None => launch,
    }
}

fn fine(frame: Value) -> Result<Value> {
    let error = [&frame["error"], &frame["response"]["error"]];
    ensure!(error.into_iter().all(Value::is_null), "{frame}");
    Ok(frame)
}

/// A flow of the parts.
async fn prepare(socket: &Socket) -> Result<()> {
    let ask = json!({"operation": "get-blueprint", "blueprint-name": "everything"});
    let reply = fine(socket.ask_service("flow", ask).await?)?;
    let definition = reply["response"]["blueprint-definition"].as_str();
    let part = part_of(definition.context("a definition")?, PARTS)?;
    let ask = json!({"operation": "put-blueprint", "blueprint-name": "pipeline",
        "blueprint-definition": part.to_string()});
    fine(socket.ask_service("flow", ask).await?)?;
    let ask = json!({"operation": "start-flow", "flow-id": "pipeline", "blueprint-name": "pipeline",
        "description": "", "parameters": {}});
    fine(socket.ask_service("flow", ask).await?)?;
    Ok(())
}

async fn add(server: &Server, bytes: usize) -> Result<()> {
    use base64::Engine;
    let encode = base64::engine::general_purpose::STANDARD;
    let client = tg_testkit::process::client()?;
    for document in 0..DOCUMENTS {
        let ask = json!({"operation": "add-document", "document-metadata":
            {"id": format!("urn:doc:{document}"), "kind": "text/plain", "title": "A register", "comments": "",
             "metadata": [], "tags": []},
            "content": encode.encode(text(document, bytes))});
        let url = format!("{}api/v1/librarian", server.url());
        fine(client.post(url).json(&ask).send().await?.json().await?)?;
    }
    Ok(())
}

/// Waits until all are complete; how many chunks that were.
async fn complete(socket: &Socket) -> Result<i64> {
    let end = Instant::now() + BOUND;
    loop {
        let ask = json!({"operation": "list-processing"});
        let reply = fine(socket.ask_service("librarian", ask).await?)?;
        let records = reply["response"]["processing-metadatas"]
            .as_array()
            .cloned();
        let records = records.unwrap_or_default();
        let done = records.iter().filter(|one| one["status"] == "complete");
        let chunks: Vec<_> = done.map(|one| one["progress"]["chunks"].as_i64()).collect();
        if chunks.len() == DOCUMENTS {
            return Ok(chunks.into_iter().flatten().sum());
        }
        let odd = records
            .iter()
            .find(|one| one["status"] != "complete" && one["status"] != "processing");
        ensure!(odd.is_none(), "{odd:?}");
        ensure!(Instant::now() < end, "not complete in time: {reply}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Messages that the broker received so far.
async fn received(node: Option<&RabbitNode>) -> Result<f64> {
    let Some(node) = node else { return Ok(0.0) };
    let count = "maps:get(messages_received_total, \
                 maps:get([{protocol, amqp091}], rabbit_global_counters:overview())).";
    let text = node.ctl(&["eval", count]).await?;
    text.trim().parse().context(text)
}
