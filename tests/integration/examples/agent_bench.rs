//! What the agent's loop takes beside its model, on the embedded bus and over RabbitMQ: guards and budgets of an iteration, alone
//! and with routing; a step of many runs at once; a supervisor's way; a cancel; a run that is joined again.
//! `agent_bench [embedded|rabbitmq|both]`, beside the binaries it measures.
//!
//! A step's overhead is measured by the model: from when it had written one reply until it is asked for the next of that run.
//! Client and model share the machine with the system. Three rounds, or as many as fit into two minutes on each bus: the bench prints
//! how many, and how much is in each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};
use tg_testkit::bench::{ROUNDS, Rounds, headline};
use tg_testkit::model::{
    End, Options, Reply, Rule, ScriptedModel, final_answer, nonce_of, tool_call, two_step_react,
};
use tg_testkit::process::{Launch, Server};
use tg_testkit::shared_node::VirtualHost;
use tg_testkit::socket::Socket;

/// Iterations of a run: a tool in each but the last.
const ITERATIONS: usize = 10;
/// Runs one after the other of a round, of each of the three systems.
const ALTERNATED: usize = 30;
/// Runs at once, and the model's time for a reply of theirs; they are compared with some that each have the system to themselves.
/// Such a run takes ten seconds and has nine steps, each of which counts.
const AT_ONCE: usize = 200;
const PACE: Duration = Duration::from_secs(1);
const ALONE: usize = 1;
/// Subagents, the model's time for a reply of theirs, and its replies on the longest way: goals, a tool, what it found, the answer.
const SUBAGENTS: usize = 8;
const REPLY: Duration = Duration::from_millis(100);
const REPLIES: u32 = 4;
const SUPERVISED: usize = 5;
const CANCELS: usize = 100;
const JOINS: usize = 300;
/// Longest wait for anything.
const BOUND: Duration = Duration::from_secs(120);
/// A further round begins only if it ends within this time of its bus, should it take as long as the longest before it.
const SPAN: Duration = Duration::from_secs(115);

/// The figures: name, unit, and what each is to be at most.
const GUARDED: (&str, &str, f64) = ("guards and budgets, an iteration", "ms", 0.2);
const COST: (&str, &str, f64) = ("guards, budgets and routing, an iteration", "ms", 0.2);
const MANY: (&str, &str, f64) = ("step, p95 of 200 runs to p50 of one", "x", 3.0);
const WAY: (&str, &str, f64) = ("supervisor of 8, to its slowest path", "x", 1.3);
const CLOSED: (&str, &str, f64) = ("cancel to closed connection, p99", "ms", 200.0);
const JOINED: (&str, &str, f64) = ("joined to the first missed part, p95", "ms", 50.0);

#[derive(Debug, Clone, Copy)]
enum Bus {
    Embedded,
    RabbitMq,
}

#[tokio::main]
async fn main() -> Result<()> {
    println!("{}", headline(2));
    let which = std::env::args().nth(1).unwrap_or_else(|| "both".to_owned());
    if which != "rabbitmq" {
        bench("embedded", Bus::Embedded).await?;
    }
    if which != "embedded" {
        bench("RabbitMQ, one process", Bus::RabbitMq).await?;
    }
    Ok(())
}

async fn bench(name: &str, bus: Bus) -> Result<()> {
    let mut rounds = Rounds::default();
    let (begun, mut longest, mut made) = (Instant::now(), Duration::ZERO, 0);
    while made < ROUNDS && begun.elapsed() + longest <= SPAN {
        let round = Instant::now();
        guards(bus, &mut rounds).await?;
        many(bus, &mut rounds).await?;
        supervised(bus, &mut rounds).await?;
        cancelled(bus, &mut rounds).await?;
        joined(bus, &mut rounds).await?;
        longest = longest.max(round.elapsed());
        made += 1;
    }
    println!(
        "\n{name}: {made} of {ROUNDS} rounds in {:.0} s",
        begun.elapsed().as_secs_f64()
    );
    println!(
        "  each round: {ALTERNATED} runs of each of three systems, {ALONE} alone, {AT_ONCE} at once, {SUPERVISED} of a supervisor, \
         {CANCELS} cancels, {JOINS} joins"
    );
    rounds.print();
    for (name, unit, most) in [GUARDED, COST, MANY, WAY, CLOSED, JOINED] {
        let median = rounds.median(name).context("a figure is missing")?;
        let verdict = if median <= most { "met" } else { "MISSED" };
        println!("  {name}: at most {most} {unit}: {verdict}");
    }
    Ok(())
}

