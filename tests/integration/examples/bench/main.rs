//! The system's figures beside their targets, as its users run it: the built `threadgraph`, embedded and over RabbitMQ
//! in one process and in a process per service; the gateway's WebSocket; a scripted model without delay that answers
//! in eight pieces. A run of the agent asks it three times: to choose a tool, by the tool, and for the answer.
//!
//! `bench [embedded|rabbitmq|services|both] [rounds]`, in the target folder of the binaries it measures. Client and
//! model run in this process and share the machine with the system. A missed target is printed, never a
//! failure; a measurement that meets an error is, for its figure would mean nothing.
//!
//! `bench turn embedded|process|services [measurements]` measures once only what `scripts/compare.sh` sets beside an earlier commit.

mod commands;
mod figures;
mod system;
mod tokens;
mod turn;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tg_testkit::bench::headline;
use tg_testkit::machine::load;
use tg_testkit::process::Server;
use tg_testkit::rabbitmq::RabbitNode;
use tg_testkit::socket::Socket;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::figures::{
    BROKERS, COMMAND, FILE, Figures, OURS, OWN, OWN_AFTER, OWN_OF_ALL, RUN, RUNS, TEXT, middle,
    millis,
};
use crate::system::{Shape, System};

/// Questions under way in the measurements of throughput, and the sockets they share.
const IN_FLIGHT: usize = 32;
const SOCKETS: usize = 4;
/// How long one measurement of a round takes.
const SLICE: Duration = Duration::from_millis(1_200);
/// Starts of each kind.
const STARTS: usize = 3;
/// Time a fresh system gets to come to rest before its memory is read.
const REST: Duration = Duration::from_secs(2);
const WARM_UP: usize = 100;
/// Runs of which the messages are counted, in each round.
const COUNTED_RUNS: usize = 40;
const PIECES: usize = 8;
/// What an import of a round holds, in frames and triples a frame.
const FRAMES: usize = 100;
const FRAME: usize = 100;
/// Longest wait for anything.
const BOUND: Duration = Duration::from_secs(30);
const DURABILITY: &str = "process";

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let which = args.next().unwrap_or_else(|| "both".to_owned());
    if which == "turn" {
        let shape = args.next().unwrap_or_default();
        let count = args.next();
        let count = count.map_or(Ok(turn::MEASUREMENTS), |count| count.parse())?;
        return turn::measured(Shape::named(&shape)?, count).await;
    }
    let rounds: usize = args.next().map_or(Ok(5), |rounds| rounds.parse())?;
    machine();
    let mut whole = true;
    let shapes: &[Shape] = match which.as_str() {
        "embedded" => &[Shape::Embedded],
        "rabbitmq" => &[Shape::OneProcess, Shape::ProcessPerService],
        "services" => &[Shape::ProcessPerService],
        _ => &[Shape::Embedded, Shape::OneProcess, Shape::ProcessPerService],
    };
    for shape in shapes {
        whole &= bench(*shape, rounds).await?;
    }
    ensure!(whole, "some measurements met errors");
    Ok(())
}

fn machine() {
    println!("{}", headline(1));
    println!("durability: {DURABILITY} (a commit survives a crash of the process)");
    println!(
        "model: scripted, no delay, {PIECES} pieces a reply; client and model share the cores"
    );
}

