//! `tg why` of a document, a queue, a request, a run and a thread: how it stands, and the command that helps, which then does help.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::mcp::McpServer;
use tg_testkit::model::{Reply, Rule, two_step_react};
use tg_testkit::model_router::name_of;
use tg_testkit::process::client;
use tokio::time::Instant;
use uuid::Uuid;

use crate::a_user_is_asked::put_in;
use crate::shared::Workspace;
use crate::world::{Bus, on_both_buses};

const TEXT: &str = "The old bridge over the Sell was built in 1429.";
const DOCUMENT: &str = "urn:doc:bridge";
/// A thread that the test names itself.
const THREAD: &str = "0b4f0c9e-6c2e-4f43-8a53-1d1f6e8b7c11";
/// Whatever these tests wait for comes within this.
const BOUND: Duration = Duration::from_secs(60);

/// The lines that `tg why --json` tells.
async fn why(place: &Workspace, of: &[&str]) -> Result<Vec<Value>> {
    let args = [&["why", "--json"], of].concat();
    let told = place.tg(&args).await?;
    serde_json::from_slice(told.stdout.as_bytes()).context(told.stderr)
}

async fn a_document_and_a_queue(bus: Bus) -> Result<()> {
    let place = Workspace::shared(bus).await?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("bridge.txt");
    std::fs::write(&path, TEXT)?;
    let path = path.to_str().context("a path")?;
    let add = ["add-library-document", "--document-id", DOCUMENT, path];
    place.tg(&add).await?.expect("")?;
    let told = why(&place, &["--document-id", DOCUMENT]).await?;
    let [one] = told.as_slice() else {
        anyhow::bail!("{told:?}");
    };
    ensure!(one["state"] == "unprocessed", "{one}");
    let command = one["command"].as_str().context("a command")?;
    let command: Vec<&str> = command.split(' ').skip(1).collect();
    let helped = place.tg(&[&command[..], &["--wait"]].concat()).await?;
    ensure!(helped.code == Some(0), "{}{}", helped.stdout, helped.stderr);
    let told = why(&place, &["--document-id", DOCUMENT]).await?;
    ensure!(
        told.len() == 1 && told[0]["state"] == "complete",
        "{told:?}"
    );
    ensure!(told[0].get("command").is_none(), "{told:?}");
    let unknown = place.tg(&["why", "--document-id", "urn:doc:none"]).await?;
    ensure!(unknown.code == Some(3), "{}", unknown.stdout);

    // One that somebody reads.
    let queue = format!("triples-write--{}--default--input", place.id);
    let told = why(&place, &["--queue", &queue]).await?;
    let states: Vec<&str> = told
        .iter()
        .filter_map(|line| line["state"].as_str())
        .collect();
    ensure!(states == ["running", "empty", "attached"], "{told:?}");
    let unknown = place.tg(&["why", "--queue", "none"]).await?;
    ensure!(
        unknown.stderr.contains("--queue: no flow"),
        "{}",
        unknown.stderr
    );
    Ok(())
}

