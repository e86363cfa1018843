//! The first session of the README, as somebody pastes it, with the built programs, a port and directories of its own.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tg_testkit::process::{bin_dir, root};
use tokio::process::Command;

use crate::pasted::{self, Told};

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
    let Told {
        stdout: told,
        stderr: talk,
    } = pasted::run(&lines, folder.path(), &[]).await?;
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

#[tokio::test]
async fn an_own_model_is_read_from_its_settings() -> Result<()> {
    let readme = std::fs::read_to_string(root().join("README.md"))?;
    let (_, rest) = readme
        .split_once("Or in `threadgraph.toml`:\n\n```\n")
        .context("block")?;
    let (settings, _) = rest.split_once("```").context("end")?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("threadgraph.toml");
    std::fs::write(&file, settings)?;
    let mut command = Command::new(bin_dir()?.join("threadgraph"));
    command.args(["settings", "--json", "--config"]).arg(&file);
    let ran = command.output().await?;
    let told: Value = serde_json::from_slice(&ran.stdout)
        .with_context(|| String::from_utf8_lossy(&ran.stderr).into_owned())?;
    for (name, value) in [
        ("provider", "openai"),
        ("url", "http://127.0.0.1:8000/v1"),
        ("model", "qwen3-8b"),
    ] {
        ensure!(
            told.to_string().contains(&format!("\"{value}\"")),
            "llm.{name}: {told}"
        );
    }
    Ok(())
}
