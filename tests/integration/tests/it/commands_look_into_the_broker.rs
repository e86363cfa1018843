//! The two official commands that look into the message broker, unmodified: what they see of each mode, and what they say
//! where there is no broker.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use tg_testkit::model::{ScriptedModel, two_step_react};
use tg_testkit::official::official;
use tg_testkit::process::{Server, free_port, root};
use tg_testkit::shared_node::VirtualHost;
use tg_testkit::socket::{Socket, text_of};
use tokio::process::{Child, Command};

use crate::world::launch;

/// How often what a command has written is looked at, and how many times.
const LOOK: Duration = Duration::from_millis(100);
const LOOKS: usize = 600;
/// A word of the question.
const NONCE: &str = "nonce-of-the-broker-7";

/// Where the reference's commands find a broker.
fn at(host: &str, port: &str, path: &str) -> Vec<String> {
    let args = [
        ("--pubsub-backend", "rabbitmq"),
        ("--rabbitmq-host", host),
        ("--rabbitmq-port", port),
        ("--rabbitmq-vhost", path),
    ];
    let args = args.into_iter().flat_map(|(name, value)| [name, value]);
    args.map(str::to_owned).collect()
}

fn at_host(host: &VirtualHost) -> Result<Vec<String>> {
    // `amqp://guest:guest@127.0.0.1:PORT/NAME`
    let url = host.url();
    let place = url.rsplit_once("127.0.0.1:").context("no port")?.1;
    let (port, path) = place.split_once('/').context("no virtual host")?;
    Ok(at("127.0.0.1", port, path))
}

/// A command that goes on until it is dropped, and what it writes.
struct Running {
    printed: PathBuf,
    _child: Child,
}

impl Running {
    fn start(folder: &Path, command: &str, args: &[String]) -> Result<Self> {
        let printed = folder.join(format!("{command}.out"));
        let out = std::fs::File::create(&printed)?;
        let child = Command::new(root().join(".cache/venv/bin").join(command))
            .args(args)
            .env("PYTHONUNBUFFERED", "1")
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot run {command}: run the set-up first"))?;
        Ok(Self {
            printed,
            _child: child,
        })
    }

    async fn prints(&self, what: &[&str]) -> Result<String> {
        holds(&self.printed, what).await
    }
}

/// Waits until a file has all of these.
async fn holds(file: &Path, what: &[&str]) -> Result<String> {
    let read = || std::fs::read(file).unwrap_or_default();
    for _ in 0..LOOKS {
        let text = String::from_utf8_lossy(&read()).into_owned();
        if what.iter().all(|what| text.contains(what)) {
            return Ok(text);
        }
        tokio::time::sleep(LOOK).await;
    }
    let text = String::from_utf8_lossy(&read()).into_owned();
    bail!("{} lacks one of {what:?}:\n{text}", file.display())
}

async fn up(mode: &str, host: &VirtualHost) -> Result<(Server, ScriptedModel)> {
    let rules = two_step_react("calculator", json!({"expression": "6*7"}), 8);
    let model = ScriptedModel::start(rules).await?;
    let launch = launch(&model, Some(host)).arg("--mode").arg(mode);
    Ok((launch.ready().await?, model))
}

async fn ask(server: &Server) -> Result<()> {
    let socket = Socket::connect(&server.url(), "").await?;
    let request = json!({"question": format!("What is it? {NONCE}"), "streaming": true});
    let frames = socket.ask("agent", "default", request).await?;
    ensure!(text_of(&frames, "answer").contains(NONCE), "{frames:#?}");
    Ok(())
}

fn texts(of: &[&str]) -> Vec<String> {
    of.iter().map(|text| (*text).to_owned()).collect()
}

