//! More configuration than a message holds stops nobody: new workspaces work, changes arrive, a restart is ready; it is
//! read in pages, by clients who ask so and by every command that reads the whole of it, and a file of it is put whole.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};
use tg_testkit::process::{Launch, Server, tg};

use crate::large_answers_are_told::{asked_again, fill, hardly_any_again};
use crate::world::{Bus, post};

/// A type that every system watches.
const WATCHED: &str = "collection";
/// A megabyte each: more than a message holds.
const ROWS: usize = 18;
/// A megabyte each: more than a frame holds, or any two messages.
const IMPORTED: usize = 52;

/// A workspace that is made now can be used soon.
async fn a_new_workspace_works(server: &Server, name: &str) -> Result<()> {
    let create = json!({"operation": "create-workspace", "workspace_record": {"id": name}});
    let (status, told) = post(&server.url(), "api/v1/iam", create).await?;
    ensure!(status == 200, "{told}");
    let began = Instant::now();
    loop {
        let list = json!({"operation": "list-flows", "workspace": name});
        let (status, told) = post(&server.url(), "api/v1/flow", list).await?;
        if status == 200 && told.get("error").is_none_or(serde_json::Value::is_null) {
            return Ok(());
        }
        ensure!(
            began.elapsed() < Duration::from_secs(60),
            "{name}: {status} {told}"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn config(server: &Server, ask: Value) -> Result<Value> {
    let (_, told) = post(&server.url(), "api/v1/config", ask).await?;
    Ok(told)
}

/// Whoever asks by pages gets every row, and nobody gets silence.
async fn is_read_in_pages(server: &Server) -> Result<()> {
    let whole = config(server, json!({"operation": "config"})).await?;
    ensure!(
        whole["error"]["type"] == "too-large",
        "as a whole it is answered"
    );
    let says = whole["error"]["message"].as_str().unwrap_or_default();
    ensure!(says.contains("pages (limit, after)"), "{says}");
    for (operation, most) in [("config", 2), ("getvalues", 2), ("list", 1000)] {
        let mut ask = json!({"operation": operation, "type": WATCHED, "limit": 1000});
        let (mut found, mut pages) = (BTreeSet::new(), 0);
        loop {
            let page = config(server, ask.clone()).await?;
            let rows = page["config"][WATCHED].as_object().into_iter().flatten();
            let mut keys: Vec<String> = rows.map(|(key, _)| key.clone()).collect();
            let values = page["values"].as_array().into_iter().flatten();
            keys.extend(values.map(|row| row["key"].as_str().unwrap_or_default().to_owned()));
            let names = page["directory"].as_array().into_iter().flatten();
            keys.extend(names.map(|key| key.as_str().unwrap_or_default().to_owned()));
            pages += 1;
            let large = keys.iter().filter(|key| key.starts_with("large-")).count();
            ensure!(large <= most, "{operation}: {large} on a page");
            for key in keys {
                ensure!(found.insert(key.clone()), "{operation}: {key} came twice");
            }
            let Some(next) = page.get("next") else { break };
            ask["after"] = next.clone();
        }
        let all = (0..ROWS).all(|n| found.contains(&format!("large-{n}")));
        ensure!(all, "{operation}: {found:?} in {pages} pages");
    }
    Ok(())
}

/// The commands that read all of it.
async fn is_read_by_commands(server: &Server, folder: &Path) -> Result<()> {
    let url = server.url();
    let run = async |args: &[&str]| -> Result<String> {
        let ran = tg(&url, args).await?;
        let brief: String = ran.stderr.chars().take(500).collect();
        ensure!(ran.code == Some(0), "{args:?}: {:?} {brief}", ran.code);
        Ok(ran.stdout)
    };
    let shown: Value = serde_json::from_str(&run(&["show-config", "--json"]).await?)?;
    let rows = shown["config"][WATCHED].as_object().context("no rows")?;
    ensure!(rows.len() >= ROWS, "{} rows", rows.len());
    let listed = run(&["list-config-items", "--type", WATCHED]).await?;
    ensure!(listed.lines().count() == rows.len(), "{listed}");
    let bundle = folder.join("config.tgx");
    let bundle = bundle.to_string_lossy();
    run(&["export-workspace", "--config-only", "-o", &bundle]).await?;
    let dry = run(&["import-workspace", "-i", &bundle, "--dry-run", "--json"]).await?;
    ensure!(!dry.is_empty(), "nothing was imported");
    // Of a flow whose record has no plan, the rows of its processors are looked for in all of it.
    let old = json!({"blueprint-name": "everything", "description": "old", "parameters": {}, "interfaces": {}});
    let values = json!([{"type": "flow", "key": "old", "value": old.to_string()}]);
    config(server, json!({"operation": "put", "values": values})).await?;
    run(&["stop-flow", "-i", "old"]).await?;
    let left = run(&["list-config-items", "--type", "flow"]).await?;
    ensure!(!left.lines().any(|flow| flow == "old"), "{left}");
    Ok(())
}

/// More than a frame or a message holds goes from a file into a workspace, and comes back as it was.
async fn is_imported(server: &Server, folder: &Path) -> Result<()> {
    // Nobody watches this type.
    let row = |n: usize| {
        let value = format!("{n} \"{}", "x".repeat(1_000_000));
        (format!("large-{n}"), json!(value))
    };
    let large: Map<String, Value> = (0..IMPORTED).map(row).collect();
    let small = |n: usize| (format!("small-{n}"), json!({"n": n}).to_string().into());
    let small: Map<String, Value> = (0..5000).map(small).collect();
    let config = json!({"agent-task-type": large, "token-cost": small});
    let (saved, read) = (folder.join("saved.json"), folder.join("read.json"));
    std::fs::write(&saved, json!({"config": config}).to_string())?;
    let (url, saved) = (server.url(), saved.to_string_lossy());
    let import = ["import-workspace-config", "-w", "late", "-i", &saved];
    let imported = tg(&url, &import).await?;
    imported.expect(&format!("Imported {} items.", IMPORTED + 5000))?;
    let path = read.to_string_lossy();
    let export = ["export-workspace-config", "-w", "late", "-o", &path];
    let exported = tg(&url, &export).await?;
    ensure!(exported.code == Some(0), "{}", exported.stderr);
    let back: Value = serde_json::from_slice(&std::fs::read(&read)?)?;
    for (kind, rows) in config.as_object().into_iter().flatten() {
        let rows = rows.as_object().context("no rows")?;
        let other = rows
            .iter()
            .find(|(key, row)| back["config"][kind][key] != **row);
        ensure!(other.is_none(), "{kind}: {:?}", other.map(|(key, _)| key));
    }
    Ok(())
}

async fn stops_nobody(bus: Bus) -> Result<()> {
    let node = bus.broker().await?;
    let data = tempfile::tempdir()?;
    let launch = || {
        let launch = Launch::up().data(data.path());
        launch.over(node.as_ref())
    };
    let server = launch().ready().await?;
    fill(&server, WATCHED, ROWS).await?;
    let before = asked_again(&server).await?;
    a_new_workspace_works(&server, "late").await?;
    hardly_any_again(&server, before).await?;
    is_read_in_pages(&server).await?;
    is_read_by_commands(&server, data.path()).await?;
    is_imported(&server, data.path()).await?;
    server.terminate().await?;

    // Who starts reads everything.
    let server = launch().ready().await?;
    a_new_workspace_works(&server, "later").await?;
    server.terminate().await?;
    Ok(())
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    stops_nobody(Bus::Embedded).await
}

#[tokio::test]
async fn over_a_broker() -> Result<()> {
    stops_nobody(Bus::Rabbit).await
}
