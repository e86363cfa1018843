//! A run of the agent is under way when its workspace is deleted and purged: what it comes to later is not written to the
//! ledger any more.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde_json::json;
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tg_testkit::outside::number;
use tg_testkit::process::{Server, client};

use crate::workspaces::{iam, make};
use crate::world::{Bus, launch, on_both_buses};

/// Over a broker a successor goes on with the run after about 45 s, and later on a busy machine.
const BOUND: Duration = Duration::from_secs(180);
/// What the agent says of a step that it could not keep.
const REFUSED: &str = "processor=agent-manager workspace=acme";

/// Rows of the ledger.
fn rows(server: &Server, table: &str) -> Result<i64> {
    let count = format!("SELECT COUNT(*) FROM {table}");
    number(&server.data().join("agent.db"), &count)
}

async fn a_step_ends_after_the_purge(bus: Bus) -> Result<()> {
    let late = Rule::always(Reply::text("late")).delayed(Duration::from_secs(300));
    let model = ScriptedModel::start(vec![late]).await?;
    let node = bus.broker().await?;
    let folder = tempfile::tempdir()?;
    let start = || {
        let launch = launch(&model, node.as_ref()).data(folder.path());
        launch.env("THREADGRAPH_CONFIG__RESTORE_HOURS", "0").ready()
    };
    let first = start().await?;
    make(&first.url(), "acme").await?;
    let question = client()?
        .post(format!("{}api/v1/flow/default/service/agent", first.url()))
        .header("X-Detach", "true")
        .json(&json!({"workspace": "acme", "question": "q"}));
    // Whoever asked is away as soon as the run is under way.
    tokio::select! {
        answer = question.send() => bail!("nobody answers: {answer:?}"),
        begun = model.wait_calls(1, BOUND) => ensure!(begun, "the run is under way"),
    }
    // No gateway looks after it any more.
    first.kill9().await?;
    let server = start().await?;
    ensure!(model.wait_calls(2, BOUND).await, "it goes on");
    ensure!(rows(&server, "run")? == 1);

    iam(&server.url(), "delete-workspace", "acme").await?;
    let end = Instant::now() + BOUND;
    while rows(&server, "run")? > 0 {
        ensure!(Instant::now() < end, "not purged\n{}", server.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    ensure!(model.calls().iter().all(|call| !call.finished));
    // The step has something to note now.
    model.hurry();
    let end = Instant::now() + BOUND;
    while !server.log().contains(REFUSED) {
        ensure!(Instant::now() < end, "nothing ended\n{}", server.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for table in ["run", "step", "said", "detached"] {
        ensure!(rows(&server, table)? == 0, "{table}\n{}", server.log());
    }
    Ok(())
}

on_both_buses!(a_step_ends_after_the_purge);
