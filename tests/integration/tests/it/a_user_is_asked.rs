//! A tool that asks first waits for its user: a yes is a call, a no, or nothing at all, is none, and the model hears which. Whoever
//! takes the run up after a crash goes on waiting; a call that was allowed is made once.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::mcp::McpServer;
use tg_testkit::model::{ScriptedModel, two_step_react};
use tg_testkit::official::official;
use tg_testkit::process::{Server, client, tg_with};
use tg_testkit::services::{ANSWERING, without};
use tg_testkit::shared_node::VirtualHost;
use tg_testkit::socket::{Frames, Socket, brief, text_of};
use tokio::time::Instant;

use crate::shared::Workspace;
use crate::world::{Bus, launch, on_both_buses, post, post_within, serving};

const AGENT: &str = "api/v1/flow/default/service/agent";
/// Whatever these tests wait for comes within this.
const BOUND: Duration = Duration::from_secs(60);

/// Puts the tool `pay` there, which asks first.
async fn put(url: &str, mcp: &McpServer) -> Result<()> {
    put_in(url, "", mcp).await
}

/// The same in a workspace.
pub async fn put_in(url: &str, workspace: &str, mcp: &McpServer) -> Result<()> {
    let variables = [("THREADGRAPH_WORKSPACE", workspace)];
    let server = mcp.url();
    let server = ["set-mcp-tool", "--id", "pay", "--tool-url", &server];
    let tool = [
        "set-tool", "--id", "pay", "--name", "pay", "--type", "mcp-tool",
    ];
    let more = [
        "--mcp-tool",
        "pay",
        "--description",
        "Pays.",
        "--writes",
        "--confirm",
    ];
    let more = [&more[..], &["--argument", "bill:string:Which"]].concat();
    for args in [server.to_vec(), [&tool[..], &more].concat()] {
        let put = tg_with(url, &variables, &args).await?;
        ensure!(put.code == Some(0), "{put:?}");
    }
    Ok(())
}

fn model() -> Vec<tg_testkit::model::Rule> {
    two_step_react("pay", json!({"bill": "7"}), 1)
}

/// Begins a run and reads it up to what it asks.
async fn asked(socket: &Socket, nonce: &str) -> Result<(Frames, Vec<Value>, Value)> {
    let request = json!({"question": format!("Pay it. {nonce}"), "streaming": true});
    let envelope = json!({"service": "agent", "flow": "default", "request": request});
    let mut shown = socket.send(envelope).await?;
    let mut frames = Vec::new();
    loop {
        let next = tokio::time::timeout(BOUND, shown.next()).await;
        let frame = next.context("nothing is asked")?;
        let frame = frame.with_context(|| format!("it ended: {}", brief(&frames)))?;
        frames.push(frame.clone());
        if frame["response"]["message_type"] == "confirm" {
            let mut question = frame["response"].clone();
            question["run"] = frame["run"].clone();
            return Ok((shown, frames, question));
        }
    }
}

/// What the run told in the end: what the tool returned, and what the trace says of the user's answer.
fn told(frames: &[Value], nonce: &str) -> Result<(String, Vec<String>)> {
    let answer = text_of(frames, "answer");
    let whole = || format!("{answer}: {}", brief(frames));
    ensure!(
        answer.trim() == format!("The answer for {nonce} is here."),
        "{}",
        whole()
    );
    let triples = frames
        .iter()
        .filter_map(|frame| frame["response"]["explain_triples"].as_array());
    let answers = triples.flatten().filter(|triple| {
        triple["p"]["i"]
            .as_str()
            .is_some_and(|p| p.ends_with("/confirmationAnswer"))
    });
    let answers = answers.filter_map(|triple| triple["o"]["v"].as_str());
    let answers = answers.map(str::to_owned).collect();
    Ok((text_of(frames, "observation"), answers))
}

