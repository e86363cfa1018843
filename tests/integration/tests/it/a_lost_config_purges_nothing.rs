//! When the configuration is lost, the stores keep what they have and say so; when it is found again, all is there.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tg_testkit::process::{Launch, Server};
use tg_testkit::rabbitmq::RabbitNode;

use crate::workspaces::{add, documents, files, has, make, put};

const BOUND: Duration = Duration::from_secs(30);

/// Moves the files of the configuration; there must be one.
fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    let mut any = false;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("config.sqlite") && !name.ends_with(".lock") {
            std::fs::rename(entry.path(), to.join(&name))?;
            any = true;
        }
    }
    ensure!(any, "no configuration in {}", from.display());
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
    server.terminate().await?;

    rename(&data, &aside)?;
    let server = launch().await?;
    logged(&server, "nothing is purged").await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(files(&data), before);
    server.terminate().await?;

    rename(&data, &scratch.path().join("the other one"))?;
    rename(&aside, &data)?;
    let server = launch().await?;
    assert_eq!(documents(&server.url(), "acme").await?, ["urn:d"]);
    has(&server.url(), "acme", &["kept"]).await?;
    Ok(())
}

/// Everything but the configuration.
const OTHERS: [&str; 16] = [
    "gateway",
    "iam",
    "flow",
    "librarian",
    "knowledge",
    "ingest",
    "graph",
    "rows",
    "vectors",
    "embeddings",
    "llm",
    "prompt",
    "agent",
    "extract",
    "rag",
    "tool",
];

/// The host of the configuration dies, and one with an empty data directory stands in for it while the stores live: it
/// is refused, and where the operator insists nothing is purged either.
#[tokio::test]
async fn and_another_in_its_place_over_rabbitmq_purges_nothing() -> Result<()> {
    let node = RabbitNode::start().await?;
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
    let rest = Launch::serve(&OTHERS, &node.url()).ready().await?;
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
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(files(rest.data()), before);
    insists.kill9().await?;

    let _first = config("first", true).await?;
    assert_eq!(documents(&url, "acme").await?, ["urn:d"]);
    has(&url, "acme", &["kept"]).await
}
