//! A gateway with a certificate serves everybody as one without: requests, events, sockets, our commands and the official
//! ones, each of which looks who it speaks with. A certificate is renewed under way, and a bad one is not taken.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::certificates::{Authority, Certified};
use tg_testkit::model::{Reply, Rule, ScriptedModel, two_step_react};
use tg_testkit::official::official_with;
use tg_testkit::process::{Launch, Output, Server, tg_with};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::world::{Bus, launch, on_both_buses};

/// Longest wait for anything.
const BOUND: Duration = Duration::from_secs(60);
/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// A refusal comes sooner.
const LATER: Duration = Duration::from_secs(60);
/// Longer than the whole test: the model answers when it is told to hurry.
const HELD: Duration = Duration::from_secs(600);
const UNKNOWN: &str = "its certificate is signed by no authority that is trusted here; --ca-file names the file of the one \
                       that signed it";

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A command that must work.
fn done(ran: Output) -> Result<Output> {
    ensure!(ran.code == Some(0), "{ran:?}");
    Ok(ran)
}

async fn everybody_is_served(bus: Bus) -> Result<()> {
    let certified = Certified::new()?;
    let rules = two_step_react("calculator", json!({"expression": "6*7"}), 8);
    let model = ScriptedModel::start(rules).await?;
    let broker = bus.broker().await?;
    let server = launch(&model, broker.as_ref()).secure(&certified);
    let server = server.ready().await?;
    ensure!(server.url().starts_with("https://"), "{}", server.url());
    let greets = async || Ok(server.log().contains(&server.url()));
    until("the greeting names it", greets).await?;
    requests_and_events(&server).await?;
    our_commands(&server, &certified).await?;
    official_commands(&server, &certified).await?;
    strangers_are_told(&server, &certified).await
}

async fn requests_and_events(server: &Server) -> Result<()> {
    let client = server.client()?;
    let path = format!("{}api/v1/flow/default/service/agent", server.url());
    let ask = json!({"question": "What is it? nonce-rest"});
    let answer = client.post(&path).json(&ask).send().await?;
    let answer: Value = answer.json().await?;
    ensure!(answer.to_string().contains("nonce-rest"), "{answer}");
    let events = client.post(&path).header("accept", "text/event-stream");
    let events = events.json(&json!({"question": "What is it? nonce-events"}));
    let events = events.send().await?.text().await?;
    ensure!(
        events.contains("nonce-events") && events.trim_end().ends_with("event: end\ndata: {}"),
        "{events}"
    );
    Ok(())
}

async fn our_commands(server: &Server, certified: &Certified) -> Result<()> {
    let (url, ca) = (server.url(), text(&certified.ca()));
    // By a socket and by requests; named by a variable, by an argument and by a profile.
    let variable = [("THREADGRAPH_CA_FILE", ca.as_str())];
    let ask = ["invoke-agent", "-q", "What is it? nonce-ours"];
    done(tg_with(&url, &variable, &ask).await?)?.expect("nonce-ours")?;
    let secure = url.replacen("https", "wss", 1);
    let shown = tg_with(&secure, &[], &["show-flows", "--ca-file", &ca]).await?;
    done(shown)?.expect("everything")?;
    let doctor = tg_with(&url, &variable, &["doctor"]).await?;
    doctor.expect("certificate: good until 4096-01-01")?;
    let home = tempfile::tempdir()?;
    let home = [
        ("XDG_CONFIG_HOME", text(home.path())),
        ("HOME", text(home.path())),
    ];
    let home: Vec<(&str, &str)> = home.iter().map(|(name, at)| (*name, at.as_str())).collect();
    done(tg_with(&url, &home, &["login", "--ca-file", &ca]).await?)?;
    done(tg_with(&url, &home, &["show-flows"]).await?)?.expect("everything")?;
    let ask = ["invoke-agent", "-q", "What is it? nonce-profile"];
    done(tg_with(&url, &home, &ask).await?)?.expect("nonce-profile")?;
    Ok(())
}