/// Questions and records are what the reference's are, and so the commands see them.
#[tokio::test]
async fn in_interop_mode_they_see_what_passes() -> Result<()> {
    let host = VirtualHost::new().await?;
    let (server, _model) = up("interop", &host).await?;
    let folder = tempfile::tempdir()?;
    let place = at_host(&host)?;
    let queues = [
        "request:tg:prompt-rag:default:default",
        "flow:tg:triples-store:default:default",
    ];
    let args = [texts(&queues), place.clone()].concat();
    let dump = Running::start(folder.path(), "tg-dump-queues", &args)?;
    // The flow alone names no queue of its own release: the workspace stands before it.
    let monitor = [
        texts(&["--flow", "default:default", "--max-lines", "40"]),
        place,
    ]
    .concat();
    let monitor = Running::start(folder.path(), "tg-monitor-prompts", &monitor)?;
    let [questions, records] = queues;
    dump.prints(&[
        "Monitoring 2 queue(s):",
        &format!("  Subscribed to: {questions}"),
        &format!("  Subscribed to: {records}"),
        "Listening for messages...",
    ])
    .await?;
    monitor.prints(&["Listening..."]).await?;
    ask(&server).await?;
    let dumped = holds(
        &folder.path().join("queue.log"),
        &[
            &format!("Queue: {questions}"),
            &format!("Queue: {records}"),
            NONCE,
            "\"terms\": {",
            "\"triples\": [",
        ],
    )
    .await?;
    ensure!(!dumped.contains("Error"), "{dumped}");
    dump.prints(&[
        &format!("{questions}: Message received"),
        &format!("{records}: Message received"),
    ])
    .await?;
    let seen = monitor
        .prints(&[
            "  Request:  request:tg:prompt-rag:default:default",
            "template=agent-react [streaming]",
            NONCE,
        ])
        .await?;
    ensure!(seen.matches(" REQ  ").count() >= 2, "{seen}");
    Ok(())
}

/// Ours have names and bodies of their own: the command is told the names, and cannot read the bodies.
#[tokio::test]
async fn in_native_mode_they_see_that_records_pass_and_nothing_else() -> Result<()> {
    let host = VirtualHost::new().await?;
    let (server, _model) = up("native", &host).await?;
    let folder = tempfile::tempdir()?;
    let place = at_host(&host)?;
    let queues = [
        "flow:nt:triples-store:default:default",
        "flow:tg:triples-store:default:default",
        "request:nt:agent:default:default",
    ];
    let args = [texts(&queues), place.clone()].concat();
    let dump = Running::start(folder.path(), "tg-dump-queues", &args)?;
    let monitor = Running::start(folder.path(), "tg-monitor-prompts", &place)?;
    let [ours, theirs, question] = queues;
    dump.prints(&[
        &format!("  Subscribed to: {ours}"),
        &format!("  Subscribed to: {theirs}"),
        &format!("  Error subscribing to {question}: PRECONDITION_FAILED"),
        "Listening for messages...",
    ])
    .await?;
    monitor.prints(&["Listening..."]).await?;
    ask(&server).await?;
    let dumped = holds(
        &folder.path().join("queue.log"),
        &[&format!("Queue: {ours}"), "<Error formatting message: "],
    )
    .await?;
    ensure!(!dumped.contains(&format!("Queue: {theirs}")), "{dumped}");
    let seen = monitor
        .prints(&["  Request:  request:tg:prompt-rag:default"])
        .await?;
    ensure!(!seen.contains("REQ") && !seen.contains("RESP"), "{seen}");
    Ok(())
}

/// The embedded bus is inside of a process: there is nothing to connect to.
#[tokio::test]
async fn on_the_embedded_bus_they_cannot_connect() -> Result<()> {
    let port = free_port()?.to_string();
    let place = at("127.0.0.1", &port, "/");
    let place: Vec<&str> = place.iter().map(String::as_str).collect();
    let queue = "flow:tg:triples-store:default:default";
    let dumped = official("", "tg-dump-queues", &[&[queue], &place[..]].concat()).await?;
    ensure!(dumped.code == Some(1), "{dumped:?}");
    let told = format!("  Error subscribing to {queue}: ");
    ensure!(dumped.stderr.contains(&told), "{dumped:?}");
    ensure!(
        dumped.stderr.contains("No consumers created. Exiting."),
        "{dumped:?}"
    );
    let watched = official("", "tg-monitor-prompts", &place).await?;
    ensure!(watched.code == Some(1), "{watched:?}");
    let told = "Fatal error: [Errno 111] Connect call failed";
    ensure!(watched.stderr.contains(told), "{watched:?}");
    Ok(())
}
