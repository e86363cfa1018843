//! The system's figures beside their targets, on both buses, as its users run it: the built `threadgraph`
//! process, the gateway's WebSocket, a scripted model without delay that answers in eight pieces.
//!
//! `bench [embedded|rabbitmq|both] [rounds]`, in the target folder of the binaries it measures. Client and
//! model run in this process and share the machine with the system. A missed target is printed, never a
//! failure; a measurement that meets an error is, for its figure would mean nothing.

mod tokens;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tg_testkit::model::{Options, ScriptedModel, two_step_react};
use tg_testkit::process::{Launch, Server, client};
use tg_testkit::rabbitmq::RabbitNode;
use tg_testkit::socket::Socket;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

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
const COUNTED_RUNS: usize = 200;
const PIECES: usize = 8;
/// What an import of a round holds, in frames and triples a frame.
const FRAMES: usize = 100;
const FRAME: usize = 100;
/// Longest wait for anything.
const BOUND: Duration = Duration::from_secs(30);
const DURABILITY: &str = "process";

#[derive(Clone, Copy)]
enum Target {
    AtMost(f64),
    AtLeast(f64),
    None,
}

/// What is measured: name, unit, target embedded, target over RabbitMQ. Printed in this order.
type Row = (&'static str, &'static str, Target, Target);

const ROWS: &[Row] = {
    use Target::{AtLeast, AtMost};
    &[
        (
            "agent run, p50, 1 at a time",
            "ms",
            AtMost(3.0),
            AtMost(8.0),
        ),
        ("first text chunk, p50", "ms", AtMost(5.0), AtMost(5.0)),
        (
            "agent runs, 32 in flight",
            "/s",
            AtLeast(600.0),
            AtLeast(100.0),
        ),
        ("token delay, agent, p99", "ms", AtMost(1.0), AtMost(1.0)),
        (
            "token delay, completion, p99",
            "ms",
            AtMost(1.0),
            AtMost(1.0),
        ),
        ("messages a run, streamed", "", Target::None, AtMost(40.0)),
        (
            "messages a run, not streamed",
            "",
            Target::None,
            AtMost(40.0),
        ),
        ("config get", "/s", AtLeast(5_000.0), AtLeast(2_000.0)),
        ("text completion", "/s", AtLeast(3_000.0), AtLeast(1_200.0)),
        ("triples query", "/s", AtLeast(5_000.0), AtLeast(2_000.0)),
        (
            "triples import socket",
            "/s",
            AtLeast(20_000.0),
            AtLeast(20_000.0),
        ),
        ("start-flow", "ms", AtMost(20.0), AtMost(150.0)),
        ("stop-flow, idle", "ms", AtMost(20.0), AtMost(150.0)),
        ("ready from nothing", "ms", AtMost(2_000.0), AtMost(2_000.0)),
        (
            "ready with this run's stores",
            "ms",
            AtMost(1_000.0),
            AtMost(1_000.0),
        ),
        (
            "resident, idle, empty stores",
            "MB",
            AtMost(100.0),
            AtMost(100.0),
        ),
    ]
};

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let which = args.next().unwrap_or_else(|| "both".to_owned());
    let rounds: usize = args.next().map_or(Ok(5), |rounds| rounds.parse())?;
    machine();
    let mut whole = true;
    if which != "rabbitmq" {
        whole &= bench(None, rounds).await?;
    }
    if which != "embedded" {
        ensure!(
            RabbitNode::installed(),
            "rabbitmq-server is required: run scripts/install-rabbitmq.sh"
        );
        whole &= bench(Some(RabbitNode::start().await?), rounds).await?;
    }
    ensure!(whole, "some measurements met errors");
    Ok(())
}

fn machine() {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpu = line_of("/proc/cpuinfo", "model name");
    let memory = line_of("/proc/meminfo", "MemTotal");
    println!("machine: {cores} cores, {cpu}, memory {memory}");
    println!("durability: {DURABILITY} (a commit survives a crash of the process)");
    println!(
        "model: scripted, no delay, {PIECES} pieces a reply; client and model share the cores"
    );
}

