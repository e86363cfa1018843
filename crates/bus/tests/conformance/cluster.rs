//! Three nodes that are one broker: records in quorum queues, questions, answers and claims go on when a node is killed, cut off or
//! suspended.

use std::collections::BTreeSet;
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tg_bus::rabbitmq::{RabbitBus, RabbitOptions, RecordQueues};
use tg_bus::{Bus, BusError, Link, Mode, Routed, Target};
use tg_schemas::Topic;
use tg_schemas::topic::Class;
use tg_testkit::bus::*;
use tg_testkit::rabbitmq::{RabbitCluster, RabbitNode};
use tokio::time::{sleep, timeout};

/// Seconds between signs of life of a connection to a node that is suspended; twice that, and it is given up.
const HEARTBEAT: u16 = 4;

/// Between two looks at whether something is so.
const LOOK: Duration = Duration::from_millis(1);
/// How long a node may take to list what it has.
const LISTED: Duration = Duration::from_secs(20);

/// How a node is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// Its connections end at once.
    Killed,
    /// The network between it and the others breaks: it pauses, and comes back by itself.
    CutOff,
    /// Nobody hears of it, until all give it up; then it goes on as it was.
    Suspended,
}

impl Loss {
    async fn cluster(self) -> RabbitCluster {
        let cluster = match self {
            Self::Killed | Self::CutOff => RabbitCluster::start().await,
            Self::Suspended => RabbitCluster::start_watchful().await,
        };
        cluster.unwrap()
    }

    async fn connect(self, url: &str) -> (Arc<RabbitBus>, Arc<dyn Bus>) {
        if self != Self::Suspended {
            return connect_to(url).await;
        }
        let options = RabbitOptions {
            heartbeat: HEARTBEAT,
            queues: RecordQueues::Quorum,
            ..RabbitOptions::of(Mode::Native)
        };
        let bus = RabbitBus::connect(url, Mode::Native, options).await;
        let bus = Arc::new(bus.unwrap());
        (bus.clone(), bus)
    }

    async fn begin(self, cluster: &mut RabbitCluster, at: usize) {
        let lost = match self {
            Self::Killed => cluster.nodes[at].kill9().await,
            Self::CutOff => cluster.cut(at).await,
            Self::Suspended => cluster.freeze(at).await,
        };
        lost.unwrap();
    }

    async fn end(self, cluster: &mut RabbitCluster, at: usize) {
        match self {
            Self::Killed => {
                cluster.nodes[at].restart().await.unwrap();
                cluster.is_whole().await.unwrap();
            }
            Self::CutOff => cluster.mend(at).await.unwrap(),
            Self::Suspended => cluster.thaw(at).await.unwrap(),
        }
    }
}

/// What a publisher has heard of its records, and how it ends.
#[derive(Default)]
struct Published {
    stop: AtomicBool,
    queued: AtomicUsize,
    unroutable: AtomicUsize,
    down: AtomicUsize,
}

impl Published {
    fn counts(&self) -> String {
        let [queued, unroutable, down] =
            [&self.queued, &self.unroutable, &self.down].map(|count| count.load(Ordering::Relaxed));
        format!("{queued} records queued, {unroutable} times unroutable, {down} times unknown")
    }
}

