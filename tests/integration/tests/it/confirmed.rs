//! Imports of which it is known batch by batch what was confirmed: the next is sent once the one before has its word. What
//! was confirmed is there in the end, whatever happened meanwhile.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::world::post;

type Import = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Between two batches: several imports of some seconds are thousands of triples.
const PAUSE: Duration = Duration::from_millis(20);
/// A batch is confirmed, or its socket closed, by then.
const WORD: Duration = Duration::from_secs(90);
/// What was confirmed is in the graph by then.
const LAG: Duration = Duration::from_secs(60);

/// What became of the batches of one importer.
#[derive(Debug)]
pub struct Told {
    importer: usize,
    confirmed: BTreeSet<usize>,
    /// Sent, and never confirmed: they may be there or not.
    unknown: BTreeSet<usize>,
    /// The longest that a batch waited for its word.
    longest: Duration,
}

fn predicate(importer: usize) -> String {
    format!("urn:test:confirmed:{importer}")
}

fn batch(importer: usize, number: usize) -> String {
    json!({
        "metadata": {"id": "i", "collection": "default", "metadata": []},
        "triples": [{
            "s": {"t": "i", "i": format!("urn:test:batch:{importer}:{number}")},
            "p": {"t": "i", "i": predicate(importer)},
            "o": {"t": "l", "v": number.to_string()},
        }],
    })
    .to_string()
}

/// A socket that takes imports; asked for again while there is none.
async fn open(url: &str) -> Result<Import> {
    let url = url.replacen("http", "ws", 1);
    let url = format!("{url}api/v1/flow/default/import/triples?ack=1");
    let end = Instant::now() + WORD;
    loop {
        match tokio_tungstenite::connect_async(&url).await {
            Ok((socket, _)) => return Ok(socket),
            Err(error) => ensure!(Instant::now() < end, "no import: {error}"),
        }
        sleep(PAUSE).await;
    }
}

/// Whether the word on a batch is that it is safe; else its socket is closed.
async fn is_confirmed(socket: &mut Import) -> Result<bool> {
    while let Some(Ok(message)) = socket.next().await {
        let frame = serde_json::from_str::<Value>(message.to_text().unwrap_or_default());
        match frame {
            Ok(frame) if frame["confirmed"].is_object() => return Ok(true),
            Ok(frame) => bail!("neither confirmed nor closed: {frame}"),
            Err(_) => {}
        }
    }
    Ok(false)
}

/// Imports batches, one after the other, until it is enough.
pub async fn confirm(url: String, importer: usize, enough: watch::Receiver<bool>) -> Result<Told> {
    let mut told = Told {
        importer,
        confirmed: BTreeSet::new(),
        unknown: BTreeSet::new(),
        longest: Duration::ZERO,
    };
    let mut socket = open(&url).await?;
    for number in 0.. {
        if *enough.borrow() {
            break;
        }
        let sent = Instant::now();
        let word = async {
            if socket
                .send(Message::text(batch(importer, number)))
                .await
                .is_err()
            {
                return Ok(false);
            }
            is_confirmed(&mut socket).await
        };
        let word = timeout(WORD, word).await.context("no word on a batch")??;
        told.longest = told.longest.max(sent.elapsed());
        if word {
            told.confirmed.insert(number);
        } else {
            told.unknown.insert(number);
            socket = open(&url).await?;
        }
        sleep(PAUSE).await;
    }
    let _ = socket.close(None).await;
    Ok(told)
}

/// The batches of an importer that are in the graph.
async fn stored(url: &str, importer: usize) -> Result<BTreeSet<usize>> {
    let ask = json!({"p": {"t": "i", "i": predicate(importer)}, "limit": 100_000,
        "collection": "default"});
    let (status, said) = post(url, "api/v1/flow/default/service/triples", ask).await?;
    let rows = said["response"].as_array();
    let rows = rows.with_context(|| format!("{status}: {said}"))?;
    let numbers = rows.iter().map(|row| row["o"]["v"].as_str()?.parse().ok());
    let numbers: Option<BTreeSet<usize>> = numbers.collect();
    numbers.with_context(|| said.to_string())
}

/// Holds what was confirmed against what is there: nothing of the first is missing, and nothing is there that nobody
/// sent. Something was confirmed before `away` began to be waited for, and after it.
pub async fn found(url: &str, told: Vec<Result<Told>>, away: Duration) -> Result<()> {
    let mut met = false;
    for told in told {
        let told = told?;
        ensure!(told.confirmed.len() > 10, "{told:?}");
        let end = Instant::now() + LAG;
        let there = loop {
            let there = stored(url, told.importer).await?;
            if told.confirmed.is_subset(&there) {
                break there;
            }
            ensure!(
                Instant::now() < end,
                "confirmed, and not there: {:?} of {told:?}",
                told.confirmed.difference(&there)
            );
            sleep(PAUSE).await;
        };
        let sent = &told.confirmed | &told.unknown;
        ensure!(
            there.is_subset(&sent),
            "sent by nobody: {there:?}, {told:?}"
        );
        let last = told.confirmed.last();
        ensure!(told.unknown.last() < last, "nothing after: {told:?}");
        met |= told.longest >= away || !told.unknown.is_empty();
        println!(
            "import {}: {} confirmed, {} unknown, longest wait {:?}",
            told.importer,
            told.confirmed.len(),
            told.unknown.len(),
            told.longest
        );
    }
    ensure!(met, "no batch was under way meanwhile");
    Ok(())
}
