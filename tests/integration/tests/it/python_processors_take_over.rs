//! Interop: with no native process serving them, the reference's unmodified prompt and text-completion
//! processors take over their part in a running flow, and the agent still answers, streamed.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tg_testkit::model::{ScriptedModel, two_step_react};
use tg_testkit::process::{Launch, client, free_port, root};
use tg_testkit::rabbitmq::RabbitNode;
use tg_testkit::socket::{Socket, text_of};
use tokio::process::{Child, Command};

use crate::world::post;

/// What our side hosts: everything but prompt and llm.
const OURS: [&str; 8] = [
    "config",
    "iam",
    "flow",
    "librarian",
    "graph",
    "tool",
    "agent",
    "gateway",
];

struct Processor {
    metrics: u16,
    _child: Child,
}

impl Processor {
    fn start(
        command: &str,
        id: &str,
        node: &RabbitNode,
        log: &Path,
        extra: &[&str],
    ) -> Result<Self> {
        let metrics = free_port()?;
        let log = std::fs::File::create(log.join(format!("{id}.log")))?;
        let child = Command::new(root().join(".cache/venv/bin").join(command))
            .args([
                "--id",
                id,
                "--pubsub-backend",
                "rabbitmq",
                "--rabbitmq-host",
                "127.0.0.1",
            ])
            .args(["--rabbitmq-port", &node.port().to_string()])
            .args(["--no-loki-enabled", "--metrics-port", &metrics.to_string()])
            .args(extra)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot run {command}: run the set-up first"))?;
        Ok(Self {
            metrics,
            _child: child,
        })
    }

    /// Requests that this process says it has handled without error.
    async fn handled(&self) -> Result<u64> {
        let url = format!("http://127.0.0.1:{}/", self.metrics);
        let text = client()?.get(url).send().await?.text().await?;
        let count = text
            .lines()
            .filter(|line| line.starts_with("tg_consumer_processing_total{"))
            .filter(|line| line.contains("request:tg:") && line.contains("status=\"ok\""))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum::<f64>();
        Ok(count as u64)
    }
}

#[tokio::test]
async fn and_the_agent_still_answers() -> Result<()> {
    let node = RabbitNode::start().await?;
    let rules = two_step_react("calculator", json!({"expression": "6*7"}), 8);
    let model = ScriptedModel::start(rules).await?;
    // The flow runs before they come: a foreign processor can miss a change made while it starts.
    let server = Launch::serve(&OURS, &node.url())
        .arg("--mode")
        .arg("interop")
        .ready()
        .await?;
    let logs = tempfile::TempDir::new()?;
    let prompt = Processor::start("prompt-template", "prompt-rag", &node, logs.path(), &[])?;
    let url = model.url();
    let openai = ["-u", url.as_str(), "-k", "x", "-m", "scripted"];
    let llm = "text-completion-rag";
    let llm = Processor::start("text-completion-openai", llm, &node, logs.path(), &openai)?;

    let question = "What is it? nonce-interop-3";
    for id in ["text-completion-rag.log", "prompt-rag.log"] {
        attached(&logs.path().join(id)).await?;
    }
    let socket = Socket::connect(&server.url(), "").await?;
    let request = json!({"question": question, "streaming": true});
    let frames = socket.ask("agent", "default", request).await?;
    assert!(
        text_of(&frames, "answer").contains("nonce-interop-3"),
        "{frames:#?}"
    );
    assert_eq!(text_of(&frames, "observation"), "42");
    let thoughts = frames
        .iter()
        .filter(|frame| frame["response"]["message_type"] == "thought")
        .count();
    assert!(
        thoughts >= 3,
        "streamed through both processors: {frames:#?}"
    );
    assert!(
        prompt.handled().await? >= 2,
        "the prompts were rendered there"
    );
    assert!(llm.handled().await? >= 2, "the model was asked from there");

    // The library may be a foreign one in this mode: it is asked, and has the text before the trace links to it.
    let entries = frames
        .iter()
        .filter_map(|frame| frame["response"]["explain_id"].as_str());
    let session = entries
        .min_by_key(|id| id.len())
        .context("no session in the trace")?;
    let ask =
        json!({"operation": "get-document-content", "document-id": format!("{session}/answer")});
    let (_, reply) = post(&server.url(), "api/v1/librarian", ask).await?;
    let content = reply["content"]
        .as_str()
        .with_context(|| reply.to_string())?;
    let text = String::from_utf8(STANDARD.decode(content)?)?;
    assert!(text.contains("nonce-interop-3"), "{text}");
    Ok(())
}

/// Waits until a foreign processor says in its log that it has attached the flow. Asked earlier it may wait
/// ten minutes for a question that its peer never got.
async fn attached(log: &Path) -> Result<()> {
    for _ in 0..600 {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        if text.contains("Started flow: default/default") {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bail!(
        "not attached: {}",
        std::fs::read_to_string(log).unwrap_or_default()
    )
}
