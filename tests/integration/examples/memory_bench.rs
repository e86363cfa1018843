//! What large things cost in memory: a document through upload, stream and processing, and a knowledge core
//! through import and load; and how long both take.
//!
//! `memory_bench [MiB of the document] [MB of the core] [MiB for the shipped flow]`, beside the binaries it measures. The
//! document goes twice: through a flow that has the chunker alone, so that nothing is kept but what the library keeps, and
//! through the flow that is shipped (`default`, of the blueprint `everything`, with the model `builtin`), whose stores
//! keep what is found in it. The core is loaded by a process of its own beside one with the stores, over RabbitMQ. Extra
//! memory is the process's peak less what it held before. Workload 3 tells what stays in the stores from what was in passing; 1 had no second run.
//! Each is one run: the large ones take minutes to hours, and the figure is the peak of a run, which only grows with rounds.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tg_integration_tests::large::{ALLOWED, Phase, ask, process, stream, upload};
use tg_testkit::bench::headline;
use tg_testkit::process::{Launch, Server, client};
use tg_testkit::rabbitmq::RabbitNode;
use tg_testkit::services::{SERVICES, without};

const CORE: &str = "large";
const BOUND: Duration = Duration::from_secs(1_200);
/// After so long a thread that has nothing to do has given its heap back.
const SETTLED: Duration = Duration::from_secs(20);
/// Triples and entities of a record of the core, and numbers of a vector.
const TRIPLES: usize = 400;
const ENTITIES: usize = 100;
const NUMBERS: usize = 256;

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let mut number = |usual: usize| args.next().map_or(Ok(usual), |text| text.parse());
    let (document, core) = (number(1_024)?, number(100)?);
    let shipped = number(document)?;
    println!("{}", headline(3));
    large_document(document << 20, Through::Chunker).await?;
    large_document(shipped << 20, Through::Shipped).await?;
    large_core(core * 1_000_000).await
}

/// A flow that a document goes through.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Through {
    /// One that has the chunker alone.
    Chunker,
    /// The one that is there from the start.
    Shipped,
}

impl Through {
    fn flow(self) -> &'static str {
        match self {
            Self::Chunker => "bench",
            Self::Shipped => "default",
        }
    }
}

async fn large_document(size: usize, through: Through) -> Result<()> {
    let server = Launch::up().ready().await?;
    if through == Through::Chunker {
        start_flow(&server).await?;
    }
    let bound = BOUND * if through == Through::Shipped { 30 } else { 1 };
    let what = format!("document of {} MiB, flow {}", size >> 20, through.flow());

    let phase = Phase::begin(&server)?;
    upload(&server, size).await?;
    told(&phase, &format!("{what}, upload"), size)?;

    let phase = Phase::begin(&server)?;
    stream(&server, size).await?;
    told(&phase, &format!("{what}, stream"), size)?;

    let phase = Phase::begin(&server)?;
    let chunks = process(&server, through.flow(), bound).await?;
    let what = format!("{what}, processing to {chunks} chunks");
    told(&phase, &what, size)?;
    if through == Through::Shipped {
        // What is in passing goes meanwhile; what stays is the stores' own.
        tokio::time::sleep(SETTLED).await;
        let stays = phase.now()?;
        println!(
            "{what}: of it {:.0} MiB stay, {:.0} were in passing",
            stays - phase.before,
            phase.peak()? - stays
        );
    }
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

async fn large_core(size: usize) -> Result<()> {
    let node = RabbitNode::start().await?;
    let services = without(&SERVICES, &["knowledge"]);
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
    told(&phases.0, &format!("{what}, import, at the door"), size)?;
    told(&phases.1, &format!("{what}, import, in the service"), size)?;

    let phase = Phase::begin(&cores)?;
    let load =
        json!({"operation": "load-kg-core", "id": CORE, "flow": "default", "collection": "loaded"});
    ask(&rest, "knowledge", load).await?;
    told(&phase, &format!("{what}, load"), size)?;
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

/// A line of the table.
fn told(phase: &Phase, what: &str, bytes: usize) -> Result<()> {
    let (took, before) = (phase.took().as_secs_f64(), phase.before);
    let extra = phase.peak()? - before;
    let met = if extra <= ALLOWED { "met" } else { "missed" };
    println!(
        "{what}: {extra:.0} MiB over {before:.0} (target {ALLOWED:.0}: {met}); {took:.1} s, {:.1} MB/s",
        bytes as f64 / 1_000_000.0 / took
    );
    Ok(())
}