/// The one run that is under way.
async fn running(url: &str) -> Result<String> {
    let end = Instant::now() + BOUND;
    loop {
        let ask = json!({"operation": "list-runs"});
        let (_, listed) = post(url, "api/v1/requests", ask).await?;
        let runs = listed["runs"].as_array().cloned().unwrap_or_default();
        if let Some(run) = runs.iter().find(|run| run["state"] == "running") {
            return Ok(run["id"].as_str().context("an id")?.to_owned());
        }
        ensure!(Instant::now() < end, "{listed}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Says yes by REST as soon as the run asks.
async fn allow(url: &str, run: &str) -> Result<()> {
    let end = Instant::now() + BOUND;
    let ask = json!({"operation": "confirm-run", "run": run, "answer": "yes"});
    loop {
        let (status, told) = post(url, "api/v1/requests", ask.clone()).await?;
        if status == 200 && told.get("error").is_none() {
            return Ok(());
        }
        ensure!(Instant::now() < end, "{status} {told}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn up(bus: Bus) -> Result<(Server, ScriptedModel, Arc<McpServer>, Option<VirtualHost>)> {
    let model = ScriptedModel::start(model()).await?;
    let node = bus.broker().await?;
    let mcp = McpServer::start().await?;
    let server = launch(&model, node.as_ref()).ready().await?;
    put(&server.url(), &mcp).await?;
    Ok((server, model, mcp, node))
}

async fn a_yes_is_a_call_and_a_no_is_none(bus: Bus) -> Result<()> {
    let (place, _model) = Workspace::scripted(bus, model()).await?;
    let mcp = McpServer::start().await?;
    put_in(&place.url, &place.id, &mcp).await?;
    let socket = place.socket().await?;

    let (shown, mut frames, question) = asked(&socket, "nonce-yes").await?;
    let content: Value = serde_json::from_str(question["content"].as_str().context("text")?)?;
    ensure!(
        content["tool"] == "pay" && content["arguments"] == json!({"bill": "7"}),
        "{question}"
    );
    ensure!(content["until-ms"].as_i64() > Some(0), "{question}");
    ensure!(mcp.count("pay") == 0, "called before it was allowed");
    let run = question["run"].as_str().context("a run")?.to_owned();
    for (wrong, why) in [
        (json!({"answer": "maybe"}), "answer: must be yes or no"),
        (
            json!({"answer": "yes", "message_id": "urn:other"}),
            "the run asks nothing",
        ),
        (json!({"answer": "yes", "run": "another"}), "run not found"),
    ] {
        let mut ask = json!({"operation": "confirm-run", "run": run});
        let more = wrong.as_object().context("fields")?.clone();
        ask.as_object_mut().context("an object")?.extend(more);
        let reply = socket.ask_service("requests", ask).await?;
        ensure!(reply.to_string().contains(why), "{wrong}: {reply}");
    }
    let yes = json!({"operation": "confirm-run", "run": run, "answer": "yes",
        "message_id": question["message_id"]});
    let reply = socket.ask_service("requests", yes).await?;
    ensure!(reply["response"]["answer"] == "yes", "{reply}");
    frames.extend(shown.all(BOUND).await?);
    let seen = told(&frames, "nonce-yes")?;
    ensure!(
        seen == ("found".to_owned(), vec!["yes".to_owned()]),
        "{seen:?}"
    );
    ensure!(mcp.count("pay") == 1, "once");
    let trace = frames
        .iter()
        .find_map(|frame| frame["response"]["trace"].as_str());
    let trace = trace.context("a trace")?;
    let shown = place.tg(&["show-explain-trace", trace]).await?;
    ensure!(
        shown.stdout.contains("--- Confirmation ---\nAnswer: yes"),
        "{shown:?}"
    );
    let verified = place.tg(&["verify-trace", trace, "--chain"]).await?;
    ensure!(verified.code == Some(0), "{verified:?}");

    let (shown, mut frames, question) = asked(&socket, "nonce-no").await?;
    let run = question["run"].as_str().context("a run")?;
    let no = place.tg(&["confirm", run, "no"]).await?;
    ensure!(
        no.code == Some(0) && no.stdout.contains("Answered: no"),
        "{no:?}"
    );
    frames.extend(shown.all(BOUND).await?);
    let (seen, answers) = told(&frames, "nonce-no")?;
    ensure!(
        seen.contains("the user does not allow this call of 'pay'"),
        "{seen}"
    );
    ensure!(answers == ["no"], "{answers:?}");
    let late = place.tg(&["confirm", run, "yes"]).await?;
    ensure!(late.code != Some(0), "{late:?}");
    ensure!(mcp.count("pay") == 1, "a no is no call");
    Ok(())
}

/// Among listeners the system asks in a message, which names the run.
async fn a_person_at_the_console_is_asked(bus: Bus) -> Result<()> {
    let (place, _model) = Workspace::scripted(bus, model()).await?;
    let mcp = McpServer::start().await?;
    put_in(&place.url, &place.id, &mcp).await?;
    let socket = place.socket().await?;
    for (nonce, answer, calls) in [("nonce-no", "no", 0), ("nonce-yes", "yes", 1)] {
        let request = json!({"operation": "send-message", "flow": "default", "to": "console-router",
            "type": "consoleinput", "payload": {"text": format!("Pay it. {nonce}"), "target": "agent"},
            "console": true, "streaming": true});
        let envelope = json!({"service": "threads", "request": request});
        let mut shown = socket.send(envelope).await?;
        let asks = loop {
            let next = tokio::time::timeout(BOUND, shown.next()).await;
            let frame = next.context("nothing is asked")?.context("it ended")?;
            let message = &frame["response"]["messages"][0];
            if message["type"] == "confirm" {
                break message.clone();
            }
        };
        ensure!(mcp.count("pay") == 0, "called before it was allowed");
        ensure!(
            asks["from"] == "system" && asks["payload"]["arguments"] == json!({"bill": "7"}),
            "{asks}"
        );
        let run = asks["payload"]["run"].as_str().context("a run")?;
        let told = place.tg(&["confirm", run, answer]).await?;
        ensure!(told.code == Some(0), "{told:?}");
        let frames = shown.all(BOUND).await?;
        let said = format!("The answer for {nonce} is here.");
        let prompt = frames.iter().find(|frame| {
            let output = frame["response"]["messages"][0]["payload"]["output"].as_str();
            output.is_some_and(|output| output.trim() == said)
        });
        ensure!(prompt.is_some(), "{}", brief(&frames));
        ensure!(mcp.count("pay") == calls, "{answer}: {}", mcp.count("pay"));
    }
    Ok(())
}

async fn no_answer_in_time_is_a_no_and_a_grant_asks_nothing(bus: Bus) -> Result<()> {
    let (server, _model, mcp, _node) = up(bus).await?;
    let url = server.url();
    let ask = json!({"question": "Pay it. nonce-late"});
    let (status, reply) = post_within(&url, AGENT, ask, BOUND).await?;
    ensure!(status == 200, "{reply}");
    let seen = reply["observation"].as_str().unwrap_or_default();
    ensure!(
        seen.contains("the user was asked and did not answer in time"),
        "{reply}"
    );
    ensure!(
        reply["answer"].to_string().contains("nonce-late"),
        "{reply}"
    );
    ensure!(mcp.count("pay") == 0, "called");
    let ask = json!({"question": "Pay it. nonce-granted", "grant": ["pay"]});
    let (_, reply) = post(&url, AGENT, ask).await?;
    ensure!(
        reply["observation"] == "found" && mcp.count("pay") == 1,
        "{reply}"
    );
    // Without pieces nobody is shown what is asked; it is answered all the same.
    let ask = post(&url, AGENT, json!({"question": "Pay it. nonce-whole"}));
    let said = async { allow(&url, &running(&url).await?).await };
    let ((status, reply), ()) = tokio::try_join!(ask, said)?;
    ensure!(status == 200 && reply["observation"] == "found", "{reply}");
    Ok(())
}

async fn the_official_command_takes_the_question_as_nothing(bus: Bus) -> Result<()> {
    let (server, _model, mcp, _node) = up(bus).await?;
    let url = server.url();
    let args = ["-q", "Pay it. nonce-theirs", "-v"];
    let theirs = official(&url, "tg-invoke-agent", &args);
    let said = async { allow(&url, &running(&url).await?).await };
    let (theirs, ()) = tokio::try_join!(theirs, said)?;
    ensure!(theirs.code == Some(0), "{theirs:?}");
    ensure!(
        theirs
            .stdout
            .contains("The answer for nonce-theirs is here."),
        "{theirs:?}"
    );
    ensure!(!theirs.stdout.contains("until-ms"), "{theirs:?}");
    ensure!(mcp.count("pay") == 1, "called once");
    Ok(())
}

/// What a client of the Model Context Protocol is sent before the answer to its call, up to now.
fn sent(events: &str) -> Vec<Value> {
    let data = events
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    data.filter_map(|data| serde_json::from_str(data).ok())
        .collect()
}

async fn an_editor_asks_its_user(bus: Bus) -> Result<()> {
    let (server, _model, mcp, _node) = up(bus).await?;
    let url = format!("{}mcp", server.url());
    let post = |session: &str, message: &Value| {
        let request = client().map(|client| client.post(&url).json(message));
        let kinds = "application/json, text/event-stream";
        request.map(|request| {
            request
                .header("mcp-session-id", session)
                .header("accept", kinds)
                .send()
        })
    };
    let begin = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "t", "version": "1"}}});
    let begun = post("", &begin)?.await?;
    let session = begun.headers().get("mcp-session-id");
    let session = session.context("no session")?.to_str()?.to_owned();
    let yes = json!({"action": "accept", "content": {"allow": true}});
    for (nonce, answer, seen) in [
        ("nonce-allowed", yes, "pay"),
        ("nonce-refused", json!({"action": "decline"}), "pay"),
    ] {
        let question = format!("Pay it. {nonce}");
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "ask_agent", "arguments": {"question": question}}});
        let mut shown = post(&session, &call)?.await?;
        let (mut events, mut answered) = (String::new(), false);
        loop {
            let piece = tokio::time::timeout(BOUND, shown.chunk()).await;
            let piece = piece.with_context(|| format!("nothing is told: {events}"))?;
            let Some(piece) = piece? else { break };
            events.push_str(&String::from_utf8_lossy(&piece));
            let told = sent(&events);
            let asked = told
                .iter()
                .find(|message| message["method"] == "elicitation/create");
            let Some(asked) = asked.filter(|_| !answered) else {
                continue;
            };
            let text = asked["params"]["message"].to_string();
            ensure!(text.contains(seen), "{asked}");
            let reply = json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer});
            let taken = post(&session, &reply)?.await?;
            ensure!(taken.status().as_u16() == 202, "{}", taken.text().await?);
            answered = true;
        }
        let told = sent(&events);
        let last = told.last().with_context(|| events.clone())?;
        let text = last["result"]["content"][0]["text"].to_string();
        ensure!(answered && text.contains(nonce), "{events}");
        ensure!(mcp.count("pay") == 1, "{nonce}: {}", mcp.count("pay"));
    }
    Ok(())
}

