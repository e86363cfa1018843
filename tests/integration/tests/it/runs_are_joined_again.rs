//! Runs of the agent and streams of other services are joined again behind any part, through another gateway where there is one; a
//! cancel closes the provider's connection at once, and those of all subagents; a run waits for its asker as long as it was told to.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::chance::Chance;
use tg_testkit::model::{End, Reply, Rule, ScriptedModel, final_answer, two_step_react};
use tg_testkit::process::{Launch, Server, client, tg};
use tg_testkit::shared_node::VirtualHost;
use tg_testkit::socket::Socket;

use crate::world::{Bus, launch, on_both_buses, post};

const BOUND: Duration = Duration::from_secs(60);
/// How many join in the gate, and how many are cancelled there: `alone` has more of both, and measures them.
const JOIN: usize = 30;
const CANCELS: usize = 5;
/// Pause of the model between two pieces: each is a part.
const BETWEEN: Duration = Duration::from_millis(20);
/// Pause between two tries to reach a stream.
const PAUSE: Duration = Duration::from_millis(100);
/// Whoever goes on in spite of a cancel has asked the model again by then.
const STILL: Duration = Duration::from_secs(2);

/// A system with two gateways; on the embedded bus they are one.
struct Gateways {
    model: ScriptedModel,
    first: Server,
    other: Option<Server>,
    _node: Option<VirtualHost>,
}

impl Gateways {
    async fn new(bus: Bus, rules: Vec<Rule>) -> Result<Self> {
        let model = ScriptedModel::start(rules).await?;
        let node = bus.broker().await?;
        let first = launch(&model, node.as_ref()).ready().await?;
        let other = match &node {
            Some(node) => Some(Launch::serve(&["gateway"], &node.url()).ready().await?),
            None => None,
        };
        Ok(Self {
            model,
            first,
            other,
            _node: node,
        })
    }

    fn other(&self) -> String {
        self.other.as_ref().unwrap_or(&self.first).url()
    }

    async fn sockets(&self) -> Result<[Socket; 2]> {
        let first = Socket::connect(&self.first.url(), "").await?;
        Ok([first, Socket::connect(&self.other(), "").await?])
    }

