//! An owner of a store that stood still until another process had taken its store's place takes no record when it goes
//! on: what is confirmed meanwhile, and after, is all where questions are answered from.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::process::{Launch, Server, client};
use tg_testkit::shared_node::VirtualHost;

use crate::second_owner_stands_by::OWNERS;
use crate::world::post;

/// What the process that is frozen owns, what runs beside it, and how many stores that are.
struct Owned {
    services: &'static [&'static str],
    others: &'static [&'static str],
    stores: usize,
}

/// The graph alone.
const GRAPH: Owned = Owned {
    services: &["graph"],
    others: &[
        "config",
        "iam",
        "flow",
        "librarian",
        "llm",
        "prompt",
        "tool",
        "agent",
        "gateway",
    ],
    stores: 1,
};
/// Every store that there is; words have one beside that of vectors.
const ALL: Owned = Owned {
    services: &OWNERS,
    others: &["llm", "prompt", "tool", "embeddings", "gateway"],
    stores: 11,
};
/// What is waited for comes within this.
const BOUND: Duration = Duration::from_secs(60);
/// Longer than it takes to connect again and to find out that the claim is lost.
const AWAKE: Duration = Duration::from_secs(6);
/// Between two looks at the broker.
const LOOK: Duration = Duration::from_millis(300);

struct System {
    node: VirtualHost,
    rest: Server,
    first: Server,
    owned: Owned,
}

impl System {
    async fn start(owned: Owned) -> Result<Self> {
        let node = VirtualHost::new().await?;
        let mut rest = Launch::serve(owned.others, &node.url()).spawn().await?;
        let first = Launch::serve(owned.services, &node.url())
            .data(&rest.data().join("first"))
            .spawn()
            .await?;
        rest.wait_ready().await?;
        Ok(Self {
            node,
            rest,
            first,
            owned,
        })
    }

    /// Another process that could own the same.
    async fn second(&self, data: &str, more: &[&str]) -> Result<Server> {
        let launch = Launch::serve(self.owned.services, &self.node.url());
        let launch = launch.data(&self.rest.data().join(data));
        let launch = more.iter().fold(launch, |launch, arg| launch.arg(*arg));
        launch.spawn().await
    }

    /// It stands still, and the broker gives it up.
    async fn freeze_first(&self) -> Result<()> {
        self.first.freeze()?;
        let pid = self.first.pid().context("it runs")?;
        let closed = self.node.close_connections_of(pid).await?;
        ensure!(closed > 0, "the broker knows no connection of it");
        Ok(())
    }

    /// The numbers of the triples that are there.
    async fn seen(&self) -> Result<Vec<usize>> {
        let ask = json!({"p": {"t": "i", "i": "urn:p"}, "limit": 100_000});
        let path = "api/v1/flow/default/service/triples";
        let (status, body) = post(&self.rest.url(), path, ask).await?;
        ensure!(status == 200 && body["error"].is_null(), "{status} {body}");
        let all = body["response"].as_array().into_iter().flatten();
        let number = |triple: &Value| triple["o"]["v"].as_str()?.parse().ok();
        Ok(all.filter_map(number).collect())
    }

    /// Who takes the records of triples now.
    async fn consumers(&self) -> Result<u64> {
        let all = self.node.queues().await?;
        let mut of = all.iter().filter(|queue| {
            queue.name.contains("triples-store") && queue.name.contains("triples-write")
        });
        Ok(of.next().context("no queue of triples")?.consumers)
    }

    /// Nothing is taken by two processes.
    async fn taken_once(&self) -> Result<()> {
        for queue in self.node.queues().await? {
            let (name, consumers) = (&queue.name, queue.consumers);
            ensure!(consumers <= 1, "{consumers} processes take from {name}");
        }
        Ok(())
    }

    /// The first has given every store up.
    async fn given_up(&self) -> Result<()> {
        let lost = || self.first.log().matches("lost the lease").count();
        let all = until("each store is given up", BOUND, async || {
            lost() >= self.owned.stores
        });
        let all = all.await;
        all.with_context(|| format!("{} are\n{}", lost(), self.first.log()))
    }
}

/// Writes one triple after the other, each with its number, until told to stop.
struct Writer {
    /// So many are confirmed.
    count: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<Result<()>>,
}

