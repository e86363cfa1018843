//! The official commands of PyPI's package, unmodified. Each run is its installed script in a process of its own, which is forked from
//! one that has the libraries loaded: loading them takes longer than most commands run. All tests of a runner share that one.

use std::io::BufRead;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;

use crate::noted::Noted;
use crate::process::{COMMAND, Output, root, run};

/// Longer than a script whose patience is over takes to be ended.
const ENDS: Duration = Duration::from_secs(60);

/// Ends when the process `$1` has ended, and removes the file `$2`. The process with the libraries ends with its standard input, which
/// is this one's output.
const WATCHER: &str = r#"while kill -0 "$1" 2>/dev/null; do sleep 0.5; done; rm -f "$2""#;

/// The port of the process that has the libraries: one for all tests of a runner (`noted`).
async fn port() -> Result<u16> {
    static PORT: OnceCell<u16> = OnceCell::const_new();
    Ok(*PORT.get_or_try_init(find_or_start).await?)
}

async fn find_or_start() -> Result<u16> {
    // Locked until it listens: a test that needs it meanwhile waits.
    let noted = Noted::open("official").await?;
    if let Ok(port) = noted.text.parse::<u16>()
        && TcpStream::connect(("127.0.0.1", port)).await.is_ok()
    {
        return Ok(port);
    }
    let (owner, note) = (noted.owner, noted.path.clone());
    let port = tokio::task::spawn_blocking(move || start(owner, &note)).await??;
    noted.write(&port.to_string())?;
    Ok(port)
}

/// Starts it. Both processes have groups of their own: a runner that ends a test ends its process group.
fn start(owner: u32, note: &Path) -> Result<u16> {
    let mut watcher = Command::new("sh")
        .args(["-c", WATCHER, "sh", &owner.to_string()])
        .arg(note)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let watched = watcher.stdout.take().context("a pipe")?;
    let mut loaded = Command::new(root().join(".cache/venv/bin/python3"))
        .arg(root().join("tests/integration/clients/official_commands.py"))
        // What the developer keeps is no part of a test.
        .env("XDG_CONFIG_HOME", "/nowhere")
        .env_remove("TRUSTGRAPH_TOKEN")
        .stdin(Stdio::from(watched))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .context("cannot run Python: run the set-up first")?;
    let printed = loaded.stdout.take().context("no output")?;
    let mut line = String::new();
    std::io::BufReader::new(printed).read_line(&mut line)?;
    let port = line.trim().parse::<u16>();
    port.context("the official commands do not load: run the set-up first")
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
