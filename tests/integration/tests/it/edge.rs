//! What tests of the edge do that no client does: raw bytes, and a look at the process.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::process::{Launch, Server, client};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// How long a service that starts is waited for, and between two looks.
const BOUND: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

/// A system with users and keys.
pub fn with_keys() -> Launch {
    Launch::up().arg("--auth").arg("iam")
}

/// Most memory that a process held so far, in MiB.
pub fn peak(server: &Server) -> Result<u64> {
    let pid = server.pid().context("it is gone")?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let text = line.context("no VmHWM")?.trim().trim_end_matches(" kB");
    Ok(text.parse::<u64>()? / 1024)
}

/// A socket before anything was said on it.
pub async fn raw_socket(server: &Server) -> Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).await?;
    upgraded(stream, server, "api/v1/socket").await
}

/// Makes a WebSocket of a connection.
pub async fn upgraded(mut stream: TcpStream, server: &Server, path: &str) -> Result<TcpStream> {
    let head = format!(
        "GET /{path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        server.port()
    );
    stream.write_all(head.as_bytes()).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(stream.read_u8().await?);
    }
    let line = String::from_utf8_lossy(&answer);
    ensure!(answer.starts_with(b"HTTP/1.1 101"), "no socket: {line}");
    Ok(stream)
}

/// A connection from the last of these four numbers of the loopback addresses, with little room for what comes.
pub async fn connected_from(last: u8, server: &Server) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(64 << 10)?;
    socket.bind(([127, 0, 0, last], 0).into())?;
    Ok(socket
        .connect(([127, 0, 0, 1], server.port()).into())
        .await?)
}

/// A text frame. The mask is zero, so that the payload stays as it is.
pub fn text_frame(payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x81, 0x80 | 127];
    bytes.extend((payload.len() as u64).to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}

/// How long until the other side closes, or breaks off.
pub async fn closed_within(stream: &mut TcpStream, bound: Duration) -> Result<Duration> {
    let start = std::time::Instant::now();
    let mut rest = Vec::new();
    // An end and a reset are the same here.
    let _ = tokio::time::timeout(bound, stream.read_to_end(&mut rest))
        .await
        .context("still open")?;
    Ok(start.elapsed())
}

/// An operation of iam with a key; the reply.
pub async fn iam(server: &Server, key: &str, ask: Value) -> Result<Value> {
    let url = format!("{}api/v1/iam", server.url());
    let response = client()?
        .post(url)
        .bearer_auth(key)
        .json(&ask)
        .send()
        .await?;
    let reply: Value = response.json().await?;
    ensure!(reply.get("error").is_none(), "{ask}: {reply}");
    Ok(reply)
}

/// The first key, as from the terminal, as soon as the iam service answers: where it is a process of its own, the gateway may be ready
/// before it.
pub async fn first_key(server: &Server) -> Result<String> {
    let url = format!("{}api/v1/auth/bootstrap", server.url());
    let client = client()?;
    let end = std::time::Instant::now() + BOUND;
    loop {
        let asked = client.post(&url).json(&json!({})).send();
        let reply: Value = asked.await?.json().await?;
        if let Some(key) = reply["bootstrap_admin_api_key"].as_str() {
            return Ok(key.to_owned());
        }
        let kind = reply["error"]["type"].as_str();
        let is_away = matches!(kind, Some("nobody-serves" | "unavailable"));
        ensure!(
            is_away && std::time::Instant::now() < end,
            "no key: {reply}"
        );
        tokio::time::sleep(LOOK).await;
    }
}
