//! What the doors of models and agents add to what is behind them, on the embedded bus and over RabbitMQ: `/v1/chat/completions`
//! beside the model itself, a turn of a session beside a bare run, and reading what sessions keep.
//! `doors_bench [embedded|rabbitmq|both]`, beside the binaries it measures.
//!
//! What is compared is asked in turn. Client and model share the machine with the system. Three rounds.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};
use tg_testkit::bench::{ROUNDS, Rounds, headline, processor_times};
use tg_testkit::model::{Options, Reply, Rule, ScriptedModel, final_answer};
use tg_testkit::process::{Launch, Server};
use tg_testkit::shared_node::VirtualHost;

/// Requests one after the other of a round, to each of two doors, and those before that are not measured.
const ALTERNATED: usize = 200;
const WARM: usize = 10;
/// Requests at the same time, and all of them in a round.
const AT_ONCE: usize = 32;
const MANY: usize = 3_000;
/// Turns that the session has that is read.
const TURNS: usize = 20;
/// An agent that comes with the program. It has no tools, so a turn asks the model as often as a bare run.
const AGENT: &str = "concise-de";
/// Longest wait for an answer.
const BOUND: Duration = Duration::from_secs(60);

/// The figures, and what each is to be at most.
const ADDED: (&str, &str, f64) = ("/v1 beside the model itself, p50", "ms", 0.6);
const TURN: &str = "a turn of a session, to a bare run, p50";
const TURN_EMBEDDED: f64 = 1.2;
const TURN_RABBITMQ: f64 = 1.3;
/// What is to be at least.
const COMPLETIONS: (&str, &str, f64) = ("/v1, 32 at once", "/s", 3_000.0);
/// Processor time of the system for one of these, in its own code and in the kernel.
const COSTS: [&str; 2] = [
    "/v1, 32 at once, processor time a request",
    "/v1, 32 at once, the kernel's for it",
];
const READ: (&str, &str, f64) = ("a session read, 32 at once", "/s", 3_000.0);
const LISTED: (&str, &str, f64) = ("sessions listed, 32 at once", "/s", 3_000.0);

#[tokio::main]
async fn main() -> Result<()> {
    println!("{}", headline(2));
    let which = std::env::args().nth(1).unwrap_or_else(|| "both".to_owned());
    if which != "rabbitmq" {
        bench("embedded", false).await?;
    }
    if which != "embedded" {
        bench("RabbitMQ, one process", true).await?;
    }
    Ok(())
}

async fn bench(name: &str, broker: bool) -> Result<()> {
    let mut rounds = Rounds::default();
    for _ in 0..ROUNDS {
        round(broker, &mut rounds).await?;
    }
    println!("\n{name}");
    rounds.print();
    let most = if broker { TURN_RABBITMQ } else { TURN_EMBEDDED };
    for (name, unit, most) in [ADDED, (TURN, "x", most)] {
        let median = rounds.median(name).context("a figure is missing")?;
        let verdict = if median <= most { "met" } else { "MISSED" };
        println!("  {name}: at most {most} {unit}: {verdict}");
    }
    for (name, unit, least) in [COMPLETIONS, READ, LISTED] {
        let median = rounds.median(name).context("a figure is missing")?;
        let verdict = if median >= least { "met" } else { "MISSED" };
        println!("  {name}: at least {least} {unit}: {verdict}");
    }
    Ok(())
}

async fn round(broker: bool, rounds: &mut Rounds) -> Result<()> {
    let options = Options {
        keep_calls: false,
        counts_tokens: false,
        ..Options::default()
    };
    let reply = Reply::text(final_answer("It is known.", "It is 42."));
    let model = ScriptedModel::start_with(options, vec![Rule::always(reply)]).await?;
    let host = match broker {
        true => Some(VirtualHost::new().await?),
        false => None,
    };
    let server = Launch::up()
        .env("OPENAI_BASE_URL", model.url())
        .env("OPENAI_API_KEY", "sk-bench")
        .env("OPENAI_MODEL", "scripted")
        .over(host.as_ref())
        .ready()
        .await?;
    let doors = Doors {
        client: Client::builder().timeout(BOUND).build()?,
        server,
        model: model.url(),
    };
    doors.completions(rounds).await?;
    doors.turns(rounds).await?;
    let code = doors.server.terminate().await?;
    ensure!(code == Some(0), "the system ended with {code:?}");
    Ok(())
}

struct Doors {
    client: Client,
    server: Server,
    model: String,
}

impl Doors {
    fn post(&self, url: &str, body: &Value) -> RequestBuilder {
        let request = self.client.post(url).header("SPASS-User-Id", "ann");
        request.json(body)
    }

    fn get(&self, path: &str) -> RequestBuilder {
        let url = format!("{}{path}", self.server.url());
        self.client.get(url).header("SPASS-User-Id", "ann")
    }

