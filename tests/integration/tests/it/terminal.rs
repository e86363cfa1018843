//! A program at a terminal of 80 columns, with somebody who types.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tg_testkit::process::{bin_dir, root};
use tokio::process::Command;

/// Longer than the script itself waits.
const BOUND: Duration = Duration::from_secs(120);
/// Columns of the terminal.
pub const COLUMNS: usize = 80;

/// What a terminal showed.
#[derive(Debug)]
pub struct Shown {
    /// All of it, as it was written: with what moves the cursor.
    pub shown: String,
    /// The exit code of the command.
    pub code: Option<i64>,
}

impl Shown {
    /// The lines, and each state of a line that was written over.
    pub fn lines(&self) -> Vec<String> {
        let plain = plain(&self.shown);
        let lines = plain
            .split(['\n', '\r'])
            .map(|line| line.trim_end().to_owned());
        lines.filter(|line| !line.is_empty()).collect()
    }

    /// No line is longer than the terminal is wide.
    pub fn fits(&self) -> Result<()> {
        for line in self.lines() {
            ensure!(line.chars().count() <= COLUMNS, "{line:?}");
        }
        Ok(())
    }
}

/// A text without what moves the cursor or colours.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        if letter != '\u{1b}' {
            plain.push(letter);
            continue;
        }
        // A sequence ends with a letter: `ESC [ 2 K`.
        if rest.next() == Some('[') {
            for part in rest.by_ref() {
                if part.is_ascii_alphabetic() {
                    break;
                }
            }
        }
    }
    plain
}

/// Runs `tg` at a terminal: at each step a text is waited for, and then something typed.
pub async fn at_a_terminal(url: &str, steps: &[(&str, &str)], args: &[&str]) -> Result<Shown> {
    program("tg", url, steps, args).await
}

/// The same with any of the built programs.
pub async fn program(
    name: &str,
    url: &str,
    steps: &[(&str, &str)],
    args: &[&str],
) -> Result<Shown> {
    let work = Command::new(root().join(".cache/venv/bin/python3"))
        .arg(root().join("tests/integration/clients/terminal.py"))
        .arg(serde_json::to_string(steps)?)
        .arg(bin_dir()?.join(name))
        .args(args)
        .env("TRUSTGRAPH_URL", url)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(BOUND, work).await??;
    let told: Value = serde_json::from_slice(&output.stdout).with_context(|| {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        format!("{args:?}: {errors}")
    })?;
    ensure!(told["left"] == Value::Array(Vec::new()), "{args:?}: {told}");
    Ok(Shown {
        shown: told["shown"].as_str().unwrap_or_default().to_owned(),
        code: told["code"].as_i64(),
    })
}
