//! The blocks of a page, run as somebody pastes them: with the built programs, a port and directories of their own.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tg_testkit::process::{bin_dir, free_port, root};
use tokio::process::Command;

/// How long a page may take on a busy machine.
const BOUND: Duration = Duration::from_secs(240);

/// What the lines said.
pub struct Output {
    pub stdout: String,
    pub stderr: String,
}

/// The blocks of a language that a page has, in order.
pub fn blocks(page: &str, language: &str) -> Vec<String> {
    let open = format!("```{language}\n");
    let blocks = page.split(&open).skip(1);
    let ends = |block: &str| block.split("```").next().unwrap_or_default().to_owned();
    blocks.map(ends).collect()
}

/// Runs lines in the project's folder until one of them fails. Their data, and what further variables name, is in `folder`.
pub async fn run(lines: &str, folder: &Path, env: &[(&str, &Path)]) -> Result<Output> {
    // The lines name the address before they start the server.
    let address = format!("127.0.0.1:{}", free_port()?);
    let path = format!("{}:{}", bin_dir()?.display(), std::env::var("PATH")?);
    let script = format!("set -e\ntrap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n{lines}");
    let mut command = Command::new("bash");
    for (name, _) in std::env::vars() {
        let providers = ["OPENAI", "ANTHROPIC", "OLLAMA"];
        if providers.iter().any(|provider| name.starts_with(provider)) {
            command.env_remove(name);
        }
    }
    let work = command
        .args(["-c", &script])
        .current_dir(root())
        .env("PATH", path)
        .env("THREADGRAPH_LISTEN", &address)
        .env("THREADGRAPH_DATA_DIR", folder.join("data"))
        .env("THREADGRAPH_URL", format!("http://{address}/"))
        .env("XDG_CONFIG_HOME", folder)
        .env("HOME", folder)
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(BOUND, work)
        .await
        .context("no end")??;
    let told = Output {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    ensure!(
        output.status.success(),
        "{:?}\n{}\n{}",
        output.status,
        told.stdout,
        told.stderr
    );
    Ok(told)
}
