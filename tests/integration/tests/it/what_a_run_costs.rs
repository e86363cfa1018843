//! What a run of the agent costs: how many messages processors handle, which queues they come from, and how often each store
//! commits, also of a run with budgets and of a turn of a session. The numbers are exactly those of `run_costs.json`, on both buses: a
//! change that alters them alters the file, too.
//! No run begins before the one before has left all that it leaves, so that no commit is shared.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel, final_answer, two_step_react};
use tg_testkit::otlp::{Received, Receiver};
use tg_testkit::process::{Server, client};

use crate::world::{Bus, launch, on_both_buses, post};

const COSTS: &str = include_str!("run_costs.json");

/// Runs that are made before and while it is counted, one after the other.
const WARM: usize = 3;
const RUNS: u64 = 20;

/// Turns that are counted, and where the sessions of an agent are which comes with the program.
const TURNS: u64 = 10;
const SESSIONS: &str = "a1/agents/concise-de/sessions";

/// Runs of which the queues are looked at.
const TRACED: usize = 5;

/// The span of a run at the gateway, how the span of the work on a message begins, and what names its queue.
const ASKED: &str = "rest agent";
const WORK: &str = "process ";
const QUEUE: &str = "messaging.destination.name";

/// How long the model thinks: what a step left is committed before the next step leaves something.
const THINKS: Duration = Duration::from_millis(100);

/// What a run leaves behind (its trace, its usage) is written by then, also on a busy machine.
const SETTLED: Duration = Duration::from_secs(60);
/// Pause between two looks at what is counted, and before a last look, which finds what came too much.
const LOOK: Duration = Duration::from_millis(50);
const LAST_LOOK: Duration = Duration::from_secs(1);

/// Stores whose commits are not of runs: that of users writes its audit once a second, and that of graphs puts rows
/// of its journal together. A commit of a graph has a counter of its own.
const NOT_OF_RUNS: [&str; 2] = ["iam", "graph"];

/// What is counted, by what it is.
type Counts = BTreeMap<String, u64>;

/// A dialog of two steps, of which the first calls the calculator.
fn dialog() -> Vec<Rule> {
    let rules = two_step_react("calculator", json!({"expression": "6*7"}), 8);
    let rules = rules.into_iter().map(|rule| rule.delayed(THINKS / 8));
    rules.collect()
}

async fn run(url: &str, number: usize) -> Result<()> {
    let question = json!({"question": format!("How much is it? #{number}#")});
    let path = "api/v1/flow/default/service/agent";
    let (status, answer) = post(url, path, question).await?;
    ensure!(status == 200, "{answer}");
    Ok(())
}

/// What stands behind a label.
fn label<'a>(labels: &'a str, name: &str) -> Result<&'a str> {
    let (_, rest) = labels
        .split_once(&format!("{name}=\""))
        .with_context(|| format!("no {name} in {labels}"))?;
    let (value, _) = rest.split_once('"').context("no end of a label")?;
    Ok(value)
}

/// The counters of a process: messages by who handled them, and commits by store.
async fn counted(server: &Server) -> Result<Counts> {
    let url = format!("{}metrics", server.url());
    let page = reqwest::get(url).await?.text().await?;
    let mut counts = Counts::new();
    for line in page.lines() {
        let Some((series, value)) = line.rsplit_once(' ') else {
            continue;
        };
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let of = match name {
            "tg_consumer_processing_total" => {
                format!("messages of {}", label(labels, "processor")?)
            }
            "tg_graph_commits_total" => "commits of graph".to_owned(),
            "tg_store_commits_total" => match label(labels, "store")? {
                store if NOT_OF_RUNS.contains(&store) => continue,
                store => format!("commits of {store}"),
            },
            _ => continue,
        };
        let value = value.parse::<f64>().context("a number")?;
        *counts.entry(of).or_default() += value as u64;
    }
    Ok(counts)
}

/// What came since, by kind; what stayed as it was is left out.
fn since(before: &Counts, now: &Counts) -> Counts {
    let rose = now.iter().map(|(of, count)| {
        let earlier = before.get(of).copied().unwrap_or_default();
        (of.clone(), count.saturating_sub(earlier))
    });
    rose.filter(|(_, count)| *count > 0).collect()
}

