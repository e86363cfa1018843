//! A flow is stopped under load: what was sent is finished, parked or thrown away, and the receipt says so;
//! nothing of the flow is left on the broker, others go on, and a new flow of the same id starts clean.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tg_testkit::model::ScriptedModel;
use tg_testkit::process::{Launch, Server, tg};
use tg_testkit::shared_node::VirtualHost;
use tg_testkit::socket::Socket;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;

use crate::traces::{Ended, begin, end, slow};
use crate::world::launch;

/// The flow that is stopped; a name that nothing else has.
const FLOW: &str = "ephemeral-7";
/// Frames of an import, one triple each.
const FRAMES: usize = 300;
/// Runs at a time in each flow.
const RUNS: usize = 10;
/// Whoever writes records.
const WRITER: &str = "triples-write";
const PAUSE: Duration = Duration::from_millis(10);
const BOUND: Duration = Duration::from_secs(60);
/// Between two looks at the broker.
const LOOK: Duration = Duration::from_millis(100);
const OTHERS: &[&str] = &[
    "config",
    "iam",
    "flow",
    "librarian",
    "llm",
    "prompt",
    "tool",
    "agent",
    "gateway",
];

/// A system; over a broker the graph is a process of its own, so that it can be taken away.
struct System {
    server: Server,
    graph: Option<Server>,
    graph_again: Option<Launch>,
    node: Option<VirtualHost>,
    socket: Socket,
    model: ScriptedModel,
}

impl System {
    async fn embedded() -> Result<Self> {
        Self::embedded_in(None).await
    }

    async fn embedded_in(data: Option<&Path>) -> Result<Self> {
        Self::of_one(ScriptedModel::start(slow(PAUSE)).await?, data).await
    }

    async fn of_one(model: ScriptedModel, data: Option<&Path>) -> Result<Self> {
        let mut launched = launch(&model, None);
        if let Some(data) = data {
            launched = launched.data(data);
        }
        let server = launched.ready().await?;
        let socket = Socket::connect(&server.url(), "").await?;
        Ok(Self {
            server,
            graph: None,
            graph_again: None,
            node: None,
            socket,
            model,
        })
    }

    async fn rabbit() -> Result<Self> {
        let model = ScriptedModel::start(slow(PAUSE)).await?;
        let node = VirtualHost::new().await?;
        let mut others = launch(&model, None).arg("--bus").arg(node.url());
        others.services = OTHERS.iter().map(|name| (*name).to_owned()).collect();
        let mut server = others.spawn().await?;
        let graph_again = Launch::serve(&["graph"], &node.url()).data(&server.data().join("apart"));
        let graph = graph_again.clone().spawn().await?;
        server.wait_ready().await?;
        let socket = Socket::connect(&server.url(), "").await?;
        Ok(Self {
            server,
            graph: Some(graph),
            graph_again: Some(graph_again),
            node: Some(node),
            socket,
            model,
        })
    }

    /// Kills the one process; the model is left.
    async fn kill(self) -> Result<ScriptedModel> {
        self.server.kill9().await?;
        Ok(self.model)
    }

    /// Takes the graph away, where it is a process of its own.
    async fn without_graph(&mut self) -> Result<()> {
        if let Some(graph) = self.graph.take() {
            graph.kill9().await?;
        }
        Ok(())
    }

    async fn with_graph(&mut self) -> Result<()> {
        if let Some(graph) = &self.graph_again {
            self.graph = Some(graph.clone().spawn().await?);
        }
        self.server.wait_ready().await
    }

    async fn tg(&self, args: &[&str]) -> Result<Value> {
        let args = [args, &["--json"]].concat();
        let output = tg(&self.server.url(), &args).await?;
        ensure!(output.code == Some(0), "{args:?}: {output:?}");
        serde_json::from_str(&output.stdout).with_context(|| format!("{args:?}: {output:?}"))
    }

    async fn start(&self) -> Result<()> {
        let what = [
            "start-flow",
            "-n",
            "everything",
            "-i",
            FLOW,
            "-d",
            "soon over",
        ];
        self.tg(&what).await?;
        Ok(())
    }

    async fn stop(&self, drain: &str) -> Result<Value> {
        let receipt = self
            .tg(&["stop-flow", "-i", FLOW, "--drain", drain])
            .await?;
        self.nothing_left().await?;
        adds_up(&receipt)?;
        Ok(receipt)
    }

