//! Large questions that wait for a slow model take a bounded part of memory, and of one workspace half of that: further ones
//! are refused, and the process goes on serving others and what is small.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tg_testkit::process::{Server, client};
use tokio::task::JoinSet;

use crate::workspaces::make;
use crate::world::{Bus, launch, on_both_buses, post};

/// What the process may map: with all its threads and stores it has about half of that for questions and the rest.
const ADDRESS_SPACE: u64 = 3 << 30;
/// Questions, and bytes of each: four and a half gigabytes together.
const QUESTIONS: usize = 300;
const PROMPT: usize = 15 << 20;
/// One after another, so that the gateway's own bound is not what refuses them: a body is received by then.
const PACE: Duration = Duration::from_millis(100);
/// All have been answered by then, but those that wait for the model.
const BOUND: Duration = Duration::from_secs(180);
/// Between two looks whether a condition holds.
const LOOK: Duration = Duration::from_millis(100);
const COMPLETION: &str = "api/v1/flow/default/service/text-completion";

async fn quick(server: &Server, workspace: &str, bytes: usize) -> Result<(u16, Value)> {
    let prompt = format!("quick {}", "x".repeat(bytes));
    let ask = json!({"workspace": workspace, "system": "", "prompt": prompt});
    post(&server.url(), COMPLETION, ask).await
}

async fn served(server: &mut Server, workspace: &str, bytes: usize) -> Result<()> {
    let asked = quick(server, workspace, bytes).await;
    let (status, told) = asked.with_context(|| server.log())?;
    ensure!(
        status == 200 && told["response"] == "done",
        "{workspace}, {bytes} bytes: {status} {told}"
    );
    Ok(())
}

/// Questions that the services refused for want of room.
async fn refused_by_services(server: &Server) -> Result<bool> {
    let metrics = client()?.get(format!("{}metrics", server.url())).send();
    let text = metrics.await?.text().await?;
    let refused = r#"tg_questions_refused_total{code="busy"}"#;
    Ok(text.lines().any(|line| line.starts_with(refused)))
}

/// Asks as much as nobody can hold; what waits for the model in the end.
async fn flood(server: &mut Server) -> Result<JoinSet<Result<u16>>> {
    let prompt = format!("slow {}", "x".repeat(PROMPT));
    let body: &'static str = json!({"system": "", "prompt": prompt}).to_string().leak();
    let url = format!("{}{COMPLETION}", server.url());
    let client = client()?;
    let (mut asked, mut refused) = (JoinSet::new(), 0);
    let mut note = |answered: Option<Result<Result<u16>, _>>| -> Result<()> {
        let status = answered.context("none waits")???;
        ensure!(status == 429, "{status}");
        refused += 1;
        Ok(())
    };
    for _ in 0..QUESTIONS {
        let ask = client.post(&url).body(body);
        asked.spawn(async move { Ok(ask.send().await?.status().as_u16()) });
        tokio::time::sleep(PACE).await;
        while let Some(answered) = asked.try_join_next() {
            note(Some(answered)).with_context(|| server.log())?;
        }
        ensure!(server.alive(), "{}", server.log());
    }
    let end = Instant::now() + BOUND;
    while asked.len() > QUESTIONS / 10 {
        let answered = tokio::time::timeout_at(end.into(), asked.join_next()).await;
        let answered = answered.with_context(|| format!("{} wait", asked.len()))?;
        note(answered).with_context(|| server.log())?;
    }
    ensure!(refused > QUESTIONS / 2, "{refused} refused");
    Ok(asked)
}

async fn a_flood_of_large_questions_is_refused(bus: Bus) -> Result<()> {
    let rules = vec![
        Rule::contains("quick", Reply::text("done")),
        Rule::always(Reply::Silence),
    ];
    let model = ScriptedModel::start(rules).await?;
    let node = bus.broker().await?;
    let raised = |launch: tg_testkit::process::Launch, name: &str| {
        launch.env(&format!("THREADGRAPH_GATEWAY__{name}"), "256")
    };
    let launch = launch(&model, node.as_ref()).address_space(ADDRESS_SPACE);
    let launch = raised(raised(launch, "RECEIVING_MB"), "PARSING_MB");
    let mut server = launch.ready().await?;
    make(&server.url(), "other").await?;
    served(&mut server, "default", 1 << 20).await?;

    let waiting = flood(&mut server).await?;
    ensure!(!waiting.is_empty(), "none waits for the model");
    ensure!(refused_by_services(&server).await?, "not by the services");
    // A small one, and a large one of somebody else.
    served(&mut server, "default", 100).await?;
    served(&mut server, "other", 1 << 20).await?;

    // Who hangs up makes room.
    drop(waiting);
    let end = Instant::now() + BOUND;
    while quick(&server, "default", 4 << 20).await?.0 != 200 {
        ensure!(Instant::now() < end, "{}", server.log());
        tokio::time::sleep(LOOK).await;
    }
    ensure!(server.alive());
    Ok(())
}

on_both_buses!(a_flood_of_large_questions_is_refused);
