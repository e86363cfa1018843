//! What happens to a bus when its connections, its broker or what it may do there goes away for a while.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tg_bus::rabbitmq::{ConnectError, RabbitBus, RabbitOptions};
use tg_bus::{Bus, BusError, Link, Mode, PublishMode, Routed, Target};
use tg_schemas::Topic;
use tg_schemas::topic::Class;
use tg_testkit::bus::*;
use tg_testkit::process::root;
use tg_testkit::rabbitmq::RabbitNode;
use tg_testkit::shared_node::Inside;

/// Among processors of ours soon, among foreign ones as late as they do.
pub(super) async fn a_silent_peer_is_noticed_as_soon_as_the_mode_says(
    node: &RabbitNode,
    inside: Inside,
) {
    assert_eq!(inside.heartbeats().await.unwrap(), [0_u64; 0]);
    for (mode, seconds) in [(Mode::Native, 15), (Mode::Interop, 60)] {
        let bus = connect(&node.url(), mode).await;
        let agreed = inside.heartbeats().await.unwrap();
        assert!(!agreed.is_empty(), "{mode:?}");
        assert!(
            agreed.iter().all(|one| *one == seconds),
            "{mode:?}: {agreed:?}"
        );
        bus.close().await;
        until(async || inside.heartbeats().await.unwrap().is_empty()).await;
    }
}

pub(super) async fn everything_is_in_place_after_a_cut(node: &RabbitNode, inside: Inside) {
    let bus: Arc<dyn Bus> = Arc::new(connect(&node.url(), Mode::Native).await);
    let other: Arc<dyn Bus> = Arc::new(connect(&node.url(), Mode::Native).await);
    let (record, question, notice) = (
        topic(Class::Flow),
        topic(Class::Request),
        topic(Class::Notify),
    );
    let mut records = bus.listen(&sub(&record, "reader"), 2).await;
    let mut questions = bus.listen(&sub(&question, "server"), 1).await;
    let mut notices = bus.listen(&sub(&notice, "all"), 1).await;
    let stopped = bus.listen(&sub(&record, "stopped"), 1).await;
    stopped.stop().await;
    let inbox = Target::Inbox("the-inbox".into());
    let (sink, deliveries) = collector();
    let consumer = bus.open_inbox("the-inbox", sink).await.unwrap();
    let mut answers = Ear {
        consumer,
        deliveries,
    };
    let claim = bus.claim("owner").await.unwrap().unwrap();
    bus.send(&record, "held").await;
    let held = records.next().await;

    inside.close_connections().await.unwrap();
    let generation = up_after(&*bus, 1).await;
    assert_eq!(generation, 2);
    up_after(&*other, 1).await;

    held.ack();
    let again = records.next().await;
    assert_eq!(text(&again), "held", "an old acknowledgement means nothing");
    assert!(again.redelivered);
    again.ack();
    for (topic, ear) in [
        (&record, &mut records),
        (&question, &mut questions),
        (&notice, &mut notices),
    ] {
        other.send(topic, "after").await;
        assert_eq!(ear.texts(1).await, ["after"]);
    }
    assert_eq!(other.say(&inbox, "answer").await, Ok(Routed::Queued));
    assert_eq!(answers.texts(1).await, ["answer"]);
    until(async || claim.holds()).await;
    assert!(other.claim("owner").await.unwrap().is_none());
    let state = other.queue_state(&sub(&record, "stopped")).await.unwrap();
    assert_eq!(state.unwrap().consumers, 0, "stopped means stopped");

    // The claim passes on when its process goes.
    within(bus.close()).await;
    assert!(!claim.holds());
    until(async || other.claim("owner").await.unwrap().is_some()).await;
    other.close().await;
}

