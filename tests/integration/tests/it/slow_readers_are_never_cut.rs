//! Who takes an answer slowly and steadily gets it for as long as it takes, whatever the endpoint; who only waits, and
//! answers no ping, is there as well.
//!
//! One test of a bit more than a minute, because what cut them off did so after a minute; it needs next to nothing of
//! the machine meanwhile.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::process::{Server, client};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::bulk_streams::Reader;
use crate::edge::{connected_from, text_frame, upgraded};
use crate::workspaces::{make, put};
use crate::world::{Bus, up};

/// Longer than anybody may take nothing at all, and than two pings take.
const LONG: Duration = Duration::from_secs(68);
/// 64 KB a second.
const PIECE: (usize, Duration) = (8 << 10, Duration::from_millis(125));
const SOON: Duration = Duration::from_secs(60);
/// Who feeds many slow readers may be slow itself on a busy machine; whoever is cut off learns it at once.
const STILL: Duration = Duration::from_secs(30);
/// Pieces of the document, and megabytes of triples: more than is read and than all buffers on the way hold.
const CHUNKS: usize = 6;
const STORED: usize = 24;
/// What the system counts time of connections in, a second.
const TICKS: u64 = 100;

/// Reads slowly until the time is over; it must go on until then.
async fn takes_its_time(mut stream: TcpStream, what: &str, least: usize) -> Result<()> {
    let start = Instant::now();
    let (mut piece, mut taken, mut last) = (vec![0; PIECE.0], 0, Vec::new());
    while start.elapsed() < LONG {
        let read = tokio::time::timeout(STILL, stream.read(&mut piece)).await;
        let read = read.with_context(|| format!("{what}: nothing comes after {taken} bytes"))??;
        last.extend_from_slice(&piece[..read]);
        last.drain(..last.len().saturating_sub(500));
        ensure!(
            read > 0,
            "{what}: cut after {:?} and {taken} bytes: {}",
            start.elapsed(),
            String::from_utf8_lossy(&last)
        );
        taken += read;
        tokio::time::sleep(PIECE.1).await;
    }
    ensure!(taken > least, "{what}: {taken} bytes only");
    Ok(())
}

fn reader<'a>(server: &'a Server, workspace: &'a str) -> Reader<'a> {
    Reader {
        server,
        key: "",
        workspace,
    }
}

/// Whatever is there in large pieces, by every endpoint that has it.
async fn slow(server: &Server) -> Result<()> {
    let reader = reader(server, "default");
    let streams = [
        reader.query_socket().await?,
        reader.query_events().await?,
        reader.document().await?,
        reader.core().await?,
        reader.core_socket().await?,
        reader.stored_socket().await?,
        reader.stored_lines().await?,
    ];
    let all = streams.map(|one| takes_its_time(one.tcp, one.what, 512 << 10));
    futures::future::try_join_all(all).await.map(|_| ())
}

