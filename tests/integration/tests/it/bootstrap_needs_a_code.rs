//! The first key is for who sits at the terminal or has the one-time code: no web page and no scanner gets it, and
//! none can burn it.

use std::os::unix::fs::PermissionsExt;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tg_testkit::official::official;
use tg_testkit::process::{Launch, Server, client, tg};
use tg_testkit::shared_node::VirtualHost;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::edge::with_keys;
use crate::terminal::program;
use crate::world::{Bus, on_both_buses};

async fn ask(server: &Server, headers: &[(&str, &str)]) -> Result<(u16, Value)> {
    let mut request = client()?.post(format!("{}api/v1/auth/bootstrap", server.url()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await?;
    let status = response.status().as_u16();
    Ok((status, response.json().await.unwrap_or_default()))
}

async fn greeted(server: &Server, with: &str) -> Result<()> {
    for _ in 0..1_200 {
        if server
            .log()
            .contains(&format!("(the code is in {}", server.data().display()))
            && server.log().contains(with)
        {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    bail!(
        "the greeting does not say where the code is: {}",
        server.log()
    )
}

/// A system with users and keys; the broker is kept for as long as it is needed.
async fn keyed(bus: Bus) -> Result<(Server, Option<VirtualHost>)> {
    let node = bus.broker().await?;
    Ok((with_keys().over(node.as_ref()).ready().await?, node))
}

async fn it_is_said_at_each_start_until_it_is_used(bus: Bus) -> Result<()> {
    let (data, node) = (tempfile::tempdir()?, bus.broker().await?);
    let launch = || with_keys().data(data.path()).over(node.as_ref());
    let server = launch().ready().await?;
    greeted(&server, "bootstrap-code").await?;
    server.terminate().await?;
    let again = launch().ready().await?;
    greeted(&again, "bootstrap-code").await
}

async fn pages_and_scanners_get_nothing_and_the_code_opens_once(bus: Bus) -> Result<()> {
    let (server, _node) = keyed(bus).await?;
    let evil = ("Origin", "http://evil.example");
    let rebound = [
        ("Host", "evil.example:80"),
        ("Origin", "http://evil.example:80"),
    ];
    for headers in [
        &[evil][..],
        &rebound,
        &[("Host", "evil.example:80")],
        &[("X-Forwarded-For", "203.0.113.7")],
        &[("Origin", "null"), ("Content-Type", "text/plain")],
    ] {
        let (status, reply) = ask(&server, headers).await?;
        ensure!(matches!(status, 401 | 403), "{headers:?}: {status} {reply}");
    }
    let file = server.data().join("bootstrap-code");
    let mode = std::fs::metadata(&file)?.permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let code = std::fs::read_to_string(&file)?.trim().to_owned();
    // What is printed goes to a file here, which others may read: it only says where the code is.
    greeted(&server, "bootstrap-code").await?;
    assert!(!server.log().contains(&code), "the code is in the log");
    let from_elsewhere = ("Host", "tg.example");
    let (status, _) = ask(&server, &[from_elsewhere, ("X-Bootstrap-Code", "wrong")]).await?;
    assert_eq!(status, 401);
    let (status, reply) = ask(&server, &[from_elsewhere, ("X-Bootstrap-Code", &code)]).await?;
    let key = reply["bootstrap_admin_api_key"].as_str();
    ensure!(status == 200 && key.is_some(), "{status} {reply}");
    assert!(!file.exists());
    let (status, _) = ask(&server, &[from_elsewhere, ("X-Bootstrap-Code", &code)]).await?;
    assert_eq!(status, 401);
    Ok(())
}

/// What proxies on this machine say that do not tell for whom they ask: HTTP/1.0, or a header of theirs.
async fn a_proxy_of_this_machine_is_somebody_else(bus: Bus) -> Result<()> {
    let (server, _node) = keyed(bus).await?;
    let host = format!("Host: 127.0.0.1:{}\r\n", server.port());
    let ask = async |version: &str, more: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).await?;
        let request = format!(
            "POST /api/v1/auth/bootstrap {version}\r\n{host}{more}Connection: close\r\nContent-Length: 0\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        anyhow::Ok(answer)
    };
    for (version, more) in [
        ("HTTP/1.0", ""),
        ("HTTP/1.1", "Via: 1.0 proxy\r\n"),
        ("HTTP/1.1", "Forwarded: for=203.0.113.7\r\n"),
        ("HTTP/1.1", "X-Real-IP: 203.0.113.7\r\n"),
        ("HTTP/1.1", "X-Forwarded-Host: tg.example\r\n"),
        ("HTTP/1.1", "X-Forwarded-Proto: https\r\n"),
    ] {
        let answer = ask(version, more).await?;
        let refused = answer.contains(" 401 ") && !answer.contains("tg_");
        ensure!(refused, "{version} {more}: {answer}");
    }
    let answer = ask("HTTP/1.1", "").await?;
    ensure!(
        answer.contains(" 200 ") && answer.contains("tg_"),
        "{answer}"
    );
    Ok(())
}

async fn the_commands_work_from_the_terminal(bus: Bus) -> Result<()> {
    let (server, _node) = keyed(bus).await?;
    let ran = official(&server.url(), "tg-bootstrap-iam", &[]).await?;
    ran.expect("tg_")?;
    let (server, _node) = keyed(bus).await?;
    let code = std::fs::read_to_string(server.data().join("bootstrap-code"))?;
    let args = ["bootstrap-iam", "--code", code.trim()];
    let ran = tg(&server.url(), &args).await?;
    let key = ran.expect("tg_")?.stdout.trim().to_owned();
    ensure!(key.starts_with("tg_"), "{key}");
    let ran = tg(&server.url(), &["bootstrap-iam"]).await?;
    ran.code.filter(|code| *code != 0).context("a second key")?;
    Ok(())
}

on_both_buses!(
    it_is_said_at_each_start_until_it_is_used,
    pages_and_scanners_get_nothing_and_the_code_opens_once,
    a_proxy_of_this_machine_is_somebody_else,
    the_commands_work_from_the_terminal,
    a_terminal_is_shown_the_code,
);

/// What is shown at a terminal is the code itself, from all services or from the one that asks for it.
async fn a_terminal_is_shown_the_code(bus: Bus) -> Result<()> {
    let (data, node) = (tempfile::tempdir()?, bus.broker().await?);
    let folder = data.path().to_str().context("a text")?;
    let mut args = vec!["--auth", "iam", "--data-dir", folder];
    args.extend(["--listen", "127.0.0.1:0"]);
    let url = node.as_ref().map(VirtualHost::url);
    match &url {
        None => args.insert(0, "up"),
        Some(url) => args
            .splice(0..0, ["serve", "iam", "--bus", url])
            .for_each(drop),
    }
    // The line is whole when it ends; then Ctrl-C.
    let steps = [("--code ", ""), ("\n", "\u{3}")];
    let shown = program("threadgraph", "", &steps, &args).await?;
    ensure!(shown.code == Some(0), "{shown:?}");
    let code = std::fs::read_to_string(data.path().join("bootstrap-code"))?;
    let whole = format!("--code {}", code.trim());
    let lines = shown.lines();
    ensure!(lines.iter().any(|line| line.ends_with(&whole)), "{lines:?}");
    Ok(())
}

/// A process of its own says where its code is; the one with the gateway has none, and takes that one.
#[tokio::test]
async fn the_process_that_asks_for_it_says_it_over_rabbitmq() -> Result<()> {
    const REST: [&str; 9] = [
        "config",
        "flow",
        "librarian",
        "graph",
        "llm",
        "prompt",
        "tool",
        "agent",
        "gateway",
    ];
    let node = VirtualHost::new().await?;
    let serve = |services: &[&str]| {
        let launch = Launch::serve(services, &node.url());
        launch.arg("--auth").arg("iam")
    };
    let iam = serve(&["iam"]).spawn().await?;
    let rest = serve(&REST).ready().await?;
    greeted(&iam, "bootstrap-code").await?;
    let code = std::fs::read_to_string(iam.data().join("bootstrap-code"))?;
    for server in [&iam, &rest] {
        assert!(
            !server.log().contains(code.trim()),
            "the code is in the log"
        );
    }
    assert!(!rest.log().contains("the code is in"), "{}", rest.log());
    let from_elsewhere = ("Host", "tg.example");
    let (status, _) = ask(&rest, &[from_elsewhere]).await?;
    assert_eq!(status, 401);
    let with_code = [from_elsewhere, ("X-Bootstrap-Code", code.trim())];
    let (status, reply) = ask(&rest, &with_code).await?;
    let key = reply["bootstrap_admin_api_key"].as_str();
    ensure!(status == 200 && key.is_some(), "{status} {reply}");
    Ok(())
}