fn line_of(file: &str, name: &str) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_once(':'));
    value.map_or("?".to_owned(), |(_, value)| value.trim().to_owned())
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// Samples by name, and what went wrong.
#[derive(Default)]
struct Figures {
    samples: BTreeMap<&'static str, Vec<f64>>,
    faults: Vec<String>,
}

impl Figures {
    fn add(&mut self, name: &'static str, value: f64) {
        self.samples.entry(name).or_default().push(value);
    }

    fn keep(&mut self, name: &'static str, value: Result<f64>) {
        match value {
            Ok(value) => self.add(name, value),
            Err(fault) => self.faults.push(format!("{name}: {fault:#}")),
        }
    }

    fn print(&self, rabbit: bool) {
        for (name, unit, embedded, over_rabbit) in ROWS {
            let target = if rabbit { over_rabbit } else { embedded };
            let Some(samples) = self.samples.get(name) else {
                continue;
            };
            let mut sorted = samples.clone();
            sorted.sort_by(f64::total_cmp);
            let median = middle(&sorted);
            let (goal, met) = match target {
                Target::AtMost(most) => (format!("at most {most}"), median <= *most),
                Target::AtLeast(least) => (format!("at least {least}"), median >= *least),
                Target::None => (String::new(), true),
            };
            let verdict = match target {
                Target::None => "",
                _ if met => "met",
                _ => "MISSED",
            };
            let spread = format!(
                "{} to {} ({})",
                short(sorted[0]),
                short(sorted[sorted.len() - 1]),
                sorted.len()
            );
            println!(
                "  {name:30} {:>9} {unit:3} {spread:24} {goal:16} {verdict}",
                short(median)
            );
        }
        for fault in &self.faults {
            println!("  FAILED {fault}");
        }
    }
}

fn short(value: f64) -> String {
    if value >= 100.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}