    /// The broker has nothing with the flow's name.
    async fn nothing_left(&self) -> Result<()> {
        let Some(node) = &self.node else {
            return Ok(());
        };
        let end = Instant::now() + BOUND;
        loop {
            let names = node.names().await?.into_iter();
            let left: Vec<_> = names.filter(|name| name.contains(FLOW)).collect();
            if left.is_empty() {
                return Ok(());
            }
            ensure!(Instant::now() < end, "left on the broker: {left:?}");
            sleep(LOOK).await;
        }
    }

    /// Imports triples under a name and returns once all of them are confirmed.
    async fn import(&self, name: &str, frames: usize) -> Result<()> {
        let url = self.server.url().replacen("http", "ws", 1);
        let url = format!("{url}api/v1/flow/{FLOW}/import/triples?ack=1");
        let (stream, _) = tokio_tungstenite::connect_async(&url).await?;
        let (mut sink, mut source) = stream.split();
        let write = async {
            for n in 0..frames {
                let frame = json!({
                    "metadata": {"id": "i", "collection": "default", "metadata": []},
                    "triples": [{
                        "s": {"t": "i", "i": format!("urn:test:{name}:{n}")},
                        "p": {"t": "i", "i": format!("urn:test:{name}")},
                        "o": {"t": "l", "v": "x"},
                    }],
                });
                sink.send(Message::text(frame.to_string())).await?;
            }
            anyhow::Ok(())
        };
        let read = async {
            while let Some(message) = source.next().await {
                let message = message?;
                let Ok(frame) = serde_json::from_str::<Value>(message.to_text()?) else {
                    continue;
                };
                if frame["confirmed"]["frames"] == json!(frames) {
                    return Ok(());
                }
            }
            anyhow::bail!("the import ended early")
        };
        let (wrote, confirmed) = timeout(BOUND, async { tokio::join!(write, read) }).await?;
        wrote?;
        confirmed
    }

    /// How many triples of an import are in the graph.
    async fn written(&self, name: &str) -> Result<u64> {
        let request = json!({
            "p": {"t": "i", "i": format!("urn:test:{name}")}, "limit": 10_000, "collection": "default",
        });
        let frames = self.socket.ask("triples", "default", request).await?;
        let found = frames.iter().map(|frame| &frame["response"]["response"]);
        Ok(found
            .filter_map(Value::as_array)
            .map(|found| found.len() as u64)
            .sum())
    }

    /// Waits until that many are there.
    async fn until_written(&self, name: &str, count: u64) -> Result<()> {
        let mut written = 0;
        for _ in 0..1_200 {
            written = self.written(name).await.unwrap_or(written);
            if written >= count {
                break;
            }
            sleep(Duration::from_millis(50)).await;
        }
        ensure!(
            written == count,
            "{name}: {written} of {count} are in the graph"
        );
        Ok(())
    }

    /// Runs that are under way; the future waits for their ends: those of the other flow answer, those of
    /// this one as the caller likes. It says how many of these answered.
    async fn runs(
        &self,
        name: &str,
        flows: &[&str],
    ) -> Result<impl Future<Output = Result<usize>> + use<>> {
        let mut mine = Vec::new();
        let mut other = Vec::new();
        for n in 0..RUNS {
            for flow in flows {
                let nonce = format!("nonce-{name}-{flow}-{n}-x");
                let frames = begin(&self.socket, flow, &nonce, false).await?;
                let runs = if *flow == FLOW { &mut mine } else { &mut other };
                runs.push(async move { end(frames, &nonce, BOUND).await });
            }
        }
        Ok(async move {
            let (mine, other) = tokio::join!(join_all(mine), join_all(other));
            for ended in other {
                let ended = ended?;
                ensure!(
                    matches!(ended, Ended::Answered(_)),
                    "another flow: {ended:?}"
                );
            }
            let mut answered = 0;
            for ended in mine {
                match ended? {
                    Ended::Answered(_) => answered += 1,
                    // A test whose runs have to be answered shows why one was not.
                    Ended::Failed(error) => eprintln!("not answered: {error}"),
                }
            }
            Ok(answered)
        })
    }
}

/// A column of the receipt, for whoever writes triples.
fn column(receipt: &Value, name: &str) -> u64 {
    column_of(receipt, name, |subscription| {
        subscription.starts_with(WRITER)
    })
}

/// A column of the receipt, for the queues that it is about.
fn column_of(receipt: &Value, name: &str, of: impl Fn(&str) -> bool) -> u64 {
    let queues = receipt["queues"].as_array().into_iter().flatten();
    queues
        .filter(|queue| of(queue["subscription"].as_str().unwrap_or_default()))
        .filter_map(|queue| queue[name].as_u64())
        .sum()
}