async fn official_commands(server: &Server, certified: &Certified) -> Result<()> {
    let (url, ca) = (server.url(), text(&certified.ca()));
    let trusting = [("REQUESTS_CA_BUNDLE", ca.as_str()), ("SSL_CERT_FILE", &ca)];
    let run = async |command, args: &[&str]| official_with(&url, &trusting, command, args).await;
    done(run("tg-show-flows", &[]).await?)?.expect("everything")?;
    let ask = ["-q", "What is it? nonce-official"];
    done(run("tg-invoke-agent", &ask).await?)?.expect("nonce-official")?;
    let ask = ["-v", "-q", "What is it? nonce-streamed"];
    done(run("tg-invoke-agent", &ask).await?)?.expect("nonce-streamed")?;
    Ok(())
}

/// Who trusts somebody else, or speaks plain HTTP, is told so at once.
async fn strangers_are_told(server: &Server, certified: &Certified) -> Result<()> {
    let other = Certified::new()?;
    let (url, other) = (server.url(), text(&other.ca()));
    for variables in [&[][..], &[("THREADGRAPH_CA_FILE", other.as_str())]] {
        for command in [&["show-flows"][..], &["invoke-agent", "-q", "x"]] {
            let began = Instant::now();
            let ran = tg_with(&url, variables, command).await?;
            ensure!(
                ran.code != Some(0) && ran.stderr.contains(UNKNOWN),
                "{ran:?}"
            );
            ensure!(began.elapsed() < LATER, "{command:?}");
        }
    }
    let named = ["show-flows", "--ca-file", "/nowhere.pem"];
    let ran = tg_with(&url, &[], &named).await?;
    let wanted = "--ca-file /nowhere.pem: the file cannot be read";
    ensure!(
        ran.code == Some(2) && ran.stderr.contains(wanted),
        "{ran:?}"
    );
    let plain = url.replacen("https", "http", 1);
    for command in [&["show-flows"][..], &["invoke-agent", "-q", "x"]] {
        let ran = tg_with(&plain, &[], command).await?;
        let told = ran.stderr.contains("this port speaks https, not http");
        ensure!(ran.code != Some(0) && told, "{ran:?}");
    }
    // Nothing of the key, and nothing of these strangers as a warning.
    let (log, key) = (server.log(), &certified.issued.key);
    let line = key.lines().nth(1).context("a key")?;
    ensure!(
        !log.contains(line) && !log.contains("WARN tg_gateway"),
        "{log}"
    );
    Ok(())
}

