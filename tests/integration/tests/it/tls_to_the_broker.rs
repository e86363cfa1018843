//! A broker that speaks TLS: everything goes over it, and whoever is not who they say they are is told by the setting.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tg_testkit::certificates::Certified;
use tg_testkit::model::{ScriptedModel, two_step_react};
use tg_testkit::process::{Launch, Server};
use tg_testkit::rabbitmq::{RabbitNode, Secured};

use crate::world::{launch, post};

/// Sooner than a broker that is away is given up.
const SOON: Duration = Duration::from_secs(60);
/// Longest wait for a broker that comes back.
const BOUND: Duration = Duration::from_secs(90);
/// Pause between two questions to a system whose broker was away.
const RETRY_DELAY: Duration = Duration::from_millis(500);

async fn node(certified: &Certified, asks: bool) -> Result<RabbitNode> {
    let secured = Secured {
        ca: certified.ca(),
        cert: certified.cert(),
        key: certified.key(),
        asks,
    };
    RabbitNode::start_secured(&secured).await
}

fn with(launch: Launch, bus: &str, files: &[(&str, &Path)]) -> Launch {
    let launch = launch.arg("--bus").arg(bus);
    files.iter().fold(launch, |launch, (name, path)| {
        let name = format!("THREADGRAPH_BUS_TLS__{name}");
        launch.env(&name, path.to_string_lossy())
    })
}

async fn answers(server: &Server, nonce: &str) -> Result<Value> {
    let ask = json!({"question": format!("What is it? {nonce}")});
    let path = "api/v1/flow/default/service/agent";
    let (status, answer) = post(&server.url(), path, ask).await?;
    ensure!(status == 200, "{status} {answer}");
    Ok(answer)
}

/// Starts one that must not come up; the last line of what it said.
async fn refused(bus: &str, files: &[(&str, &Path)], code: i32) -> Result<String> {
    let began = Instant::now();
    let server = with(Launch::up(), bus, files).spawn().await?;
    let (ended, log) = server.ended().await?;
    ensure!(ended == Some(code), "{ended:?}\n{log}");
    ensure!(began.elapsed() < SOON, "at once\n{log}");
    Ok(log.lines().last().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn everything_goes_over_it_and_comes_back_after_an_outage() -> Result<()> {
    let certified = Certified::new()?;
    let mut node = node(&certified, false).await?;
    let rules = two_step_react("calculator", json!({"expression": "6*7"}), 8);
    let model = ScriptedModel::start(rules).await?;
    let ca = certified.ca();
    let server = with(launch(&model, None), &node.secure_url()?, &[("CA", &ca)]);
    let server = server.ready().await?;
    let answer = answers(&server, "nonce-secure").await?;
    ensure!(answer.to_string().contains("nonce-secure"), "{answer}");
    let listed = node.ctl(&["list_connections", "ssl"]).await?;
    let secure = listed.lines().filter(|line| line.trim() == "true").count();
    ensure!(secure >= 2 && !listed.contains("false"), "{listed}");

    node.restart().await?;
    let end = Instant::now() + BOUND;
    loop {
        let answer = answers(&server, "nonce-again").await?;
        if answer.to_string().contains("nonce-again") {
            break;
        }
        ensure!(Instant::now() < end, "{answer}\n{}", server.log());
        tokio::time::sleep(RETRY_DELAY).await;
    }
    let log = server.log();
    ensure!(!log.contains("there is no secure connection"), "{log}");
    Ok(())
}

#[tokio::test]
async fn a_broker_that_nobody_vouches_for_is_refused() -> Result<()> {
    let certified = Certified::new()?;
    let node = node(&certified, false).await?;
    let (secure, other) = (node.secure_url()?, Certified::new()?);
    let wanted = "threadgraph: bus_tls.ca: the broker's certificate is signed by no authority that is trusted; bus_tls.ca \
                  names the file of the one that signed it";
    let ca = other.ca();
    for files in [&[][..], &[("CA", ca.as_path())]] {
        let told = refused(&secure, files, 1).await?;
        ensure!(told == wanted, "{told}");
    }
    let plain = node.url();
    let told = refused(&plain.replacen("amqp", "amqps", 1), &[], 1).await?;
    let wanted = "threadgraph: bus: the broker speaks no TLS at this port; amqps:// needs the port of its TLS listener";
    ensure!(told == wanted, "{told}");
    // Without it nothing would be secure.
    let told = refused(&plain, &[("CA", &ca)], 2).await?;
    let wanted = "setting bus: must begin with amqps:// where bus_tls.… is given: nothing would be encrypted";
    ensure!(told == wanted, "{told}");
    let told = refused(&secure, &[("CA", Path::new("/nowhere.pem"))], 2).await?;
    let wanted = "setting bus_tls.ca: the file cannot be read (entity not found)";
    ensure!(told == wanted, "{told}");
    let told = refused(&secure, &[("CA", &ca), ("CERT", &certified.cert())], 2).await?;
    let wanted = "setting bus_tls.key: is required beside bus_tls.cert";
    ensure!(told == wanted, "{told}");
    Ok(())
}

#[tokio::test]
async fn a_broker_that_asks_is_shown_a_certificate() -> Result<()> {
    let certified = Certified::new()?;
    let node = node(&certified, true).await?;
    let (secure, other) = (node.secure_url()?, Certified::new()?);
    let (ca, cert, key) = (certified.ca(), certified.cert(), certified.key());
    let told = refused(&secure, &[("CA", &ca)], 1).await?;
    let wanted = "threadgraph: bus_tls.cert: the broker asks for a certificate; bus_tls.cert and bus_tls.key name its files";
    ensure!(told == wanted, "{told}");
    let unknown = [
        ("CA", ca.as_path()),
        ("CERT", &other.cert()),
        ("KEY", &other.key()),
    ];
    let told = refused(&secure, &unknown, 1).await?;
    let wanted = "threadgraph: bus_tls.cert: the broker does not take the certificate that bus_tls.cert names";
    ensure!(told == wanted, "{told}");
    let rules = two_step_react("calculator", json!({"expression": "6*7"}), 8);
    let model = ScriptedModel::start(rules).await?;
    let known = [("CA", ca.as_path()), ("CERT", &cert), ("KEY", &key)];
    let server = with(launch(&model, None), &secure, &known).ready().await?;
    let answer = answers(&server, "nonce-shown").await?;
    ensure!(answer.to_string().contains("nonce-shown"), "{answer}");
    Ok(())
}
