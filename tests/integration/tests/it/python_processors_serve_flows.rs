//! Interop: the reference's unmodified chunker, extractor of definitions, GraphRAG, agent, bases of triple stores and librarian
//! take over their part of a flow in which ours are left out, and the whole does its job.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::bus::until;
use tg_testkit::model::{ScriptedModel, two_step_react};
use tg_testkit::official::official;
use tg_testkit::process::{Launch, Server, tg};
use tg_testkit::services::SERVICES;
use tg_testkit::shared_node::VirtualHost;
use tg_testkit::socket::{Socket, text_of};
use tokio::time::Instant;

use crate::foreign::{Processor, attached, says};
use crate::world::{post, serving, wired};

/// A small document is processed by then, also on a busy machine.
const BOUND: Duration = Duration::from_secs(90);
/// How often a graph is looked at while a document is worked on.
const LOOK: Duration = Duration::from_millis(200);
const TEXT: &str = "The Harrowgate lantern is a lamp made of blue glass. The Harrowgate lantern was built by \
    Ottoline Frask in 1887. Ottoline Frask was a glassblower from Pellworth.\n";
const DEFINITION: &str = "http://www.w3.org/2004/02/skos/core#definition";
/// A system of ours on a broker, without some processors.
fn ours(node: &VirtualHost, without: &str) -> Launch {
    Launch::serve(&SERVICES, &node.url())
        .arg("--mode")
        .arg("interop")
        .env("THREADGRAPH_WITHOUT", without)
}

/// Adds the document and has it processed.
async fn add(server: &Server) -> Result<()> {
    let file = tempfile::NamedTempFile::with_suffix(".txt")?;
    std::fs::write(file.path(), TEXT)?;
    let path = file.path().to_string_lossy().into_owned();
    let args = [
        "--id",
        "urn:doc:lantern",
        "--name",
        "lantern",
        "-k",
        "text/plain",
        &path,
    ];
    official(&server.url(), "tg-add-library-document", &args)
        .await?
        .refuse("rror")?;
    let args = [
        "-d",
        "urn:doc:lantern",
        "--id",
        "urn:run:1",
        "-i",
        "default",
        "--collection",
        "docs",
    ];
    official(&server.url(), "tg-start-library-processing", &args)
        .await?
        .refuse("rror")?;
    Ok(())
}

/// The definitions in the graph, once there are any.
async fn defined(server: &Server) -> Result<String> {
    let end = Instant::now() + BOUND;
    let ask = json!({"p": {"t": "i", "i": DEFINITION}, "collection": "docs", "limit": 20});
    let door = "api/v1/flow/default/service/triples";
    loop {
        let (_, reply) = post(&server.url(), door, ask.clone()).await?;
        let found = reply["response"]
            .as_array()
            .is_some_and(|all| !all.is_empty());
        if found {
            return Ok(reply.to_string());
        }
        ensure!(
            Instant::now() < end,
            "no definition came: {reply}\n{}",
            server.log()
        );
        // The document is cut, read and stored.
        tokio::time::sleep(LOOK).await;
    }
}

/// What GraphRAG answers, asked until its entities can be found: their vectors come after the facts.
async fn answered(server: &Server) -> Result<String> {
    let end = Instant::now() + BOUND;
    loop {
        let args = ["-q", "Who is Ottoline Frask?", "-C", "docs"];
        let told = official(&server.url(), "tg-invoke-graph-rag", &args).await?;
        if told.stdout.contains("glassblower") {
            return Ok(told.stdout);
        }
        ensure!(Instant::now() < end, "{}{}", told.stdout, told.stderr);
        // Vectors of the entities are stored.
        tokio::time::sleep(LOOK).await;
    }
}