/// What so many runs cost by the file.
fn expected(costs: &Value, runs: u64) -> Result<Counts> {
    let costs = costs.as_object().context("costs of the bus")?;
    let expected = costs.iter().map(|(of, count)| {
        let count = count.as_u64().context("a number")?;
        Ok((of.clone(), count * runs))
    });
    expected.collect()
}

/// Waits until nothing of what is expected lacks any more.
async fn settled(server: &Server, before: &Counts, expected: &Counts) -> Result<()> {
    let end = tokio::time::Instant::now() + SETTLED;
    loop {
        let found = since(before, &counted(server).await?);
        let count = |of: &String| found.get(of).copied().unwrap_or_default();
        if expected.iter().all(|(of, least)| count(of) >= *least) {
            return Ok(());
        }
        let late = tokio::time::Instant::now() >= end;
        ensure!(!late, "counted {found:#?}, not {expected:#?}");
        tokio::time::sleep(LOOK).await;
    }
}

/// What so many runs cost on a bus, by the file: each has budgets, or none.
fn costs_of(bus: Bus, budgets: bool, runs: u64) -> Result<Counts> {
    let costs: Value = serde_json::from_str(COSTS)?;
    let of_bus = match bus {
        Bus::Embedded => "embedded",
        Bus::Rabbit => "rabbitmq",
    };
    let mut all = expected(&costs[of_bus], runs)?;
    if budgets {
        all.extend(expected(&costs["with budgets"], runs)?);
    }
    Ok(all)
}

/// What is counted once all is written that the start and the first runs left to be written.
async fn at_rest(server: &Server) -> Result<Counts> {
    let mut before = counted(server).await?;
    loop {
        tokio::time::sleep(LAST_LOOK).await;
        let now = counted(server).await?;
        if now == before {
            return Ok(now);
        }
        before = now;
    }
}

/// Counts what runs cost, after those that warm it up.
async fn costs(server: &Server, bus: Bus, budgets: bool) -> Result<()> {
    let url = server.url();
    for number in 0..WARM {
        run(&url, number).await?;
    }
    let before = at_rest(server).await?;
    for number in 1..=RUNS {
        run(&url, WARM + usize::try_from(number)?).await?;
        settled(server, &before, &costs_of(bus, budgets, number)?).await?;
    }
    tokio::time::sleep(LAST_LOOK).await;
    let found = since(&before, &counted(server).await?);
    let expected = costs_of(bus, budgets, RUNS)?;
    ensure!(
        found == expected,
        "{RUNS} runs: counted {found:#?}, not {expected:#?}"
    );
    Ok(())
}

async fn a_run_costs_what_the_file_says(bus: Bus) -> Result<()> {
    let model = ScriptedModel::start(dialog()).await?;
    let node = bus.broker().await?;
    let server = launch(&model, node.as_ref()).ready().await?;
    costs(&server, bus, false).await
}

/// No run comes near its bounds. Only the first call of the model is reserved in a commit of its own.
async fn a_run_with_budgets_costs_one_commit_more(bus: Bus) -> Result<()> {
    let model = ScriptedModel::start(dialog()).await?;
    let node = bus.broker().await?;
    let launch = launch(&model, node.as_ref())
        .env("THREADGRAPH_AGENT__RUN_TOKENS", "100000000")
        .env("THREADGRAPH_AGENT__RUN_TOOL_CALLS", "1000")
        .env("THREADGRAPH_AGENT__WORKSPACE_TOKENS_A_DAY", "1000000000000");
    let server = launch.ready().await?;
    costs(&server, bus, true).await
}

/// Posts something of the user `ann`.
async fn of_ann(server: &Server, path: &str, body: Value) -> Result<Value> {
    let url = format!("{}{path}", server.url());
    let request = client()?.post(url).header("SPASS-User-Id", "ann");
    let response = request.json(&body).send().await?;
    let status = response.status();
    let answer: Value = response.json().await?;
    ensure!(status.is_success(), "{status}: {answer}");
    Ok(answer)
}