/// Measures everything of one shape; whether all measurements were whole.
async fn bench(shape: Shape, rounds: usize) -> Result<bool> {
    let (name, names) = (shape.name(), system::names(shape)?);
    let node = broker(shape).await?;
    println!("\n{name}, load before {}", load());
    let model = system::model().await?;
    let mut figures = Figures::default();
    let kept = tempfile::tempdir()?;

    // Each start from nothing has a data directory and, over a broker, a virtual host of its own.
    let (mut last, mut used) = (None, None);
    for start in 0..STARTS {
        if let Some(system) = last.take() {
            System::end(system, &mut figures).await;
        }
        let data = kept.path().join(format!("data-{start}"));
        let bus = match &node {
            Some(node) => Some(node.vhost(&host(start)).await?),
            None => None,
        };
        let (system, took) = System::start(shape, &model, bus.as_deref(), &data).await?;
        used = bus;
        figures.add("ready from nothing", took);
        tokio::time::sleep(REST).await;
        let own = system.memory("RssAnon")?;
        figures.add(OWN_OF_ALL, own.iter().sum());
        if shape == Shape::ProcessPerService {
            figures.add(OWN, own.into_iter().fold(0.0, f64::max));
        } else {
            let resident = system.memory("VmRSS")?.iter().sum();
            figures.add("resident, idle, empty stores", resident);
        }
        last = Some(system);
    }
    let system = last.context("no start")?;
    system.print_memory("RssAnon", "own memory, idle,")?;
    figures.add(FILE, system::size_of_program()?);
    rounds_on(&system, node.as_ref(), rounds, &mut figures).await?;
    tokio::time::sleep(REST).await;
    figures.add(OWN_AFTER, system.memory("RssAnon")?.iter().sum());
    // A limit of a container counts pages of files, too.
    system.print_memory("VmHWM", "most resident memory under load")?;
    system.end(&mut figures).await;

    // A model that writes at the pace of one, asked by a system of its own.
    let paced = tokens::model().await?;
    let bus = match &node {
        Some(node) => Some(node.vhost(&host(STARTS)).await?),
        None => None,
    };
    let data = kept.path().join("tokens");
    let (system, _) = System::start(shape, &paced, bus.as_deref(), &data).await?;
    for _ in 0..rounds {
        match tokens::delays(&system.url()).await {
            Ok((agent, completion)) => {
                figures.add("token delay, agent, p99", agent);
                figures.add("token delay, completion, p99", completion);
            }
            Err(fault) => figures.faults.push(format!("token delay: {fault:#}")),
        }
    }
    let mut system = Some(system);

    // The same stores again, now with the traces of thousands of runs in them.
    let data = kept.path().join(format!("data-{}", STARTS - 1));
    for _ in 0..STARTS {
        if let Some(system) = system.take() {
            system.end(&mut figures).await;
        }
        let (started, took) = System::start(shape, &model, used.as_deref(), &data).await?;
        figures.add("ready with this run's stores", took);
        system = Some(started);
    }
    println!("{name}, load after {}", load());
    println!("  {:32} {:>9}     least to greatest (n)", "", "median");
    figures.print(shape, &names);
    Ok(figures.faults.is_empty())
}

/// The broker of a shape, where it has one.
async fn broker(shape: Shape) -> Result<Option<RabbitNode>> {
    if shape == Shape::Embedded {
        return Ok(None);
    }
    ensure!(
        RabbitNode::installed(),
        "rabbitmq-server is required: run scripts/install-rabbitmq.sh"
    );
    Ok(Some(RabbitNode::start().await?))
}

/// The virtual host of a start.
fn host(start: usize) -> String {
    format!("bench-{start}")
}

/// Everything that is asked of a running system.
async fn rounds_on(
    system: &System,
    node: Option<&RabbitNode>,
    rounds: usize,
    figures: &mut Figures,
) -> Result<()> {
    let mut sockets = Vec::new();
    for _ in 0..SOCKETS {
        sockets.push(Arc::new(Socket::connect(&system.url(), "").await?));
    }
    let server = system.gateway();
    let first = sockets[0].clone();
    for _ in 0..rounds {
        figures.keep(COMMAND, commands::slowest(&system.url()).await);
    }
    for n in 0..WARM_UP {
        run(&first, n, true).await?;
    }
    for round in 0..rounds {
        match one_by_one(&first).await {
            Ok((whole, chunk)) => {
                figures.add(RUN, whole);
                figures.add(TEXT, chunk);
            }
            Err(fault) => figures.faults.push(format!("agent run: {fault:#}")),
        }
        runs_at_once(system, node, &sockets, figures).await?;
        figures.keep("config get", rate(&sockets, config_get).await);
        figures.keep("text completion", rate(&sockets, completion).await);
        figures.keep("triples import socket", import(server, &first, round).await);
        figures.keep("triples query", rate(&sockets, triples).await);
        match flow(&first, round).await {
            Ok((start, stop)) => {
                figures.add("start-flow", start);
                figures.add("stop-flow, idle", stop);
            }
            Err(fault) => figures.faults.push(format!("flow: {fault:#}")),
        }
        if let Some(node) = node {
            let streamed = messages(node, &first, true).await;
            figures.keep("messages a run, streamed", streamed);
            let whole = messages(node, &first, false).await;
            figures.keep("messages a run, not streamed", whole);
        }
    }
    Ok(())
}

