//! `tg models` against a source of files made by hand.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::{Path as Name, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::fake::{Fake, Ran};

const TOKENIZER: &[u8] = b"{\"a\": \"tokenizer\"}";

fn weights() -> Vec<u8> {
    (0..100_000_u32).flat_map(|n| n.to_le_bytes()).collect()
}

fn sum(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    hex::encode(digest)
}

fn sums() -> String {
    format!(
        "{}  model.safetensors\n{} *tokenizer.json\n",
        sum(&weights()),
        sum(TOKENIZER)
    )
}

/// A source that keeps count of the bytes of weights it sent.
#[derive(Clone, Default)]
struct Source {
    sent: Arc<AtomicUsize>,
    /// Sends other weights than it should.
    wrong: bool,
    /// Has no hashes.
    bare: bool,
}

impl Source {
    async fn start(&self) -> String {
        let router = Router::new()
            .route("/m/{name}", get(file))
            .with_state(self.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let url = format!("http://{}/m", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, router).await });
        url
    }
}

async fn file(
    State(source): State<Source>,
    Name(name): Name<String>,
    headers: HeaderMap,
) -> Response {
    let mut bytes = match name.as_str() {
        "SHA256SUMS" if !source.bare => sums().into_bytes(),
        "tokenizer.json" => TOKENIZER.to_vec(),
        "model.safetensors" => weights(),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    if name != "model.safetensors" {
        return bytes.into_response();
    }
    if source.wrong {
        bytes[7] ^= 1;
    }
    let range = headers.get("range").and_then(|range| range.to_str().ok());
    let from = range.and_then(|range| {
        range
            .strip_prefix("bytes=")?
            .strip_suffix('-')?
            .parse()
            .ok()
    });
    let from: usize = from.unwrap_or(0);
    if from >= bytes.len() {
        return StatusCode::RANGE_NOT_SATISFIABLE.into_response();
    }
    source.sent.fetch_add(bytes.len() - from, Ordering::SeqCst);
    let status = if from > 0 {
        StatusCode::PARTIAL_CONTENT
    } else {
        StatusCode::OK
    };
    (status, bytes.split_off(from)).into_response()
}

async fn pull(data: &Path, from: &str, more: &[&str]) -> Ran {
    let data = data.to_string_lossy().into_owned();
    let mut line = vec![
        "models",
        "pull",
        "tiny",
        "--data-dir",
        &data,
        "--from",
        from,
    ];
    line.extend(more);
    Fake::rest(|_, _| (404, Value::Null)).await.tg(&line).await
}

#[tokio::test]
async fn a_model_is_fetched_once_and_checked() {
    let data = tempfile::tempdir().expect("a folder");
    let source = Source::default();
    let url = source.start().await;
    let ran = pull(data.path(), &url, &[]).await;
    assert!(
        ran.talk.contains("THREADGRAPH_EMBEDDINGS__MODEL=tiny"),
        "{}",
        ran.talk
    );
    assert!(ran.printed().contains("tiny is in"));
    let model = data.path().join("models/tiny");
    assert_eq!(
        std::fs::read(model.join("model.safetensors")).expect("read"),
        weights()
    );
    assert_eq!(
        std::fs::read(model.join("tokenizer.json")).expect("read"),
        TOKENIZER
    );
    let written = std::fs::read_to_string(model.join("SHA256SUMS")).expect("read");
    assert!(written.contains(&format!("{}  tokenizer.json", sum(TOKENIZER))));

    let again = pull(data.path(), &url, &["--json"]).await.printed();
    assert!(again.contains("\"fetched\": false"), "{again}");
    assert_eq!(source.sent.load(Ordering::SeqCst), weights().len());

    std::fs::write(model.join("tokenizer.json"), "other").expect("written");
    assert!(pull(data.path(), &url, &[]).await.result.is_err());
    let listed = list(data.path()).await;
    assert!(listed.contains("without matching hashes") && listed.contains("can be pulled"));
    pull(data.path(), &url, &["--force"]).await.printed();
    assert!(list(data.path()).await.contains("here, checked"));
}

async fn list(data: &Path) -> String {
    let data = data.to_string_lossy().into_owned();
    let fake = Fake::rest(|_, _| (404, Value::Null)).await;
    fake.tg(&["models", "list", "--data-dir", &data])
        .await
        .printed()
}

#[tokio::test]
async fn an_interrupted_pull_goes_on_where_it_ended() {
    let data = tempfile::tempdir().expect("a folder");
    let source = Source::default();
    let url = source.start().await;
    let coming = data.path().join("models/.tiny.coming");
    std::fs::create_dir_all(&coming).expect("made");
    let had = 123_457;
    std::fs::write(coming.join("model.safetensors.part"), &weights()[..had]).expect("written");
    pull(data.path(), &url, &[]).await.printed();
    assert_eq!(source.sent.load(Ordering::SeqCst), weights().len() - had);
    assert!(!coming.exists());
}

#[tokio::test]
async fn what_has_another_hash_is_not_kept() {
    let data = tempfile::tempdir().expect("a folder");
    let source = Source {
        wrong: true,
        ..Source::default()
    };
    let url = source.start().await;
    let error = pull(data.path(), &url, &[]).await.error();
    assert!(
        error.to_string().contains("not the file that was meant"),
        "{error}"
    );
    assert!(!data.path().join("models/tiny").exists());
    let part = data
        .path()
        .join("models/.tiny.coming/model.safetensors.part");
    assert!(!part.exists());
}

#[tokio::test]
async fn without_hashes_or_a_source_nothing_is_fetched() {
    let data = tempfile::tempdir().expect("a folder");
    let source = Source {
        bare: true,
        ..Source::default()
    };
    let url = source.start().await;
    let error = pull(data.path(), &url, &[]).await.error();
    assert!(error.to_string().contains("--sums"), "{error}");
    let file = data.path().join("sums");
    std::fs::write(&file, sums()).expect("written");
    pull(data.path(), &url, &["--sums", &file.to_string_lossy()])
        .await
        .printed();

    // Nobody listens there any more.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let gone = format!(
        "http://user:secret@{}",
        listener.local_addr().expect("an address")
    );
    drop(listener);
    let error = pull(data.path(), &gone, &["--force"]).await.error();
    assert_eq!(error.kind(), "unreachable");
    let text = error.to_string();
    assert!(
        text.starts_with("cannot fetch from http://127.0.0.1:") && !text.contains("secret"),
        "{text}"
    );
}
