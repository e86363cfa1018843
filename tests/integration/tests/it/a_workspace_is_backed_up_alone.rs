//! One workspace of a running system, backed up alone and restored into a new system: it has everything that was confirmed
//! before the backup began, and what it has is a beginning of what was written. No byte of another workspace is in the backup.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use tg_testkit::process::{Launch, client, tg};

use crate::a_workspace_comes_out_of_a_backup::{
    ELSEWHERE, ONE, OTHER, PLACES, Place, asked, backed_up, comes, ended, found, prepare, write,
};
use crate::world::{Bus, on_both_buses};

/// In everything that is written elsewhere.
const MARKER: &str = "zq7mark";
/// A workspace that is not backed up.
const MARKED: &str = "zq7mark-other";
/// So often the marker stands in a document that is kept as a file.
const MANY: usize = 20_000;
/// Stores that a whole backup shows the marker in.
const SHOWN: [&str; 6] = [
    "config.sqlite",
    "graph.sqlite",
    "iam.sqlite",
    "keywords.sqlite",
    "librarian.sqlite",
    "vectors.sqlite",
];

/// Files below a directory that have the marker in their names or bytes.
fn marked(directory: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut left) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                left.push(path);
                continue;
            }
            let bytes = fs::read(&path)?;
            let name = path.strip_prefix(directory)?;
            if String::from_utf8_lossy(&bytes).contains(MARKER)
                || name.to_string_lossy().contains(MARKER)
            {
                found.push(name.to_owned());
            }
        }
    }
    Ok(found)
}

/// Writes into a workspace, of each kind, what has the marker.
async fn mark(url: &str, workspace: &str) -> Result<()> {
    let row = json!({"type": "notes", "key": "zq7mark-key", "value": "zq7mark-value"});
    let body = json!({"operation": "put", "workspace": workspace, "values": [row]});
    asked(url, "api/v1/config", body).await?;
    for (id, text) in [
        ("urn:zq7mark:small", "zq7mark".to_owned()),
        ("urn:zq7mark:large", "zq7mark ".repeat(MANY)),
    ] {
        let about = json!({"id": id, "kind": "text/plain", "title": "zq7mark-title"});
        let body = json!({"operation": "add-document", "workspace": workspace,
            "content": STANDARD.encode(text), "document-metadata": about});
        asked(url, "api/v1/librarian", body).await?;
    }
    let line = json!({"metadata": {"id": "i", "collection": "facts"}, "triples": [{
        "s": {"t": "i", "i": "urn:zq7mark:s"},
        "p": {"t": "i", "i": "urn:zq7mark:p"},
        "o": {"t": "l", "v": "zq7mark"},
    }]});
    let path =
        format!("{url}api/v1/flow/default/import/triples?workspace={workspace}&settled=true");
    let sent = client()?.post(path).body(line.to_string()).send().await?;
    let told: serde_json::Value = sent.json().await?;
    ensure!(told["stored"] == 1, "{told}");
    Ok(())
}

/// Makes another workspace, and marks it and the one that every system has.
async fn others(url: &str, folder: &Path) -> Result<()> {
    ended(&tg(url, &["create-workspace", MARKED]).await?)?;
    let start = [
        "start-flow",
        "-w",
        MARKED,
        "-i",
        "default",
        "-n",
        "everything",
    ];
    ended(&tg(url, &start).await?)?;
    let set = [
        "set-collection",
        "facts",
        "-n",
        "zq7mark-facts",
        "-w",
        MARKED,
    ];
    ended(&tg(url, &set).await?)?;
    comes(url, MARKED, Place::Graph, 0).await?;
    for workspace in [MARKED, OTHER] {
        mark(url, workspace).await?;
    }
    // Vectors, words and what was extracted.
    let file = folder.join("zq7mark.txt");
    fs::write(
        &file,
        "The zq7mark lighthouse stands on the zq7mark rock. Its keeper is Ann zq7mark.\n",
    )?;
    let add = [
        "add",
        "--wait",
        "-C",
        "facts",
        "-w",
        MARKED,
        &file.display().to_string(),
    ];
    ended(&tg(url, &add).await?)
}

async fn of_a_system_with_others(bus: Bus) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (data, restored) = (folder.path().join("data"), folder.path().join("restored"));
    let (first, second) = (bus.broker().await?, bus.broker().await?);
    let system = Launch::up()
        .data(&data)
        .over(first.as_ref())
        .ready()
        .await?;
    let url = system.url();
    prepare(&url).await?;
    others(&url, folder.path()).await?;
    write(&url, OTHER, Place::Config, ELSEWHERE).await?;
    let alone = ["--workspace", ONE];
    let (before, sent) = backed_up(&url, &data, &path("alone"), &alone).await?;
    let there = marked(&folder.path().join("alone"))?;
    ensure!(there.is_empty(), "{there:?}");

    // What is looked for is found where it is.
    let whole = ["backup", &path("whole"), "--data-dir", &path("data")];
    ended(&tg(&url, &whole).await?)?;
    let there = marked(&folder.path().join("whole"))?;
    for store in SHOWN.map(Path::new) {
        ensure!(there.iter().any(|one| one == store), "{store:?}: {there:?}");
    }
    ensure!(
        there.iter().any(|one| one.starts_with("content")),
        "{there:?}"
    );

    let none = [
        "backup",
        &path("none"),
        "--data-dir",
        &path("data"),
        "-w",
        "nobody",
    ];
    let refused = tg(&url, &none).await?;
    ensure!(refused.code == Some(1), "{refused:?}");
    ensure!(
        refused.stderr.contains("there is no workspace nobody"),
        "{refused:?}"
    );
    let over = ["restore", &path("alone"), "--data-dir", &path("data")];
    let refused = tg(&url, &over).await?;
    ensure!(refused.code == Some(1), "{refused:?}");
    ensure!(refused.stderr.contains("into a new system"), "{refused:?}");
    drop(system);

    let restore = ["restore", &path("alone"), "--data-dir", &path("restored")];
    ended(&tg(&url, &restore).await?)?;
    let other = Launch::up()
        .data(&restored)
        .over(second.as_ref())
        .ready()
        .await?;
    has_it_alone(&other.url(), before, sent).await
}

/// The workspace is there, with a beginning of what was written; the one that every system has is new.
async fn has_it_alone(url: &str, before: usize, sent: usize) -> Result<()> {
    for place in PLACES {
        let there = comes(url, ONE, place, before).await?;
        let count = there.len();
        let beginning: Vec<usize> = (0..count).collect();
        ensure!(there == beginning, "{place:?}: {there:?}");
        ensure!(count < sent, "{place:?}: {count} of {sent}");
        // It takes what comes next.
        write(url, ONE, place, count).await?;
    }
    for place in [Place::Config, Place::Library] {
        comes(url, OTHER, place, 0).await?;
        let there = found(url, OTHER, place).await?;
        ensure!(there.is_empty(), "{place:?}: {there:?}");
    }
    let listed = tg(url, &["list-workspaces"]).await?;
    ended(&listed)?;
    ensure!(listed.stdout.contains(ONE), "{listed:?}");
    ensure!(!listed.stdout.contains(MARKED), "{listed:?}");
    Ok(())
}

on_both_buses!(of_a_system_with_others);