/// Publishes until it is stopped; what was confirmed.
async fn publish(bus: Arc<dyn Bus>, topic: Topic, heard: Arc<Published>) -> BTreeSet<String> {
    let mut confirmed = BTreeSet::new();
    let target = Target::Topic(topic);
    for number in 0.. {
        if heard.stop.load(Ordering::Relaxed) {
            break;
        }
        let text = number.to_string();
        // Where it is not known whether a record arrived, it is sent again, as writers do.
        loop {
            match bus.say(&target, &text).await {
                Ok(Routed::Queued) => break,
                // The node that knew the topic is gone, and the others are told so only now.
                Ok(Routed::Unroutable) => {
                    heard.unroutable.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
                Err(error) => {
                    assert_eq!(error, BusError::Down);
                    heard.down.fetch_add(1, Ordering::Relaxed);
                    let mut link = bus.link();
                    let up = |link: &Link| *link != Link::Down;
                    timeout(BOUND, link.wait_for(up))
                        .await
                        .expect("the publisher's link stays down")
                        .unwrap();
                }
            }
        }
        heard.queued.fetch_add(1, Ordering::Relaxed);
        confirmed.insert(text);
    }
    confirmed
}

/// What a test has, and shows when it waits too long.
struct Watched {
    cluster: RabbitCluster,
    writer: Arc<RabbitBus>,
    reader: Arc<RabbitBus>,
    heard: Arc<Published>,
}

impl Watched {
    /// Waits for something in a phase of the test.
    async fn within<T>(&self, phase: &str, work: impl Future<Output = T>) -> T {
        match timeout(BOUND, work).await {
            Ok(done) => done,
            Err(_) => {
                let shown = self.shown().await;
                panic!("{phase}: took too long\n{shown}");
            }
        }
    }

    /// Asks until it is so.
    async fn until(&self, phase: &str, mut check: impl AsyncFnMut() -> bool) {
        let asking = async {
            while !check().await {
                sleep(LOOK).await;
            }
        };
        self.within(phase, asking).await;
    }

    /// Takes records until there are so many more.
    async fn take(&self, phase: &str, ear: &mut Ear, got: &mut BTreeSet<String>, more: usize) {
        let enough = got.len() + more;
        while got.len() < enough {
            let phase = format!("{phase}: record {} of {enough}", got.len() + 1);
            let delivery = self.within(&phase, ear.deliveries.recv()).await;
            let delivery = delivery.expect("consumer is gone");
            got.insert(text(&delivery));
            delivery.ack();
        }
    }

    /// Links, what the publisher heard, and the queues and connections as each node sees them.
    async fn shown(&self) -> String {
        let mut shown = vec![self.heard.counts()];
        for (name, bus) in [("writer", &self.writer), ("reader", &self.reader)] {
            let link = *bus.link().borrow();
            shown.push(format!("{name} at {}: {link:?}", bus.address()));
        }
        for node in &self.cluster.nodes {
            for listed in [&QUEUES[..], &CONNECTIONS[..]] {
                let said = said(node, listed).await;
                shown.push(format!("node {}: {said}", node.port()));
            }
        }
        shown.join("\n")
    }
}

const QUEUES: [&str; 8] = [
    "list_queues",
    "name",
    "type",
    "leader",
    "online",
    "messages_ready",
    "messages_unacknowledged",
    "consumers",
];
const CONNECTIONS: [&str; 4] = ["list_connections", "name", "state", "channels"];

/// A node leads the queue of records: it was declared there. Otherwise its loss would show little.
async fn leads_records(node: &RabbitNode) {
    let listed = said(node, &["list_queues", "name", "type", "leader"]).await;
    let name = format!("tg{}@localhost", node.port());
    let is_led = |line: &str| line.contains("quorum") && line.trim_end().ends_with(&name);
    assert!(
        listed.lines().any(is_led),
        "{name} leads no queue of records:\n{listed}"
    );
}

/// What a node says to a command, or why it says nothing.
async fn said(node: &RabbitNode, command: &[&str]) -> String {
    match timeout(LISTED, node.ctl(command)).await {
        Ok(Ok(text)) => text,
        Ok(Err(fault)) => format!("{fault:#}"),
        Err(_) => format!("{} was not answered", command[0]),
    }
}

async fn connect_to(url: &str) -> (Arc<RabbitBus>, Arc<dyn Bus>) {
    let bus = Arc::new(connect_quorum(url).await);
    (bus.clone(), bus)
}

/// The node to which a process is connected.
fn node_of(cluster: &RabbitCluster, bus: &RabbitBus) -> usize {
    let address = bus.address();
    let is_there = |port: u16| address.contains(&format!(":{port}/"));
    let at = cluster.nodes.iter().position(|node| is_there(node.port()));
    at.expect("a node of the cluster")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_confirmed_outlives_a_node() {
    outlives(Loss::Killed, 1, 50).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_confirmed_outlives_any_node() {
    outlives(Loss::Killed, 2, 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_confirmed_outlives_a_node_that_is_cut_off() {
    outlives(Loss::CutOff, 1, 50).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_confirmed_outlives_a_node_that_is_suspended() {
    outlives(Loss::Suspended, 1, 50).await;
}

/// Loses so many nodes, one after the other, with `each` records before that, while one is away, and once it is back.
async fn outlives(loss: Loss, times: usize, each: usize) {
    let cluster = loss.cluster().await;
    // A test that fails shows what it printed.
    println!("the nodes are one broker");
    let url = cluster.url();
    let (writer, publisher) = loss.connect(&url).await;
    let (reading, reader) = loss.connect(&url).await;
    let (record, question) = (topic(Class::Flow), topic(Class::Request));
    let mut ear = reader.listen(&sub(&record, "reader"), 20).await;
    let mut server = reader.listen(&sub(&question, "server"), 1).await;
    let (sink, deliveries) = collector();
    let consumer = reader.open_inbox("the-inbox", sink).await.unwrap();
    let mut inbox = Ear {
        consumer,
        deliveries,
    };
    let claim = reader.claim("owner").await.unwrap().unwrap();
    println!("consumers, inbox and claim are in place");

    let heard = Arc::new(Published::default());
    let publishing = tokio::spawn(publish(publisher.clone(), record.clone(), heard.clone()));
    let mut watched = Watched {
        cluster,
        writer,
        reader: reading,
        heard,
    };
    let mut got = BTreeSet::new();
    watched.take("at first", &mut ear, &mut got, each).await;
    // First the node that both are connected to, then, once it is back, the one that they went to.
    for round in 1..=times {
        let at = node_of(&watched.cluster, &watched.writer);
        if round == 1 {
            leads_records(&watched.cluster.nodes[at]).await;
        }
        println!("round {round}, node {at} goes");
        loss.begin(&mut watched.cluster, at).await;
        let phase = format!("round {round}, node {at} is away");
        println!("{phase}");
        watched.take(&phase, &mut ear, &mut got, each).await;
        // Questions, answers and claims are in place at another node.
        let (asks, to) = (
            Target::Topic(question.clone()),
            Target::Inbox("the-inbox".into()),
        );
        for (target, what, hears) in [(asks, "why?", &mut server), (to, "because", &mut inbox)] {
            let phase = format!("{phase}, {what}");
            let sent = async || publisher.say(&target, what).await == Ok(Routed::Queued);
            watched.until(&phase, sent).await;
            let delivery = watched.within(&phase, hears.deliveries.recv()).await;
            let delivery = delivery.expect("consumer is gone");
            assert_eq!(text(&delivery), what);
            delivery.ack();
        }
        let phase = format!("{phase}, the claim");
        watched.until(&phase, async || claim.holds()).await;
        println!("round {round}, node {at} comes back");
        loss.end(&mut watched.cluster, at).await;
        let phase = format!("round {round}, node {at} is back");
        watched.take(&phase, &mut ear, &mut got, each).await;
    }
    watched.heard.stop.store(true, Ordering::Relaxed);
    let confirmed = watched.within("the last record", publishing).await.unwrap();
    while !confirmed.is_subset(&got) {
        watched.take("at last", &mut ear, &mut got, 1).await;
    }
    assert_eq!(got, confirmed);
}

/// A process that was set up for the other kind of queues is refused, and nothing is lost by it.
#[tokio::test]
async fn queues_of_the_other_kind_are_refused() {
    let World::Quorum(url) = World::quorum().await else {
        unreachable!("quorum queues");
    };
    let (_, quorum) = connect_to(&url).await;
    let classic: Arc<dyn Bus> = Arc::new(connect(&url, Mode::Native).await);
    let record = topic(Class::Flow);
    let reader = sub(&record, "reader");
    let declare = async |bus: &dyn Bus| bus.declare(from_ref(&record), from_ref(&reader)).await;
    assert_eq!(declare(&*quorum).await, Ok(()));
    quorum.send(&record, "stays").await;
    assert_eq!(declare(&*classic).await, Err(BusError::Refused));
    let mut ear = quorum.listen(&reader, 1).await;
    assert_eq!(ear.texts(1).await, ["stays"]);
}
