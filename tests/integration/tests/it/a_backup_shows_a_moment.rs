//! A backup of a running system, restored elsewhere: of each writer everything is there that was confirmed before the backup
//! began, and what is there is a beginning of what it wrote. The system that was backed up goes on.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::try_join_all;
use serde_json::{Value, json};
use tg_testkit::process::{Launch, client, tg};
use tokio::sync::watch;

use crate::world::{Bus, on_both_buses, post};

/// Writes of each writer that are confirmed before the backup begins.
const BEFORE: usize = 10;
/// And at least so many after it.
const AFTER: usize = 10;
/// What is waited for comes within this.
const BOUND: Duration = Duration::from_secs(60);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// Where a writer writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Graph,
    Config,
    Library,
}

/// Two for each place.
const WRITERS: [(Place, usize); 6] = [
    (Place::Graph, 1),
    (Place::Graph, 2),
    (Place::Config, 1),
    (Place::Config, 2),
    (Place::Library, 1),
    (Place::Library, 2),
];

fn document(writer: usize, number: usize) -> String {
    format!("urn:doc:{writer}:{number}")
}

fn text(writer: usize, number: usize) -> String {
    STANDARD.encode(format!("Document {number} of {writer}."))
}

/// Writes one thing and waits until it is stored.
async fn write(url: &str, (place, writer): (Place, usize), number: usize) -> Result<()> {
    let (path, body) = match place {
        Place::Graph => {
            let line = json!({"metadata": {"id": "i", "collection": "default"}, "triples": [{
                "s": {"t": "i", "i": format!("urn:s:{number}")},
                "p": {"t": "i", "i": format!("urn:writer:{writer}")},
                "o": {"t": "l", "v": number.to_string()},
            }]});
            let path = format!("{url}api/v1/flow/default/import/triples?settled=true");
            let sent = client()?.post(path).body(line.to_string()).send().await?;
            let told: Value = sent.json().await?;
            ensure!(told["stored"] == 1, "{told}");
            return Ok(());
        }
        Place::Config => {
            let row =
                json!({"type": format!("notes-{writer}"), "key": number.to_string(), "value": "1"});
            (
                "api/v1/config",
                json!({"operation": "put", "values": [row]}),
            )
        }
        Place::Library => {
            let about = json!({"id": document(writer, number), "kind": "text/plain", "title": "D"});
            let content = text(writer, number);
            (
                "api/v1/librarian",
                json!({"operation": "add-document", "content": content, "document-metadata": about}),
            )
        }
    };
    let (status, told) = post(url, path, body).await?;
    ensure!(status == 200, "{status}: {told}");
    Ok(())
}

/// Writes one after the other, until it is enough; how many.
async fn go_on(
    url: &str,
    writer: (Place, usize),
    confirmed: watch::Sender<usize>,
    enough: watch::Receiver<bool>,
) -> Result<usize> {
    for number in 0.. {
        if *enough.borrow() {
            return Ok(number);
        }
        let done = write(url, writer, number).await;
        done.with_context(|| format!("{writer:?} {number}"))?;
        confirmed.send_replace(number + 1);
    }
    Ok(0)
}

/// The entries of a list.
async fn list(url: &str, path: &str, ask: Value, at: &str) -> Result<Vec<Value>> {
    let (status, told) = post(url, path, ask).await?;
    let all = told.pointer(at).and_then(Value::as_array).cloned();
    all.with_context(|| format!("{status}: {told}"))
}

/// What is there of a writer.
async fn found(url: &str, (place, writer): (Place, usize)) -> Result<BTreeSet<usize>> {
    let numbers: Vec<Option<usize>> = match place {
        Place::Graph => {
            let ask = json!({"p": {"t": "i", "i": format!("urn:writer:{writer}")}, "limit": 100_000,
                "collection": "default"});
            let path = "api/v1/flow/default/service/triples";
            let rows = list(url, path, ask, "/response").await?;
            let number = |row: &Value| row["o"]["v"].as_str()?.parse().ok();
            rows.iter().map(number).collect()
        }
        Place::Config => {
            let ask = json!({"operation": "list", "type": format!("notes-{writer}")});
            let keys = list(url, "api/v1/config", ask, "/directory").await?;
            keys.iter().map(|key| key.as_str()?.parse().ok()).collect()
        }
        Place::Library => {
            let ask = json!({"operation": "list-documents"});
            let all = list(url, "api/v1/librarian", ask, "/document-metadatas").await?;
            let start = document(writer, 0).trim_end_matches('0').to_owned();
            let ids = all.iter().filter_map(|one| one["id"].as_str());
            let own = ids.filter_map(|id| id.strip_prefix(&start));
            own.map(|number| number.parse().ok()).collect()
        }
    };
    let numbers: Option<BTreeSet<usize>> = numbers.into_iter().collect();
    numbers.context("no number")
}