    async fn completions(&self, rounds: &mut Rounds) -> Result<()> {
        let body = json!({"model": "scripted", "messages": [{"role": "user", "content": "How much is it?"}]});
        let ours = format!("{}v1/chat/completions", self.server.url());
        let theirs = format!("{}/chat/completions", self.model.trim_end_matches('/'));
        let (ours, theirs) = (|_| self.post(&ours, &body), |_| self.post(&theirs, &body));
        let [over, direct] = in_turn(&ours, &theirs).await?;
        rounds.add("/v1, p50", "ms", over);
        rounds.add("the model itself, p50", "ms", direct);
        rounds.add(ADDED.0, ADDED.1, over - direct);
        let direct = rate(&theirs).await?;
        rounds.add("the model itself, 32 at once", "/s", direct);
        let pid = self.server.pid().context("no process")?;
        let before = processor_times(pid).context("no times")?;
        rounds.add(COMPLETIONS.0, COMPLETIONS.1, rate(&ours).await?);
        let after = processor_times(pid).context("no times")?;
        for (at, name) in COSTS.into_iter().enumerate() {
            rounds.add(name, "ms", (after[at] - before[at]) / MANY as f64);
        }
        Ok(())
    }

    async fn turns(&self, rounds: &mut Rounds) -> Result<()> {
        let sessions = &format!("a1/agents/{AGENT}/sessions");
        let url = format!("{}{sessions}", self.server.url());
        let made = answered(self.post(&url, &json!({"compact_strategy": "off"}))).await?;
        let session = made["id"].as_str().context("a session")?;
        let messages = format!("{url}/{session}/messages");
        let bare = format!("{}api/v1/flow/default/service/agent", self.server.url());
        let turn = |n| {
            self.post(
                &messages,
                &json!({"message": format!("How much is it? {n}")}),
            )
        };
        let bare_run = |n| self.post(&bare, &json!({"question": format!("How much is it? {n}")}));
        let [turn, bare] = in_turn(&turn, &bare_run).await?;
        rounds.add("a turn of a session, p50", "ms", turn);
        rounds.add("a bare run, p50", "ms", bare);
        rounds.add(TURN, "x", turn / bare);
        // Without what was said before. They are another user's: that of the listing below has few.
        let of_bob = |url: &str, body: &Value| {
            let request = self.client.post(url).header("SPASS-User-Id", "bob");
            request.json(body)
        };
        let mut fresh = Vec::new();
        for _ in 0..WARM + ALTERNATED {
            let made = answered(of_bob(&url, &json!({}))).await?;
            let session = made["id"].as_str().context("a session")?;
            fresh.push(format!("{url}/{session}/messages"));
        }
        let first = |n: usize| of_bob(&fresh[n], &json!({"message": "How much is it?"}));
        let [first, beside] = in_turn(&first, &bare_run).await?;
        rounds.add("the first turn of a session, p50", "ms", first);
        rounds.add("the first turn, to a bare run, p50", "x", first / beside);
        let made = answered(self.post(&url, &json!({}))).await?;
        let read = made["id"].as_str().context("a session")?;
        let messages = format!("{url}/{read}/messages");
        for n in 0..TURNS {
            answered(self.post(&messages, &json!({"message": format!("And {n}?")}))).await?;
        }
        let one = format!("{sessions}/{read}");
        rounds.add(READ.0, READ.1, rate(&|_| self.get(&one)).await?);
        rounds.add(LISTED.0, LISTED.1, rate(&|_| self.get(sessions)).await?);
        Ok(())
    }
}

/// The answer of a request that succeeded.
async fn answered(request: RequestBuilder) -> Result<Value> {
    let response = request.send().await?;
    let status = response.status();
    let body: Value = response.json().await?;
    ensure!(status.is_success(), "{status}: {body}");
    Ok(body)
}

/// The medians of two requests that are made in turn, in milliseconds.
async fn in_turn(
    first: &impl Fn(usize) -> RequestBuilder,
    second: &impl Fn(usize) -> RequestBuilder,
) -> Result<[f64; 2]> {
    let mut took = [Vec::new(), Vec::new()];
    for n in 0..WARM + ALTERNATED {
        for (request, took) in [first(n), second(n)].into_iter().zip(&mut took) {
            let began = Instant::now();
            answered(request).await?;
            if n >= WARM {
                took.push(began.elapsed().as_secs_f64() * 1_000.0);
            }
        }
    }
    Ok(took.map(|mut took| {
        took.sort_by(f64::total_cmp);
        took[took.len() / 2]
    }))
}

/// How many of them are answered in a second, [`AT_ONCE`] at a time.
async fn rate(request: &impl Fn(usize) -> RequestBuilder) -> Result<f64> {
    let next = AtomicUsize::new(0);
    let began = Instant::now();
    let askers = (0..AT_ONCE).map(|_| async {
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= MANY {
                return anyhow::Ok(());
            }
            answered(request(n)).await?;
        }
    });
    try_join_all(askers).await?;
    Ok(MANY as f64 / began.elapsed().as_secs_f64())
}