/// A virtual host of its own, over RabbitMQ.
async fn fresh(bus: Bus) -> Result<Option<VirtualHost>> {
    match bus {
        Bus::Embedded => Ok(None),
        Bus::RabbitMq => Ok(Some(VirtualHost::new().await?)),
    }
}

fn system(model: &ScriptedModel, host: Option<&VirtualHost>) -> Launch {
    Launch::up()
        .env("OPENAI_BASE_URL", model.url())
        .env("OPENAI_API_KEY", "sk-bench")
        .env("OPENAI_MODEL", "scripted")
        .over(host)
}

async fn scripted(rules: Vec<Rule>) -> Result<ScriptedModel> {
    let options = Options {
        keep_calls: false,
        counts_tokens: false,
        ..Options::default()
    };
    Ok(ScriptedModel::start_with(options, rules).await?)
}

/// What a run of [`ITERATIONS`] is told: another sum each time, then the answer.
fn iterated(prompt: &str) -> Reply {
    let observed = prompt
        .lines()
        .filter(|line| line.starts_with("Observation:"))
        .count();
    let text = if observed + 1 < ITERATIONS {
        let sum = json!({"expression": format!("{observed}+1")});
        tool_call("One more.", "calculator", &sum)
    } else {
        final_answer("That is all.", "Counted.")
    };
    Reply::text(text)
}

fn question(text: &str) -> Value {
    json!({"service": "agent", "flow": "default", "request": {"question": text, "streaming": true}})
}

/// Asks, and waits for the whole answer; milliseconds.
async fn run(socket: &Socket, request: Value) -> Result<f64> {
    let began = Instant::now();
    let frames = socket.send(request).await?.all(BOUND).await?;
    let last = frames.last().context("no answer")?;
    ensure!(
        last["error"].is_null() && last["complete"] == true,
        "{last}"
    );
    Ok(millis(began.elapsed()))
}

/// With bounds that no run comes near.
fn bounded(launch: Launch) -> Launch {
    launch
        .env("THREADGRAPH_AGENT__RUN_TOKENS", "100000000")
        .env("THREADGRAPH_AGENT__RUN_TOOL_CALLS", "1000")
        .env("THREADGRAPH_AGENT__WORKSPACE_TOKENS_A_DAY", "1000000000000")
}

/// The same runs by a system without guards, budgets and router, by one that has guards and budgets, and by one that has all, in
/// turn.
async fn guards(bus: Bus, rounds: &mut Rounds) -> Result<()> {
    let model = scripted(vec![Rule::computed(|_| true, iterated)]).await?;
    let backends: Vec<Value> = ["near", "far"]
        .map(|name| json!({"name": name, "provider": "openai", "url": model.url(), "key": "sk-bench", "rate_limit_tpm": 1_000_000_000}))
        .into();
    let hosts = [fresh(bus).await?, fresh(bus).await?, fresh(bus).await?];
    let bare = system(&model, hosts[0].as_ref())
        .env("THREADGRAPH_AGENT__LOOP_DETECTION", "false")
        .env("THREADGRAPH_AGENT__COMPACTION", "false");
    let guarded = bounded(system(&model, hosts[1].as_ref()));
    let whole = bounded(Launch::up().over(hosts[2].as_ref()))
        .env(
            "THREADGRAPH_LLM__BACKENDS",
            Value::from(backends).to_string(),
        )
        .env("THREADGRAPH_LLM__MODEL", "scripted");
    let servers = [
        bare.ready().await?,
        guarded.ready().await?,
        whole.ready().await?,
    ];
    let mut sockets = Vec::new();
    for server in &servers {
        sockets.push(Socket::connect(&server.url(), "").await?);
    }
    let mut took = [Vec::new(), Vec::new(), Vec::new()];
    for n in 0..ALTERNATED + 5 {
        for (socket, took) in sockets.iter().zip(&mut took) {
            let one = run(socket, question(&format!("Count. nonce-{n}"))).await?;
            if n >= 5 {
                took.push(one);
            }
        }
    }
    let [bare, guarded, whole] = took.map(|took| nth(took, 50));
    rounds.add("a run of 10 iterations, bare", "ms", bare);
    rounds.add("a run of 10 iterations, guarded", "ms", guarded);
    rounds.add("a run of 10 iterations, guarded and routed", "ms", whole);
    rounds.add(GUARDED.0, GUARDED.1, (guarded - bare) / ITERATIONS as f64);
    rounds.add(COST.0, COST.1, (whole - bare) / ITERATIONS as f64);
    end(servers).await
}