/// Neither the consumers nor the connection wait for the claim, which is asked for until it is given.
pub(super) async fn a_claim_that_is_refused_for_a_while_holds_up_nobody(
    node: &RabbitNode,
    inside: Inside,
) {
    let url = node.vhost("claims").await.unwrap();
    let bus: Arc<dyn Bus> = Arc::new(connect(&url, Mode::Native).await);
    let record = topic(Class::Flow);
    let mut ear = bus.listen(&sub(&record, "reader"), 1).await;
    let claim = bus.claim("owner").await.unwrap().unwrap();
    let may_declare = async |names: &str| {
        let all = format!("set_permissions -p claims guest {names} .* .*");
        let all: Vec<&str> = all.split(' ').collect();
        node.ctl(&all).await.unwrap();
    };
    may_declare(r"^(?!.*\.claim\.)").await;
    inside.close_connections().await.unwrap();
    let generation = up_after(&*bus, 1).await;
    bus.send(&record, "after").await;
    assert_eq!(ear.texts(1).await, ["after"]);
    assert!(!claim.holds());
    may_declare(".*").await;
    until(async || claim.holds()).await;
    assert_eq!(*bus.link().borrow(), Link::Up { generation });
    bus.close().await;
}

/// The broker closes a channel on which something is asked that it does not have, at the same moment at which nobody waits for it
/// any more: the connection stands.
pub(super) async fn who_does_not_wait_ends_no_connection(node: &RabbitNode) {
    let bus: Arc<dyn Bus> = Arc::new(connect(&node.url(), Mode::Native).await);
    let leaving = (0..8_u64).map(|of| {
        let bus = bus.clone();
        async move {
            for n in 0..250 {
                let nowhere = Target::Topic(topic(Class::Request));
                let said = bus.say(&nowhere, "a question");
                let patience = Duration::from_micros((n * 8 + of) * 2);
                let _ = tokio::time::timeout(patience, said).await;
            }
        }
    });
    futures::future::join_all(leaving).await;
    let nowhere = Target::Topic(topic(Class::Request));
    assert_eq!(
        bus.say(&nowhere, "waited for").await,
        Ok(Routed::Unroutable)
    );
    assert_eq!(*bus.link().borrow(), Link::Up { generation: 1 });
    bus.close().await;
}

pub(super) async fn many_consumers_share_few_channels(node: &RabbitNode, inside: Inside) {
    let bus: Arc<dyn Bus> = Arc::new(connect(&node.url(), Mode::Native).await);
    let (sink, mut deliveries) = collector();
    let topics: Vec<Topic> = (0..900)
        .map(|n| topic([Class::Flow, Class::Request, Class::Notify][n % 3]))
        .collect();
    let started = Instant::now();
    let mut consumers = Vec::new();
    for topic in &topics {
        let how = tg_bus::bus::Consume::prefetch(4);
        let subscription = sub(topic, "reader");
        let consumer = bus.consume(&subscription, how, sink.clone()).await;
        consumers.push(consumer.unwrap());
    }
    eprintln!("900 consumers after {:?}", started.elapsed());
    assert!(inside.channels().await.unwrap() < 40);
    for topic in &topics {
        bus.send(topic, &topic.to_string()).await;
    }
    let mut got = BTreeSet::new();
    while got.len() < topics.len() {
        let delivery = within(deliveries.recv()).await.unwrap();
        got.insert(text(&delivery));
        delivery.ack();
    }
    let cut = Instant::now();
    inside.close_connections().await.unwrap();
    let closed = cut.elapsed();
    up_after(&*bus, 1).await;
    eprintln!(
        "all 900 again {:?} after the cut (which took {closed:?})",
        cut.elapsed()
    );
    assert!(inside.channels().await.unwrap() < 80);
    for consumer in &consumers {
        consumer.stop().await;
    }
    bus.close().await;
}

/// A client of another make, whose frames are as long as the node lets them be.
async fn publish_long_headers(node: &RabbitNode, bytes: usize, queue: &str) {
    let output = tokio::process::Command::new(root().join(".cache/venv/bin/python3"))
        .arg(root().join("tests/integration/clients/long_header.py"))
        .args([&node.url(), &bytes.to_string(), queue])
        .kill_on_drop(true)
        .output();
    let output = within(output).await.unwrap();
    assert!(output.status.success(), "{output:?}");
}

