//! The client against a server that is spoken byte by byte.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// A server that answers every connection with the same bytes and closes it. Returns its address.
async fn server(answer: impl Into<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = answer.into();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            // A request without body fits into one read.
            let _ = socket.read(&mut [0; 4096]).await;
            let _ = socket.write_all(&answer).await;
        }
    });
    url
}

async fn get(answer: impl Into<Vec<u8>>) -> Result<Value, HttpError> {
    let url = server(answer).await;
    let limits = Limits {
        answer: 100,
        ..Limits::default()
    };
    let client = HttpClient::new(&url, limits).unwrap();
    client.json(client.get(&url)).await
}

#[tokio::test]
async fn answers_are_read_within_their_bound() {
    let whole = get("HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n{\"a\":1}").await;
    assert_eq!(whole, Ok(json!({"a": 1})));
    let long = format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n[{}1]",
        "1,".repeat(50)
    );
    assert_eq!(get(long).await, Err(HttpError::Unreadable));
    let text = get("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno").await;
    assert_eq!(text, Err(HttpError::Unreadable));
    let half = get("HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n{\"a\"").await;
    assert_eq!(half, Err(HttpError::BrokenOff));
}

#[tokio::test]
async fn refusals_are_told_with_the_pause_they_ask_for() {
    let limited = "HTTP/1.1 429 X\r\nretry-after: 7\r\ncontent-length: 4\r\n\r\nbusy";
    let refusal = Refusal {
        status: 429,
        retry_after: Some(Duration::from_secs(7)),
        body: b"busy".to_vec(),
    };
    assert_eq!(get(limited).await, Err(HttpError::Refused(refusal)));
    let endless = format!("HTTP/1.1 500 X\r\n\r\n{}", "x".repeat(1 << 20));
    let Err(HttpError::Refused(refusal)) = get(endless).await else {
        panic!("refused");
    };
    assert_eq!(refusal.body.len(), 16 << 10);
    let elsewhere = "HTTP/1.1 302 X\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n";
    let Err(HttpError::Refused(refusal)) = get(elsewhere).await else {
        panic!("a redirect is not followed");
    };
    assert_eq!(refusal.status, 302);
}

#[tokio::test]
async fn silence_and_absence_are_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let limits = Limits {
        silence: Some(Duration::from_millis(50)),
        ..Limits::default()
    };
    let client = HttpClient::new(&url, limits).unwrap();
    let silent = client.json::<Value>(client.get(&url)).await;
    assert_eq!(silent, Err(HttpError::Timeout));
    drop(listener);
    let absent = client.json::<Value>(client.get(&url)).await;
    assert_eq!(absent, Err(HttpError::Unreachable(Cause::Refused)));
    let nameless = "http://nobody.invalid/";
    let unknown = client.json::<Value>(client.get(nameless)).await;
    assert_eq!(unknown, Err(HttpError::Unreachable(Cause::Unresolved)));
    let malformed = client.get(&url).header("x", "a\nb");
    assert_eq!(
        client.json::<Value>(malformed).await,
        Err(HttpError::Invalid)
    );
}

/// A process of its own, because the place of the certificates is a variable of the whole process.
#[test]
fn a_machine_without_certificates_has_a_client_all_the_same() {
    const INNER: &str = "TG_WITHOUT_CERTIFICATES";
    if std::env::var_os(INNER).is_some() {
        for url in ["https://h.example", "http://h.example"] {
            assert!(client(url, Limits::default()).is_ok(), "{url}");
        }
        let bare = reqwest::Client::builder().build();
        assert!(bare.is_err(), "otherwise this test shows nothing");
        return;
    }
    let name = "tests::a_machine_without_certificates_has_a_client_all_the_same";
    let inner = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(INNER, "1")
        .env("SSL_CERT_FILE", "/nonexistent")
        .env("SSL_CERT_DIR", "/nonexistent")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&inner.stdout);
    assert!(
        inner.status.success() && told.contains("1 passed"),
        "{told}"
    );
}
