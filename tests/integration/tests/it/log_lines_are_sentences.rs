//! A record that cannot be handled, and a question that fails for a provider, leave a line in the log: a sentence, with the ids
//! by which people know what it is about, and nothing as only a programmer reads it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_testkit::model::{Reply, ScriptedModel};
use tg_testkit::process::{Server, client};
use tokio::time::Instant;

use crate::world::{Bus, launch, post, up};

const BOUND: Duration = Duration::from_secs(60);
const SENTENCE: &str = "a record was not handled; it is kept as a dead letter";

/// How Rust shows values to programmers.
const RAW: [&str; 6] = ["Some(", "Error {", "Dead(", "Retry(", "kind: \"", "Err("];

async fn add(server: &Server, id: &str) -> Result<()> {
    let add = json!({"operation": "add-document", "document-metadata": {"id": id,
        "kind": "application/pdf", "title": "bad", "comments": "", "metadata": [], "tags": []},
        "content": STANDARD.encode("Only words.")});
    let process = json!({"operation": "add-processing", "processing-metadata": {"id": format!("{id}/work"),
        "document-id": id, "flow": "default", "collection": "default", "tags": []}});
    for body in [add, process] {
        let (status, told) = post(&server.url(), "api/v1/librarian", body).await?;
        ensure!(
            status == 200 && told.get("error").is_none_or(Value::is_null),
            "{told}"
        );
    }
    Ok(())
}

async fn a_bad_document(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    add(&server, "urn:bad:pdf").await?;
    let end = Instant::now() + BOUND;
    while !server.log().contains(SENTENCE) {
        ensure!(Instant::now() < end, "{}", server.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let log = server.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(SENTENCE)).collect();
    ensure!(lines.len() == 1, "{lines:?}");
    let line = lines.first().context("a line")?;
    for key in [
        " WARN ",
        "processor=",
        "workspace=default",
        "flow=default",
        "document=\"urn:bad:pdf\"",
        "record=\"",
        "run=\"",
        "error=bad-content: ",
        "is not a PDF",
    ] {
        ensure!(line.contains(key), "{key} in {line}");
    }
    for raw in RAW {
        ensure!(!log.contains(raw), "{raw} in {log}");
    }
    Ok(())
}

/// The line of a sentence that names this request, once it is there.
async fn line_of(server: &Server, sentence: &str, request: &str) -> Result<String> {
    let end = Instant::now() + BOUND;
    let id = format!("request=\"{request}\"");
    loop {
        let log = server.log();
        let mut lines = log.lines().filter(|line| line.contains(sentence));
        if let Some(line) = lines.find(|line| line.contains(&id)) {
            return Ok(line.to_owned());
        }
        ensure!(Instant::now() < end, "{id} in {log}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Whoever asked finds the line of the service that failed by the id that the answer came with, however many services the
/// question went through.
async fn a_failing_question(bus: Bus) -> Result<()> {
    let model = ScriptedModel::start(Vec::new()).await?;
    model.refuse(Reply::status(401, "{}"));
    let node = bus.broker().await?;
    let launch = launch(&model, node.as_ref())
        .env("THREADGRAPH_EMBEDDINGS__PROVIDER", "openai")
        .env("THREADGRAPH_EMBEDDINGS__URL", model.url());
    let server = launch.ready().await?;
    let text = json!({"system": "s", "prompt": "p"});
    let facts = json!({"query": "Who?", "collection": "c"});
    for (service, body, processor, sentence) in [
        (
            "text-completion",
            text,
            "text-completion",
            "the model provider did not accept the key",
        ),
        (
            "embeddings",
            json!({"texts": ["a"]}),
            "embeddings",
            "the embeddings provider did not accept the key",
        ),
        // Through the agent and the prompts.
        (
            "agent",
            json!({"question": "Who?"}),
            "text-completion-rag",
            "the model provider did not accept the key",
        ),
        (
            "document-rag",
            facts,
            "text-completion-rag",
            "the model provider did not accept the key",
        ),
    ] {
        let url = format!("{}api/v1/flow/default/service/{service}", server.url());
        let own = format!("own-{service}.1");
        for given in [Some(own.as_str()), None] {
            let mut asked = client()?.post(&url).json(&body);
            if let Some(id) = given {
                asked = asked.header("x-request-id", id);
            }
            let answer = asked.send().await?;
            let id = answer.headers().get("x-request-id").context("no id")?;
            let id = id.to_str()?.to_owned();
            ensure!(
                given.is_none_or(|given| given == id),
                "{given:?} is now {id}"
            );
            let line = line_of(&server, sentence, &id).await?;
            let processor = format!("processor={processor} ");
            for key in [
                " WARN ",
                &processor,
                "workspace=default",
                "flow=default",
                "HTTP 401",
            ] {
                ensure!(line.contains(key), "{key} in {line}");
            }
        }
    }
    let log = server.log();
    for raw in RAW.into_iter().chain(["sk-test"]) {
        ensure!(!log.contains(raw), "{raw} in {log}");
    }
    Ok(())
}

#[tokio::test]
async fn of_a_question_on_the_embedded_bus() -> Result<()> {
    a_failing_question(Bus::Embedded).await
}

#[tokio::test]
async fn of_a_question_over_a_broker() -> Result<()> {
    a_failing_question(Bus::Rabbit).await
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    a_bad_document(Bus::Embedded).await
}

#[tokio::test]
async fn over_a_broker() -> Result<()> {
    a_bad_document(Bus::Rabbit).await
}
