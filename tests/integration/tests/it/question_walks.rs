//! A question walks through the queues to the agent and back, streamed, and its trace is in the graph.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};
use tg_testkit::model::{Rule, two_step_react};
use tg_testkit::socket::text_of;

use crate::shared::Workspace;
use crate::world::Bus;

/// A model that calls the calculator once and then answers.
fn rules() -> Vec<Rule> {
    two_step_react("calculator", json!({"expression": "6*7"}), 8)
}

async fn walk(bus: Bus) -> Result<()> {
    let (place, model) = Workspace::scripted(bus, rules()).await?;
    let socket = place.socket().await?;
    let question = "What is the answer? nonce-walk-1";
    let request = json!({"question": question, "streaming": true, "collection": "default"});
    let frames = socket.ask("agent", "default", request).await?;

    let chunks: Vec<&Value> = frames.iter().map(|frame| &frame["response"]).collect();
    let kinds: Vec<&str> = chunks
        .iter()
        .filter_map(|c| c["message_type"].as_str())
        .collect();
    let mut order = kinds.clone();
    order.dedup();
    assert_eq!(
        order,
        [
            "explain",
            "thought",
            "action",
            "explain",
            "observation",
            "explain",
            "thought",
            "answer",
            "explain",
            "answer"
        ],
        "{chunks:#?}"
    );
    assert!(
        kinds.iter().filter(|kind| **kind == "thought").count() >= 2,
        "thoughts are streamed"
    );
    assert_eq!(text_of(&frames, "observation"), "42");
    assert!(
        text_of(&frames, "answer").contains("nonce-walk-1"),
        "{chunks:#?}"
    );
    let last = chunks.last().expect("a last chunk");
    assert_eq!(last["end_of_dialog"], true);
    assert_eq!(last["end_of_message"], true);
    assert!(
        last["in_token"].as_i64().is_some_and(|tokens| tokens > 0),
        "{last}"
    );
    assert_eq!(
        chunks
            .iter()
            .filter(|chunk| chunk["end_of_dialog"] == true)
            .count(),
        1
    );
    assert_eq!(model.count(), 2);

    let session = chunks[0]["explain_id"]
        .as_str()
        .expect("session")
        .to_owned();
    let conclusion = format!("{session}/final");
    let stored = trace(&socket, &conclusion, 4).await?;
    let objects: Vec<_> = stored
        .iter()
        .map(|t| t["o"]["v"].as_str().or(t["o"]["i"].as_str()))
        .collect();
    assert!(objects.contains(&Some("final-answer")), "{stored:#?}");
    assert!(
        stored
            .iter()
            .all(|triple| triple["g"] == "urn:graph:retrieval"),
        "{stored:#?}"
    );
    Ok(())
}

/// Triples about a subject, once at least `least` are there (storage lags by moments).
async fn trace(
    socket: &tg_testkit::socket::Socket,
    subject: &str,
    least: usize,
) -> Result<Vec<Value>> {
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        let request = json!({"s": {"t": "i", "i": subject}, "limit": 100, "collection": "default"});
        let frames = socket.ask("triples", "default", request).await?;
        let found = frames[0]["response"]["response"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        if found.len() >= least {
            return Ok(found);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    anyhow::bail!("no trace of {subject}")
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    walk(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    walk(Bus::Rabbit).await
}

#[tokio::test]
async fn over_rest_the_last_message_carries_everything() -> Result<()> {
    let (place, _model) = Workspace::scripted(Bus::Embedded, rules()).await?;
    let body = json!({"question": "What? nonce-rest-2", "streaming": false});
    let (status, reply) = place
        .post("api/v1/flow/default/service/agent", body)
        .await?;
    assert_eq!(status, 200, "{reply}");
    assert!(
        reply["answer"]
            .as_str()
            .is_some_and(|text| text.contains("nonce-rest-2")),
        "{reply}"
    );
    assert_eq!(reply["observation"], "42", "{reply}");
    assert_eq!(reply["chunk-type"], "answer", "{reply}");
    assert_eq!(reply["end-of-dialog"], true, "{reply}");
    assert_eq!(reply["message_type"], "answer", "{reply}");
    Ok(())
}