/// The median of sorted samples.
fn middle(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn millis(from: Instant) -> f64 {
    from.elapsed().as_secs_f64() * 1_000.0
}

/// Measures everything on one bus; whether all measurements were whole.
async fn bench(node: Option<RabbitNode>, rounds: usize) -> Result<bool> {
    let name = if node.is_some() {
        "RabbitMQ"
    } else {
        "embedded"
    };
    println!("\n{name}, load before {}", load());
    let options = Options {
        keep_calls: false,
        ..Options::default()
    };
    let rules = two_step_react("calculator", json!({"expression": "6*7"}), PIECES);
    let model = ScriptedModel::start_with(options, rules).await?;
    let mut figures = Figures::default();
    let kept = tempfile::tempdir()?;

    // Each start from nothing has a data directory and, over a broker, a virtual host of its own.
    let mut last = None;
    for start in 0..STARTS {
        if let Some(server) = last.take() {
            end(server, &mut figures).await;
        }
        let data = kept.path().join(format!("data-{start}"));
        let bus = match &node {
            Some(node) => Some(fresh_host(node, start).await?),
            None => None,
        };
        let (server, took) = start_up(&model, bus.as_deref(), &data).await?;
        figures.add("ready from nothing", took);
        tokio::time::sleep(REST).await;
        figures.keep("resident, idle, empty stores", resident(&server));
        last = Some(server);
    }
    let server = last.context("no start")?;
    rounds_on(&server, node.as_ref(), rounds, &mut figures).await?;

    end(server, &mut figures).await;

    // A model that writes at the pace of one, asked by a system of its own.
    let paced = tokens::model().await?;
    let bus = match &node {
        Some(node) => Some(fresh_host(node, STARTS).await?),
        None => None,
    };
    let data = kept.path().join("tokens");
    let (server, _) = start_up(&paced, bus.as_deref(), &data).await?;
    for _ in 0..rounds {
        match tokens::delays(&server.url()).await {
            Ok((agent, completion)) => {
                figures.add("token delay, agent, p99", agent);
                figures.add("token delay, completion, p99", completion);
            }
            Err(fault) => figures.faults.push(format!("token delay: {fault:#}")),
        }
    }
    let mut server = Some(server);

    // The same stores again, now with the traces of thousands of runs in them.
    let data = kept.path().join(format!("data-{}", STARTS - 1));
    for _ in 0..STARTS {
        if let Some(server) = server.take() {
            end(server, &mut figures).await;
        }
        let bus = node.as_ref().map(|node| host_url(node, STARTS - 1));
        let (started, took) = start_up(&model, bus.as_deref(), &data).await?;
        figures.add("ready with this run's stores", took);
        server = Some(started);
    }
    println!("{name}, load after {}", load());
    println!("  {:30} {:>9}     least to greatest (n)", "", "median");
    figures.print(node.is_some());
    Ok(figures.faults.is_empty())
}

fn host_url(node: &RabbitNode, start: usize) -> String {
    format!("amqp://guest:guest@127.0.0.1:{}/bench-{start}", node.port())
}

async fn fresh_host(node: &RabbitNode, start: usize) -> Result<String> {
    let host = format!("bench-{start}");
    node.ctl(&["add_vhost", &host]).await?;
    node.ctl(&["set_permissions", "-p", &host, "guest", ".*", ".*", ".*"])
        .await?;
    Ok(host_url(node, start))
}

/// Starts the whole system; milliseconds until the default flow serves.
async fn start_up(model: &ScriptedModel, bus: Option<&str>, data: &Path) -> Result<(Server, f64)> {
    let mut launch = Launch::up()
        .env("OPENAI_BASE_URL", model.url())
        .env("OPENAI_API_KEY", "sk-bench")
        .env("OPENAI_MODEL", "scripted")
        .env("THREADGRAPH_DURABILITY", DURABILITY)
        .data(data);
    if let Some(bus) = bus {
        launch = launch.arg("--bus").arg(bus);
    }
    let client = client()?;
    let begun = Instant::now();
    let mut server = launch.spawn().await?;
    let url = format!("{}health/ready", server.url());
    loop {
        let answer = client.get(&url).timeout(BOUND).send().await;
        if answer.is_ok_and(|response| response.status().is_success()) {
            return Ok((server, millis(begun)));
        }
        if !server.alive() || begun.elapsed() > BOUND {
            bail!("the system did not get ready:\n{}", server.log());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Asks the system to end; one that does not is killed, and that is a fault.
async fn end(server: Server, figures: &mut Figures) {
    match server.terminate().await {
        Ok(Some(0)) => {}
        Ok(code) => figures.faults.push(format!("end: exit code {code:?}")),
        Err(fault) => figures.faults.push(format!("end: {fault:#}")),
    }
}

/// Resident memory in MB.
fn resident(server: &Server) -> Result<f64> {
    let pid = server.pid().context("no process")?;
    Ok(tg_integration_tests::memory(pid, "VmRSS")? * 1.048_576)
}

/// Everything that is asked of a running system.
async fn rounds_on(
    server: &Server,
    node: Option<&RabbitNode>,
    rounds: usize,
    figures: &mut Figures,
) -> Result<()> {
    let mut sockets = Vec::new();
    for _ in 0..SOCKETS {
        sockets.push(Arc::new(Socket::connect(&server.url(), "").await?));
    }
    let first = sockets[0].clone();
    for n in 0..WARM_UP {
        run(&first, n, true).await?;
    }
    for round in 0..rounds {
        match one_by_one(&first).await {
            Ok((whole, chunk)) => {
                figures.add("agent run, p50, 1 at a time", whole);
                figures.add("first text chunk, p50", chunk);
            }
            Err(fault) => figures.faults.push(format!("agent run: {fault:#}")),
        }
        let runs = rate(&sockets, |socket, n| async move {
            run(&socket, n, true).await.map(drop)
        });
        figures.keep("agent runs, 32 in flight", runs.await);
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
    }
    if let Some(node) = node {
        let streamed = messages(node, &first, true).await;
        figures.keep("messages a run, streamed", streamed);
        let whole = messages(node, &first, false).await;
        figures.keep("messages a run, not streamed", whole);
    }
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
