//! What large things cost in memory: a document through upload, stream and processing, and a knowledge core
//! through import and load; and how long both take.
//!
//! `memory_bench [MiB of the document] [MB of the core]`, beside the binaries it measures. The flow of the document has
//! the chunker alone, so that nothing is kept but what the library keeps; the core is loaded by a process of its own
//! beside one with the stores, over RabbitMQ. Extra memory is the process's peak less what it held before.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use serde_json::{Value, json};
use tg_integration_tests::memory;
use tg_testkit::process::{Launch, Server, client};
use tg_testkit::rabbitmq::RabbitNode;

const DOCUMENT: &str = "urn:bench:large";
const CORE: &str = "large";
/// Extra memory that is allowed, in MiB.
const ALLOWED: f64 = 64.0;
const BOUND: Duration = Duration::from_secs(1_200);
/// Triples and entities of a record of the core, and numbers of a vector.
const TRIPLES: usize = 400;
const ENTITIES: usize = 100;
const NUMBERS: usize = 256;

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let mut number = |usual: usize| args.next().map_or(Ok(usual), |text| text.parse());
    let (document, core) = (number(1_024)?, number(100)?);
    large_document(document << 20).await?;
    large_core(core * 1_000_000).await
}

async fn large_document(size: usize) -> Result<()> {
    let server = Launch::up().ready().await?;
    start_flow(&server).await?;
    let what = format!("document of {} MiB", size >> 20);

    let phase = Phase::begin(&server)?;
    upload(&server, size).await?;
    phase.end(&format!("{what}, upload"), size)?;

    let phase = Phase::begin(&server)?;
    let url = format!(
        "{}api/v1/document-stream?document-id={DOCUMENT}&chunk-size=1048576",
        server.url()
    );
    let reply = client()?.get(url).timeout(BOUND).send().await?;
    let mut body = reply.error_for_status()?.bytes_stream();
    let mut there = 0;
    while let Some(part) = body.next().await {
        there += part?.len();
    }
    ensure!(there == size, "{there} bytes of {size}");
    phase.end(&format!("{what}, stream"), size)?;

    let phase = Phase::begin(&server)?;
    let start = json!({"operation": "add-processing", "processing-metadata":
        {"id": "large", "document-id": DOCUMENT, "flow": "bench", "collection": "default", "tags": []}});
    ask(&server, "librarian", start).await?;
    let end = Instant::now() + BOUND;
    let chunks = loop {
        let records = ask(
            &server,
            "librarian",
            json!({"operation": "list-processing"}),
        )
        .await?;
        let record = &records["processing-metadatas"][0];
        match record["status"].as_str() {
            Some("complete") => break record["progress"]["chunks"].clone(),
            Some("processing") if Instant::now() < end => {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            _ => bail!("{record}"),
        }
    };
    phase.end(&format!("{what}, processing to {chunks} chunks"), size)?;
    server.terminate().await?;
    Ok(())
}

async fn start_flow(server: &Server) -> Result<()> {
    let get = json!({"operation": "get-blueprint", "blueprint-name": "everything"});
    let reply = ask(server, "flow", get).await?;
    let definition = reply["blueprint-definition"].as_str();
    let mut part: Value = serde_json::from_str(definition.context("a definition")?)?;
    let flow = part["flow"].as_object_mut().context("no entries")?;
    flow.retain(|processor, _| processor.starts_with("chunker:"));
    let interfaces = part["interfaces"].as_object_mut();
    interfaces
        .context("no interfaces")?
        .retain(|name, _| name == "text-load");
    let put = json!({"operation": "put-blueprint", "blueprint-name": "bench",
        "blueprint-definition": part.to_string()});
    ask(server, "flow", put).await?;
    let start = json!({"operation": "start-flow", "flow-id": "bench", "blueprint-name": "bench",
        "description": "", "parameters": {}});
    ask(server, "flow", start).await.map(drop)
}

async fn upload(server: &Server, size: usize) -> Result<()> {
    let begin = json!({"operation": "begin-upload", "total-size": size, "chunk-size": 3 << 20,
        "document-metadata": {"id": DOCUMENT, "kind": "text/plain", "title": "large", "comments": "",
            "metadata": [], "tags": []}});
    let begun = ask(server, "librarian", begin).await?;
    let step = begun["chunk-size"].as_u64().context("no chunk size")? as usize;
    let mut text = String::new();
    let (mut line, mut sent) = (0_u64, 0);
    for index in 0.. {
        if sent == size {
            break;
        }
        let wanted = step.min(size - sent);
        while text.len() < wanted {
            text.push_str(&format!(
                "Line {line} of the register tells of room {} and shelf {}.\n",
                line % 977,
                line % 31
            ));
            line += 1;
        }
        let rest = text.split_off(wanted);
        let put = json!({"operation": "upload-chunk", "upload-id": begun["upload-id"], "chunk-index": index,
            "content": STANDARD.encode(&text)});
        ask(server, "librarian", put).await?;
        sent += wanted;
        text = rest;
    }
    let complete = json!({"operation": "complete-upload", "upload-id": begun["upload-id"]});
    ask(server, "librarian", complete).await.map(drop)
}

async fn large_core(size: usize) -> Result<()> {
    let node = RabbitNode::start().await?;
    let services = [
        "config",
        "iam",
        "flow",
        "gateway",
        "agent",
        "tool",
        "llm",
        "prompt",
        "librarian",
        "ingest",
        "extract",
        "embeddings",
        "graph",
        "vectors",
        "rows",
        "rag",
    ];
    let rest = Launch::serve(&services, &node.url());
    let rest = rest
        .env("THREADGRAPH_DURABILITY", "process")
        .spawn()
        .await?;
    let data = rest.data().join("apart");
    let cores = Launch::serve(&["knowledge"], &node.url()).data(&data);
    let cores = cores
        .env("THREADGRAPH_DURABILITY", "process")
        .spawn()
        .await?;
    let mut rest = rest;
    rest.wait_ready().await?;

    let phases = (Phase::begin(&rest)?, Phase::begin(&cores)?);
    let url = format!(
        "{}api/v1/import-core?id={CORE}&workspace=default",
        rest.url()
    );
    let (mut made, mut record) = (0, 0);
    let body = futures::stream::iter(std::iter::from_fn(move || {
        (made < size).then(|| {
            let mut bytes = Vec::new();
            tg_core_file::msgpack::encode(&core_record(record), &mut bytes);
            record += 1;
            made += bytes.len();
            Ok::<_, std::io::Error>(bytes)
        })
    }));
    let reply = client()?.post(url).timeout(BOUND);
    let reply = reply.body(reqwest::Body::wrap_stream(body)).send().await?;
    let text = reply.error_for_status()?.text().await?;
    println!("core: {text}");
    let what = format!("core of {} MB", size / 1_000_000);
    phases
        .0
        .end(&format!("{what}, import, at the door"), size)?;
    phases
        .1
        .end(&format!("{what}, import, in the service"), size)?;

    let phase = Phase::begin(&cores)?;
    let load =
        json!({"operation": "load-kg-core", "id": CORE, "flow": "default", "collection": "loaded"});
    ask(&rest, "knowledge", load).await?;
    phase.end(&format!("{what}, load"), size)?;
    cores.terminate().await?;
    rest.terminate().await?;
    Ok(())
}

/// Facts and vectors by turns.
fn core_record(at: usize) -> Value {
    let meta = json!({"i": CORE, "m": "", "c": "default"});
    let entity =
        |number: usize| json!({"t": "i", "i": format!("http://example.com/entity/{number}")});
    if at.is_multiple_of(2) {
        let triples: Vec<Value> = (0..TRIPLES)
            .map(|n| at * TRIPLES + n)
            .map(|n| {
                json!({"s": entity(n), "p": {"t": "i", "i": "http://example.com/says"},
                    "o": {"t": "l", "v": format!("What number {n} says of number {}", n / 7)}})
            })
            .collect();
        return json!(["t", {"m": meta, "t": triples}]);
    }
    let entities: Vec<Value> = (0..ENTITIES)
        .map(|n| at * ENTITIES + n)
        .map(|n| {
            let vector: Vec<f64> = (0..NUMBERS)
                .map(|i| f64::from(((n * 31 + i * 17) % 199) as u32) / 199.0 - 0.5)
                .collect();
            json!({"e": entity(n), "v": vector, "c": ""})
        })
        .collect();
    json!(["ge", {"m": meta, "e": entities}])
}

/// Asks a service outside flows over HTTP.
async fn ask(server: &Server, service: &str, body: Value) -> Result<Value> {
    let url = format!("{}api/v1/{service}", server.url());
    let reply = client()?
        .post(url)
        .timeout(BOUND)
        .json(&body)
        .send()
        .await?;
    let reply: Value = reply.json().await?;
    ensure!(reply["error"].is_null(), "{service}: {reply}");
    Ok(reply)
}

/// Part of a measurement in one process.
struct Phase {
    pid: u32,
    before: f64,
    begun: Instant,
}

impl Phase {
    fn begin(server: &Server) -> Result<Self> {
        let pid = server.pid().context("no process")?;
        // The peak starts anew (proc(5)).
        std::fs::write(format!("/proc/{pid}/clear_refs"), "5")?;
        Ok(Self {
            pid,
            before: memory(pid, "VmRSS")?,
            begun: Instant::now(),
        })
    }

    fn end(self, what: &str, bytes: usize) -> Result<()> {
        let took = self.begun.elapsed().as_secs_f64();
        let extra = memory(self.pid, "VmHWM")? - self.before;
        let met = if extra <= ALLOWED { "met" } else { "missed" };
        println!(
            "{what}: {extra:.0} MiB over {:.0} (target {ALLOWED:.0}: {met}); {took:.1} s, {:.1} MB/s",
            self.before,
            bytes as f64 / 1_000_000.0 / took
        );
        Ok(())
    }
}