on_both_buses!(
    a_person_at_the_console_is_asked,
    a_yes_is_a_call_and_a_no_is_none,
    an_editor_asks_its_user,
    no_answer_in_time_is_a_no_and_a_grant_asks_nothing,
    the_official_command_takes_the_question_as_nothing,
);

/// The agent is killed while its run waits, and once more behind the answer.
#[tokio::test]
async fn a_killed_agent_goes_on_waiting_and_calls_once() -> Result<()> {
    let node = VirtualHost::new().await?;
    let model = ScriptedModel::start(model()).await?;
    let mcp = McpServer::start().await?;
    let serve = |services: &[&str]| serving(services, &model, &node);
    let mut rest = serve(&without(&ANSWERING, &["agent"])).spawn().await?;
    let launch = serve(&["agent"]).data(&rest.data().join("killed"));
    let mut process = launch.clone().spawn().await?;
    rest.wait_ready().await?;
    put(&rest.url(), &mcp).await?;
    let socket = Socket::connect(&rest.url(), "").await?;
    for (round, answered_before) in [(1, false), (2, true)] {
        let nonce = format!("nonce-{round}");
        let (shown, mut frames, question) = asked(&socket, &nonce).await?;
        let run = question["run"].as_str().context("a run")?.to_owned();
        if answered_before {
            allow(&rest.url(), &run).await?;
        }
        process.kill9().await?;
        process = launch.clone().spawn().await?;
        rest.wait_ready().await?;
        if !answered_before {
            ensure!(mcp.count("pay") == 0, "called without an answer");
            allow(&rest.url(), &run).await?;
        }
        frames.extend(shown.all(BOUND).await?);
        let asks = frames
            .iter()
            .filter(|frame| frame["response"]["message_type"] == "confirm");
        ensure!(asks.count() == 1, "{}", brief(&frames));
        let (seen, answers) = told(&frames, &nonce)?;
        ensure!(answers == ["yes"], "{answers:?}");
        // A call that was begun is not made again: nobody knows whether it had its effect.
        let unknown = answered_before && seen.contains("the outcome of this call is unknown");
        ensure!(unknown || seen == "found", "{seen}");
        ensure!(mcp.count("pay") <= round, "called twice");
        ensure!(answered_before || mcp.count("pay") == 1, "not called");
    }
    process.kill9().await?;
    Ok(())
}
