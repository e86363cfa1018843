//! The description of the endpoints is good enough for generators: a client in TypeScript, which the compiler checks, and
//! one in Python are made from it and used. They list flows, add a document, ask, and read citations, all with types.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::process::root;
use tokio::process::Command;

use crate::world::{Bus, up};

/// How long one program may take on a busy machine.
const BOUND: Duration = Duration::from_secs(150);

/// Runs a program to its end; its output.
async fn run(program: &Path, folder: &Path, args: &[&str]) -> Result<String> {
    let work = Command::new(program)
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(BOUND, work)
        .await
        .with_context(|| format!("{} did not end", program.display()))?
        .with_context(|| format!("{}: run the set-up first", program.display()))?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(
        output.status.success(),
        "{} {args:?}: {told}\n{}",
        program.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(told)
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path in UTF-8")
}

/// A client in TypeScript, which the compiler checks.
async fn make_typescript(folder: &Path) -> Result<()> {
    let tools = root().join(".cache/generators").canonicalize();
    let tools = tools.context("run the set-up first")?;
    let node = root().join(".cache/npm/node");
    let modules = tools.join("node_modules");
    std::os::unix::fs::symlink(&modules, folder.join("node_modules"))?;
    std::fs::write(folder.join("package.json"), r#"{"type": "module"}"#)?;
    for file in ["story.ts", "tsconfig.json"] {
        let from = root().join("tests/integration/clients/typed").join(file);
        std::fs::copy(from, folder.join(file))?;
    }
    let described = root().join("specs/api/openapi.yaml");
    let generate = modules.join("openapi-typescript/bin/cli.js");
    let args = [text(&generate)?, text(&described)?, "-o", "api.ts"];
    run(&node, folder, &args).await?;
    let compile = modules.join("typescript/bin/tsc");
    run(&node, folder, &[text(&compile)?, "-p", "."]).await?;
    Ok(())
}

/// A client in Python.
async fn make_python(folder: &Path) -> Result<()> {
    let tools = root().join(".cache/generators/venv/bin");
    let described = root().join("specs/api/openapi.yaml");
    let package = folder.join("typed_client");
    let args = [
        "generate",
        "--meta",
        "none",
        "--path",
        text(&described)?,
        "--output-path",
        text(&package)?,
    ];
    run(&tools.join("openapi-python-client"), folder, &args).await?;
    Ok(())
}

async fn typescript(folder: &Path, url: &str) -> Result<Value> {
    let node = root().join(".cache/npm/node");
    let seen = run(&node, folder, &["story.ts", url]).await?;
    Ok(serde_json::from_str(&seen)?)
}

async fn python(folder: &Path, url: &str) -> Result<Value> {
    let python = root().join(".cache/generators/venv/bin/python");
    let story = root().join("tests/integration/clients/typed/story.py");
    let args = [text(&story)?, text(folder)?, url];
    let seen = run(&python, folder, &args).await?;
    Ok(serde_json::from_str(&seen)?)
}

/// What both see, but for how they are told of the flow that is not there.
fn check(seen: &Value, refused: &Value) -> Result<()> {
    let citation = json!({
        "n": 1, "title": "The valley", "page": null,
        "text": "The Brennick clock of the valley was built by Ilse Maartens in 1731.",
    });
    ensure!(seen["flows"] == json!(["default"]), "{seen}");
    ensure!(seen["status"] == "complete", "{seen}");
    for who in ["rag", "agent"] {
        let answer = seen[who]["answer"].as_str().unwrap_or_default();
        ensure!(answer.contains("Ilse Maartens"), "{who}: {seen}");
        ensure!(seen[who]["citations"][0] == citation, "{who}: {seen}");
    }
    let warning = "doc-limits: is not read here; doc-limit is";
    ensure!(seen["warnings"] == json!([warning]), "{seen}");
    ensure!(seen["refused"] == *refused, "{seen}");
    Ok(())
}

/// The clients are made once: the description is the same whatever the bus.
#[tokio::test]
async fn on_either_bus() -> Result<()> {
    let (one, other) = (tempfile::tempdir()?, tempfile::tempdir()?);
    make_typescript(one.path()).await?;
    make_python(other.path()).await?;
    for bus in [Bus::Embedded, Bus::Rabbit] {
        let (server, _node) = up(bus).await?;
        let url = server.url().trim_end_matches('/').to_owned();
        check(&typescript(one.path(), &url).await?, &json!(404))?;
        let refused = json!("Invalid flow default/nowhere");
        check(&python(other.path(), &url).await?, &refused)?;
    }
    Ok(())
}