#[tokio::test]
async fn chunker_definitions_and_graph_rag_make_answers_of_a_document() -> Result<()> {
    let node = VirtualHost::new().await?;
    let theirs = [
        ("chunker-recursive", "chunker"),
        ("kg-extract-definitions", "kg-extract-definitions"),
        ("graph-rag", "graph-rag"),
    ];
    // Relationships are found by ours, in the chunks that theirs cuts.
    let without = "chunker,kg-extract-definitions,graph-rag";
    let server = ours(&node, without).ready().await?;
    let logs = tempfile::TempDir::new()?;
    let start = |(command, id)| Processor::start(command, id, &node, logs.path(), &[]);
    let [chunker, definitions, graph_rag] = theirs.map(start);
    let (chunker, definitions, graph_rag) = (chunker?, definitions?, graph_rag?);
    for (_, id) in theirs {
        attached(&logs.path().join(format!("{id}.log"))).await?;
    }
    add(&server).await?;
    let found = defined(&server).await?;
    ensure!(found.contains("glassblower"), "{found}");
    ensure!(chunker.handled().await? >= 1, "the document was cut there");
    ensure!(
        definitions.handled().await? >= 1,
        "the chunk was read there"
    );
    answered(&server).await?;
    ensure!(
        graph_rag.handled().await? >= 1,
        "the question was answered there"
    );
    Ok(())
}

#[tokio::test]
async fn a_store_of_triples_over_the_released_bases_holds_the_graph() -> Result<()> {
    let node = VirtualHost::new().await?;
    let server = ours(&node, "triples-write,triples-query").ready().await?;
    let logs = tempfile::TempDir::new()?;
    let store = Processor::over_a_stand_in("foreign_triples.py", "triples", &node, logs.path())?;
    let log = logs.path().join("triples.log");
    says(&log, "Started flow: default/default", 2).await?;
    add(&server).await?;
    let found = defined(&server).await?;
    ensure!(found.contains("glassblower"), "{found}");
    answered(&server).await?;
    ensure!(
        store.handled().await? >= 2,
        "facts were written and read there"
    );
    Ok(())
}

#[tokio::test]
async fn the_agent_answers_the_official_command() -> Result<()> {
    let node = VirtualHost::new().await?;
    let args = json!({"question": "What is six times seven?"});
    let model = ScriptedModel::start(two_step_react("llm", args, 8)).await?;
    let server = wired(ours(&node, "agent-manager"), &model).spawn().await?;
    let tool = json!({"name": "llm", "type": "text-completion", "description": "Asks a model."});
    let put = json!({"operation": "put", "workspace": "default",
        "values": [{"type": "tool", "key": "llm", "value": tool.to_string()}]});
    // Ready means that an agent serves, and theirs begins when there is a system.
    until(async || {
        let put = post(&server.url(), "api/v1/config", put.clone()).await;
        put.is_ok_and(|(status, reply)| status == 200 && reply["error"].is_null())
    })
    .await;
    let logs = tempfile::TempDir::new()?;
    let id = "agent-manager";
    let agent = Processor::start("agent-manager-react", id, &node, logs.path(), &[])?;
    attached(&logs.path().join("agent-manager.log")).await?;
    let asked = ["-q", "What is it? nonce-theirs-4"];
    let told = official(&server.url(), "tg-invoke-agent", &asked).await?;
    told.expect("The answer for nonce-theirs-4 is here.")?;
    ensure!(
        agent.handled().await? >= 1,
        "the question was answered there"
    );
    Ok(())
}