/// Questions to the agent that were answered, before or during the stop.
fn questions(receipt: &Value) -> Result<u64> {
    let asked = |name: &str| name.starts_with("agent-manager--") && name.ends_with("--request");
    let [sent, answered, finished] =
        ["sent", "answered", "finished"].map(|name| column_of(receipt, name, asked));
    ensure!(sent == answered + finished, "{receipt}");
    Ok(sent)
}

/// Of each queue, what was sent is what was answered, finished, parked and discarded.
fn adds_up(receipt: &Value) -> Result<()> {
    let queues = receipt["queues"].as_array().context("no queues")?;
    for queue in queues {
        let count = |name: &str| queue[name].as_u64().context("no count");
        let mut sum = 0;
        for name in ["answered", "finished", "parked", "discarded"] {
            sum += count(name)?;
        }
        // One whose reader was killed is told though nothing is known of it.
        let told = sum > 0 || queue["at-least"] == json!(true);
        ensure!(told && count("sent")? == sum, "{receipt}");
    }
    Ok(())
}

async fn story(mut place: System) -> Result<()> {
    let sent = FRAMES as u64;
    let apart = place.graph.is_some();

    // What is under way is finished.
    place.start().await?;
    let runs = place.runs("wait", &["default", FLOW]).await?;
    place.import("wait", FRAMES).await?;
    let (receipt, answered) = tokio::join!(place.stop("wait"), runs);
    let receipt = receipt?;
    ensure!(answered? == RUNS, "runs are waited for: {receipt}");
    let lost = column(&receipt, "parked") + column(&receipt, "discarded");
    ensure!(lost == 0, "{receipt}");
    ensure!(questions(&receipt)? == RUNS as u64, "{receipt}");
    ensure!(column(&receipt, "sent") >= sent, "{receipt}");
    ensure!(place.written("wait").await? == sent, "{receipt}");

    // What is queued is kept.
    place.start().await?;
    place.without_graph().await?;
    let runs = place.runs("park", &["default"]).await?;
    place.import("park", FRAMES).await?;
    let (receipt, ended) = tokio::join!(place.stop("park"), runs);
    let receipt = receipt?;
    ended?;
    place.with_graph().await?;
    let parked = column(&receipt, "parked");
    ensure!(column(&receipt, "discarded") == 0, "{receipt}");
    ensure!(!apart || parked == sent, "{receipt}");
    ensure!(place.written("park").await? + parked == sent, "{receipt}");
    ensure!(column(&receipt, "sent") == sent, "{receipt}");

    // The next flow of this id sees nothing of it, until it is replayed.
    place.start().await?;
    place.import("fresh", 1).await?;
    place.until_written("fresh", 1).await?;
    ensure!(place.written("park").await? + parked == sent);
    let list = ["parked", "-i", FLOW, "-l", "1000"];
    let listed = place.tg(&list).await?;
    let of_writer = |list: &Value| {
        let list = list.as_array().into_iter().flatten();
        list.filter(|record| {
            let subscription = record["subscription"].as_str();
            subscription.is_some_and(|name| name.starts_with(WRITER))
        })
        .count() as u64
    };
    ensure!(of_writer(&listed) == parked, "{listed}");
    for _ in 0..10 {
        if of_writer(&place.tg(&list).await?) == 0 {
            break;
        }
        place.tg(&["parked", "-i", FLOW, "--replay-all"]).await?;
    }
    place.until_written("park", sent).await?;

    // What is queued is thrown away, as asked.
    place.without_graph().await?;
    let runs = place.runs("discard", &["default"]).await?;
    place.import("discard", FRAMES).await?;
    let (receipt, ended) = tokio::join!(place.stop("discard"), runs);
    let receipt = receipt?;
    ended?;
    place.with_graph().await?;
    let discarded = column(&receipt, "discarded");
    ensure!(column(&receipt, "parked") == 0, "{receipt}");
    ensure!(!apart || discarded == sent, "{receipt}");
    ensure!(
        place.written("discard").await? + discarded == sent,
        "{receipt}"
    );
    ensure!(of_writer(&place.tg(&list).await?) == 0);

    place.start().await?;
    place.import("last", 1).await?;
    place.until_written("last", 1).await?;
    ensure!(place.written("discard").await? + discarded == sent);
    let nonce = "nonce-last-x";
    let frames = begin(&place.socket, FLOW, nonce, false).await?;
    let ended = end(frames, nonce, BOUND).await?;
    ensure!(matches!(ended, Ended::Answered(_)), "{ended:?}");

    // Nothing is under way: what was sent was answered before, but for what was just ending.
    let receipt = place.stop("park").await?;
    ensure!(questions(&receipt)? == 1, "{receipt}");
    ensure!(column(&receipt, "sent") >= 1, "{receipt}");
    ensure!(column_of(&receipt, "answered", |_| true) > 0, "{receipt}");
    place.start().await?;

    // Runs that nobody waits for end, in whatever way.
    for drain in ["park", "discard"] {
        let runs = place.runs(drain, &["default", FLOW]).await?;
        let (receipt, ended) = tokio::join!(place.stop(drain), runs);
        receipt?;
        ended?;
        place.start().await?;
    }
    Ok(())
}

