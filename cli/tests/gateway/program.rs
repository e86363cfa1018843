//! The program itself: the name it is called under, exit codes, where errors go, Ctrl-C.

use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::fake::{Fake, Heard, Say, asked, bounded};

const TG: &str = env!("CARGO_BIN_EXE_tg");

/// A command whose surroundings say nothing.
fn command(program: &str, line: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(line).env("XDG_CONFIG_HOME", "/nowhere");
    for name in ["URL", "TOKEN", "WORKSPACE", "PROFILE"] {
        command.env_remove(format!("THREADGRAPH_{name}"));
        command.env_remove(format!("TRUSTGRAPH_{name}"));
    }
    command
}

fn run(program: &str, line: &[&str]) -> Output {
    command(program, line).output().expect("it runs")
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
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in [
        "First steps:\n  add ",
        "\nDocuments:\n",
        "show-explain-trace",
    ] {
        assert!(help.contains(part), "{part} in {help}");
    }
    let output = run(TG, &["help", "ask"]);
    assert_eq!(output.status.code(), Some(0));
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(help.contains("Usage: tg ask"), "{help}");
    let output = run(TG, &["version"]);
    assert!(stderr(&output).contains("`tg --version`"), "{output:?}");
}

#[cfg(unix)]
#[test]
fn a_trace_is_verified_by_the_short_name_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(TG, &["links", folder.path().to_str().expect("a path")]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let link = folder.path().join("tg-verify");
    let link = link.to_str().expect("a path");
    for (program, line) in [(TG, &["verify", "--help"][..]), (link, &["--help"])] {
        let output = run(program, line);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let help = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(help.contains("Check every link from an answer"), "{help}");
    }
    let help = run(TG, &["--help"]);
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    assert!(help.contains("\n  verify-trace, verify "), "{help}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bootstrap_code_comes_from_the_line_or_from_either_variable() {
    let key = json!({"bootstrap_admin_user_id": "u", "bootstrap_admin_api_key": "tg_k"});
    for (line, ours, theirs, sent) in [
        (&["--code", "said"][..], "ours", "theirs", "said"),
        (&[], "ours", "theirs", "ours"),
        (&[], "", "theirs", "theirs"),
    ] {
        let answer = key.clone();
        let fake = Fake::rest(move |_, _| (200, answer.clone())).await;
        let mut command = command(TG, &[&["bootstrap-iam", "-u", &fake.url], line].concat());
        command.env("THREADGRAPH_BOOTSTRAP_CODE", ours);
        command.env("TRUSTGRAPH_BOOTSTRAP_CODE", theirs);
        let output = tokio::task::spawn_blocking(move || command.output());
        let output = output.await.expect("joined").expect("it runs");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(asked(&fake), [json!({"code": sent})]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_without_flows_is_told_so_and_how_to_start_one() {
    let fake = Fake::start(
        |_, body| match body["operation"].as_str() {
            Some("list-flows") => (200, json!({"flow-ids": []})),
            _ => (
                200,
                json!({"error": {"type": "not-found", "message": "Invalid flow new/default"}}),
            ),
        },
        |_| {
            let error = json!({"type": "not-found", "message": "Invalid flow new/default"});
            vec![Say::Last(json!({"error": error}))]
        },
    )
    .await;
    for line in [
        &["invoke-agent", "why?"][..],
        &["invoke-rows-query", "{ a { b } }"],
    ] {
        let mut command = command(TG, &[line, &["-u", &fake.url]].concat());
        let output = tokio::task::spawn_blocking(move || command.output());
        let output = output.await.expect("joined").expect("it runs");
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        let said = stderr(&output);
        assert!(said.contains("No flow runs in workspace new"), "{said}");
        assert!(
            said.contains("try: tg start-flow default -n everything -w new"),
            "{said}"
        );
    }
}

/// What a service says of what is not there is told with its name, its workspace and where to look.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_told_by_its_name() {
    let fake = Fake::rest(|_, body| {
        let error =
            |kind: &str, message: &str| json!({"error": {"type": kind, "message": message}});
        match body["operation"].as_str() {
            Some("stop-flow") => (200, error("flow-error", "Flow ID invalid")),
            Some("remove-document") => (200, error("not-found", "Document does not exist")),
            _ => (404, json!({"error": "workspace not found"})),
        }
    })
    .await;
    for (line, wanted, next) in [
        (
            &["stop-flow", "second", "-w", "acme"][..],
            "tg-stop-flow: Flow second does not run in workspace acme\n",
            "tg show-flows",
        ),
        (
            &["remove-library-document", "urn:d"],
            "tg-remove-library-document: Document does not exist in your workspace: urn:d\n",
            "try: tg show-library-documents",
        ),
        (
            &["show-library-documents", "-w", "nope"],
            "tg-show-library-documents: There is no workspace nope\n",
            "try: tg list-my-workspaces",
        ),
    ] {
        let mut command = command(TG, &[line, &["-u", &fake.url]].concat());
        let output = tokio::task::spawn_blocking(move || command.output());
        let output = output.await.expect("joined").expect("it runs");
        let said = stderr(&output);
        assert!(said.contains(wanted) && said.contains(next), "{said}");
        assert_eq!(output.status.code(), Some(3), "{said}");
    }
}

#[test]
fn what_the_environment_says_is_not_told_as_required() {
    let mut command = command(TG, &["start-flow"]);
    command.env("TRUSTGRAPH_URL", "http://127.0.0.1:9");
    let output = command.env("TRUSTGRAPH_TOKEN", "t").output().expect("runs");
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("Usage: tg start-flow"), "{said}");
    for known in ["--api-url", "--token"] {
        assert!(!said.contains(known), "{said}");
    }
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

#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_kept_for_the_commands_that_follow() {
    let fake = Fake::rest(|path, body| match body["operation"].as_str() {
        Some("whoami") => (200, json!({"user": {"id": "u1", "username": "ann"}})),
        None if path == "/api/v1/auth/login" => (200, json!({"jwt": "an-hour"})),
        _ => (200, json!({"put-aside": [], "requests": []})),
    })
    .await;
    let home = tempfile::tempdir().expect("a folder");
    let tg = |line: &[&str]| {
        let mut command = command(TG, line);
        let output = command.env("XDG_CONFIG_HOME", home.path()).output();
        let output = output.expect("it runs");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let made = tg(&[
        "login",
        "-u",
        &fake.url,
        "-t",
        "tg_secret",
        "--profile",
        "work",
    ]);
    assert!(made.contains("as ann"), "{made}");
    assert!(tg(&["whoami"]).contains("ann"));
    let by_profile = Some("tg_secret".to_owned());
    let last = fake.heard().pop();
    assert!(
        matches!(&last, Some(Heard::Rest(_, token, _)) if *token == by_profile),
        "{last:?}"
    );
    let listed = tg(&["profiles"]);
    assert!(
        listed.contains("work (current)") && !listed.contains("tg_secret"),
        "{listed}"
    );

    // A password goes to the saved address, without the saved token.
    let printed = tg(&["login", "--username", "ann", "--password", "secret"]);
    assert_eq!(printed, "an-hour\n");
    let last = fake.heard().pop();
    let password = json!({"username": "ann", "password": "secret"});
    let login = Heard::Rest("/api/v1/auth/login".to_owned(), None, password);
    assert_eq!(last, Some(login));

    // What is said goes before what is kept, and another gateway gets no token of this one.
    let other = Fake::rest(|_, _| (200, json!({"user": {"id": "u2"}}))).await;
    tg(&["whoami", "-u", &other.url]);
    assert!(matches!(&other.heard()[..], [Heard::Rest(_, None, _)]));

    tg(&["logout"]);
    assert!(tg(&["profiles"]).contains("No profiles."));
}

#[test]
fn a_command_nobody_knows_is_looked_for() {
    let output = run(TG, &["flows"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(
        said.contains("there is no command 'flows'. Did you mean:"),
        "{said}"
    );
    assert!(said.contains("show-flows"), "{said}");
}

#[test]
fn addresses_are_taken_as_people_write_them() {
    for url in [
        "127.0.0.1:9",
        "http://127.0.0.1:9/api/v1/",
        "ws://127.0.0.1:9",
    ] {
        let said = stderr(&run(TG, &["whoami", "-u", url]));
        assert!(
            said.contains("cannot reach the gateway at http://127.0.0.1:9/"),
            "{said}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_no_gateway_is_told_as_such() {
    let pages = axum::Router::new().fallback(|| async { "a page" });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    tokio::spawn(async move { axum::serve(listener, pages).await });
    let said = stderr(&run(TG, &["show-flows", "-u", &address]));
    assert!(said.contains("no Threadgraph gateway at"), "{said}");
    let said = stderr(&run(TG, &["whoami", "-u", &format!("https://{address}")]));
    assert!(said.contains("this port speaks http, not https"), "{said}");
}

#[cfg(unix)]
#[test]
fn advice_is_written_as_the_program_was_called() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("bin");
    run(TG, &["links", dir.to_str().expect("a path")]);
    let of = |name: &str, line: &[&str]| {
        let program = dir.join(name);
        stderr(&run(program.to_str().expect("a path"), line))
    };
    let line = ["profiles", "--use", "nobody"];
    assert!(of("tg", &line).contains("try: tg profiles --help"));
    assert!(of("tg-profiles", &line[1..]).contains("try: tg-profiles --help"));
}