pub(super) async fn longer_headers_than_frames_end_a_reader_once(node: &RabbitNode) {
    let bus: Arc<dyn Bus> = Arc::new(connect(&node.url(), Mode::Native).await);
    let topic = topic(Class::Flow);
    let reader = sub(&topic, "reader");
    let mut ear = bus.listen(&reader, 1).await;
    let queue = reader.queue(Mode::Native.rules().prefix);
    for _ in 0..2 {
        publish_long_headers(node, 120_000, &queue).await;
        bus_is_up(&*bus).await;
        assert_eq!(ear.texts(1).await, ["long"]);
    }
    bus.send(&topic, "after").await;
    assert_eq!(ear.texts(1).await, ["after"]);
    assert_eq!(*bus.link().borrow(), Link::Up { generation: 2 });
    bus.close().await;
}

async fn bus_is_up(bus: &dyn Bus) {
    let mut link = bus.link();
    let up = |link: &Link| matches!(link, Link::Up { .. });
    within(link.wait_for(up)).await.unwrap();
}

pub(super) async fn an_alarm_blocks_publishers_only(node: &RabbitNode, inside: Inside) {
    let bus: Arc<dyn Bus> = Arc::new(connect(&node.url(), Mode::Native).await);
    let topic = topic(Class::Flow);
    let mut ear = bus.listen(&sub(&topic, "reader"), 5).await;
    inside.set_alarm(true).await.unwrap();
    let target = Target::Topic(topic.clone());
    // The connection learns of the alarm after it was set, and what comes before is confirmed. One message meets it, and is confirmed
    // when it is over.
    let (over, count) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let publishing = {
        let (bus, target) = (bus.clone(), target.clone());
        let (over, count) = (over.clone(), count.clone());
        tokio::spawn(async move {
            let mut sent = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let text = sent.len().to_string();
                assert_eq!(bus.say(&target, &text).await, Ok(Routed::Queued));
                sent.push(text);
                count.store(sent.len(), Ordering::Relaxed);
            }
            sent
        })
    };
    let mut link = bus.link();
    within(link.wait_for(|link| *link == Link::Blocked))
        .await
        .unwrap();
    let before = count.load(Ordering::Relaxed);
    // Consuming and declaring go on. Who publishes one after the other would have had as many confirmations.
    for _ in 0..50 {
        let state = bus.queue_state(&sub(&topic, "reader")).await.unwrap();
        assert!(state.is_some());
    }
    // The confirmation of a message sent before the alarm may arrive only now.
    let confirmed = count.load(Ordering::Relaxed) - before;
    assert!(confirmed <= 1, "{confirmed} were confirmed meanwhile");
    inside.set_alarm(false).await.unwrap();
    over.store(true, Ordering::Relaxed);
    let sent = within(publishing).await.unwrap();
    assert_eq!(bus.say(&target, "after").await, Ok(Routed::Queued));
    assert_eq!(ear.texts(sent.len()).await, sent);
    assert_eq!(ear.texts(1).await, ["after"]);
    assert_eq!(*bus.link().borrow(), Link::Up { generation: 1 });
    bus.close().await;
}

