//! One workspace of a running system, in another system that has workspaces of its own: a backup, the bundle of the workspace out
//! of what is restored from it, and an import that makes the workspace there. It has everything that was confirmed before the
//! backup began, and what it has is a beginning of what was written. What the other system has stays, and a workspace that
//! exists is refused.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::process::{Launch, Output, client, tg};
use tokio::sync::watch;

use crate::world::{Bus, on_both_buses, post};

/// Its name.
pub const ONE: &str = "acme";
/// The workspace that every system has.
pub const OTHER: &str = "default";
/// Writes that are confirmed before the backup begins.
const BEFORE: usize = 5;
/// And so many after it.
const AFTER: usize = 3;
/// Numbers from here on are written in the other workspace of the system that is backed up.
pub const ELSEWHERE: usize = 1_000;
/// What is waited for comes within this.
const BOUND: Duration = Duration::from_secs(120);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// What is written of each number.
pub const PLACES: [Place; 3] = [Place::Library, Place::Config, Place::Graph];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Library,
    Config,
    Graph,
}

pub fn ended(output: &Output) -> Result<()> {
    ensure!(output.code == Some(0), "{output:?}");
    Ok(())
}

pub async fn asked(url: &str, path: &str, body: Value) -> Result<Value> {
    let (status, told) = post(url, path, body).await?;
    ensure!(status == 200, "{status}: {told}");
    Ok(told)
}

/// Writes a number into a place, and waits until it is stored.
pub async fn write(url: &str, workspace: &str, place: Place, number: usize) -> Result<()> {
    match place {
        Place::Library => {
            let about =
                json!({"id": format!("urn:doc:{number}"), "kind": "text/plain", "title": "D"});
            let body = json!({"operation": "add-document", "workspace": workspace, "content": "RA==",
                "document-metadata": about});
            asked(url, "api/v1/librarian", body).await?;
        }
        Place::Config => {
            let row = json!({"type": "notes", "key": number.to_string(), "value": "1"});
            let body = json!({"operation": "put", "workspace": workspace, "values": [row]});
            asked(url, "api/v1/config", body).await?;
        }
        Place::Graph => {
            let line = json!({"metadata": {"id": "i", "collection": "facts"}, "triples": [{
                "s": {"t": "i", "i": format!("urn:s:{number}")},
                "p": {"t": "i", "i": "urn:written"},
                "o": {"t": "l", "v": number.to_string()},
            }]});
            let path = format!(
                "{url}api/v1/flow/default/import/triples?workspace={workspace}&settled=true"
            );
            let sent = client()?.post(path).body(line.to_string()).send().await?;
            let told: Value = sent.json().await?;
            ensure!(told["stored"] == 1, "{told}");
        }
    }
    Ok(())
}

/// The numbers that a place has, in order.
pub async fn found(url: &str, workspace: &str, place: Place) -> Result<Vec<usize>> {
    let (path, ask, list) = match place {
        Place::Library => (
            "api/v1/librarian",
            json!({"operation": "list-documents", "workspace": workspace}),
            "document-metadatas",
        ),
        Place::Config => (
            "api/v1/config",
            json!({"operation": "list", "workspace": workspace, "type": "notes"}),
            "directory",
        ),
        Place::Graph => (
            "api/v1/flow/default/service/triples",
            json!({"workspace": workspace, "collection": "facts", "limit": 10_000,
                "p": {"t": "i", "i": "urn:written"}}),
            "response",
        ),
    };
    let told = asked(url, path, ask).await?;
    let all = told[list].as_array().with_context(|| format!("{told}"))?;
    let number = |one: &Value| -> Option<usize> {
        let text = match place {
            Place::Library => one["id"].as_str()?.strip_prefix("urn:doc:")?,
            Place::Config => one.as_str()?,
            Place::Graph => one["o"]["v"].as_str()?,
        };
        text.parse().ok()
    };
    let numbers: Option<Vec<usize>> = all.iter().map(number).collect();
    let mut numbers = numbers.with_context(|| format!("no numbers: {told}"))?;
    numbers.sort_unstable();
    Ok(numbers)
}

