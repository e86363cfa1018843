//! A default is one number: in the settings, in the help of the commands and in the documentation.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tg_testkit::process::{bin_dir, root};
use tokio::process::Command;

async fn printed(program: &str, words: &[&str]) -> Result<String> {
    let output = Command::new(bin_dir()?.join(program))
        .args(words)
        .env_clear()
        .output()
        .await?;
    Ok(String::from_utf8(output.stdout)?)
}

/// What a help says of a flag: its line and those it goes on in.
fn of_flag(help: &str, flag: &str) -> Option<String> {
    let named = |line: &str| {
        let mut words = line.split([' ', ',']);
        words.any(|word| word == format!("--{flag}"))
    };
    let mut lines = help.lines().skip_while(|line| !named(line));
    let first = lines.next()?.to_owned();
    let rest = lines.take_while(|line| !line.trim_start().starts_with('-'));
    Some(rest.fold(first, |text, line| text + " " + line.trim()))
}

/// The default that a text tells, as `[default: 20]`.
fn told(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("[default: ")?;
    rest.split(']').next()
}

#[tokio::test]
async fn limits_of_questions() -> Result<()> {
    let settings = printed("threadgraph", &["settings", "--json"]).await?;
    let settings: Vec<Value> = serde_json::from_str(&settings)?;
    let page = std::fs::read_to_string(root().join("docs/retrieval.md"))?;
    let mut help = String::new();
    for command in ["invoke-graph-rag", "invoke-document-rag"] {
        help += &printed("tg", &[command, "--help"]).await?;
    }
    let mut compared = 0;
    for setting in &settings {
        let Some(name) = setting["name"]
            .as_str()
            .and_then(|name| name.strip_prefix("rag."))
        else {
            continue;
        };
        let default = setting["default"].as_str().unwrap_or_default();
        let limit = name.ends_with("_limit") || name.starts_with("max_");
        if !limit || default == "0" {
            continue;
        }
        let flag = name.replace('_', "-");
        let row = page.lines().find(|line| {
            let first = line.split('|').nth(1).unwrap_or_default();
            first.contains(&format!("`{flag}`")) || first.contains(&format!("`{name}`"))
        });
        let row = row.with_context(|| format!("{flag} in docs/retrieval.md"))?;
        let cell = row.split('|').nth(2).unwrap_or_default().trim();
        ensure!(cell == default, "rag.{name} is {default}: {row}");
        if let Some(text) = of_flag(&help, &flag) {
            let wanted = default.to_string();
            ensure!(
                told(&text) == Some(&wanted),
                "rag.{name} is {default}: {text}"
            );
            compared += 1;
        }
    }
    ensure!(compared >= 8, "{compared} flags were compared");
    let fetched = of_flag(&help, "fetch-limit").context("fetch-limit")?;
    ensure!(told(&fetched) == Some("three times as many"), "{fetched}");
    ensure!(page.contains("| `fetch-limit` | 3 × `doc-limit` |"));
    Ok(())
}

#[tokio::test]
async fn loads_of_files() -> Result<()> {
    let page = std::fs::read_to_string(root().join("docs/structured-data.md"))?;
    let help = printed("tg", &["load-structured-data", "--help"]).await?;
    for (flag, wanted) in [
        ("batch-size", "what the descriptor says, or 40"),
        ("max-errors", "what the descriptor says, or 100"),
    ] {
        let text = of_flag(&help, flag).with_context(|| flag.to_owned())?;
        ensure!(told(&text) == Some(wanted), "{text}");
    }
    for told in ["(`--batch-size`, 40)", "`--max-errors` (100)"] {
        ensure!(page.contains(told), "{told}");
    }
    Ok(())
}
