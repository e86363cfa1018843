//! A reranking model behind an HTTP endpoint decides which passages an answer rests on, in each of the dialects that are
//! spoken; when it refuses, the order of the searches does, and the answer says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::json_server;
use tg_testkit::process::{Server, tg};

use crate::world::{Bus, launched, on_both_buses, post};

on_both_buses!(cohere, tei);

const KEY: &str = "s3cret-of-the-ranker";
/// Nothing but the name tells them apart: no search can prefer one. As many as are scored for an answer of one passage.
const KEEPERS: [&str; 3] = ["Ottoline Frask", "Ambrose Tull", "Wilhelmina Dray"];

/// An endpoint that prefers the keeper whose first name the question holds, backwards, so that no word of it is found.
async fn endpoint(tei: bool, refuses: Arc<AtomicBool>) -> json_server::Server {
    let rule = move |_: usize, body: &Value| {
        if refuses.load(Ordering::Acquire) {
            return Some((401, String::new(), json!({})));
        }
        let query = body["query"].as_str().unwrap_or_default();
        let texts = body[if tei { "texts" } else { "documents" }].as_array();
        let scored = texts.into_iter().flatten().enumerate().map(|(at, text)| {
            let text = text.as_str().unwrap_or_default();
            let wanted = KEEPERS
                .iter()
                .any(|name| text.contains(name) && query.contains(&backwards(name)));
            let score = if wanted { 0.9 } else { 0.1 };
            match tei {
                true => json!({"index": at, "score": score}),
                false => json!({"index": at, "relevance_score": score}),
            }
        });
        let scored: Vec<Value> = scored.collect();
        let answer = match tei {
            true => json!(scored),
            false => json!({ "results": scored }),
        };
        Some((200, String::new(), answer))
    };
    json_server::Server::start(rule).await
}

fn backwards(name: &str) -> String {
    let first = name.split(' ').next().unwrap_or(name);
    first.to_lowercase().chars().rev().collect()
}

/// The answer to a question that one passage alone may be used for.
async fn answer(server: &Server, question: &str) -> Result<Value> {
    let ask =
        json!({"query": question, "collection": "keepers", "doc-limit": 1, "streaming": false});
    let (status, body) = post(
        &server.url(),
        "api/v1/flow/default/service/document-rag",
        ask,
    )
    .await?;
    ensure!(status == 200, "{status}: {body}");
    Ok(body)
}

async fn story(bus: Bus, dialect: &str) -> Result<()> {
    let tei = dialect == "tei";
    let refuses = Arc::new(AtomicBool::new(false));
    let ranker = endpoint(tei, refuses.clone()).await;
    let (launch, _node) = launched(bus).await?;
    // The key is written in the settings, or named there.
    let folder = tempfile::tempdir()?;
    let held = folder.path().join("key");
    std::fs::write(&held, format!("{KEY}\n"))?;
    let key = match tei {
        true => format!("file:{}", held.display()),
        false => KEY.to_owned(),
    };
    let launch = launch
        .env(
            "THREADGRAPH_RAG__RERANKER_URL",
            format!("{}/rank", ranker.url),
        )
        .env("THREADGRAPH_RAG__RERANKER_KEY", key)
        .env("THREADGRAPH_RAG__RERANKER_DIALECT", dialect);
    // A server of this kind serves one model, which it is not told.
    let launch = match tei {
        true => launch,
        false => launch.env("THREADGRAPH_RAG__RERANKER_MODEL", "ranker-1"),
    };
    let server = launch.ready().await?;
    let folder = tempfile::tempdir()?;
    for (at, name) in KEEPERS.iter().enumerate() {
        let text = format!("The Harrowgate lantern was kept by {name} for a year.\n");
        std::fs::write(folder.path().join(format!("{at}.txt")), text)?;
    }
    let folder = folder.path().to_string_lossy().into_owned();
    let added = tg(
        &server.url(),
        &["add", "--wait", "-C", "keepers", "--", &folder],
    )
    .await?;
    added.expect("3 added.")?;

    for name in KEEPERS {
        let question = format!(
            "Who was the Harrowgate lantern kept by? {}",
            backwards(name)
        );
        let body = answer(&server, &question).await?;
        let said = body["response"]
            .as_str()
            .with_context(|| body.to_string())?;
        ensure!(said.contains(name), "{name}: {body}");
    }
    let asked = ranker.asked.lock().clone();
    ensure!(asked.len() == KEEPERS.len(), "{asked:?}");
    for (path, key, body) in &asked {
        ensure!(path == "/rank" && *key == format!("Bearer {KEY}"), "{path}");
        let (texts, model) = match tei {
            true => (&body["texts"], Value::Null),
            false => (&body["documents"], json!("ranker-1")),
        };
        let texts = texts.as_array().with_context(|| body.to_string())?;
        ensure!(texts.len() == KEEPERS.len(), "{body}");
        ensure!(body["model"] == model, "{body}");
    }

    refuses.store(true, Ordering::Release);
    let body = answer(&server, "Who was the Harrowgate lantern kept by?").await?;
    let said = body["response"]
        .as_str()
        .with_context(|| body.to_string())?;
    ensure!(KEEPERS.iter().any(|name| said.contains(name)), "{body}");
    ensure!(
        body.to_string().contains("the reranker did not answer"),
        "{body}"
    );
    let log = server.log();
    ensure!(!log.contains(KEY) && !log.contains(&ranker.url), "{log}");
    Ok(())
}

async fn cohere(bus: Bus) -> Result<()> {
    story(bus, "cohere").await
}

async fn tei(bus: Bus) -> Result<()> {
    story(bus, "tei").await
}
