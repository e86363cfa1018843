//! The official commands of PyPI's package, unmodified. Each run is its installed script in a process of its own, which is forked from
//! one that has the libraries loaded: loading them takes longer than most commands run.

use std::io::BufRead;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;

use crate::process::{COMMAND, Output, root, run};

/// Longer than a script whose patience is over takes to be ended.
const ENDS: Duration = Duration::from_secs(60);

/// The process that has the libraries. It ends with this one, whose end closes its standard input.
struct Loaded {
    port: u16,
    _child: Child,
}

impl Loaded {
    fn start() -> Result<Self> {
        let mut child = Command::new(root().join(".cache/venv/bin/python3"))
            .arg(root().join("tests/integration/clients/official_commands.py"))
            // What the developer keeps is no part of a test.
            .env("XDG_CONFIG_HOME", "/nowhere")
            .env_remove("TRUSTGRAPH_TOKEN")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run Python: run the set-up first")?;
        let printed = child.stdout.take().context("no output")?;
        let mut line = String::new();
        std::io::BufReader::new(printed).read_line(&mut line)?;
        let port = line.trim().parse();
        let port = port.context("the official commands do not load: run the set-up first")?;
        Ok(Self {
            port,
            _child: child,
        })
    }
}

async fn load() -> Result<Loaded> {
    tokio::task::spawn_blocking(Loaded::start).await?
}

async fn port() -> Result<u16> {
    static LOADED: OnceCell<Loaded> = OnceCell::const_new();
    Ok(LOADED.get_or_try_init(load).await?.port)
}

/// Runs a command of the official clients.
///
/// # Errors
/// The clients are not installed (`scripts/setup.sh test`), or the command does not end within the bound.
pub async fn official(url: &str, command: &str, args: &[&str]) -> Result<Output> {
    official_as(url, "", command, args).await
}

/// The same with a token.
///
/// # Errors
/// As [`official`].
pub async fn official_as(url: &str, token: &str, command: &str, args: &[&str]) -> Result<Output> {
    let output = official_within(url, token, command, args, COMMAND).await?;
    if output.code.is_none() {
        bail!("{command} {args:?} did not end: {output:?}");
    }
    Ok(output)
}

/// The same, of one that may not end: after so long it is killed, and has no exit code.
///
/// # Errors
/// The clients are not installed, or the process that runs them does not answer.
pub async fn official_within(
    url: &str,
    token: &str,
    command: &str,
    args: &[&str],
    patience: Duration,
) -> Result<Output> {
    let mut env = json!({"TRUSTGRAPH_URL": url, "TRUSTGRAPH_API": url});
    if !token.is_empty() {
        env["TRUSTGRAPH_TOKEN"] = json!(token);
    }
    let ask = json!({"command": command, "args": args, "env": env, "patience": patience.as_secs()});
    let asked = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port().await?)).await?;
        stream.write_all(format!("{ask}\n").as_bytes()).await?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).await?;
        anyhow::Ok(answer)
    };
    let answer = tokio::time::timeout(patience + ENDS, asked).await;
    let answer = answer.with_context(|| format!("{command} {args:?} did not end"))??;
    let answer: Value = serde_json::from_str(&answer)
        .with_context(|| format!("{command} {args:?} was not run: {answer}"))?;
    let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
    let code = answer["code"].as_i64();
    Ok(Output {
        code: code.and_then(|code| i32::try_from(code).ok()),
        stdout: text("stdout"),
        stderr: text("stderr"),
    })
}

/// Runs one with variables, each left out where it says nothing: as what the libraries read when they are loaded may be among these, it
/// loads them itself.
///
/// # Errors
/// As [`official`].
pub async fn official_with(
    url: &str,
    variables: &[(&str, &str)],
    command: &str,
    args: &[&str],
) -> Result<Output> {
    let program = root().join(".cache/venv/bin").join(command);
    run(&program, url, variables, None, args).await
}
