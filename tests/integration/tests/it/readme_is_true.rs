//! The first session of the README, as somebody pastes it, with the built programs, a port and directories of its own.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tg_testkit::process::{bin_dir, free_port, root};
use tokio::process::Command;

/// How long the session may take on a busy machine.
const BOUND: Duration = Duration::from_secs(180);

/// The lines of the first session's block. What builds was done by whoever runs the tests.
fn session(readme: &str) -> Result<String> {
    let (_, rest) = readme.split_once("## A first session").context("heading")?;
    let (_, rest) = rest.split_once("```sh\n").context("block")?;
    let (block, _) = rest.split_once("```").context("end")?;
    let (build, lines) = block.split_once('\n').context("lines")?;
    ensure!(build.starts_with("cargo build"), "{build}");
    let (path, lines) = lines.split_once('\n').context("lines")?;
    ensure!(path.starts_with("export PATH="), "{path}");
    Ok(lines.to_owned())
}

#[tokio::test]
async fn the_first_session_works_when_pasted() -> Result<()> {
    let lines = session(&std::fs::read_to_string(root().join("README.md"))?)?;
    ensure!(lines.contains("threadgraph up &"), "{lines}");
    let folder = tempfile::tempdir()?;
    let address = format!("127.0.0.1:{}", free_port()?);
    let path = format!("{}:{}", bin_dir()?.display(), std::env::var("PATH")?);
    let script = format!("set -e\ntrap 'kill %1; wait' EXIT\n{lines}");
    let work = Command::new("bash")
        .args(["-c", &script])
        .current_dir(root())
        .env("PATH", path)
        .env("THREADGRAPH_LISTEN", &address)
        .env("THREADGRAPH_DATA_DIR", folder.path())
        .env("THREADGRAPH_URL", format!("http://{address}/"))
        .env("XDG_CONFIG_HOME", folder.path())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(BOUND, work)
        .await
        .context("no end")??;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(
        output.status.success(),
        "{:?}\n{told}\n{talk}",
        output.status
    );
    for wanted in [
        "The system is healthy.",
        "added as ",
        "Gaurishankar [1].",
        "[1] uncommon-clocks.pdf, page 1:",
        "supported by [1]",
        "Nothing waits",
    ] {
        ensure!(
            told.contains(wanted),
            "{wanted:?} is not in\n{told}\n{talk}"
        );
    }
    ensure!(talk.contains("Threadgraph is ready at"), "{talk}");
    Ok(())
}
