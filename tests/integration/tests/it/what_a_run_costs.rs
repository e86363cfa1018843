//! What a run of the agent costs: how often it crosses the bus, and how often a store commits. The numbers are those of
//! `run_costs.json`, on both buses: a change that alters them alters the file, too. Of commits it has the most that
//! there may be: what waits at the same time shares one, and some are not of runs.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::world::{Bus, World, on_both_buses};

const COSTS: &str = include_str!("run_costs.json");

/// Runs that are made before and while it is counted, one after the other.
const WARM: usize = 3;
const RUNS: u64 = 20;

/// What a run leaves behind (its trace, its usage) is written by then, also on a busy machine.
const SETTLED: Duration = Duration::from_secs(60);

const COMMITS: &str = "_commits_total";

/// What is counted, by what it is.
type Counts = BTreeMap<String, u64>;

async fn run(world: &World, number: usize) -> Result<()> {
    let question = json!({"question": format!("How much is it? #{number}#")});
    let path = "api/v1/flow/default/service/agent";
    let (status, answer) = world.post(path, question).await?;
    ensure!(status == 200, "{answer}");
    Ok(())
}

/// The counters of a process: messages by who handled them, and commits of stores and of the graph.
async fn counted(world: &World) -> Result<Counts> {
    let url = format!("{}metrics", world.server.url());
    let page = reqwest::get(url).await?.text().await?;
    let mut counts = Counts::new();
    for line in page.lines() {
        let Some((series, value)) = line.rsplit_once(' ') else {
            continue;
        };
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let of = match name {
            "tg_consumer_processing_total" => {
                let (_, rest) = labels.split_once("processor=\"").context("a processor")?;
                let (processor, _) = rest.split_once('"').context("a processor")?;
                format!("messages of {processor}")
            }
            "tg_store_commits_total" | "tg_graph_commits_total" => name.to_owned(),
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

fn as_expected(told: &Counts, expected: &Counts) -> bool {
    told.keys().eq(expected.keys())
        && told
            .iter()
            .zip(expected.values())
            .all(|((of, count), expected)| {
                count == expected || (of.ends_with(COMMITS) && count < expected)
            })
}

async fn a_run_costs_what_the_file_says(bus: Bus) -> Result<()> {
    let world = World::two_step(bus).await?;
    let costs: Value = serde_json::from_str(COSTS)?;
    let costs = costs[match bus {
        Bus::Embedded => "embedded",
        Bus::Rabbit => "rabbitmq",
    }]
    .as_object()
    .context("costs of the bus")?;
    let expected: Counts = costs
        .iter()
        .map(|(of, count)| Ok((of.clone(), count.as_u64().context("a number")? * RUNS)))
        .collect::<Result<_>>()?;
    for number in 0..WARM {
        run(&world, number).await?;
    }
    let mut before = counted(&world).await?;
    // What the first runs left to be written is written.
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let now = counted(&world).await?;
        if now == before {
            break;
        }
        before = now;
    }
    for number in 0..usize::try_from(RUNS)? {
        run(&world, WARM + number).await?;
    }
    let end = tokio::time::Instant::now() + SETTLED;
    loop {
        let told = since(&before, &counted(&world).await?);
        if as_expected(&told, &expected) {
            return Ok(());
        }
        let late = tokio::time::Instant::now() >= end;
        ensure!(!late, "{RUNS} runs: {told:#?}, not {expected:#?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

on_both_buses!(a_run_costs_what_the_file_says);