/// One commit for the user's message, before the agent is asked, and one for the answer. What its agent costs is counted above.
async fn a_turn_of_a_session_costs_what_the_file_says(bus: Bus) -> Result<()> {
    let reply = Reply::text(final_answer("It is known.", "It is 42."));
    let model = ScriptedModel::start(vec![Rule::always(reply)]).await?;
    let node = bus.broker().await?;
    let server = launch(&model, node.as_ref()).ready().await?;
    let made = of_ann(&server, SESSIONS, json!({"compact_strategy": "off"})).await?;
    let session = made["id"].as_str().context("a session")?;
    let messages = format!("{SESSIONS}/{session}/messages");
    let turn = async || of_ann(&server, &messages, json!({"message": "How much is it?"})).await;
    for _ in 0..WARM {
        turn().await?;
    }
    let before = at_rest(&server).await?;
    for _ in 0..TURNS {
        turn().await?;
    }
    let costs: Value = serde_json::from_str(COSTS)?;
    let expected = expected(&costs["a turn"], TURNS)?;
    settled(&server, &before, &expected).await?;
    tokio::time::sleep(LAST_LOOK).await;
    let mut found = since(&before, &counted(&server).await?);
    found.retain(|of, _| expected.contains_key(of));
    ensure!(
        found == expected,
        "{TURNS} turns: counted {found:#?}, not {expected:#?}"
    );
    Ok(())
}

/// How often a run's messages came to each queue: the work on them by the names of their subscriptions, by trace. Only traces
/// of runs count.
fn deliveries(spans: &[Received]) -> BTreeMap<&str, Counts> {
    let roots = spans.iter().filter(|span| span.name == ASKED);
    let mut of_runs: BTreeMap<&str, Counts> = roots
        .map(|root| (root.trace.as_str(), Counts::new()))
        .collect();
    for span in spans.iter().filter(|span| span.name.starts_with(WORK)) {
        let queue = span.attributes.get(QUEUE);
        if let (Some(counts), Some(queue)) = (of_runs.get_mut(span.trace.as_str()), queue) {
            *counts.entry(queue.clone()).or_default() += 1;
        }
    }
    of_runs
}

/// Questions and records only: in how many messages a streamed answer goes back depends on when its pieces come.
async fn a_run_comes_to_the_queues_of_the_file(bus: Bus) -> Result<()> {
    let receiver = Receiver::start().await?;
    let model = ScriptedModel::start(dialog()).await?;
    let node = bus.broker().await?;
    let launch = launch(&model, node.as_ref());
    let launch = launch.env("THREADGRAPH_TELEMETRY__OTLP_URL", receiver.url());
    let server = launch.ready().await?;
    let costs: Value = serde_json::from_str(COSTS)?;
    let expected = expected(&costs["deliveries"], 1)?;
    for number in 0..TRACED {
        run(&server.url(), number).await?;
    }
    let all = |spans: &[Received]| {
        let of_runs = deliveries(spans);
        let has_all = |counts: &Counts| {
            expected
                .iter()
                .all(|(of, least)| counts.get(of) >= Some(least))
        };
        of_runs.len() >= TRACED && of_runs.values().all(has_all)
    };
    // What is missing is named below.
    receiver.until(SETTLED, all).await;
    tokio::time::sleep(LAST_LOOK).await;
    let faults = receiver.faults();
    ensure!(faults.is_empty(), "{faults:?}");
    let spans = receiver.spans();
    let found = deliveries(&spans);
    ensure!(found.len() == TRACED, "{} runs of {TRACED}", found.len());
    for counts in found.values() {
        ensure!(
            *counts == expected,
            "a run: counted {counts:#?}, not {expected:#?}"
        );
    }
    Ok(())
}

on_both_buses!(
    a_run_costs_what_the_file_says,
    a_run_with_budgets_costs_one_commit_more,
    a_turn_of_a_session_costs_what_the_file_says,
    a_run_comes_to_the_queues_of_the_file,
);