/// What passes, a bit more than is read; in a workspace where nobody else listens.
async fn slow_live(server: &Server) -> Result<()> {
    let workspace = "live";
    make(&server.url(), workspace).await?;
    put(&server.url(), workspace, "v").await?;
    let reader = reader(server, workspace);
    let streams = [reader.live_socket().await?, reader.live_lines().await?];
    let feed = async {
        let text = "x".repeat(20 << 10);
        loop {
            let line = format!("{}\n", frame("urn:live", &text));
            import(server, workspace, line).await?;
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    };
    let all = streams.map(|one| takes_its_time(one.tcp, one.what, 64 << 10));
    tokio::select! {
        fed = feed => fed,
        read = futures::future::try_join_all(all) => read.map(|_| ()),
    }
}

async fn import(server: &Server, workspace: &str, lines: String) -> Result<()> {
    let path = format!("api/v1/flow/default/import/triples?workspace={workspace}");
    let sent = client()?
        .post(format!("{}{path}", server.url()))
        .body(lines);
    let response = sent.send().await?;
    let status = response.status();
    let text = response.text().await?;
    let told: Value = serde_json::from_str(&text).with_context(|| format!("{status}: {text}"))?;
    ensure!(told.get("error").is_none(), "{told}");
    Ok(())
}

/// A socket that waits, and answers no ping.
struct Silent(TcpStream);

impl Silent {
    async fn open(server: &Server, path: &str) -> Result<Self> {
        let path = format!("api/v1/flow/default/{path}");
        Ok(Self(
            upgraded(connected_from(1, server).await?, server, &path).await?,
        ))
    }

    /// The system itself will ask whether this side is there, within a minute.
    fn is_looked_after(&self, server: &Server) -> Result<()> {
        let table = std::fs::read_to_string("/proc/net/tcp")?;
        let end = |port: u16| format!(":{port:04X}");
        let (here, there) = (end(self.0.local_addr()?.port()), end(server.port()));
        let of_server = |line: &&str| {
            let mut words = line.split_whitespace().skip(1);
            let local = words.next().is_some_and(|word| word.ends_with(&there));
            local && words.next().is_some_and(|word| word.ends_with(&here))
        };
        let line = table.lines().find(of_server).context("no connection")?;
        let timer = line.split_whitespace().nth(5).context("no timer")?;
        let (kind, when) = timer.split_once(':').context("a timer")?;
        let left = u64::from_str_radix(when, 16)? / TICKS;
        ensure!(kind == "02" && left <= 60, "{timer}");
        Ok(())
    }

    /// Everything that came so far: how many pings, and the texts.
    async fn heard(&mut self) -> Result<(usize, Vec<Value>)> {
        let (mut pings, mut texts) = (0, Vec::new());
        loop {
            let head = tokio::time::timeout(Duration::from_millis(300), self.0.read_u16()).await;
            let Ok(head) = head else {
                return Ok((pings, texts));
            };
            let head = head?;
            let length = match head & 0x7f {
                126 => usize::from(self.0.read_u16().await?),
                short => usize::from(short),
            };
            let mut payload = vec![0; length];
            self.0.read_exact(&mut payload).await?;
            match head >> 8 {
                0x89 => pings += 1,
                0x81 => texts.push(serde_json::from_slice(&payload)?),
                other => anyhow::bail!("a frame {other:x}: {}", String::from_utf8_lossy(&payload)),
            }
        }
    }
}

fn frame(subject: &str, literal: &str) -> Value {
    let iri = |text: &str| json!({"t": "i", "i": text});
    let triple = json!({"s": iri(subject), "p": iri("urn:p"), "o": {"t": "l", "v": literal}});
    json!({"metadata": {"id": "x", "collection": "default"}, "triples": [triple]})
}

async fn silent(server: &Server) -> Result<()> {
    let mut import = Silent::open(server, "import/triples?ack=1").await?;
    let mut export = Silent::open(server, "export/triples").await?;
    import.is_looked_after(server)?;
    export.is_looked_after(server)?;
    tokio::time::sleep(LONG).await;
    for socket in [&mut import, &mut export] {
        let (pings, texts) = socket.heard().await?;
        ensure!(pings >= 2 && texts.is_empty(), "{pings} pings, {texts:?}");
    }
    let late = frame("urn:late", "v").to_string();
    import.0.write_all(&text_frame(late.as_bytes())).await?;
    let (end, mut confirmed, mut exported) = (Instant::now() + SOON, false, false);
    while !(confirmed && exported) {
        ensure!(Instant::now() < end, "{confirmed} {exported}");
        let (_, texts) = import.heard().await?;
        confirmed |= texts.iter().any(|text| text["confirmed"]["frames"] == 1);
        let (_, texts) = export.heard().await?;
        exported |= texts
            .iter()
            .any(|text| text["triples"][0]["s"]["i"] == "urn:late");
    }
    Ok(())
}

async fn on(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    // Before anybody looks on.
    reader(&server, "default").keep_big(CHUNKS).await?;
    reader(&server, "default").keep_triples(STORED).await?;
    let all = async { tokio::try_join!(slow(&server), slow_live(&server), silent(&server)) };
    all.await.with_context(|| format!("{bus:?}"))?;
    let live = client()?.get(format!("{}health/live", server.url()));
    ensure!(live.send().await?.status().is_success());
    Ok(())
}

#[tokio::test]
async fn on_either_bus() -> Result<()> {
    tokio::try_join!(on(Bus::Embedded), on(Bus::Rabbit))?;
    Ok(())
}