pub(super) async fn what_was_confirmed_is_delivered(node: &mut RabbitNode) {
    let publisher: Arc<dyn Bus> = Arc::new(connect(&node.url(), Mode::Native).await);
    let reader: Arc<dyn Bus> = Arc::new(connect(&node.url(), Mode::Native).await);
    let topic = topic(Class::Flow);
    let mut ear = reader.listen(&sub(&topic, "reader"), 20).await;
    let stop = Arc::new(AtomicBool::new(false));
    let publishing: Vec<_> = (0..4)
        .map(|who| {
            let (bus, topic, stop) = (publisher.clone(), topic.clone(), stop.clone());
            tokio::spawn(async move {
                let mut confirmed = Vec::new();
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    let text = format!("{who}-{number}");
                    number += 1;
                    let target = Target::Topic(topic.clone());
                    match bus.say(&target, &text).await {
                        Ok(Routed::Queued) => confirmed.push(text),
                        Ok(Routed::Unroutable) => panic!("the queue is durable"),
                        Err(error) => {
                            assert_eq!(error, BusError::Down);
                            let mut link = bus.link();
                            let up = |link: &Link| *link != Link::Down;
                            within(link.wait_for(up)).await.unwrap();
                        }
                    }
                }
                confirmed
            })
        })
        .collect();
    let mut got = BTreeSet::new();
    while got.len() < 500 {
        let delivery = ear.next().await;
        got.insert(text(&delivery));
        delivery.ack();
    }
    for round in 1..=2 {
        if round == 1 {
            node.kill9().await.unwrap();
        }
        node.restart().await.unwrap();
        let back = Instant::now();
        up_after(&*publisher, round).await;
        up_after(&*reader, round).await;
        let outage = back.elapsed();
        eprintln!("in service again {outage:?} after the broker came back");
        assert!(outage < Duration::from_secs(60), "{outage:?}");
        let before = got.len();
        while got.len() < before + 200 {
            let delivery = ear.next().await;
            got.insert(text(&delivery));
            delivery.ack();
        }
    }
    stop.store(true, Ordering::Relaxed);
    let mut confirmed = BTreeSet::new();
    for publishing in publishing {
        confirmed.extend(within(publishing).await.unwrap());
    }
    while !confirmed.is_subset(&got) {
        let delivery = ear.next().await;
        got.insert(text(&delivery));
        delivery.ack();
    }
    eprintln!("{} confirmed, {} delivered", confirmed.len(), got.len());
    publisher.close().await;
    reader.close().await;
}

/// The broker is killed with the server, so nobody has deleted the queue, which is durable: it goes by itself, and no question waits
/// in it for long.
pub(super) async fn a_queue_of_questions_whose_server_died_goes(node: &mut RabbitNode) {
    let server: Arc<dyn Bus> = Arc::new(connect(&node.url(), Mode::Native).await);
    let topic = topic(Class::Request);
    let served = sub(&topic, "server");
    let ear = server.listen(&served, 1).await;
    node.kill9().await.unwrap();
    ear.stop().await;
    within(server.close()).await;
    node.restart().await.unwrap();
    let asker: Arc<dyn Bus> = Arc::new(connect(&node.url(), Mode::Native).await);
    // A look at the queue would count as use, a message to it does not.
    let queue = Target::Subscription(served);
    until(async || asker.say(&queue, "in vain").await == Ok(Routed::Unroutable)).await;
    let target = Target::Topic(topic);
    assert_eq!(asker.say(&target, "x").await, Ok(Routed::Unroutable));
    within(asker.close()).await;
}

pub(super) async fn down_is_said_while_the_node_is_down(node: &mut RabbitNode) {
    let bus: Arc<dyn Bus> = Arc::new(connect(&node.url(), Mode::Native).await);
    let topic = topic(Class::Flow);
    let reader = sub(&topic, "reader");
    let ear = bus.listen(&reader, 1).await;
    let claim = bus.claim("down").await.unwrap().unwrap();
    node.kill9().await.unwrap();
    let mut link = bus.link();
    within(link.wait_for(|link| *link == Link::Down))
        .await
        .unwrap();
    let target = Target::Topic(topic.clone());
    assert_eq!(bus.say(&target, "x").await, Err(BusError::Down));
    let sent = bus
        .publish(&target, message("x"), PublishMode::FireAndForget)
        .await;
    assert_eq!(sent, Err(BusError::Down));
    assert_eq!(bus.queue_state(&reader).await, Err(BusError::Down));
    assert_eq!(bus.declare(&[topic], &[]).await, Err(BusError::Down));
    assert!(bus.claim("other").await.is_err());
    assert!(!claim.holds());
    ear.stop().await;
    let options = RabbitOptions::of(Mode::Native);
    let nobody = RabbitBus::connect(&node.url(), Mode::Native, options).await;
    assert_eq!(nobody.err(), Some(ConnectError::Down));
    within(bus.close()).await;
}