/// Asks until there is one line of a subject with this state.
async fn until(place: &Workspace, of: &[&str], state: &str) -> Result<Value> {
    let end = Instant::now() + BOUND;
    loop {
        let told = why(place, of).await.unwrap_or_default();
        if let Some(line) = told.iter().find(|line| line["state"] == state) {
            return Ok(line.clone());
        }
        ensure!(Instant::now() < end, "{state}: {told:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Runs the command that a line names.
async fn helped(place: &Workspace, line: &Value) -> Result<()> {
    let command = line["command"].as_str().context(line.to_string())?;
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let helped = place.tg(&words).await?;
    ensure!(helped.code == Some(0), "{command}: {helped:?}");
    Ok(())
}

/// A request that its model keeps waiting: the service works on it, and it can be cancelled.
async fn a_request(bus: Bus) -> Result<()> {
    let slow = Rule::always(Reply::text("late")).delayed(BOUND);
    let (place, _model) = Workspace::scripted(bus, vec![slow]).await?;
    let url = &place.url;
    let asked = client()?
        .post(format!("{url}api/v1/flow/default/service/text-completion"))
        .header("x-request-id", "slow-1")
        .json(&json!({"system": "s", "prompt": "p", "workspace": place.id}))
        .timeout(BOUND * 2)
        .send();
    let looked = async {
        let line = until(&place, &["--request-id", "slow-1"], "answering").await?;
        let detail = line["detail"].as_str().context("a detail")?;
        ensure!(
            detail.starts_with("text-completion works on it for "),
            "{line}"
        );
        ensure!(detail.contains("the last sign"), "{line}");
        // It is not detached, and on no list.
        let listed = place.tg(&["list-requests", "--json"]).await?;
        ensure!(!listed.stdout.contains("slow-1"), "{}", listed.stdout);
        helped(&place, &line).await
    };
    let (asked, looked) = tokio::join!(asked, looked);
    looked?;
    let reply: Value = asked?.json().await?;
    ensure!(reply["error"]["type"] == "cancelled", "{reply}");
    let unknown = place.tg(&["why", "--request-id", "slow-1"]).await?;
    ensure!(unknown.code == Some(3), "{unknown:?}");
    Ok(())
}

/// A run waits for its model, then for its user, and is over.
async fn a_run(bus: Bus) -> Result<()> {
    let mut rules = two_step_react("pay", json!({"bill": "7"}), 1);
    rules.insert(1, Rule::always(Reply::text("hm")).delayed(BOUND).times(1));
    let (place, model) = Workspace::scripted(bus, rules).await?;
    let (url, model) = (&place.url, name_of(model.port()));
    let mcp = McpServer::start().await?;
    put_in(url, &place.id, &mcp).await?;
    let ask = async |name: &str| -> Result<()> {
        let question = format!("Pay it. nonce-{name}");
        let question = json!({"question": question, "streaming": false, "workspace": place.id});
        let request = client()?
            .post(format!("{url}api/v1/flow/default/service/agent"))
            .header("x-request-id", name)
            .header("x-detach", "true")
            .json(&question);
        // The run goes on without its caller.
        let _ = request.timeout(Duration::from_secs(2)).send().await;
        Ok(())
    };
    ask("thinks").await?;
    let line = until(&place, &["--request-id", "thinks"], "thinking").await?;
    let detail = line["detail"].as_str().context("a detail")?;
    ensure!(
        detail.starts_with(&format!("step 1 waits for the model '{model}', since ")),
        "{line}"
    );
    ensure!(line["command"] == "tg route --explain -f default", "{line}");
    helped(&place, &line).await?;
    let thinks = line["subject"].as_str().context("a run")?.to_owned();
    let cancelled = place.tg(&["cancel", &thinks]).await?;
    ensure!(cancelled.code == Some(0), "{cancelled:?}");
    let line = until(&place, &["--run", &thinks], "cancelled").await?;
    ensure!(line["command"] == format!("tg attach {thinks}"), "{line}");

    ask("asks").await?;
    let line = until(&place, &["--request-id", "asks"], "asks").await?;
    let detail = line["detail"].as_str().context("a detail")?;
    ensure!(
        detail.contains("whether the tool 'pay' may be used; until "),
        "{line}"
    );
    let asks = line["subject"].as_str().context("a run")?.to_owned();
    let before = format!("tg confirm {asks} yes --message-id urn:trustgraph:agent:");
    let command = line["command"].as_str().context("a command")?;
    let named = command.strip_prefix(&before).context("another command")?;
    let trace = named.strip_suffix("/i1/confirmation");
    trace.context("another question")?.parse::<Uuid>()?;
    ensure!(mcp.count("pay") == 0, "used before the user was asked");
    helped(&place, &line).await?;
    let line = until(&place, &["--run", &asks], "ended").await?;
    ensure!(line["detail"] == "it is over", "{line}");
    ensure!(mcp.count("pay") == 1, "not used");
    helped(&place, &line).await?;
    let shown = place.tg(&["why", "--run", &asks]).await?;
    ensure!(shown.stdout.contains("it is over"), "{shown:?}");
    let unknown = place.tg(&["why", "--run", "none"]).await?;
    ensure!(unknown.code == Some(3), "{unknown:?}");
    Ok(())
}

/// A listener that waits for its model has a message of a thread: ending the thread answers whoever sent it.
async fn a_thread(bus: Bus) -> Result<()> {
    let slow = Rule::always(Reply::text("late")).delayed(BOUND);
    let (place, _model) = Workspace::scripted(bus, vec![slow]).await?;
    let message = json!({"operation": "send-message", "flow": "default", "to": "agent", "type": "agentrequest",
        "payload": {"question": "What is it?"}, "thread": THREAD, "workspace": place.id});
    let sent = client()?
        .post(format!("{}api/v1/threads", place.url))
        .json(&message)
        .timeout(BOUND * 2)
        .send();
    let looked = async {
        let line = until(&place, &["--thread", THREAD], "answering").await?;
        let detail = line["detail"].as_str().context("a detail")?;
        ensure!(detail.starts_with("'agent' has a message"), "{line}");
        helped(&place, &line).await
    };
    let (sent, looked) = tokio::join!(sent, looked);
    looked?;
    let reply: Value = sent?.json().await?;
    ensure!(reply["thread"] == THREAD, "{reply}");
    let messages = reply["messages"].as_array();
    ensure!(messages.is_none_or(Vec::is_empty), "{reply}");
    let gone = place.tg(&["why", "--thread", THREAD]).await?;
    ensure!(gone.code == Some(3), "{gone:?}");
    Ok(())
}

on_both_buses!(a_document_and_a_queue, a_request, a_run, a_thread);