/// When the model was asked by each run, by its nonce.
type Asked = Arc<Mutex<HashMap<String, Vec<Instant>>>>;

async fn many(bus: Bus, rounds: &mut Rounds) -> Result<()> {
    let asked = Asked::default();
    let noted = Arc::clone(&asked);
    let rule = Rule::computed(
        |_| true,
        move |prompt| {
            let nonce = nonce_of(prompt).unwrap_or_default().to_owned();
            let mut asked = noted.lock().unwrap_or_else(PoisonError::into_inner);
            asked.entry(nonce).or_default().push(Instant::now());
            iterated(prompt).delayed(PACE)
        },
    );
    let model = scripted(vec![rule]).await?;
    let host = fresh(bus).await?;
    let server = system(&model, host.as_ref()).ready().await?;
    let mut sockets = Vec::new();
    for _ in 0..8 {
        sockets.push(Socket::connect(&server.url(), "").await?);
    }
    let count = |n: usize| question(&format!("Count. nonce-{n}"));
    let alone = (0..ALONE).map(|n| run(&sockets[n], count(n)));
    for one in alone {
        one.await?;
    }
    let alone = nth(overheads(&asked), 50);
    let runs = (0..AT_ONCE).map(|n| {
        let sockets = &sockets;
        async move {
            // As runs that began by themselves: spread over the model's time for a reply.
            tokio::time::sleep(PACE * n as u32 / AT_ONCE as u32).await;
            run(&sockets[n % sockets.len()], count(n)).await
        }
    });
    try_join_all(runs).await?;
    let together = overheads(&asked);
    ensure!(
        together.len() == AT_ONCE * (ITERATIONS - 1),
        "{} steps",
        together.len()
    );
    let together = nth(together, 95);
    rounds.add("step overhead, p50 of one run", "ms", alone);
    rounds.add("step overhead, p95 of 200 runs", "ms", together);
    rounds.add(MANY.0, MANY.1, together / alone);
    end([server]).await
}

/// What each step since the last look took beside the model, in milliseconds.
fn overheads(asked: &Asked) -> Vec<f64> {
    let asked = std::mem::take(&mut *asked.lock().unwrap_or_else(PoisonError::into_inner));
    let steps = |times: &Vec<Instant>| {
        let steps = times.windows(2).map(|pair| pair[1] - pair[0]);
        steps
            .map(|took| millis(took.saturating_sub(PACE)))
            .collect::<Vec<_>>()
    };
    asked.values().flat_map(steps).collect()
}