/// Runs a second with many in flight, and the processor time that each takes, of the system and of the broker.
async fn runs_at_once(
    system: &System,
    node: Option<&RabbitNode>,
    sockets: &[Arc<Socket>],
    figures: &mut Figures,
) -> Result<()> {
    let times = || {
        let broker = node.map(system::of_broker).transpose()?;
        Ok::<_, anyhow::Error>((system.processor_times()?, broker.unwrap_or(0.0)))
    };
    let (begun, before) = (Instant::now(), times()?);
    let rate = rate(sockets, |socket, n| async move {
        run(&socket, n, true).await.map(drop)
    });
    let rate = rate.await;
    let (taken, after) = (begun.elapsed().as_secs_f64(), times()?);
    if let Ok(rate) = rate {
        let runs = rate * taken;
        let each: Vec<f64> = (after.0.iter().zip(&before.0))
            .map(|(after, before)| (after - before) / runs)
            .collect();
        figures.add(OURS, each.iter().sum());
        figures.by_process.push(each);
        if node.is_some() {
            figures.add(BROKERS, (after.1 - before.1) / runs);
        }
    }
    figures.keep(RUNS, rate);
    Ok(())
}

/// One agent run; milliseconds until its first text.
async fn run(socket: &Socket, n: usize, streaming: bool) -> Result<f64> {
    let question = format!("What is the answer? nonce-{n}");
    let request = json!({"question": question, "streaming": streaming, "collection": "default"});
    let begun = Instant::now();
    let envelope = json!({"service": "agent", "flow": "default", "request": request});
    let mut frames = socket.send(envelope).await?;
    let (mut text, mut last) = (None, Value::Null);
    let read = async {
        while let Some(frame) = frames.next().await {
            let chunk = &frame["response"];
            let kind = chunk["message_type"].as_str().unwrap_or_default();
            let content = chunk["content"].as_str().unwrap_or_default();
            if text.is_none() && matches!(kind, "thought" | "answer") && !content.is_empty() {
                text = Some(millis(begun));
            }
            last = frame;
        }
    };
    tokio::time::timeout(BOUND, read)
        .await
        .context("no answer")?;
    ensure!(last["response"]["end_of_dialog"] == true, "{last}");
    text.context("no text came")
}

/// Runs one after the other: p50 of the run and of its first text.
async fn one_by_one(socket: &Socket) -> Result<(f64, f64)> {
    let (mut whole, mut chunks) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    while begun.elapsed() < SLICE {
        let start = Instant::now();
        chunks.push(run(socket, whole.len(), true).await?);
        whole.push(millis(start));
    }
    whole.sort_by(f64::total_cmp);
    chunks.sort_by(f64::total_cmp);
    Ok((middle(&whole), middle(&chunks)))
}

/// How many questions a second are answered with `IN_FLIGHT` under way.
async fn rate<F, Fut>(sockets: &[Arc<Socket>], ask: F) -> Result<f64>
where
    F: Fn(Arc<Socket>, usize) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<()>> + Send,
{
    let answered = Arc::new(AtomicUsize::new(0));
    let mut lanes = JoinSet::new();
    let begun = Instant::now();
    for lane in 0..IN_FLIGHT {
        let socket = sockets[lane % sockets.len()].clone();
        let (answered, ask) = (answered.clone(), ask.clone());
        lanes.spawn(async move {
            let mut n = lane;
            loop {
                ask(socket.clone(), n).await?;
                answered.fetch_add(1, Ordering::Relaxed);
                if begun.elapsed() >= SLICE {
                    return Ok::<_, anyhow::Error>(());
                }
                n += IN_FLIGHT;
            }
        });
    }
    while let Some(lane) = lanes.join_next().await {
        lane??;
    }
    Ok(answered.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64())
}

fn good(frame: Value) -> Result<Value> {
    let fault = [&frame["error"], &frame["response"]["error"]];
    ensure!(fault.iter().all(|fault| fault.is_null()), "{frame}");
    Ok(frame)
}

async fn config_get(socket: Arc<Socket>, _: usize) -> Result<()> {
    let keys = json!([{"type": "prompt", "key": "system"}]);
    let request = json!({"operation": "get", "keys": keys});
    good(socket.ask_service("config", request).await?).map(drop)
}

async fn completion(socket: Arc<Socket>, _: usize) -> Result<()> {
    let request = json!({"system": "Be brief.", "prompt": "Say hello", "streaming": false});
    let frames = socket.ask("text-completion", "default", request).await?;
    good(frames.into_iter().next_back().context("no frame")?).map(drop)
}

