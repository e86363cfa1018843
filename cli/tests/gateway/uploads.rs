//! Large documents go in chunks: what is there is not sent again, what passes is tried again, and what ended early is
//! left for the same command.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tg_cli::interrupt::Interrupt;
use tg_schemas::ErrorCode;

use crate::fake::{Fake, asked};

/// A text of three chunks and a little.
fn file() -> (TempDir, PathBuf, Vec<u8>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("long.txt");
    let line = |at: usize| format!("{at:08} words\n");
    let text: String = (0..700_000).map(line).collect();
    fs::write(&path, &text).expect("written");
    (folder, path, text.into_bytes())
}

fn chunk_size() -> u64 {
    3 << 20
}

fn operations(fake: &Fake) -> Vec<String> {
    let asked = asked(fake);
    let operation = |body: &Value| body["operation"].as_str().unwrap_or_default().to_owned();
    asked.iter().map(operation).collect()
}

/// A library that begins an upload, answers chunks by `chunk` and its end by `end`.
async fn serve(
    begun: Value,
    chunk: impl Fn(&Value) -> (u16, Value) + Send + Sync + 'static,
    end: (u16, Value),
) -> Fake {
    Fake::rest(move |_, body| match body["operation"].as_str() {
        Some("begin-upload") => (200, begun.clone()),
        Some("upload-chunk") => chunk(body),
        Some("complete-upload") => end.clone(),
        Some("list-flows") => (200, json!({"flow-ids": ["default"]})),
        _ => (200, json!({})),
    })
    .await
}

fn begun() -> Value {
    json!({"upload-id": "u", "chunk-size": chunk_size(), "received-chunks": [],
        "missing-chunks": [0, 1, 2, 3]})
}

fn failed(kind: &str, message: &str) -> Value {
    json!({"error": {"type": kind, "message": message}})
}

#[tokio::test]
async fn only_what_is_missing_is_sent() {
    let (_folder, path, content) = file();
    assert_eq!(content.len() as u64 / chunk_size(), 3);
    let open = json!({"upload-id": "u", "chunk-size": chunk_size(), "received-chunks": [0, 2],
        "missing-chunks": [1, 3]});
    let fake = serve(open, |_| (200, json!({})), (200, json!({}))).await;
    let line = [
        "add-library-document",
        "--json",
        path.to_str().expect("text"),
    ];
    let ran = fake.tg(&line).await;
    assert!(
        ran.talk.contains("goes on, 2 of 4 chunks are there"),
        "{}",
        ran.talk
    );
    let told: Value = serde_json::from_str(&ran.printed()).expect("JSON");
    let hash = hex::encode(Sha256::digest(&content));
    assert_eq!(told[0]["upload"], json!({"chunks": 4, "sent": 2}));
    assert_eq!(told[0]["content-hash"], hash);
    let asked = asked(&fake);
    assert_eq!(asked[0]["content-hash"], hash);
    assert_eq!(asked[0]["total-size"], content.len());
    for (body, index) in asked[1..3].iter().zip([1, 3]) {
        let size = 3 << 20;
        let part = &content[index * size..content.len().min((index + 1) * size)];
        assert_eq!(body["chunk-index"], index);
        let sent = body["content"].as_str().expect("content");
        assert_eq!(STANDARD.decode(sent).expect("base64"), part);
    }
    assert_eq!(operations(&fake)[3..], ["complete-upload"]);
}

#[tokio::test]
async fn what_passes_is_tried_again() {
    let (_folder, path, _) = file();
    let tries = AtomicUsize::new(0);
    let chunk = move |_: &Value| match tries.fetch_add(1, Ordering::SeqCst) {
        1 => (503, failed("unavailable", "the bus is away")),
        2 => (429, failed("rate-limited", "too many")),
        _ => (200, json!({})),
    };
    let fake = serve(begun(), chunk, (200, json!({}))).await;
    let ran = fake
        .tg(&["add-library-document", path.to_str().expect("text")])
        .await;
    assert!(ran.talk.contains("trying again"), "{}", ran.talk);
    assert!(ran.printed().contains("Loaded successfully."));
    let operations = operations(&fake);
    let chunks = operations.iter().filter(|one| *one == "upload-chunk");
    assert_eq!(chunks.count(), 6);
    assert!(!operations.iter().any(|one| one == "abort-upload"));
}

#[tokio::test]
async fn what_is_broken_off_is_left_for_the_same_command() {
    let (_folder, path, _) = file();
    let (switch, interrupt) = Interrupt::manual();
    let chunk = move |body: &Value| {
        if body["chunk-index"] == 1 {
            switch.send_replace(true);
        }
        (200, json!({}))
    };
    let fake = serve(begun(), chunk, (200, json!({}))).await;
    let line = ["add-library-document", path.to_str().expect("text")];
    let ran = fake.tg_until(&line, interrupt).await;
    assert!(
        ran.talk
            .contains("what was sent stays for a day; the same command goes on with it"),
        "{}",
        ran.talk
    );
    assert_eq!(ran.error().exit_code(), 130);
    assert!(!operations(&fake).iter().any(|one| one == "abort-upload"));

    // No longer than the command waits for anything.
    let away = serve(
        begun(),
        |_| (503, failed("unavailable", "away")),
        (200, json!({})),
    )
    .await;
    let line = ["add-library-document", "--timeout", "1", line[1]];
    let ran = away.tg(&line).await;
    assert!(
        ran.talk.contains("the same command goes on"),
        "{}",
        ran.talk
    );
    let code = i32::from(ran.error().exit_code());
    assert_eq!(code, ErrorCode::Unavailable.exit_code());
    assert!(!operations(&away).iter().any(|one| one == "abort-upload"));
}

#[tokio::test]
async fn what_cannot_be_gone_on_with_is_given_up() {
    let (_folder, path, _) = file();
    let line = ["add-library-document", path.to_str().expect("text")];
    let full = (200, failed("too-large", "its quota of bytes is 1 MiB"));
    let fake = serve(begun(), move |_| full.clone(), (200, json!({}))).await;
    let error = fake.tg(&line).await.error();
    assert!(error.to_string().contains("its quota of bytes"), "{error}");
    assert_eq!(
        operations(&fake),
        ["begin-upload", "upload-chunk", "abort-upload"]
    );

    let other = "content-hash: must be that of the content: a was announced and b arrived";
    let end = (200, failed("request-error", other));
    let fake = serve(begun(), |_| (200, json!({})), end).await;
    let error = fake.tg(&line).await.error();
    let wanted = "it changed while it was sent; nothing of it is kept";
    assert!(error.to_string().ends_with(wanted), "{error}");
}

#[tokio::test]
async fn followed_documents_say_how_they_went() {
    let (_folder, path, _) = file();
    let kept = Mutex::new(Vec::new());
    let chunk = move |body: &Value| {
        let mut kept = kept.lock().expect("chunks");
        kept.push(body["chunk-index"].clone());
        (200, json!({"chunks-received": kept.len()}))
    };
    let fake = serve(begun(), chunk, (200, json!({}))).await;
    let ran = fake
        .tg(&["add", "--json", path.to_str().expect("text")])
        .await;
    let told: Value = serde_json::from_str(&ran.printed()).expect("JSON");
    let first = &told["documents"][0];
    assert_eq!(first["upload"], json!({"chunks": 4, "sent": 4}), "{told}");
    assert_eq!(first["outcome"], "added");
}
