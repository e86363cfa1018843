//! Large questions that wait for a slow model take a bounded part of memory, and of one workspace half of that: further ones
//! are refused, and the process goes on serving others and what is small.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tg_testkit::process::{Server, client};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{timeout, timeout_at};

use crate::workspaces::make;
use crate::world::{Bus, launch, on_both_buses, post};

/// What the process may map: with all its threads and stores it has about half of that for questions and the rest.
const ADDRESS_SPACE: u64 = 3 << 30;
/// Bytes of a question.
const PROMPT: usize = 15 << 20;
/// So many are sent at once, so that the gateway's own bound is not what refuses them; what has no answer is received by then.
const AT_ONCE: usize = 3;
const RECEIVED: Duration = Duration::from_secs(2);
/// All have been answered by then, but those that wait for the model.
const BOUND: Duration = Duration::from_secs(180);
/// Between two looks whether a condition holds.
const LOOK: Duration = Duration::from_millis(100);
const COMPLETION: &str = "api/v1/flow/default/service/text-completion";

/// What the gateway said, or that it hung up.
type Told = reqwest::Result<String>;

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

/// How many are asked: four and a half gigabytes. Through a broker each takes a second or more, and a part of them is more than
/// there is of memory, too.
fn questions(bus: Bus) -> usize {
    match bus {
        Bus::Embedded => 300,
        Bus::Rabbit => 80,
    }
}

/// Asks as much as nobody can hold; what waits for the model in the end.
async fn flood(server: &mut Server, questions: usize) -> Result<JoinSet<Told>> {
    let prompt = format!("slow {}", "x".repeat(PROMPT));
    let body: &'static str = json!({"system": "", "prompt": prompt}).to_string().leak();
    let url = format!("{}{COMPLETION}", server.url());
    let client = client()?;
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let (mut asked, mut refused) = (JoinSet::new(), 0);
    let mut note = |answered: Result<Told, JoinError>| -> Result<()> {
        // Who has no room for a body may hang up on it.
        if let Ok(told) = answered? {
            ensure!(told.contains("try again"), "{told}");
        }
        refused += 1;
        Ok(())
    };
    for _ in 0..questions {
        let place = places.clone().acquire_owned().await?;
        let ask = client.post(&url).body(body);
        asked.spawn(async move {
            let mut answer = pin!(async { ask.send().await?.text().await });
            let soon = timeout(RECEIVED, &mut answer).await;
            drop(place);
            match soon {
                Ok(told) => told,
                Err(_) => answer.await,
            }
        });
        while let Some(answered) = asked.try_join_next() {
            note(answered).with_context(|| server.log())?;
        }
        ensure!(server.alive(), "{}", server.log());
    }
    let end = Instant::now() + BOUND;
    while asked.len() > questions / 10 {
        let answered = timeout_at(end.into(), asked.join_next()).await;
        let answered = answered.with_context(|| format!("{} wait", asked.len()))?;
        note(answered.context("none waits")?).with_context(|| server.log())?;
    }
    ensure!(refused > questions / 2, "{refused} refused");
    Ok(asked)
}

async fn a_flood_of_large_questions_is_refused(bus: Bus) -> Result<()> {
    let rules = vec![
        Rule::contains("quick", Reply::text("done")),
        Rule::always(Reply::Silence),
    ];
    let model = ScriptedModel::start(rules).await?;
    let node = bus.broker().await?;
    let launch = launch(&model, node.as_ref()).address_space(ADDRESS_SPACE);
    let mut server = launch.ready().await?;
    make(&server.url(), "other").await?;
    served(&mut server, "default", 1 << 20).await?;

    let waiting = flood(&mut server, questions(bus)).await?;
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