    /// Waits until the other gateway reaches a stream that is over: one that has just begun may not know the first one yet.
    async fn reaches(&self, run: &Value) -> Result<()> {
        let (http, run) = (client()?, run.as_str().context("no run")?);
        let url = format!("{}api/v1/runs/{run}", self.other());
        let reaching = async {
            loop {
                let reply: Value = http.get(&url).send().await?.json().await?;
                if reply["error"].is_null() {
                    return anyhow::Ok(());
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        let reached = tokio::time::timeout(BOUND, reaching).await;
        reached.context("the other gateway does not reach the stream")?
    }

    async fn cancel(&self, run: &Value) -> Result<Value> {
        let cancel = json!({"operation": "cancel-run", "run": run});
        Ok(post(&self.other(), "api/v1/requests", cancel).await?.1)
    }
}

/// A stream that is joined again.
struct Stream {
    service: &'static str,
    request: Value,
    rules: Vec<Rule>,
    /// It has more parts than this.
    parts: usize,
}

impl Stream {
    /// A run, which the agent keeps.
    fn of_agent() -> Self {
        Self {
            service: "agent",
            request: json!({"question": "what is nonce-1", "streaming": true}),
            rules: two_step_react("calculator", json!({"expression": "6*7"}), 8),
            parts: 10,
        }
    }

    /// A stream of a model, which the gateway that took the request keeps.
    fn of_gateway() -> Self {
        let pieces = (0..24).map(|number| format!("piece {number} "));
        Self {
            service: "text-completion",
            request: json!({"system": "s", "prompt": "p", "streaming": true}),
            rules: vec![Rule::always(Reply::pieces(pieces).delayed(BETWEEN))],
            parts: 3,
        }
    }

    /// The frame that asks for it.
    fn asks(&self, on_disconnect: &str) -> Value {
        json!({"service": self.service, "flow": "default", "on-disconnect": on_disconnect,
            "request": self.request})
    }
}

fn question(on_disconnect: &str) -> Value {
    Stream::of_agent().asks(on_disconnect)
}

fn resume(run: &Value, offset: Option<usize>) -> Value {
    match offset {
        Some(offset) => json!({"resume": {"run": run, "offset": offset}}),
        None => json!({"resume": {"run": run}}),
    }
}

/// What clients are told, without the ids of their frames.
fn told(frames: &[Value]) -> Vec<(&Value, &Value)> {
    let frames = frames.iter();
    frames
        .map(|frame| (&frame["offset"], &frame["response"]))
        .collect()
}

async fn a_run_is_joined_without_a_gap_or_repeat(bus: Bus) -> Result<()> {
    joined(bus, Stream::of_agent(), JOIN).await.map(drop)
}

async fn a_stream_of_a_gateway_is_joined_without_a_gap_or_repeat(bus: Bus) -> Result<()> {
    joined(bus, Stream::of_gateway(), JOIN).await.map(drop)
}

/// Joins a stream that often, behind parts that are drawn; how soon the first part came that was lacking.
async fn joined(bus: Bus, stream: Stream, times: usize) -> Result<Vec<Duration>> {
    let asks = stream.asks("detach");
    let system = Gateways::new(bus, stream.rules).await?;
    let [socket, other] = system.sockets().await?;
    let before = socket.send(asks.clone()).await?.all(BOUND).await?;
    system.reaches(&before[0]["run"]).await?;
    let mut asked = socket.send(asks).await?;
    let first = asked.next().await.context("no part")?;
    let run = first["run"].clone();
    // Whoever joins it while it is under way, hears the same.
    let live = other.send(resume(&run, None)).await?;
    let mut all = vec![first];
    while let Some(frame) = asked.next().await {
        all.push(frame);
    }
    let live = live.all(BOUND).await?;
    ensure!(told(&live) == told(&all), "{live:?} is not {all:?}");
    ensure!(all.len() > stream.parts, "{all:?}");
    let mut chance = Chance::of_this_run();
    let mut took = Vec::new();
    for _ in 0..times {
        let offset = chance.below(all.len() - 1);
        let began = Instant::now();
        let mut joined = other.send(resume(&run, Some(offset))).await?;
        let mut rest = vec![joined.next().await.context("no part")?];
        took.push(began.elapsed());
        while let Some(frame) = joined.next().await {
            rest.push(frame);
        }
        ensure!(
            told(&rest) == told(&all[offset + 1..]),
            "behind {offset}: {rest:?}"
        );
    }
    let id = run.as_str().context("no run")?;
    if stream.service == "agent" {
        tg(&system.other(), &["list-runs"]).await?.expect(id)?;
        tg(&system.other(), &["attach", id])
            .await?
            .expect("nonce-1")?;
    }
    let foreign = other.send(resume(&json!("another"), None)).await?;
    let foreign = foreign.all(BOUND).await?;
    ensure!(foreign[0]["error"]["type"] == "not-found", "{foreign:?}");
    Ok(took)
}

/// Both gateways write at once, and each run is joined at the gateway that did not take it.
async fn runs_of_two_gateways_are_joined_at_each_other(bus: Bus) -> Result<()> {
    let rules = two_step_react("calculator", json!({"expression": "6*7"}), 8);
    let system = Gateways::new(bus, rules).await?;
    let [here, there] = system.sockets().await?;
    let mut asked = [
        here.send(question("detach")).await?,
        there.send(question("detach")).await?,
    ];
    let mut firsts = Vec::new();
    for one in &mut asked {
        firsts.push(one.next().await.context("no part")?);
    }
    ensure!(firsts[0]["run"] != firsts[1]["run"], "{firsts:?}");
    let joined = [
        there.send(resume(&firsts[0]["run"], None)).await?,
        here.send(resume(&firsts[1]["run"], None)).await?,
    ];
    let all = asked.into_iter().chain(joined);
    let all = futures::future::try_join_all(all.map(|frames| frames.all(BOUND))).await?;
    let (asked, joined) = all.split_at(firsts.len());
    for ((first, rest), joined) in firsts.iter().zip(asked).zip(joined) {
        let whole = [std::slice::from_ref(first), rest.as_slice()].concat();
        ensure!(told(joined) == told(&whole), "{joined:?} is not {whole:?}");
    }
    Ok(())
}

/// What a stream of events has, byte by byte, without its signs of life.
async fn streamed(request: reqwest::RequestBuilder) -> Result<String> {
    let request = request.header("accept", "text/event-stream").timeout(BOUND);
    let text = request.send().await?.error_for_status()?.text().await?;
    Ok(text.replace(": ping\n\n", ""))
}

/// The other test compares what frames say, this one how they are written.
async fn a_joined_stream_has_the_bytes_of_the_first(bus: Bus) -> Result<()> {
    has_the_same_bytes(bus, Stream::of_agent(), JOIN).await
}

async fn a_joined_stream_of_a_gateway_has_the_bytes_of_the_first(bus: Bus) -> Result<()> {
    has_the_same_bytes(bus, Stream::of_gateway(), JOIN).await
}

/// Joins a stream of events that often, behind events that are drawn.
async fn has_the_same_bytes(bus: Bus, stream: Stream, times: usize) -> Result<()> {
    let system = Gateways::new(bus, stream.rules).await?;
    let http = client()?;
    let (url, service) = (system.first.url(), stream.service);
    let asks = http.post(format!("{url}api/v1/flow/default/service/{service}"));
    let asks = asks.header("x-on-disconnect", "detach");
    let all = streamed(asks.json(&stream.request)).await?;
    let ids = all.lines().filter_map(|line| line.strip_prefix("id: "));
    let ids: Vec<&str> = ids.collect();
    ensure!(ids.len() > stream.parts, "{all}");
    let (run, _) = ids[0].rsplit_once(':').context("no offset")?;
    system.reaches(&json!(run)).await?;
    let mut chance = Chance::of_this_run();
    for _ in 0..times {
        let id = ids[chance.below(ids.len() - 1)];
        let join = http.get(format!("{}api/v1/runs/{run}", system.other()));
        let rest = streamed(join.header("last-event-id", id)).await?;
        let event = all.find(&format!("id: {id}\n")).context("no event")?;
        let behind = event + all[event..].find("\n\n").context("no end")? + 2;
        ensure!(rest == all[behind..], "behind {id}: {rest}");
    }
    Ok(())
}

/// Events of turns: the same request with the place of any of them gets the rest, at another gateway too, and the model is asked once.
async fn events_of_turns_are_joined_without_a_gap_or_repeat(bus: Bus) -> Result<()> {
    let says = Reply::text(final_answer("It is known.", "The lantern is blue."));
    let system = Gateways::new(bus, vec![Rule::always(says)]).await?;
    let (first, http) = (system.first.url(), client()?);
    let made = async |path: &str, body: Value, id: &str| {
        let asks = http.post(format!("{first}{path}")).json(&body);
        let made = asks.header("SPASS-User-Id", "ann").send().await?;
        let made: Value = made.json().await?;
        let id = made[id].as_str().map(str::to_owned);
        id.with_context(|| made.to_string())
    };
    let sessions = "a1/agents/concise-de/sessions";
    let session = made(sessions, json!({}), "id").await?;
    let agents = "api/v1/workspaces/default/agents";
    let agent = made(agents, json!({"name": "Brisk"}), "agentId").await?;
    let talks = format!("{agents}/{agent}/conversations");
    let talk = made(&talks, json!({}), "conversationId").await?;
    for (path, field) in [
        (format!("{sessions}/{session}/messages/stream"), "message"),
        (format!("{talks}/{talk}/messages/stream"), "content"),
    ] {
        let asks = |url: &str| {
            let asks = http.post(format!("{url}{path}"));
            let asks = asks.header("SPASS-User-Id", "ann");
            asks.json(&json!({field: "Which lantern?"}))
        };
        let all = streamed(asks(&first).header("x-on-disconnect", "detach")).await?;
        let ids = all.lines().filter_map(|line| line.strip_prefix("id: "));
        let ids: Vec<&str> = ids.collect();
        ensure!(ids.len() > 2 && all.contains("event: done"), "{all}");
        let (run, _) = ids[0].rsplit_once(':').context("no offset")?;
        system.reaches(&json!(run)).await?;
        let calls = system.model.count();
        for id in ids {
            let rest = asks(&system.other()).header("last-event-id", id);
            let rest = streamed(rest).await?;
            let event = all.find(&format!("id: {id}\n")).context("no event")?;
            let behind = event + all[event..].find("\n\n").context("no end")? + 2;
            ensure!(rest == all[behind..], "{path}: behind {id}: {rest}");
        }
        ensure!(system.model.count() == calls, "{path}: asked anew");
    }
    Ok(())
}

async fn a_cancel_closes_the_providers_connection(bus: Bus) -> Result<()> {
    cancelled(bus, CANCELS).await.map(drop)
}

/// Cancels that many runs; how soon the provider's connection was closed.
async fn cancelled(bus: Bus, times: usize) -> Result<Vec<Duration>> {
    let hang = Reply::pieces(["Thought: hm"]).ending(End::Hang);
    let system = Gateways::new(bus, vec![Rule::always(hang)]).await?;
    let [socket, _] = system.sockets().await?;
    let mut took = Vec::new();
    for n in 1..=times {
        let mut asked = socket.send(question("cancel")).await?;
        let thought = loop {
            let frame = asked.next().await.context("no thought")?;
            if frame["response"]["message_type"] == "thought" {
                break frame;
            }
        };
        let began = Instant::now();
        let closed = async {
            let closed = system.model.wait_closed(n, BOUND).await;
            (closed, began.elapsed())
        };
        let (reply, (closed, after)) = tokio::join!(system.cancel(&thought["run"]), closed);
        let reply = reply?;
        ensure!(closed && reply["cancelled"] == thought["run"], "{reply}");
        ensure!(reply["ended"] == true && reply["steps"] == 0, "{reply}");
        took.push(after);
    }
    Ok(took)
}

/// The supervisor waits for three subagents, each of them for the model.
async fn a_cancelled_supervisor_leaves_nothing_running(bus: Bus) -> Result<()> {
    const GOALS: [&str; 3] = ["The first?", "The second?", "The third?"];
    let hang = Reply::pieces(["Thought: hm"]).ending(End::Hang);
    let goals = Reply::text(json!(GOALS).to_string());
    let rules = vec![Rule::contains("## Goals wanted", goals), Rule::always(hang)];
    let system = Gateways::new(bus, rules).await?;
    let [socket, _] = system.sockets().await?;
    let mut request = question("detach");
    request["request"]["pattern"] = json!("supervisor");
    let mut asked = socket.send(request).await?;
    let run = asked.next().await.context("no part")?["run"].clone();
    let calls = 1 + GOALS.len();
    ensure!(
        system.model.wait_calls(calls, BOUND).await,
        "{} calls",
        system.model.count()
    );
    let reply = system.cancel(&run).await?;
    ensure!(reply["cancelled"] == run, "{reply}");
    let closed = system.model.wait_closed(GOALS.len(), BOUND).await;
    ensure!(closed, "a connection to the provider is open");
    let rest = asked.all(BOUND).await?;
    let last = rest.last().context("no end")?;
    let mut ends = [&last["error"], &last["response"]["error"]].into_iter();
    let is_told = ends.any(|error| error["type"] == "cancelled");
    ensure!(is_told, "{last}");
    tokio::time::sleep(STILL).await;
    let asked = system.model.count();
    ensure!(asked == calls, "{asked} calls, {calls} before the cancel");
    let list = json!({"operation": "list-runs"});
    let (_, listed) = post(&system.other(), "api/v1/requests", list).await?;
    let runs = listed["runs"].as_array().context(listed.to_string())?;
    let is_over = |one: &Value| one["state"] == "cancelled";
    ensure!(!runs.is_empty() && runs.iter().all(is_over), "{listed}");
    Ok(())
}

async fn a_run_waits_for_its_asker(bus: Bus) -> Result<()> {
    let hang = Reply::pieces(["Thought: hm"]).ending(End::Hang);
    let system = Gateways::new(bus, vec![Rule::always(hang)]).await?;
    let [socket, other] = system.sockets().await?;
    let mut asked = socket.send(question("grace=3")).await?;
    let run = asked.next().await.context("no part")?["run"].clone();
    ensure!(
        system.model.wait_calls(1, BOUND).await,
        "it was never asked"
    );
    drop((asked, socket));
    let mut joined = other.send(resume(&run, None)).await?;
    joined.next().await.context("no part")?;
    // Whoever has joined it holds it.
    ensure!(
        !system.model.wait_closed(1, Duration::from_secs(6)).await,
        "it ended"
    );
    drop((joined, other));
    let left = Instant::now();
    ensure!(system.model.wait_closed(1, BOUND).await, "it goes on");
    let after = left.elapsed();
    ensure!(after >= Duration::from_secs(2), "{after:?}");
    Ok(())
}

on_both_buses!(
    a_run_is_joined_without_a_gap_or_repeat,
    a_stream_of_a_gateway_is_joined_without_a_gap_or_repeat,
    runs_of_two_gateways_are_joined_at_each_other,
    a_joined_stream_has_the_bytes_of_the_first,
    a_joined_stream_of_a_gateway_has_the_bytes_of_the_first,
    events_of_turns_are_joined_without_a_gap_or_repeat,
    a_cancel_closes_the_providers_connection,
    a_cancelled_supervisor_leaves_nothing_running,
    a_run_waits_for_its_asker,
);

/// As many as the promise says, within its bounds of time.
mod alone {
    use std::time::Duration;

    use anyhow::{Result, ensure};

    use super::Stream;
    use crate::world::{Bus, on_both_buses};

    /// How many join, and how soon the first part that they lack is there, of 95 in 100.
    const JOIN: usize = 1000;
    const FIRST: Duration = Duration::from_millis(50);
    /// How many are cancelled, and how soon the provider's connection is closed, of 99 in 100.
    const CANCELS: usize = 100;
    const CLOSED: Duration = Duration::from_millis(200);

    /// That many are the slowest of a hundred.
    fn slowest(mut took: Vec<Duration>, of_hundred: usize) -> Duration {
        took.sort_unstable();
        took[took.len() * (100 - of_hundred) / 100]
    }

    async fn a_run_is_joined_at_once(bus: Bus) -> Result<()> {
        let slow = slowest(super::joined(bus, Stream::of_agent(), JOIN).await?, 5);
        ensure!(slow <= FIRST, "{slow:?}");
        super::has_the_same_bytes(bus, Stream::of_agent(), JOIN).await
    }

    async fn a_stream_of_a_gateway_is_joined_at_once(bus: Bus) -> Result<()> {
        let slow = slowest(super::joined(bus, Stream::of_gateway(), JOIN).await?, 5);
        ensure!(slow <= FIRST, "{slow:?}");
        super::has_the_same_bytes(bus, Stream::of_gateway(), JOIN).await
    }

    async fn a_cancel_closes_the_connection_at_once(bus: Bus) -> Result<()> {
        let slow = slowest(super::cancelled(bus, CANCELS).await?, 1);
        ensure!(slow <= CLOSED, "{slow:?}");
        Ok(())
    }

    on_both_buses!(
        a_run_is_joined_at_once,
        a_stream_of_a_gateway_is_joined_at_once,
        a_cancel_closes_the_connection_at_once,
    );
}
