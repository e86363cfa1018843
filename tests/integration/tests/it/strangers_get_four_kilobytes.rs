//! Who is not known gets no memory: a frame of 50 MB before authentication is refused at its head. Who is known
//! gets a bound of it: a frame or a body that would need more than a gigabyte as a tree of values is refused before it
//! is one, and nobody else waits for that.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tg_testkit::process::{Server, client};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::edge::{first_key, iam, peak, raw_socket, text_frame, upgraded, with_keys};
use crate::revocation_is_immediate::{key_of, status};

/// Much less than the trees would take (5 GB), enough for the process.
const ADDRESS_SPACE: u64 = 6 << 30;

/// Another is answered within this while a large body comes, also in a build for debugging on a busy machine.
const OTHERS: Duration = Duration::from_secs(60);

/// The gateway closes a connection within this.
const CLOSED: Duration = Duration::from_secs(60);

/// What is not written within this waits.
const WRITTEN: Duration = Duration::from_millis(100);

/// Lists of a frame that a process with so much memory receives, and whose tree it has no memory for.
const LESS: usize = 5_000_000;

fn bomb(before: &str, after: &str) -> Vec<u8> {
    lists(12_400_000, before, after)
}

fn lists(count: usize, before: &str, after: &str) -> Vec<u8> {
    let mut bytes = before.as_bytes().to_vec();
    bytes.extend(b"[0],".repeat(count));
    bytes.extend(after.as_bytes());
    bytes
}

/// The close code of a frame beyond the limit.
const TOO_LARGE: u16 = 1009;

/// Bytes of the head of a large frame.
const HEAD: usize = 14;

/// The code with which the gateway closes a socket.
async fn close_code(socket: &mut TcpStream) -> Result<u16> {
    const CLOSE: u8 = 0x88;
    loop {
        let kind = socket.read_u8().await?;
        let length = socket.read_u8().await?;
        let mut payload = vec![0; usize::from(length)];
        socket.read_exact(&mut payload).await?;
        if kind == CLOSE {
            let code = payload.first_chunk().context("no code")?;
            return Ok(u16::from_be_bytes(*code));
        }
    }
}

