//! A person at the console talks to the flow's agent and to a listener that is a Python program over plain AMQP; what is not
//! there is told in words that say nothing of it.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel, final_answer};
use tg_testkit::process::{Server, client, root, tg, tg_as};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::world::{Bus, launch, on_both_buses, post};

/// A program listens, and a row is known, by then.
const BOUND: Duration = Duration::from_secs(60);
/// Between two looks at what listeners there are.
const LOOK: Duration = Duration::from_millis(200);
/// What a sender is told, whatever the cause.
const NOBODY: &str = "Message could not be delivered. Please verify your target and try again.";

/// A program in Python that listens; it ends with what is returned.
pub(crate) async fn listening(name: &str, program: &str, broker: &str) -> Result<Child> {
    let mut child = Command::new(root().join(".cache/venv/bin/python3"))
        .arg(root().join(program))
        .args([broker, "default", "default"])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
    let line = tokio::time::timeout(BOUND, lines.next_line()).await??;
    ensure!(line == Some(format!("{name} listens")), "{line:?}");
    Ok(child)
}

/// Registers a listener and waits until it is known.
pub(crate) async fn register(url: &str, name: &str, mut row: Value) -> Result<()> {
    row["types"] = json!({"textinput": {"type": "object"}});
    let shown = format!(
        "{name}  {}",
        row["description"].as_str().unwrap_or_default()
    );
    let row = row.to_string();
    let put = [
        "put-config-item",
        "--type",
        "listener",
        "--key",
        name,
        "--value",
        &row,
    ];
    tg(url, &put).await?.refuse("rror")?;
    let known = async {
        loop {
            let listed = tg_as(url, "", "/listeners\n", &["console"]).await?;
            if listed.stdout.contains(&shown) {
                return Ok::<_, anyhow::Error>(listed);
            }
            // Who watches the configuration reads it anew.
            tokio::time::sleep(LOOK).await;
        }
    };
    let listed = tokio::time::timeout(BOUND, known).await??;
    listed.expect("agent  Answers a question")?;
    Ok(())
}

async fn a_person_talks_to_listeners(bus: Bus) -> Result<()> {
    let answer = final_answer("it is known.", "Ada Brisk built it.");
    let model = ScriptedModel::start(vec![Rule::contains("lamp", Reply::text(answer))]).await?;
    let node = bus.broker().await?;
    let server = launch(&model, node.as_ref()).ready().await?;
    let url = server.url();
    register(&url, "shouter", json!({"description": "Says it loud."})).await?;
    let listens = match &node {
        Some(node) => Some(listening("shouter", "examples/shouter.py", &node.url()).await?),
        None => None,
    };
    let script = "\n@agent Who built the lamp?\n@shouter hi there\n@ghost hi\nhello\n/status\n/quit\n@agent never\n";
    let told = tg_as(&url, "", script, &["console"]).await?;
    let shown = format!("{}\n{}", told.stdout, told.stderr);
    ensure!(
        told.stdout.contains("[agent] Ada Brisk built it.\n"),
        "{shown}"
    );
    let nobody = format!("[system] {NOBODY}\n");
    // On the embedded bus there is no program that listens; that is told as what is not there is.
    let loud = if listens.is_some() {
        "[shouter] HI THERE\n"
    } else {
        nobody.as_str()
    };
    ensure!(told.stdout.ends_with(&format!("{loud}{nobody}")), "{shown}");
    ensure!(told.stderr.contains("running, thread "), "{shown}");
    match &node {
        Some(node) => refusals_are_logged(&server, &node.url()).await?,
        None => warned(&server, "console-router", "shouter", "nobody serves it")?,
    }
    an_open_thread_is_explained(&url).await
}

/// 143: who is no peer and who is not there are told alike, and the log says what it was.
async fn refusals_are_logged(server: &Server, broker: &str) -> Result<()> {
    let url = server.url();
    let row = json!({"description": "Passes it on.", "agent": true, "peers": ["agent"]});
    register(&url, "forwarder", row).await?;
    let program = "tests/integration/clients/forwarder.py";
    let _listens = listening("forwarder", program, broker).await?;
    for wanted in ["shouter", "nosuch"] {
        let send = json!({"operation": "send-message", "flow": "default", "to": "forwarder",
            "type": "textinput", "payload": {"text": wanted}});
        let (_, answer) = post(&url, "api/v1/threads", send).await?;
        let told = &answer["messages"][0]["payload"]["text"];
        ensure!(told == NOBODY, "{answer}");
        let why = "not a peer, or no such listener; allowed are: agent";
        warned(server, "forwarder", wanted, why)?;
    }
    Ok(())
}

/// The log has a warning with all that the sender is not told.
fn warned(server: &Server, sender: &str, wanted: &str, why: &str) -> Result<()> {
    let log = server.log();
    let said = "a message between listeners came to nothing";
    let details = format!("sender={sender} wanted={wanted} why={why}");
    let is_it = |line: &str| line.contains(said) && line.contains(&details);
    let line = log.lines().find(|line| is_it(line));
    let line = line.with_context(|| format!("{details} is not in {log}"))?;
    ensure!(
        line.contains(" WARN ") && line.contains(" thread="),
        "{line}"
    );
    Ok(())
}

/// A message to nobody leaves its thread open: `tg why` says that nothing of it is in progress.
async fn an_open_thread_is_explained(url: &str) -> Result<()> {
    let send = json!({"operation": "send-message", "flow": "default", "to": "console-router",
        "type": "consoleinput", "payload": {"text": "hi", "target": "nobody"}, "console": true});
    let threads = client()?.post(format!("{url}api/v1/threads")).json(&send);
    let sent: Value = threads.send().await?.json().await?;
    let thread = sent["thread"].as_str().context(sent.to_string())?;
    let why = ["why", "--json", "--thread", thread];
    let told = tg(url, &why).await?;
    let lines: Vec<Value> = serde_json::from_str(&told.stdout).context(told.stderr)?;
    ensure!(lines[0]["state"] == "open", "{lines:?}");
    let detail = lines[0]["detail"].as_str().unwrap_or_default();
    ensure!(
        detail.starts_with("nothing is in progress, and 'console-router' keeps no message"),
        "{detail}"
    );
    let unknown = ["why", "--thread", "6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d70"];
    let unknown = tg(url, &unknown).await?;
    ensure!(unknown.code == Some(3), "{unknown:?}");
    ensure!(
        unknown.stderr.contains("`tg console` and there /status"),
        "{unknown:?}"
    );
    Ok(())
}

on_both_buses!(a_person_talks_to_listeners);
