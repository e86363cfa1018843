//! The programs in `examples/` that have a session with an agent, unmodified: in Python, in TypeScript and with `curl`, against a
//! system with users.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tg_testkit::model::{Reply, Rule, ScriptedModel, cut, final_answer};
use tg_testkit::process::{Server, root};
use tokio::process::Command;

use crate::edge::first_key;
use crate::world::{Bus, launch, on_both_buses};

const BOUND: Duration = Duration::from_secs(120);
/// What each of them prints.
const PRINTED: [&str; 3] = [
    "Eine Lampe zum Tragen.",
    "Um im Dunkeln zu sehen.",
    "4 messages",
];

/// The second question comes with the first one before it.
fn rules() -> Vec<Rule> {
    let answer = |text| Reply::pieces(cut(&final_answer("It is known.", text), 8));
    vec![
        Rule::contains("Und wozu braucht man sie?", answer(PRINTED[1])),
        Rule::contains("Was ist eine Laterne?", answer(PRINTED[0])),
    ]
}

/// Runs an example to its end; the lines that it printed.
async fn printed(
    program: &Path,
    example: &str,
    (server, key): (&Server, &str),
) -> Result<Vec<String>> {
    let work = Command::new(program)
        .arg(root().join("examples").join(example))
        .args([server.url().as_str(), key])
        .env("NO_PROXY", "127.0.0.1")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(BOUND, work)
        .await
        .with_context(|| format!("{example} did not end\n{}", server.log()))?
        .with_context(|| format!("{}: run the set-up first", program.display()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let told = String::from_utf8_lossy(&output.stdout);
    let log = server.log();
    ensure!(
        output.status.success(),
        "{example}: {told}\n{errors}\n{log}"
    );
    let lines = told.lines().map(|line| line.trim().to_owned());
    Ok(lines.filter(|line| !line.is_empty()).collect())
}

async fn each_example_has_its_session(bus: Bus) -> Result<()> {
    let model = ScriptedModel::start(rules()).await?;
    let node = bus.broker().await?;
    let launch = launch(&model, node.as_ref()).arg("--auth").arg("iam");
    let server = launch.ready().await?;
    let key = first_key(&server).await?;
    let cache = root().join(".cache");
    for (program, example) in [
        (cache.join("venv/bin/python3"), "session.py"),
        (cache.join("npm/node"), "session.ts"),
        ("/bin/bash".into(), "session.sh"),
    ] {
        let lines = printed(&program, example, (&server, key.as_str())).await?;
        ensure!(lines == PRINTED, "{example}: {lines:?}\n{}", server.log());
    }
    Ok(())
}

on_both_buses!(each_example_has_its_session);