#[tokio::test]
async fn before_authentication() -> Result<()> {
    // Longer than the test waits: a socket that ends did not run out of time to authenticate.
    let mut server = with_keys()
        .env("THREADGRAPH_GATEWAY__STRANGER_SECONDS", "600")
        .address_space(ADDRESS_SPACE)
        .ready()
        .await?;
    let before = peak(&server)?;
    let frame = text_frame(&bomb(r#"{"type":"auth","token":"x","x":["#, "0]}"));
    // The head alone is too much: the gateway closes the socket without waiting for the payload.
    let mut socket = raw_socket(&server).await?;
    socket.write_all(&frame[..HEAD]).await?;
    let code = tokio::time::timeout(CLOSED, close_code(&mut socket)).await??;
    ensure!(code == TOO_LARGE, "closed with {code}");
    let attacks = (0..4).map(|_| async {
        let mut socket = raw_socket(&server).await?;
        // It is cut off while it sends.
        let _ = socket.write_all(&frame).await;
        let closed = tokio::time::timeout(CLOSED, close_code(&mut socket)).await;
        closed.context("still open")
    });
    for closed in futures::future::join_all(attacks).await {
        // The gateway resets a connection with unread bytes, which may discard the close frame.
        let code = closed?.unwrap_or(TOO_LARGE);
        ensure!(code == TOO_LARGE, "closed with {code}");
    }
    let url = format!("{}api/v1/iam", server.url());
    let body = json!({"operation": "bootstrap-status", "x": "x".repeat(5000)});
    let response = client()?.post(&url).json(&body).send().await?;
    assert_eq!(response.status().as_u16(), 413);
    // Of a key that is wrong that is said, wherever it is shown, and not how little strangers may send.
    for endpoint in ["iam", "config", "flow/default/service/agent"] {
        let url = format!("{}api/v1/{endpoint}", server.url());
        for (key, status) in [(None, 413), (Some("tg_wrong"), 401)] {
            let mut request = client()?.post(&url).json(&body);
            if let Some(key) = key {
                request = request.bearer_auth(key);
            }
            let answered = request.send().await?.status().as_u16();
            let strangers = key.is_none() && matches!(answered, 401 | 413);
            assert!(
                answered == status || strangers,
                "{endpoint} {key:?}: {answered}"
            );
        }
    }
    let taken = peak(&server)? - before;
    assert!(taken < 100, "{taken} MiB");
    assert!(server.alive());
    Ok(())
}

#[tokio::test]
async fn after_authentication() -> Result<()> {
    let launch = tg_testkit::process::Launch::up();
    let mut server = launch.address_space(ADDRESS_SPACE).ready().await?;
    let before = peak(&server)?;
    let request = r#"{"id":"1","service":"agent","flow":"default","request":{"x":["#;
    let mut socket = raw_socket(&server).await?;
    socket
        .write_all(&text_frame(&lists(LESS, request, "0]}}")))
        .await?;
    let mut head = [0; 2];
    socket.read_exact(&mut head).await?;
    let mut length = usize::from(head[1] & 0x7f);
    if length == 126 {
        length = usize::from(socket.read_u16().await?);
    }
    let mut answer = vec![0; length];
    socket.read_exact(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.contains("too-large"), "{answer}");
    let taken = peak(&server)? - before;
    assert!(taken < 400, "{taken} MiB");
    assert!(server.alive());
    Ok(())
}

/// How many sockets send large messages at once.
const AT_ONCE: usize = 300;

/// A message of 49 MiB is announced on each of many sockets, and a little of it is sent. What its library would make room
/// for is more than twice the address space.
#[tokio::test]
async fn after_authentication_on_many_sockets() -> Result<()> {
    let launch = tg_testkit::process::Launch::up();
    let mut server = launch.address_space(ADDRESS_SPACE).ready().await?;
    let before = peak(&server)?;
    let mut head = vec![0x81, 0xff];
    head.extend((49_u64 << 20).to_be_bytes());
    head.extend([0; 4]);
    let little = vec![b'x'; 100 << 10];
    for path in ["api/v1/socket", "api/v1/flow/default/import/triples"] {
        let mut sockets = Vec::new();
        for _ in 0..AT_ONCE {
            let stream = TcpStream::connect(("127.0.0.1", server.port())).await?;
            let mut socket = upgraded(stream, &server, path).await?;
            socket.write_all(&head).await?;
            // Who has to wait is not read: what does not fit in buffers on the way is not sent.
            let _ = tokio::time::timeout(WRITTEN, socket.write_all(&little)).await;
            sockets.push(socket);
        }
        let began = Instant::now();
        ensure!(
            status(&server, "").await? == 200,
            "{path}: others are refused"
        );
        ensure!(began.elapsed() < OTHERS, "{path}: {:?}", began.elapsed());
        ensure!(server.alive(), "{path}");
        drop(sockets);
    }
    let taken = peak(&server)? - before;
    ensure!(taken < 400, "{taken} MiB");
    ensure!(server.alive());
    Ok(())
}

/// Sends a body to an endpoint, whoever closes first; the answer.
async fn sent(server: &Server, key: &str, endpoint: &str, body: &[u8]) -> Result<String> {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).await?;
    let head = format!(
        "POST /api/v1/{endpoint} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        server.port(),
        body.len()
    );
    let (mut answer, mut request) = stream.into_split();
    let mut told = Vec::new();
    let write = async {
        // It may be refused at its head.
        let _ = request.write_all(head.as_bytes()).await;
        let _ = request.write_all(body).await;
    };
    // A reset is an end.
    let (_, _) = tokio::join!(answer.read_to_end(&mut told), write);
    Ok(String::from_utf8_lossy(&told).into_owned())
}

/// Asks without end, and notes how long an answer took at most.
async fn asks(server: &Server, key: &str, slowest: &mut Duration) -> Result<()> {
    loop {
        let began = Instant::now();
        ensure!(status(server, key).await? == 200, "another is refused");
        *slowest = began.elapsed().max(*slowest);
    }
}

/// Bodies of lists from a reader: the largest that there is, of which a tree would take 20 GB, and one that is received.
#[tokio::test]
async fn after_authentication_over_rest() -> Result<()> {
    let mut server = with_keys().address_space(ADDRESS_SPACE).ready().await?;
    let admin = first_key(&server).await?;
    let user = json!({"operation": "create-user", "workspace": "default",
        "user": {"username": "bob", "roles": ["reader"]}});
    let user = iam(&server, &admin, user).await?["user"]["id"].clone();
    let (reader, _) = key_of(&server, &admin, user.as_str().context("no user")?, "").await?;
    let before = peak(&server)?;
    for (size, says) in [(256 << 20, " bytes"), (48 << 20, "a request may need 1")] {
        let body = lists(size / 4 - 16, r#"{"query":"q","x":["#, "0]}");
        for endpoint in ["flow/default/service/sparql", "librarian", "config"] {
            let (mut slowest, mut told) = (Duration::ZERO, String::new());
            let began = Instant::now();
            tokio::select! {
                answer = sent(&server, &reader, endpoint, &body) => told = answer?,
                failed = asks(&server, &admin, &mut slowest) => failed?,
            }
            let brief: String = told.chars().take(500).collect();
            ensure!(told.contains("too-large"), "{endpoint}: {brief}");
            ensure!(told.contains(says), "{endpoint}: {brief}");
            // Of what the body took, where that is long: who waits for it waits for all of it.
            let allowed = OTHERS.max(began.elapsed() / 2);
            ensure!(slowest < allowed, "{endpoint}: {slowest:?} of {allowed:?}");
        }
    }
    let taken = peak(&server)? - before;
    ensure!(taken < 400, "{taken} MiB");
    ensure!(server.alive());
    Ok(())
}
