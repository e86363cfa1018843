//! When the configuration is lost, or an older one is put in its place, the stores keep what they have and say so; when
//! it is found again, all is there.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tg_testkit::process::{Launch, Server, client, tg};
use tg_testkit::services::{SERVICES, without};
use tg_testkit::shared_node::VirtualHost;

use crate::workspaces::{add, documents, files, has, iam, literals, make, put};

const BOUND: Duration = Duration::from_secs(60);

/// The files of the configuration; there must be one.
fn of_config(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with("config.sqlite") && !name.ends_with(".lock") {
            found.push(name);
        }
    }
    ensure!(
        !found.is_empty(),
        "no configuration in {}",
        folder.display()
    );
    Ok(found)
}

/// Moves the files of the configuration.
fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for file in of_config(from)? {
        std::fs::rename(from.join(&file), to.join(&file))?;
    }
    Ok(())
}

/// Puts another configuration in the place of the one that is there.
fn replace(data: &Path, by: &Path, aside: &Path) -> Result<()> {
    rename(data, aside)?;
    copy(by, data)
}

/// Copies the files of the configuration of a stopped process.
fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for file in of_config(from)? {
        std::fs::copy(from.join(&file), to.join(&file))?;
    }
    Ok(())
}

async fn logged(server: &Server, text: &str) -> Result<()> {
    let end = Instant::now() + BOUND;
    while !server.log().contains(text) {
        ensure!(Instant::now() < end, "never said: {text}\n{}", server.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

const ANOTHER: &str = "the configuration is another one than this store knew";
const OLDER: &str = "the configuration is older than this store knew it";

/// The stores that purge nothing, as the gateway tells them with its readiness.
async fn refusing(url: &str) -> Result<Vec<String>> {
    let answer = client()?.get(format!("{url}health/ready")).send().await?;
    let told: Value = answer.json().await?;
    let stores = told["purging_refused"].as_object();
    let stores = stores.with_context(|| told.to_string())?;
    Ok(stores.keys().cloned().collect())
}

/// Waits until these purge nothing, each of which readiness and doctor name with the reason; or, with none, until doctor
/// finds nothing wrong with the configuration.
async fn told(url: &str, stores: &[&str], why: &str) -> Result<()> {
    let end = Instant::now() + BOUND;
    loop {
        let refusing = refusing(url).await?;
        let doctor = tg(url, &["doctor"]).await?.stdout;
        let named = stores
            .iter()
            .all(|store| refusing.iter().any(|one| one == store) && doctor.contains(store));
        let seen = match stores {
            [] => refusing.is_empty() && doctor.contains("✓ configuration"),
            _ => doctor.contains(&format!("✗ configuration: {why}")),
        };
        if named && seen {
            return Ok(());
        }
        ensure!(Instant::now() < end, "{refusing:?}\n{doctor}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Stores that keep something for workspaces.
const STORES: [&str; 10] = [
    "agent-manager",
    "extract",
    "flow-svc",
    "graph",
    "iam-svc",
    "keywords",
    "knowledge",
    "librarian",
    "rows",
    "vectors",
];

#[tokio::test]
async fn and_says_so_until_it_is_found_again() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let (data, aside) = (scratch.path().join("data"), scratch.path().join("aside"));
    let launch = || Launch::up().data(&data).ready();
    let server = launch().await?;
    make(&server.url(), "acme").await?;
    put(&server.url(), "acme", "kept").await?;
    has(&server.url(), "acme", &["kept"]).await?;
    add(&server.url(), "acme", "urn:d").await?;
    let before = files(&data);
    assert!(before > 0);
    told(&server.url(), &[], "").await?;
    server.terminate().await?;

    rename(&data, &aside)?;
    let server = launch().await?;
    logged(&server, "nothing is purged").await?;
    told(&server.url(), &STORES, ANOTHER).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(files(&data), before);
    server.terminate().await?;

    rename(&data, &scratch.path().join("the other one"))?;
    rename(&aside, &data)?;
    let server = launch().await?;
    assert_eq!(documents(&server.url(), "acme").await?, ["urn:d"]);
    has(&server.url(), "acme", &["kept"]).await?;
    told(&server.url(), &[], "").await
}

/// The host of the configuration dies, and one with an empty data directory stands in for it while the stores live: it
/// is refused, and where the operator insists nothing is purged either.
#[tokio::test]
async fn and_another_in_its_place_over_rabbitmq_purges_nothing() -> Result<()> {
    let node = VirtualHost::new().await?;
    let scratch = tempfile::tempdir()?;
    let config = |folder: &str, adopt: bool| {
        let launch = Launch::serve(&["config"], &node.url()).data(&scratch.path().join(folder));
        let launch = match adopt {
            true => launch.arg("--adopt-store").arg("config-svc"),
            false => launch,
        };
        launch.spawn()
    };
    let first = config("first", false).await?;
    let rest = Launch::serve(&without(&SERVICES, &["config"]), &node.url())
        .ready()
        .await?;
    let url = rest.url();
    make(&url, "acme").await?;
    put(&url, "acme", "kept").await?;
    has(&url, "acme", &["kept"]).await?;
    add(&url, "acme", "urn:d").await?;
    let before = files(rest.data());
    assert!(before > 0);
    first.kill9().await?;

    let empty = config("empty", false).await?;
    logged(&empty, "another store of this name served before").await?;
    empty.kill9().await?;
    let insists = config("empty", true).await?;
    logged(&rest, "nothing is purged")
        .await
        .with_context(|| insists.log())?;
    told(&url, &STORES, ANOTHER).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(files(rest.data()), before);
    insists.kill9().await?;

    let _first = config("first", true).await?;
    assert_eq!(documents(&url, "acme").await?, ["urn:d"]);
    has(&url, "acme", &["kept"]).await?;
    told(&url, &[], "").await
}

/// What an older configuration knows nothing of: a workspace that was made since, and another of the name of one that was
/// deleted since.
async fn since(url: &str) -> Result<()> {
    iam(url, "delete-workspace", "acme").await?;
    for workspace in ["acme", "late"] {
        make(url, workspace).await?;
        put(url, workspace, "since").await?;
        has(url, workspace, &["since"]).await?;
        add(url, workspace, "urn:since").await?;
    }
    Ok(())
}

async fn all_is_there(url: &str) -> Result<()> {
    for workspace in ["acme", "late"] {
        finds(url, workspace, "since").await?;
        keeps(url, workspace, "urn:since").await?;
    }
    Ok(())
}

/// Waits until that is the one document, as soon as the configuration is read again.
async fn keeps(url: &str, workspace: &str, document: &str) -> Result<()> {
    let end = Instant::now() + BOUND;
    loop {
        let found = documents(url, workspace).await?;
        if found == [document] {
            return Ok(());
        }
        ensure!(Instant::now() < end, "{workspace}: {found:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until that is the one literal: flows start again with the configuration.
async fn finds(url: &str, workspace: &str, literal: &str) -> Result<()> {
    let end = Instant::now() + BOUND;
    loop {
        let found = literals(url, workspace).await;
        if found.as_ref().is_ok_and(|found| *found == [literal]) {
            return Ok(());
        }
        ensure!(Instant::now() < end, "{workspace}: {found:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn and_an_older_one_purges_nothing_embedded() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let folder = |name: &str| scratch.path().join(name);
    let data = folder("data");
    let launch = || Launch::up().data(&data).ready();
    let server = launch().await?;
    make(&server.url(), "acme").await?;
    put(&server.url(), "acme", "kept").await?;
    has(&server.url(), "acme", &["kept"]).await?;
    add(&server.url(), "acme", "urn:d").await?;
    server.terminate().await?;
    copy(&data, &folder("backup"))?;

    let server = launch().await?;
    since(&server.url()).await?;
    let before = files(&data);
    server.terminate().await?;

    replace(&data, &folder("backup"), &folder("aside"))?;
    let server = launch().await?;
    logged(&server, OLDER).await?;
    told(&server.url(), &STORES, OLDER).await?;
    // The workspace of then is back, whole.
    keeps(&server.url(), "acme", "urn:d").await?;
    finds(&server.url(), "acme", "kept").await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(files(&data), before);
    server.terminate().await?;

    rename(&data, &folder("the older one"))?;
    rename(&folder("aside"), &data)?;
    let server = launch().await?;
    all_is_there(&server.url()).await?;
    told(&server.url(), &[], "").await
}

#[tokio::test]
async fn and_an_older_one_purges_nothing_over_rabbitmq() -> Result<()> {
    let node = VirtualHost::new().await?;
    let scratch = tempfile::tempdir()?;
    let folder = |name: &str| scratch.path().join(name);
    let data = folder("config");
    let config = || Launch::serve(&["config"], &node.url()).data(&data).spawn();
    let first = config().await?;
    let rest = Launch::serve(&without(&SERVICES, &["config"]), &node.url())
        .ready()
        .await?;
    let url = rest.url();
    make(&url, "acme").await?;
    put(&url, "acme", "kept").await?;
    has(&url, "acme", &["kept"]).await?;
    add(&url, "acme", "urn:d").await?;
    first.kill9().await?;
    copy(&data, &folder("backup"))?;

    let first = config().await?;
    since(&url).await?;
    let before = files(rest.data());
    first.kill9().await?;

    // The stores live on and see the clock turned back.
    replace(&data, &folder("backup"), &folder("aside"))?;
    let older = config().await?;
    logged(&rest, OLDER).await.with_context(|| older.log())?;
    told(&url, &STORES, OLDER).await?;
    keeps(&url, "acme", "urn:d").await?;
    finds(&url, "acme", "kept").await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(files(rest.data()), before);
    older.kill9().await?;

    rename(&data, &folder("the older one"))?;
    rename(&folder("aside"), &data)?;
    let _first = config().await?;
    all_is_there(&url).await?;
    told(&url, &[], "").await
}
