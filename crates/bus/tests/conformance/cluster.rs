//! Three nodes that are one broker: records in quorum queues, questions, answers and claims go on when a node is killed or cut off.

use std::collections::BTreeSet;
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tg_bus::rabbitmq::{RabbitBus, RabbitOptions, RecordQueues};
use tg_bus::{Bus, BusError, Link, Mode, Routed, Target};
use tg_schemas::Topic;
use tg_schemas::topic::Class;
use tg_testkit::bus::*;
use tg_testkit::rabbitmq::RabbitCluster;

/// Seconds between signs of life of a connection to a node that is cut off; twice that, and it is given up.
const HEARTBEAT: u16 = 4;

/// How a node is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// Its connections end at once.
    Killed,
    /// Nobody hears of it, until all give it up; then it comes back as it was.
    CutOff,
}

impl Loss {
    async fn cluster(self) -> RabbitCluster {
        let cluster = match self {
            Self::Killed => RabbitCluster::start().await,
            Self::CutOff => RabbitCluster::start_watchful().await,
        };
        cluster.unwrap()
    }

    async fn connect(self, url: &str) -> (Arc<RabbitBus>, Arc<dyn Bus>) {
        if self == Self::Killed {
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
            Self::CutOff => cluster.freeze(at).await,
        };
        lost.unwrap();
    }

    async fn end(self, cluster: &mut RabbitCluster, at: usize) {
        match self {
            Self::Killed => {
                cluster.nodes[at].restart().await.unwrap();
                cluster.is_whole().await.unwrap();
            }
            Self::CutOff => cluster.thaw(at).await.unwrap(),
        }
    }
}

/// Publishes until it is told to stop; what was confirmed.
async fn publish(bus: Arc<dyn Bus>, topic: Topic, stop: Arc<AtomicBool>) -> BTreeSet<String> {
    let mut confirmed = BTreeSet::new();
    let target = Target::Topic(topic);
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let text = number.to_string();
        // Where it is not known whether a record arrived, it is sent again, as writers do.
        loop {
            match bus.say(&target, &text).await {
                Ok(Routed::Queued) => break,
                // The node that knew the topic is gone, and the others are told so only now.
                Ok(Routed::Unroutable) => tokio::task::yield_now().await,
                Err(error) => {
                    assert_eq!(error, BusError::Down);
                    let mut link = bus.link();
                    let up = |link: &Link| *link != Link::Down;
                    within(link.wait_for(up)).await.unwrap();
                }
            }
        }
        confirmed.insert(text);
    }
    confirmed
}

/// Takes records until there are so many more.
async fn take(ear: &mut Ear, got: &mut BTreeSet<String>, more: usize) {
    let enough = got.len() + more;
    while got.len() < enough {
        let delivery = ear.next().await;
        got.insert(text(&delivery));
        delivery.ack();
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

/// Loses so many nodes, one after the other, with `each` records before that, while one is away, and once it is back.
async fn outlives(loss: Loss, times: usize, each: usize) {
    let mut cluster = loss.cluster().await;
    let url = cluster.url();
    let (writer, publisher) = loss.connect(&url).await;
    let (_, reader) = loss.connect(&url).await;
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

    let stop = Arc::new(AtomicBool::new(false));
    let publishing = tokio::spawn(publish(publisher.clone(), record.clone(), stop.clone()));
    let mut got = BTreeSet::new();
    take(&mut ear, &mut got, each).await;
    // First the node that both are connected to, then, once it is back, the one that they went to.
    for _ in 0..times {
        let at = node_of(&cluster, &writer);
        loss.begin(&mut cluster, at).await;
        take(&mut ear, &mut got, each).await;
        // Questions, answers and claims are in place at another node.
        until(async || {
            publisher
                .say(&Target::Topic(question.clone()), "why?")
                .await
                == Ok(Routed::Queued)
        })
        .await;
        assert_eq!(server.texts(1).await, ["why?"]);
        let to = Target::Inbox("the-inbox".into());
        until(async || publisher.say(&to, "because").await == Ok(Routed::Queued)).await;
        assert_eq!(inbox.texts(1).await, ["because"]);
        until(async || claim.holds()).await;
        loss.end(&mut cluster, at).await;
        take(&mut ear, &mut got, each).await;
    }
    stop.store(true, Ordering::Relaxed);
    let confirmed = within(publishing).await.unwrap();
    while !confirmed.is_subset(&got) {
        take(&mut ear, &mut got, 1).await;
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