/// A tool service of the reference, behind a queue of the workspace, is a tool of our agent.
#[tokio::test]
async fn a_tool_service_is_used_by_our_agent() -> Result<()> {
    let node = VirtualHost::new().await?;
    let model = ScriptedModel::start(Vec::new()).await?;
    let server = serving(&SERVICES, &model, &node)
        .arg("--mode")
        .arg("interop")
        .ready()
        .await?;
    let service = json!({"id": "jokes", "request-queue": "request:tg:tool-joke:default",
        "response-queue": "response:tg:tool-joke:default",
        "config-params": [{"name": "style", "required": true}]});
    let tool = json!({"name": "tell-joke", "type": "tool-service", "service": "jokes", "style": "dad-joke",
        "description": "Tells a joke.", "arguments": [{"name": "topic", "type": "any", "description": "About what"}]});
    for (kind, key, row) in [("tool-service", "jokes", service), ("tool", "joke", tool)] {
        let row = json!({"type": kind, "key": key, "value": row.to_string()});
        let put = json!({"operation": "put", "values": [row]});
        let (status, reply) = post(&server.url(), "api/v1/config", put).await?;
        ensure!(status == 200 && reply["error"].is_null(), "{reply}");
    }
    let logs = tempfile::TempDir::new()?;
    let topic = ["--topic", "tool-joke:default"];
    let _service = Processor::by_script(
        "foreign_joke.py",
        "joke-service",
        &node,
        logs.path(),
        &topic,
    )?;
    let log = logs.path().join("joke-service.log");
    says(&log, "Tool service joke-service started", 1).await?;
    for (about, told) in [
        (json!("llamas"), "Here's a dad-joke for you:"),
        // What goes wrong there is told.
        (json!(7), "has no attribute 'lower'"),
    ] {
        model.set_rules(two_step_react("tell-joke", json!({"topic": about}), 8));
        let asked = ["-q", "What is it? nonce-joke-6", "-v"];
        let shown = official(&server.url(), "tg-invoke-agent", &asked).await?;
        shown.expect("The answer for nonce-joke-6 is here.")?;
        let ask = json!({"question": "What is it? nonce-joke-7"});
        let door = "api/v1/flow/default/service/agent";
        let (_, reply) = post(&server.url(), door, ask).await?;
        let seen = reply["observation"].as_str().unwrap_or_default();
        ensure!(seen.contains(told), "{reply}");
    }
    Ok(())
}

/// The library of the reference has `add-document` only for the texts of our agent: the released service keeps them, over
/// stand-ins for the Cassandra and the object store that it needs.
#[tokio::test]
async fn our_agent_keeps_its_trace_with_their_librarian() -> Result<()> {
    let node = VirtualHost::new().await?;
    let rules = two_step_react("calculator", json!({"expression": "6*7"}), 8);
    let model = ScriptedModel::start(rules).await?;
    let services: Vec<&str> = SERVICES
        .into_iter()
        .filter(|one| *one != "librarian")
        .collect();
    let server = serving(&services, &model, &node)
        .arg("--mode")
        .arg("interop")
        .ready()
        .await?;
    let logs = tempfile::TempDir::new()?;
    let script = "foreign_librarian.py";
    let _library = Processor::over_a_stand_in(script, "librarian", &node, logs.path())?;
    let log = logs.path().join("librarian.log");
    says(&log, "Subscribed to workspace queues: default", 1).await?;

    let socket = Socket::connect(&server.url(), "").await?;
    let ask = json!({"question": "What is it? nonce-kept-5", "streaming": true});
    let frames = socket.ask("agent", "default", ask).await?;
    ensure!(
        text_of(&frames, "answer").contains("nonce-kept-5"),
        "{frames:#?}"
    );
    let entries = frames
        .iter()
        .filter_map(|frame| frame["response"]["explain_id"].as_str());
    let session = entries
        .min_by_key(|id| id.len())
        .context("no session in the trace")?;
    says(&log, &format!("kept {session}/answer"), 1).await?;
    where_it_looked(&server, session).await
}

/// The trace names the tool that was asked, and its texts are read from their library.
async fn where_it_looked(server: &Server, session: &str) -> Result<()> {
    let listed = tg(&server.url(), &["list-explain-traces", "--json"]).await?;
    let listed: Value = serde_json::from_str(&listed.stdout)?;
    ensure!(
        listed.to_string().contains(session),
        "{session} in {listed}"
    );
    let shown = tg(&server.url(), &["show-explain-trace", session]).await?;
    shown
        .expect("Action: calculator")?
        .expect("42")?
        .expect("nonce-kept-5")?;
    Ok(())
}