async fn supervised(bus: Bus, rounds: &mut Rounds) -> Result<()> {
    let about = |heading: &'static str| move |prompt: &str| prompt.contains(heading);
    let mut rules = vec![
        Rule::computed(about("## Goals wanted"), |_| {
            let goals: Vec<_> = (0..SUBAGENTS).map(|n| format!("Part {n}?")).collect();
            Reply::text(json!(goals).to_string())
        }),
        Rule::computed(about("## Answer from"), |_| Reply::text("All is known.")),
    ];
    rules.extend(two_step_react(
        "calculator",
        json!({"expression": "6*7"}),
        1,
    ));
    let rules = rules.into_iter().map(|rule| rule.delayed(REPLY)).collect();
    let model = scripted(rules).await?;
    let host = fresh(bus).await?;
    let server = system(&model, host.as_ref()).ready().await?;
    let socket = Socket::connect(&server.url(), "").await?;
    let row = json!({"type": "agent-pattern", "key": "supervisor",
        "value": json!({"max_subagents": SUBAGENTS}).to_string()});
    let put = json!({"operation": "put", "values": [row]});
    let told = socket.ask_service("config", put).await?;
    ensure!(
        told["error"].is_null() && told["response"]["error"].is_null(),
        "{told}"
    );
    let mut request = question("Do it in parts.");
    request["request"]["pattern"] = json!("supervisor");
    let mut took = Vec::new();
    for _ in 0..SUPERVISED {
        let before = model.count();
        took.push(run(&socket, request.clone()).await?);
        let calls = model.count() - before;
        ensure!(calls == 2 + 2 * SUBAGENTS, "{calls} calls of the model");
    }
    let way = millis(REPLY * REPLIES);
    rounds.add("supervisor of 8, p50", "ms", nth(took.clone(), 50));
    rounds.add(WAY.0, WAY.1, nth(took, 50) / way);
    end([server]).await
}

async fn cancelled(bus: Bus, rounds: &mut Rounds) -> Result<()> {
    let hang = Reply::pieces(["Thought: hm"]).ending(End::Hang);
    let model = scripted(vec![Rule::always(hang)]).await?;
    let host = fresh(bus).await?;
    let server = system(&model, host.as_ref()).ready().await?;
    let socket = Socket::connect(&server.url(), "").await?;
    let mut took = Vec::new();
    for n in 1..=CANCELS {
        let mut asked = socket.send(question("Wait.")).await?;
        let run = loop {
            let frame = asked.next().await.context("no thought")?;
            if frame["response"]["message_type"] == "thought" {
                break frame["run"].clone();
            }
        };
        let began = Instant::now();
        let closed = async {
            let closed = model.wait_closed(n, BOUND).await;
            (closed, millis(began.elapsed()))
        };
        let cancel = json!({"operation": "cancel-run", "run": run});
        let (told, (closed, after)) = tokio::join!(socket.ask_service("requests", cancel), closed);
        let told = told?;
        ensure!(closed && told["response"]["cancelled"] == run, "{told}");
        took.push(after);
    }
    rounds.add(CLOSED.0, CLOSED.1, nth(took, 99));
    end([server]).await
}

/// By another gateway over RabbitMQ; on the embedded bus there is one.
async fn joined(bus: Bus, rounds: &mut Rounds) -> Result<()> {
    let rules = two_step_react("calculator", json!({"expression": "6*7"}), 8);
    let model = scripted(rules).await?;
    let host = fresh(bus).await?;
    let mut servers = vec![system(&model, host.as_ref()).ready().await?];
    if let Some(host) = &host {
        let other = Launch::serve(&["gateway"], &host.url());
        servers.push(other.ready().await?);
    }
    let socket = Socket::connect(&servers[0].url(), "").await?;
    let other = Socket::connect(&servers[servers.len() - 1].url(), "").await?;
    let mut request = question("What is it? nonce-1");
    request["on-disconnect"] = json!("detach");
    let all = socket.send(request).await?.all(BOUND).await?;
    let run = &all.first().context("no part")?["run"];
    let mut took = Vec::new();
    for n in 0..JOINS {
        let offset = n.wrapping_mul(7919) % (all.len() - 1);
        let began = Instant::now();
        let mut rest = other
            .send(json!({"resume": {"run": run, "offset": offset}}))
            .await?;
        let first = rest.next().await.context("no part")?;
        took.push(millis(began.elapsed()));
        ensure!(first["offset"] == all[offset + 1]["offset"], "{first}");
        while rest.next().await.is_some() {}
    }
    rounds.add(JOINED.0, JOINED.1, nth(took, 95));
    end(servers).await
}

async fn end(servers: impl IntoIterator<Item = Server>) -> Result<()> {
    for server in servers {
        let code = server.terminate().await?;
        ensure!(code == Some(0), "the system ended with {code:?}");
    }
    Ok(())
}

/// That many of a hundred are no greater.
fn nth(mut values: Vec<f64>, of_hundred: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = values.len().saturating_sub(1) * of_hundred / 100;
    values.get(at).copied().unwrap_or(f64::NAN)
}

fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}