async fn triples(socket: Arc<Socket>, n: usize) -> Result<()> {
    let found = found(&socket, &subject(0, n % (FRAMES * FRAME / 10))).await?;
    ensure!(found == 10, "{found} triples found instead of 10");
    Ok(())
}

fn subject(round: usize, n: usize) -> String {
    format!("urn:bench:{round}:{n}")
}

/// How many triples a subject has.
async fn found(socket: &Socket, subject: &str) -> Result<usize> {
    let request = json!({"s": {"t": "i", "i": subject}, "limit": 100, "collection": "default"});
    let frames = socket.ask("triples", "default", request).await?;
    let frame = good(frames.into_iter().next_back().context("no frame")?)?;
    Ok(frame["response"]["response"].as_array().map_or(0, Vec::len))
}

/// Imports a set of triples, until the clean close says that all are safe; triples a second. Then waits
/// until they can be found.
async fn import(server: &Server, socket: &Socket, round: usize) -> Result<f64> {
    let frames: Vec<String> = (0..FRAMES).map(|at| frame(round, at)).collect();
    let url = server.url().replacen("http", "ws", 1);
    let url = format!("{url}api/v1/flow/default/import/triples");
    let begun = Instant::now();
    let (mut stream, _) = tokio_tungstenite::connect_async(url).await?;
    for frame in frames {
        stream.send(Message::text(frame)).await?;
    }
    stream.close(None).await?;
    while let Some(Ok(message)) = stream.next().await {
        if let Message::Close(Some(close)) = message {
            ensure!(close.code == CloseCode::Normal, "{close}");
        }
    }
    let rate = (FRAMES * FRAME) as f64 / begun.elapsed().as_secs_f64();
    let last = subject(round, FRAMES * FRAME / 10 - 1);
    let begun = Instant::now();
    while found(socket, &last).await? < 10 {
        ensure!(begun.elapsed() < BOUND, "imported triples are not found");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(rate)
}

fn frame(round: usize, at: usize) -> String {
    let triples: Vec<Value> = (at * FRAME..(at + 1) * FRAME)
        .map(|n| {
            json!({
                "s": {"t": "i", "i": subject(round, n / 10)},
                "p": {"t": "i", "i": format!("urn:bench:property:{}", n % 10)},
                "o": {"t": "l", "v": format!("value {n}")},
            })
        })
        .collect();
    let metadata = json!({"id": "", "metadata": [], "collection": "default"});
    json!({"metadata": metadata, "triples": triples}).to_string()
}

/// Starts a flow and stops it; milliseconds of both.
async fn flow(socket: &Socket, round: usize) -> Result<(f64, f64)> {
    let id = format!("bench-{round}");
    let start = json!({
        "operation": "start-flow", "flow-id": id, "blueprint-name": "everything",
        "description": "bench", "parameters": {},
    });
    let stop = json!({"operation": "stop-flow", "flow-id": id, "drain": "wait"});
    let begun = Instant::now();
    good(socket.ask_service("flow", start).await?)?;
    let started = millis(begun);
    let begun = Instant::now();
    good(socket.ask_service("flow", stop).await?)?;
    Ok((started, millis(begun)))
}

/// What the broker received from its clients a run, less what it receives anyway in that time.
async fn messages(node: &RabbitNode, socket: &Socket, streaming: bool) -> Result<f64> {
    let begun = Instant::now();
    let before = received(node).await?;
    for n in 0..COUNTED_RUNS {
        if streaming {
            run(socket, n, true).await?;
        } else {
            let request = json!({"question": format!("What? nonce-{n}"), "streaming": false});
            let frames = socket.ask("agent", "default", request).await?;
            good(frames.into_iter().next_back().context("no frame")?)?;
        }
    }
    let after = received(node).await?;
    let taken = begun.elapsed();
    tokio::time::sleep(taken).await;
    // Records of the last runs arrive in the idle span too; their share is below the last digit.
    let idle = received(node).await? - after;
    Ok((after - before - idle) / COUNTED_RUNS as f64)
}

/// Messages that the broker received so far.
async fn received(node: &RabbitNode) -> Result<f64> {
    let count = "maps:get(messages_received_total, \
                 maps:get([{protocol, amqp091}], rabbit_global_counters:overview())).";
    let text = node.ctl(&["eval", count]).await?;
    text.trim().parse().context(text)
}
