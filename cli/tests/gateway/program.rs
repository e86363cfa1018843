//! The program itself: the name it is called under, exit codes, where errors go, Ctrl-C.

use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::fake::{Fake, Heard, Say, bounded};

const TG: &str = env!("CARGO_BIN_EXE_tg");

fn run(program: &str, line: &[&str]) -> Output {
    Command::new(program)
        .args(line)
        .env_remove("TRUSTGRAPH_URL")
        .env_remove("TRUSTGRAPH_TOKEN")
        .env_remove("TRUSTGRAPH_WORKSPACE")
        .output()
        .expect("it runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn an_error_suggests_what_to_do_next() {
    let output = run(TG, &["whoami", "-u", "http://127.0.0.1:9"]);
    assert_eq!(output.status.code(), Some(7));
    assert!(output.stdout.is_empty());
    let said = stderr(&output);
    assert!(said.contains("tg-whoami: cannot reach"), "{said}");
    assert!(said.contains("try: "), "{said}");

    let output = run(TG, &["whoami", "-u", "http://127.0.0.1:9", "--json"]);
    let body: Value = serde_json::from_str(&stderr(&output)).expect("JSON");
    assert_eq!(body["error"]["type"], "unreachable");
}

#[test]
fn wrong_arguments_are_exit_code_2_and_help_is_0() {
    assert_eq!(run(TG, &["list-config-items"]).status.code(), Some(2));
    assert_eq!(run(TG, &["no-such-command"]).status.code(), Some(2));
    let output = run(TG, &["--help"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains("show-explain-trace"));
}

#[cfg(unix)]
#[test]
fn a_link_runs_its_own_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("bin");
    let output = run(TG, &["links", dir.to_str().expect("a path")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let link = dir.join("tg-start-flow");
    let output = run(link.to_str().expect("a path"), &["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(help.contains("Usage: tg-start-flow"), "{help}");
    assert!(help.contains("--blueprint-name"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let status = Command::new(TG)
        .args(["completions", "bash"])
        .stdout(writer)
        .stderr(Stdio::null())
        .status()
        .expect("it runs");
    assert_eq!(status.code(), Some(0));
}

#[cfg(unix)]
#[tokio::test]
async fn ctrl_c_closes_the_socket_and_exits_with_130() {
    let fake = Fake::socket(|_| {
        vec![Say::Part(
            json!({"message_type": "answer", "content": "One moment"}),
        )]
    })
    .await;
    let mut child = tokio::process::Command::new(TG)
        .args(["invoke-agent", "-q", "why?", "-u", &fake.url])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    // The first words are there, so it listens.
    let mut words = [0; 10];
    let mut stdout = child.stdout.take().expect("stdout");
    bounded(stdout.read_exact(&mut words)).await.expect("words");
    let id = child.id().expect("running").to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status();
    assert!(sent.expect("kill runs").success());
    let status = bounded(child.wait()).await.expect("it ends");
    assert_eq!(status.code(), Some(130));
    fake.hears(|heard| *heard == Heard::Closed).await;
}
