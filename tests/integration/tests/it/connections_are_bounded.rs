//! One address takes neither all connections nor all descriptors, and no number of them takes what files need. Whoever
//! never ends a request's head, or never says who it is, does not stay.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tg_testkit::process::{Launch, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::edge::{closed_within, connected_from, raw_socket, upgraded, with_keys};

/// So few that connections have to leave some.
const DESCRIPTORS: u64 = 600;
/// More than there may be.
const FLOOD: usize = 500;
/// Less than the time that a head may take, after which there is room again by itself.
const SOON: Duration = Duration::from_secs(8);
/// What has nothing to do with that time comes within this.
const BOUND: Duration = Duration::from_secs(60);

fn client(last: u8) -> Result<reqwest::Client> {
    let address = std::net::IpAddr::from([127, 0, 0, last]);
    let builder = reqwest::Client::builder().local_address(address);
    Ok(builder.timeout(SOON).build()?)
}

/// Requests that are never finished, from an address.
async fn flood(server: &Server, last: u8, count: usize) -> Result<Vec<TcpStream>> {
    let mut all = Vec::new();
    for _ in 0..count {
        let mut stream = connected_from(last, server).await?;
        // One that is refused may be closed already.
        let _ = stream.write_all(b"POST / HTTP/1.1\r\n").await;
        all.push(stream);
    }
    Ok(all)
}

async fn is_served(server: &Server, client: &reqwest::Client, id: &str) -> Result<()> {
    // 300,000 bytes, which go to a file.
    let content = "YWFh".repeat(100_000);
    let ask = json!({"operation": "add-document", "workspace": "default", "content": content,
        "document-metadata": {"id": id, "kind": "text/plain", "title": "t"}});
    let request = client.post(format!("{}api/v1/librarian", server.url()));
    let answer = request.json(&ask).send().await?;
    let (status, told) = (answer.status().as_u16(), answer.text().await?);
    ensure!(
        status == 200 && !told.contains("error"),
        "{id}: {status} {told}"
    );
    Ok(())
}

fn used(server: &Server) -> Result<u64> {
    let pid = server.pid().context("it runs")?;
    Ok(std::fs::read_dir(format!("/proc/{pid}/fd"))?.count() as u64)
}

#[tokio::test]
async fn one_address_is_not_all_and_files_have_their_own() -> Result<()> {
    let server = Launch::up().descriptors(DESCRIPTORS).ready().await?;
    let before = used(&server)?;
    let (there, fresh) = (client(9)?, client(8)?);
    is_served(&server, &there, "urn:d:before").await?;
    let one = flood(&server, 2, FLOOD).await?;
    is_served(&server, &fresh, "urn:d:fresh").await?;
    // From more of them all connections are taken: who is there already is served.
    let mut more = Vec::new();
    for last in [3, 4, 5] {
        more.extend(flood(&server, last, FLOOD / 2).await?);
    }
    is_served(&server, &there, "urn:d:there").await?;
    let now = used(&server)?;
    ensure!(now < DESCRIPTORS, "{before} before, {now} now");
    let log = server.log();
    ensure!(!log.contains("Too many open files"), "{log}");
    let told = log.contains("an address has too many connections");
    ensure!(told, "{before} before, {now} now\n{log}");
    drop((one, more));
    is_served(&server, &client(7)?, "urn:d:after").await
}

/// Whether the other side closes in a moment.
async fn is_closed(socket: &mut TcpStream) -> bool {
    let read = socket.read_u8();
    let read = tokio::time::timeout(Duration::from_millis(100), read).await;
    // The close frame, or the end.
    read.is_ok()
}