/// Waits until something holds.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + BOUND;
    while !holds().await? {
        ensure!(Instant::now() < end, "{what}");
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// The value of a metric, if it is told.
async fn metric(server: &Server, name: &str) -> Result<Option<String>> {
    let metrics = server.client()?.get(format!("{}metrics", server.url()));
    let metrics = metrics.send().await?.text().await?;
    let mut lines = metrics.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Ok(value.map(str::to_owned))
}

async fn gauge(server: &Server, name: &str) -> Result<String> {
    metric(server, name).await?.context("no such metric")
}

const REFUSED: &str = "tg_gateway_certificate_refused";

async fn a_certificate_is_renewed_under_way(bus: Bus) -> Result<()> {
    let mut certified = Certified::new()?;
    // Answers after the certificate was renewed.
    let slow = Rule::always(Reply::text("At last.").delayed(HELD));
    let model = ScriptedModel::start(vec![slow]).await?;
    let broker = bus.broker().await?;
    let server = launch(&model, broker.as_ref()).secure(&certified);
    let server = server.ready().await?;
    let port = server.port();
    let first = certified.shown(port).await?;
    let ask = json!({"system": "s", "prompt": "p", "streaming": true});
    let path = format!(
        "{}api/v1/flow/default/service/text-completion",
        server.url()
    );
    let asked = server.client()?.post(path).json(&ask);
    let asked = asked.header("accept", "text/event-stream").send().await?;
    until("the model is asked", async || Ok(model.count() > 0)).await?;

    certified.put(certified.authority.issue()?)?;
    let second = certified.issued.der.clone();
    ensure!(first != second, "another one");
    let renewed = async || Ok(certified.shown(port).await? == second);
    until("newcomers are shown the new one", renewed).await?;
    ensure!(gauge(&server, REFUSED).await? == "0", "{}", server.log());
    model.hurry();
    let events = asked.text().await?;
    let whole = events.contains("At last.") && events.trim_end().ends_with("data: {}");
    ensure!(whole, "the stream went on: {events}");

    certified.spoil()?;
    let told = "a new certificate cannot be used, the one before stays: gateway.tls_cert: the file must hold certificates \
                in PEM form";
    until("a broken one is told", async || {
        Ok(server.log().contains(told))
    })
    .await?;
    ensure!(
        certified.shown(port).await? == second,
        "the one before stays"
    );
    until("and shows", async || {
        Ok(gauge(&server, REFUSED).await? == "1")
    })
    .await?;
    let ca = text(&certified.ca());
    let variable = [("THREADGRAPH_CA_FILE", ca.as_str())];
    let doctor = tg_with(&server.url(), &variable, &["doctor"]).await?;
    ensure!(doctor.code != Some(0), "{doctor:?}");
    doctor.expect("✗ certificate: its files hold none that can be used")?;
    certified.put(certified.authority.issue_until(4000)?)?;
    until("it mends", async || {
        Ok(gauge(&server, REFUSED).await? == "0")
    })
    .await?;
    let ends = gauge(&server, "tg_gateway_certificate_expiry_timestamp_seconds").await?;
    ensure!(ends == "64060588800", "{ends}");
    ensure!(server.log().matches(told).count() == 1, "told once");
    Ok(())
}

on_both_buses!(everybody_is_served, a_certificate_is_renewed_under_way);

/// Connections that never speak, and some that speak plain HTTP and never end.
#[tokio::test]
async fn half_a_handshake_is_in_nobodys_way() -> Result<()> {
    let certified = Certified::new()?;
    let server = Launch::up().secure(&certified).ready().await?;
    let mut half = Vec::new();
    for n in 0..200 {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).await?;
        if n % 2 == 0 {
            stream.write_all(&[0x16, 3, 1, 2, 0]).await?;
        }
        half.push(stream);
    }
    let live = server.client()?.get(format!("{}health/live", server.url()));
    let live = tokio::time::timeout(Duration::from_secs(5), live.send()).await??;
    ensure!(live.status() == 200, "{live:?}");
    let mut plain = TcpStream::connect(("127.0.0.1", server.port())).await?;
    plain.write_all(b"POST / HTTP/1.1\r\n").await?;
    let mut told = String::new();
    let reading = plain.read_to_string(&mut told);
    tokio::time::timeout(Duration::from_secs(60), reading).await??;
    ensure!(told.starts_with("HTTP/1.1 400 "), "{told}");
    let plain = "tg_gateway_handshakes_failed_total{reason=\"plain\"}";
    let counted = async || Ok(metric(&server, plain).await?.as_deref() == Some("1"));
    until("it is counted", counted).await?;
    Ok(())
}

/// Starts one that must not come up; the last line of what it said.
async fn refused(certified: &Certified, key: Option<&Path>) -> Result<String> {
    let mut launch = Launch::up().env("THREADGRAPH_GATEWAY__TLS_CERT", text(&certified.cert()));
    if let Some(key) = key {
        launch = launch.env("THREADGRAPH_GATEWAY__TLS_KEY", text(key));
    }
    let (code, log) = launch.spawn().await?.ended().await?;
    ensure!(code == Some(2), "{code:?}\n{log}");
    Ok(log.lines().last().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn files_that_cannot_serve_are_refused_at_the_start() -> Result<()> {
    let certified = Certified::new()?;
    let told = refused(&certified, None).await?;
    let wanted = "setting gateway.tls_key: is required beside gateway.tls_cert";
    ensure!(told == wanted, "{told}");
    let folder = tempfile::tempdir()?;
    let key = folder.path().join("key");
    let told = refused(&certified, Some(&key)).await?;
    let wanted = "setting gateway.tls_key: the file cannot be read (entity not found)";
    ensure!(told == wanted, "{told}");
    std::fs::write(&key, Authority::new("other")?.issue()?.key)?;
    let told = refused(&certified, Some(&key)).await?;
    let wanted =
        "setting gateway.tls_key: the key must be the one that the certificate was made for";
    ensure!(told == wanted, "{told}");
    let server = Launch::up().secure(&certified);
    std::fs::set_permissions(certified.key(), std::fs::Permissions::from_mode(0o644))?;
    let server = server.ready().await?;
    let told = "gateway.tls_key: other accounts of this machine may read the file";
    ensure!(server.log().contains(told), "{}", server.log());
    Ok(())
}
