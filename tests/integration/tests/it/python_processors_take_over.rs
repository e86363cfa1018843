//! Interop: with no native process serving them, the reference's unmodified prompt and text-completion
//! processors take over their part in a running flow, and the agent still answers, streamed.

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tg_testkit::model::{ScriptedModel, two_step_react};
use tg_testkit::process::Launch;
use tg_testkit::shared_node::VirtualHost;
use tg_testkit::socket::{Socket, text_of};

use crate::foreign::{Processor, attached};
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

#[tokio::test]
async fn and_the_agent_still_answers() -> Result<()> {
    let node = VirtualHost::new().await?;
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