impl Writer {
    fn start(rest: &Server) -> Result<Self> {
        let (count, stop) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (http, counted, stopped) = (client()?, count.clone(), stop.clone());
        let url = format!(
            "{}api/v1/flow/default/import/triples?workspace=default",
            rest.url()
        );
        let task = tokio::spawn(async move {
            while !stopped.load(Ordering::Acquire) {
                let number = counted.load(Ordering::Acquire);
                let iri = |text: &str| json!({"t": "i", "i": text});
                let value = json!({"t": "l", "v": number.to_string()});
                let triple =
                    json!({"s": iri(&format!("urn:s{number}")), "p": iri("urn:p"), "o": value});
                let record =
                    json!({"metadata": {"id": "x", "collection": "default"}, "triples": [triple]});
                let sent = http.post(&url).body(format!("{record}\n")).send().await?;
                let told: Value = sent.json().await?;
                ensure!(told["sent"] == 1, "{told}");
                counted.store(number + 1, Ordering::Release);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Ok(())
        });
        Ok(Self { count, stop, task })
    }

    fn confirmed(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    async fn end(self) -> Result<usize> {
        self.stop.store(true, Ordering::Release);
        self.task.await??;
        Ok(self.count.load(Ordering::Acquire))
    }
}

async fn until(what: &str, bound: Duration, mut holds: impl AsyncFnMut() -> bool) -> Result<()> {
    let end = Instant::now() + bound;
    while !holds().await {
        ensure!(Instant::now() < end, "not within {bound:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Waits until all numbers from one on are there.
async fn all_there(system: &System, from: usize, to: usize) -> Result<()> {
    let end = Instant::now() + BOUND;
    loop {
        let seen = system.seen().await.unwrap_or_default();
        let missing: Vec<_> = (from..to).filter(|number| !seen.contains(number)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        ensure!(
            Instant::now() < end,
            "of {from}..{to} these were confirmed and are lost: {missing:?}\n{}",
            system.first.log()
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The operator gave the first owner's host up: another store serves in its place.
#[tokio::test]
async fn when_another_store_was_adopted() -> Result<()> {
    let system = System::start(GRAPH).await?;
    let writer = Writer::start(&system.rest)?;
    until("the first serves", BOUND, async || {
        system.seen().await.is_ok_and(|seen| seen.len() > 20)
    })
    .await?;
    system.freeze_first().await?;
    // A record under way at this moment may be of either.
    let from = writer.confirmed() + 1;
    let second = system.second("second", &["--adopt-store", "graph"]).await?;
    until("the second serves", BOUND, async || {
        let seen = system.seen().await;
        seen.is_ok_and(|seen| seen.iter().any(|number| *number >= from))
    })
    .await
    .with_context(|| second.log())?;

    system.first.thaw()?;
    let awake = Instant::now();
    // So long, and until so many were confirmed that a record that the first took would be one of them.
    while awake.elapsed() < AWAKE || writer.confirmed() <= from + 100 {
        ensure!(awake.elapsed() < BOUND, "{} written", writer.confirmed());
        let consumers = system.consumers().await?;
        ensure!(
            consumers == 1,
            "{consumers} processes take records\n{}",
            system.first.log()
        );
        tokio::time::sleep(LOOK).await;
    }
    let to = writer.end().await?;
    all_there(&system, from, to).await?;
    system.given_up().await
}

/// Both processes have the same stores: the locks beside them keep the second away while the first stands still, and the
/// first lets them go as soon as it goes on.
async fn when_both_share(owned: Owned) -> Result<()> {
    let system = System::start(owned).await?;
    let second = system.second("first", &[]).await?;
    until("the second stands by", BOUND, async || {
        second.log().matches("waiting as standby").count() >= system.owned.stores
    })
    .await
    .with_context(|| second.log())?;
    let writer = Writer::start(&system.rest)?;
    until("the first serves", BOUND, async || {
        system.seen().await.is_ok_and(|seen| seen.len() > 20)
    })
    .await?;
    system.freeze_first().await?;
    // The second holds the claims by then, and no store.
    tokio::time::sleep(Duration::from_secs(2)).await;
    ensure!(system.consumers().await? == 0, "{}", second.log());
    system.taken_once().await?;
    system.first.thaw()?;
    let awake = Instant::now();
    until("the second serves", BOUND, async || {
        system.seen().await.is_ok()
    })
    .await
    .with_context(|| format!("{}\n{}", system.first.log(), second.log()))?;
    while awake.elapsed() < AWAKE {
        system.taken_once().await?;
        tokio::time::sleep(LOOK).await;
    }
    let to = writer.end().await?;
    all_there(&system, 0, to).await?;
    system.given_up().await
}

#[tokio::test]
async fn when_both_share_the_store() -> Result<()> {
    when_both_share(GRAPH).await
}

#[tokio::test]
async fn when_both_share_every_store() -> Result<()> {
    when_both_share(ALL).await
}