/// What a place has, once that is so much: a flow may be starting.
pub async fn comes(url: &str, workspace: &str, place: Place, least: usize) -> Result<Vec<usize>> {
    let look = async {
        loop {
            match found(url, workspace, place).await {
                Ok(there) if there.len() >= least => return there,
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
    };
    let there = tokio::time::timeout(BOUND, look).await;
    there.with_context(|| format!("{place:?} of {workspace} has less than {least}"))
}

/// Writes one number after the other into all places, until it is enough; how many.
async fn go_on(
    url: &str,
    confirmed: watch::Sender<usize>,
    enough: watch::Receiver<bool>,
) -> Result<usize> {
    let mut number = 0;
    while !*enough.borrow() {
        for place in PLACES {
            let done = write(url, ONE, place, number).await;
            done.with_context(|| format!("{place:?} {number}"))?;
        }
        number += 1;
        confirmed.send_replace(number);
    }
    Ok(number)
}

/// Makes the workspace, with a flow, and a collection in both workspaces.
pub async fn prepare(url: &str) -> Result<()> {
    ended(&tg(url, &["create-workspace", ONE]).await?)?;
    let start = ["start-flow", "-w", ONE, "-i", "default", "-n", "everything"];
    ended(&tg(url, &start).await?)?;
    for workspace in [ONE, OTHER] {
        let set = ["set-collection", "facts", "-n", "Facts", "-w", workspace];
        ended(&tg(url, &set).await?)?;
        comes(url, workspace, Place::Graph, 0).await?;
    }
    Ok(())
}

/// Backs up a system, or what `only` says of it, while one workspace is written; how many numbers were confirmed before, and in
/// the end.
pub async fn backed_up(
    url: &str,
    data: &Path,
    backup: &str,
    only: &[&str],
) -> Result<(usize, usize)> {
    let (stop, enough) = watch::channel(false);
    let (sender, confirmed) = watch::channel(0);
    let reached = async |least: usize| -> Result<usize> {
        let mut confirmed = confirmed.clone();
        let count = confirmed.wait_for(|count| *count >= least);
        let count = *tokio::time::timeout(BOUND, count).await??;
        Ok(count)
    };
    let data = data.display().to_string();
    let work = async {
        let before = reached(BEFORE).await?;
        let all = ["backup", backup, "--data-dir", &data];
        ended(&tg(url, &[&all[..], only].concat()).await?)?;
        let now = reached(0).await?;
        reached(now + AFTER).await?;
        stop.send_replace(true);
        anyhow::Ok(before)
    };
    let (before, sent) = tokio::try_join!(work, go_on(url, sender, enough))?;
    Ok((before, sent))
}

async fn into_a_system_with_others(bus: Bus) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (data, restored) = (folder.path().join("data"), folder.path().join("restored"));
    let (backup, bundle) = (path("backup"), path("acme.tgx"));
    let first = bus.broker().await?;
    let system = Launch::up()
        .data(&data)
        .over(first.as_ref())
        .ready()
        .await?;
    let url = system.url();
    prepare(&url).await?;
    for place in PLACES {
        write(&url, OTHER, place, ELSEWHERE).await?;
    }
    let (before, sent) = backed_up(&url, &data, &backup, &[]).await?;
    drop(system);

    let restore = ["restore", &backup, "--data-dir", &path("restored")];
    ended(&tg(&url, &restore).await?)?;
    let second = bus.broker().await?;
    let copy = Launch::up()
        .data(&restored)
        .over(second.as_ref())
        .ready()
        .await?;
    for place in PLACES {
        comes(&copy.url(), ONE, place, before).await?;
    }
    let export = ["export-workspace", "-w", ONE, "-o", &bundle];
    ended(&tg(&copy.url(), &export).await?)?;
    drop(copy);

    let third = bus.broker().await?;
    let target = Launch::up().over(third.as_ref()).ready().await?;
    let url = target.url();
    let set = ["set-collection", "facts", "-n", "Facts"];
    ended(&tg(&url, &set).await?)?;
    for place in PLACES {
        write(&url, OTHER, place, 0).await?;
    }
    let import = ["import-workspace", "-i", &bundle, "--new"];
    ended(&tg(&url, &import).await?)?;
    for place in PLACES {
        let there = comes(&url, ONE, place, before).await?;
        let count = there.len();
        let beginning: Vec<usize> = (0..count).collect();
        ensure!(there == beginning, "{place:?}: {there:?}");
        ensure!(count < sent, "{place:?}: {count} of {sent}");
        // It takes what comes next.
        write(&url, ONE, place, count).await?;
    }
    let again = tg(&url, &import).await?;
    ensure!(again.code.is_some_and(|code| code != 0), "{again:?}");
    ensure!(again.stderr.contains("workspace acme exists"), "{again:?}");
    for place in PLACES {
        let own = found(&url, OTHER, place).await?;
        ensure!(own == [0], "{place:?}: {own:?}");
    }
    Ok(())
}

on_both_buses!(into_a_system_with_others);
