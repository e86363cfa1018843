//! The chunks of an upload that were accepted are not lost by whatever cuts its completion off: a deadline, or the
//! end of the process.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_testkit::process::{Launch, Server, client};

use crate::world::{Bus, post, up};

const CHUNK: usize = 4 << 20;
const CHUNKS: usize = 6;
/// How often a completion is cut off, should it be done each time before that.
const TRIES: usize = 8;

/// Content of a chunk: no two are alike.
fn chunk(at: usize) -> Vec<u8> {
    let word = (at as u32).wrapping_mul(2_654_435_761).to_le_bytes();
    word.repeat(CHUNK / word.len())
}

async fn library(url: &str, mut ask: Value) -> Result<Value> {
    ask["workspace"] = json!("default");
    Ok(post(url, "api/v1/librarian", ask).await?.1)
}

/// An upload all of whose chunks were accepted.
async fn uploaded(url: &str, id: &str) -> Result<String> {
    let begin = json!({"operation": "begin-upload", "total-size": CHUNK * CHUNKS, "chunk-size": CHUNK,
        "document-metadata": {"id": id, "kind": "text/plain", "title": id}});
    let begun = library(url, begin).await?;
    let upload = begun["upload-id"].as_str();
    let upload = upload.with_context(|| format!("{begun}"))?.to_owned();
    for at in 0..CHUNKS {
        let taken = library(
            url,
            json!({"operation": "upload-chunk", "upload-id": upload, "chunk-index": at,
                "content": STANDARD.encode(chunk(at))}),
        );
        let taken = taken.await?;
        ensure!(taken["chunks-received"] == at + 1, "{taken}");
    }
    Ok(upload)
}

/// No chunk is asked for again, the upload completes, and its content is what was sent.
async fn survives(url: &str, upload: &str, id: &str) -> Result<()> {
    let status = json!({"operation": "get-upload-status", "upload-id": upload});
    let status = library(url, status).await?;
    ensure!(status["missing-chunks"] == json!([]), "{status}");
    let complete = json!({"operation": "complete-upload", "upload-id": upload});
    let done = library(url, complete).await?;
    ensure!(done["document-id"] == id, "{done}");
    for at in [0, CHUNKS - 1] {
        let piece = json!({"operation": "stream-document", "document-id": id,
            "chunk-size": CHUNK, "chunk-index": at});
        let piece = library(url, piece).await?;
        let content = piece["content"].as_str().unwrap_or_default();
        ensure!(
            STANDARD.decode(content)? == chunk(at),
            "chunk {at}: {} characters",
            content.len()
        );
    }
    Ok(())
}

fn signal(pid: u32, name: &str) -> Result<()> {
    let sent = std::process::Command::new("kill")
        .args([name, &pid.to_string()])
        .status()?;
    ensure!(sent.success(), "{name}");
    Ok(())
}

/// How long a completion takes that nothing cuts off.
async fn undisturbed(url: &str) -> Result<Duration> {
    let id = "urn:doc:undisturbed";
    let upload = uploaded(url, id).await?;
    let begun = Instant::now();
    let complete = json!({"operation": "complete-upload", "upload-id": upload});
    let done = library(url, complete).await?;
    ensure!(done["document-id"] == id, "{done}");
    Ok(begun.elapsed())
}

/// The process sleeps past the deadline while it completes, so that the question is given up the moment it wakes. Tells
/// whether it had not answered when it fell asleep.
async fn asleep(url: &str, pid: u32, id: &str, after: Duration) -> Result<bool> {
    let upload = uploaded(url, id).await?;
    let complete =
        json!({"operation": "complete-upload", "upload-id": upload, "workspace": "default"});
    let asked = client()?
        .post(format!("{url}api/v1/librarian"))
        .header("X-Timeout", "1")
        .json(&complete)
        .send();
    let asked = async {
        // Whatever is said to it.
        let _ = asked.await;
        Instant::now()
    };
    let (answered, asleep) = tokio::join!(asked, async {
        tokio::time::sleep(after).await;
        let _ = signal(pid, "-STOP");
        let asleep = Instant::now();
        tokio::time::sleep(Duration::from_millis(3500)).await;
        let _ = signal(pid, "-CONT");
        asleep
    });
    survives(url, &upload, id).await?;
    Ok(answered > asleep)
}

async fn a_deadline(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    let url = server.url();
    let pid = server.pid().context("it runs")?;
    let mut after = undisturbed(&url).await? / 2;
    for at in 0..TRIES {
        if asleep(&url, pid, &format!("urn:doc:deadline-{at}"), after).await? {
            return Ok(());
        }
        after /= 2;
    }
    bail!("it had answered each time when it fell asleep")
}

/// Kills the process while it completes; whether it had not answered by then, and the next process.
async fn killed(
    launch: &Launch,
    server: Server,
    id: &str,
    after: Duration,
) -> Result<(bool, Server)> {
    let url = server.url();
    let upload = uploaded(&url, id).await?;
    let complete = json!({"operation": "complete-upload", "upload-id": upload});
    let asked = library(&url, complete);
    let killed = async {
        tokio::time::sleep(after).await;
        server.kill9().await
    };
    let (answer, killed) = tokio::join!(asked, killed);
    killed?;
    let server = launch.clone().ready().await?;
    survives(&server.url(), &upload, id).await?;
    Ok((answer.is_err(), server))
}

async fn the_end_of_the_process(bus: Bus) -> Result<()> {
    let node = bus.broker().await?;
    let data = tempfile::tempdir()?;
    let launch = Launch::up().data(data.path()).over(node.as_ref());
    let mut server = launch.clone().ready().await?;
    let whole = undisturbed(&server.url()).await?;
    // At its begin, in its middle and towards its end; and nearer to the begin should it have been faster each time.
    let mut cuts: Vec<Duration> = [1, 4, 7].map(|part| whole * part / 8).into();
    let (mut at, mut under_way) = (0, 0);
    while let Some(after) = cuts.get(at).copied() {
        let id = format!("urn:doc:killed-{at}");
        let (cut, next) = killed(&launch, server, &id, after).await?;
        (server, under_way) = (next, under_way + usize::from(cut));
        at += 1;
        if at == cuts.len() && under_way == 0 && at < TRIES {
            cuts.push(cuts[0] / at as u32);
        }
    }
    ensure!(under_way > 0, "each time it had answered: {cuts:?}");
    Ok(())
}

#[tokio::test]
async fn the_end_of_the_process_embedded() -> Result<()> {
    the_end_of_the_process(Bus::Embedded).await
}

#[tokio::test]
async fn the_end_of_the_process_over_rabbitmq() -> Result<()> {
    the_end_of_the_process(Bus::Rabbit).await
}

/// Held to seconds or less: these have the machine to themselves (`make test`).
mod alone {
    use super::*;

    #[tokio::test]
    async fn a_deadline_embedded() -> Result<()> {
        a_deadline(Bus::Embedded).await
    }

    #[tokio::test]
    async fn a_deadline_over_rabbitmq() -> Result<()> {
        a_deadline(Bus::Rabbit).await
    }
}