/// The texts of all documents are those that were sent.
async fn has_its_texts(url: &str, writer: usize, count: usize) -> Result<()> {
    for number in 0..count {
        let ask =
            json!({"operation": "get-document-content", "document-id": document(writer, number)});
        let (status, told) = post(url, "api/v1/librarian", ask).await?;
        ensure!(told["content"] == text(writer, number), "{status}: {told}");
    }
    Ok(())
}

/// Waits until each writer has so many confirmed; how many each has.
async fn reached(confirmed: &[watch::Receiver<usize>], least: &[usize]) -> Result<Vec<usize>> {
    let mut now = Vec::new();
    for (one, least) in confirmed.iter().zip(least) {
        let mut one = one.clone();
        let count = one.wait_for(|count| count >= least);
        now.push(*tokio::time::timeout(BOUND, count).await??);
    }
    Ok(now)
}

fn path(path: &Path) -> String {
    path.display().to_string()
}

async fn written_all_the_while(bus: Bus) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let [data, backup, elsewhere] =
        ["data", "backup", "elsewhere"].map(|one| folder.path().join(one));
    let (first, second) = (bus.broker().await?, bus.broker().await?);
    let server = Launch::up()
        .data(&data)
        .over(first.as_ref())
        .ready()
        .await?;
    let url = server.url();
    let (stop, enough) = watch::channel(false);
    let (senders, confirmed): (Vec<_>, Vec<_>) = WRITERS.iter().map(|_| watch::channel(0)).unzip();
    let writers = WRITERS.iter().zip(senders).map(|(writer, sender)| {
        let (url, enough) = (url.clone(), enough.clone());
        async move { go_on(&url, *writer, sender, enough).await }
    });
    let arguments = ["backup", &path(&backup), "--data-dir", &path(&data)];
    let work = async {
        let before = reached(&confirmed, &[BEFORE; WRITERS.len()]).await?;
        let told = tg(&url, &arguments).await?;
        ensure!(told.code == Some(0), "{told:?}");
        let now = reached(&confirmed, &[0; WRITERS.len()]).await?;
        let more: Vec<usize> = now.iter().map(|count| count + AFTER).collect();
        reached(&confirmed, &more).await?;
        stop.send_replace(true);
        anyhow::Ok((before, told.stdout))
    };
    let (sent, worked) = tokio::join!(try_join_all(writers), work);
    let (sent, (before, said)) = (sent?, worked?);
    let at_the_broker = said.contains("Records that wait are at the broker");
    ensure!(at_the_broker == (bus == Bus::Rabbit), "{said}");

    // What was backed up has gone on, and a second backup needs a place of its own.
    for (writer, sent) in WRITERS.iter().zip(&sent) {
        let there = found(&url, *writer).await?;
        ensure!(there == (0..*sent).collect(), "{writer:?}: {there:?}");
    }
    let again = tg(&url, &arguments).await?;
    ensure!(again.code == Some(1), "{again:?}");
    ensure!(
        again.stderr.contains("needs an empty directory"),
        "{again:?}"
    );
    let arguments = ["restore", &path(&backup), "--data-dir", &path(&data)];
    let over = tg(&url, &arguments).await?;
    ensure!(over.code == Some(1), "{over:?}");
    ensure!(over.stderr.contains("into an empty directory"), "{over:?}");

    let arguments = ["restore", &path(&backup), "--data-dir", &path(&elsewhere)];
    let told = tg(&url, &arguments).await?;
    ensure!(told.code == Some(0), "{told:?}");
    let other = Launch::up()
        .data(&elsewhere)
        .over(second.as_ref())
        .ready()
        .await?;
    let url = other.url();
    for ((writer, before), sent) in WRITERS.iter().zip(before).zip(sent) {
        let there = comes(&url, *writer, before).await?;
        let count = there.len();
        ensure!(there == (0..count).collect(), "{writer:?}: {there:?}");
        ensure!(count < sent, "{writer:?}: {count} of {sent}");
        if writer.0 == Place::Library {
            has_its_texts(&url, writer.1, count).await?;
        }
        // It takes what comes next.
        write(&url, *writer, count).await?;
    }
    Ok(())
}

/// What is there of a writer, once that is as much as was confirmed: records that waited are handled first.
async fn comes(url: &str, writer: (Place, usize), least: usize) -> Result<BTreeSet<usize>> {
    let look = async {
        loop {
            let there = found(url, writer).await?;
            if there.len() >= least {
                return anyhow::Ok(there);
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    let there = tokio::time::timeout(BOUND, look).await;
    there.with_context(|| format!("{writer:?} had {least} confirmed"))?
}

on_both_buses!(written_all_the_while);
