//! When the configuration is lost, the stores keep what they have and say so; when it is found again, all is there.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tg_testkit::process::{Launch, Server};

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