/// Queues of which a receipt says that there may be more.
fn at_least(receipt: &Value) -> Vec<&str> {
    let queues = receipt["queues"].as_array().into_iter().flatten();
    let partly = queues.filter(|queue| queue["at-least"] == json!(true));
    partly
        .filter_map(|queue| queue["subscription"].as_str())
        .collect()
}

/// One process of several is killed: what it served is told as the least there was, all else as it was.
async fn a_killed_process_is_on_the_receipt(again: bool) -> Result<()> {
    let mut place = System::rabbit().await?;
    place.start().await?;
    let runs = place.runs("kill", &[FLOW]).await?;
    ensure!(runs.await? == RUNS);
    place.import("kill", FRAMES).await?;
    place.until_written("kill", FRAMES as u64).await?;
    place.without_graph().await?;
    if again {
        place.with_graph().await?;
        place.import("again", FRAMES).await?;
        place.until_written("again", FRAMES as u64).await?;
    }
    let receipt = place.stop("park").await?;
    ensure!(receipt["at-least"] == json!(true), "{receipt}");
    let partly = at_least(&receipt);
    let of = |who: &str| partly.iter().any(|name| name.starts_with(who));
    ensure!(of(WRITER) && !of("agent-manager--"), "{receipt}");
    ensure!(questions(&receipt)? == RUNS as u64, "{receipt}");
    let least = if again { FRAMES as u64 } else { 0 };
    ensure!(column(&receipt, "answered") >= least, "{receipt}");
    place.with_graph().await?;

    // Of the next start nobody was killed.
    place.start().await?;
    place.import("next", 1).await?;
    place.until_written("next", 1).await?;
    let receipt = place.stop("park").await?;
    ensure!(receipt.get("at-least").is_none(), "{receipt}");
    ensure!(at_least(&receipt).is_empty(), "{receipt}");
    ensure!(column(&receipt, "sent") >= 1, "{receipt}");
    Ok(())
}

#[tokio::test]
async fn a_killed_process_is_on_the_receipt_over_rabbitmq() -> Result<()> {
    a_killed_process_is_on_the_receipt(false).await
}

#[tokio::test]
async fn one_that_was_killed_and_came_back_is_on_the_receipt_over_rabbitmq() -> Result<()> {
    a_killed_process_is_on_the_receipt(true).await
}

/// The one process is killed: nothing that was answered before is known any more, and `tg stop-flow` says so.
#[tokio::test]
async fn a_killed_system_is_on_the_receipt() -> Result<()> {
    let data = tempfile::tempdir()?;
    let mut place = System::embedded_in(Some(data.path())).await?;
    place.start().await?;
    place.import("kill", FRAMES).await?;
    place.until_written("kill", FRAMES as u64).await?;
    let model = place.kill().await?;
    place = System::of_one(model, Some(data.path())).await?;
    place.import("again", 3).await?;
    place.until_written("again", 3).await?;
    let told = tg(&place.server.url(), &["stop-flow", "-i", FLOW]).await?;
    ensure!(told.code == Some(0), "{told:?}");
    ensure!(told.stdout.contains("\n+ at least: "), "{told:?}");
    let writer = told.stdout.lines().find(|line| line.contains(WRITER));
    let writer = writer.context("no line of the writer")?;
    let counts: Vec<&str> = writer.split('|').map(str::trim).collect();
    let number = |at: usize| counts[at].strip_suffix('+').unwrap_or_default().parse();
    let (sent, answered): (u64, u64) = (number(2)?, number(3)?);
    ensure!(sent >= answered && sent >= 3, "{writer}");
    ensure!(sent < FRAMES as u64, "{writer}");
    Ok(())
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    story(System::embedded().await?).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    story(System::rabbit().await?).await
}