#[tokio::test]
async fn strangers_of_one_address_leave_sockets_to_others() -> Result<()> {
    const EACH: usize = 256;
    const MORE: usize = 44;
    let server = with_keys().ready().await?;
    let open = async |last| {
        let stream = connected_from(last, &server).await?;
        upgraded(stream, &server, "api/v1/socket").await
    };
    let mut other = open(3).await?;
    let mut all = Vec::new();
    for _ in 0..EACH + MORE {
        all.push(open(2).await?);
    }
    // Each beyond its share took the place of the oldest of its own address, and of nobody else's.
    let (oldest, others) = all.split_at_mut(MORE);
    let end = Instant::now() + BOUND;
    for socket in oldest {
        while !is_closed(socket).await {
            ensure!(Instant::now() < end, "one beyond the share is not closed");
        }
    }
    let closed = futures::future::join_all(others.iter_mut().map(is_closed)).await;
    let gone = closed.iter().filter(|closed| **closed).count();
    ensure!(gone == 0, "{gone} within the share are closed");
    let auth = crate::edge::text_frame(br#"{"type":"auth","token":"tg_wrong"}"#);
    other.write_all(&auth).await?;
    let mut answer = vec![0; 1024];
    let read = tokio::time::timeout(SOON, other.read(&mut answer)).await??;
    let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
    ensure!(answer.contains("auth"), "{answer}");
    Ok(())
}

/// The status that an upgrade is answered with, and its socket.
async fn asked(server: &Server, last: u8, path: &str) -> Result<(TcpStream, String)> {
    let mut stream = connected_from(last, server).await?;
    let ask = format!(
        "GET /{path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        server.port()
    );
    stream.write_all(ask.as_bytes()).await?;
    let mut head = [0; 12];
    tokio::time::timeout(BOUND, stream.read_exact(&mut head)).await??;
    let status = String::from_utf8_lossy(&head[9..]).into_owned();
    Ok((stream, status))
}

#[tokio::test]
async fn sockets_of_one_address_leave_others_to_others() -> Result<()> {
    const EACH: usize = 512;
    const MORE: usize = 1_100;
    let server = Launch::up().ready().await?;
    let mut all = Vec::new();
    for n in 0..MORE {
        let (stream, status) = asked(&server, 2, "api/v1/socket").await?;
        let wanted = if n < EACH { "101" } else { "503" };
        ensure!(status == wanted, "{n}: {status}");
        all.push(stream);
    }
    let (_other, status) = asked(&server, 3, "api/v1/socket").await?;
    ensure!(status == "101", "another address: {status}");
    // The same by the other doors, and places come back.
    let import = "api/v1/flow/default/import/triples";
    let (_own, status) = asked(&server, 2, import).await?;
    ensure!(status == "503", "{status}");
    drop(all);
    let end = Instant::now() + BOUND;
    loop {
        let (_own, status) = asked(&server, 2, import).await?;
        if status == "101" {
            return Ok(());
        }
        ensure!(Instant::now() < end, "{status}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Held to seconds or less: these have the machine to themselves (`make test`).
mod alone {
    use super::*;

    /// What a head may take, and what a socket until it says who it is: ten seconds, with what a busy machine is late, and
    /// nothing of the two seconds between two heads.
    const TIMEOUT: std::ops::Range<Duration> = Duration::from_secs(9)..Duration::from_secs(20);
    const TICK: Duration = Duration::from_secs(1);

    /// How long a head is waited for of which a byte comes each second: a connection's first one, or its next.
    async fn slow_head(server: &Server, next: bool) -> Result<Duration> {
        let mut start = Instant::now();
        let mut stream = connected_from(2, server).await?;
        if next {
            stream
                .write_all(b"GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n")
                .await?;
            let mut answer = [0; 1024];
            let read = stream.read(&mut answer).await?;
            let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
            ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            // Of the pause between two requests nothing is taken from the next head's time.
            tokio::time::sleep(TICK * 2).await;
            start = Instant::now();
        }
        let (mut read, mut write) = stream.into_split();
        let drip = async {
            for byte in b"GET / HTTP/1.1\r\nX-Slow: ".iter().chain(&[b'a'; 30]) {
                write.write_all(&[*byte]).await?;
                tokio::time::sleep(TICK).await;
            }
            anyhow::bail!("still open")
        };
        let mut rest = Vec::new();
        // An end and a reset are the same here.
        tokio::select! {
            _ = read.read_to_end(&mut rest) => Ok(start.elapsed()),
            open = drip => open,
        }
    }

    /// How long a socket stays on which nobody says who it is.
    async fn silent_stranger(server: &Server) -> Result<Duration> {
        let start = Instant::now();
        let mut socket = raw_socket(server).await?;
        closed_within(&mut socket, TIMEOUT.end * 2).await?;
        Ok(start.elapsed())
    }

    #[tokio::test]
    async fn slow_heads_and_silent_strangers_are_gone_in_time() -> Result<()> {
        let server = with_keys().ready().await?;
        let (first, next, stranger) = tokio::join!(
            slow_head(&server, false),
            slow_head(&server, true),
            silent_stranger(&server)
        );
        for (who, stayed) in [
            ("a first head", first),
            ("a next head", next),
            ("a stranger", stranger),
        ] {
            let stayed = stayed.context(who)?;
            ensure!(TIMEOUT.contains(&stayed), "{who}: {stayed:?}");
        }
        Ok(())
    }
}
