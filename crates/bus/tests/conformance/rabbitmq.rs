//! RabbitMQ: what foreign processors see, and what outages do.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tg_bus::rabbitmq::{ConnectError, RabbitBus, RabbitOptions};
use tg_bus::{Bus, BusError, Link, Mode, PublishMode, Routed, Target};
use tg_schemas::Topic;
use tg_schemas::topic::Class;
use tg_testkit::process::root;
use tg_testkit::rabbitmq::RabbitNode;
use tg_testkit::shared_node::{Inside, VirtualHost};

use tg_testkit::bus::*;

mod native {
    use tg_bus::Mode;
    use tg_testkit::bus::World;

    crate::suite::suite!(World::rabbit(Mode::Native));
}

mod interop {
    use tg_bus::Mode;
    use tg_testkit::bus::World;

    crate::suite::suite!(World::rabbit(Mode::Interop));
}

mod quorum {
    use tg_testkit::bus::World;

    crate::suite::suite!(World::quorum());
}

/// The address names several nodes: one that is away is passed over, and answers travel through the exchange of inboxes where
/// processes have users of their own.
#[tokio::test]
async fn a_node_that_is_away_is_passed_over() {
    let host = VirtualHost::new().await.unwrap();
    // Nobody listens on the first port.
    let url = host.url().replace("@127.0.0.1:", "@127.0.0.1:1,127.0.0.1:");
    let options = || RabbitOptions {
        inbox_exchange: true,
        ..RabbitOptions::of(Mode::Native)
    };
    let connect = || RabbitBus::connect(&url, Mode::Native.rules(), options());
    let (asks, answers) = (connect().await.unwrap(), connect().await.unwrap());
    assert!(!asks.address().contains(":1/"), "{}", asks.address());
    let inbox = "nt.inbox.test.1";
    let (sink, deliveries) = collector();
    let consumer = asks.open_inbox(inbox, sink).await.unwrap();
    let mut ear = Ear {
        consumer,
        deliveries,
    };
    let answers: Arc<dyn Bus> = Arc::new(answers);
    let to = Target::Inbox(inbox.into());
    assert_eq!(answers.say(&to, "answer").await, Ok(Routed::Queued));
    assert_eq!(ear.texts(1).await, ["answer"]);
    let lives = Target::Liveness(inbox.into());
    assert_eq!(answers.say(&lives, "").await, Ok(Routed::Queued));
    ear.consumer.stop().await;
    assert_eq!(answers.say(&to, "late").await, Ok(Routed::Unroutable));
    assert_eq!(answers.say(&lives, "").await, Ok(Routed::Unroutable));
}

/// Everything that needs a broker of its own, on one: starting it takes seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outages_are_bridged() {
    let mut node = RabbitNode::start().await.unwrap();
    let inside = Inside::of(&node).await.unwrap();
    a_silent_peer_is_noticed_as_soon_as_the_mode_says(&node, inside).await;
    everything_is_in_place_after_a_cut(&node, inside).await;
    a_claim_that_is_refused_for_a_while_holds_up_nobody(&node, inside).await;
    many_consumers_share_few_channels(&node, inside).await;
    who_does_not_wait_ends_no_connection(&node).await;
    longer_headers_than_frames_end_a_reader_once(&node).await;
    an_alarm_blocks_publishers_only(&node, inside).await;
    what_was_confirmed_is_delivered(&mut node).await;
    down_is_said_while_the_node_is_down(&mut node).await;
}

/// Among processors of ours soon, among foreign ones as late as they do.
async fn a_silent_peer_is_noticed_as_soon_as_the_mode_says(node: &RabbitNode, inside: Inside) {
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

async fn everything_is_in_place_after_a_cut(node: &RabbitNode, inside: Inside) {
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
async fn a_claim_that_is_refused_for_a_while_holds_up_nobody(node: &RabbitNode, inside: Inside) {
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
async fn who_does_not_wait_ends_no_connection(node: &RabbitNode) {
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

async fn many_consumers_share_few_channels(node: &RabbitNode, inside: Inside) {
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

async fn longer_headers_than_frames_end_a_reader_once(node: &RabbitNode) {
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

async fn an_alarm_blocks_publishers_only(node: &RabbitNode, inside: Inside) {
    let bus: Arc<dyn Bus> = Arc::new(connect(&node.url(), Mode::Native).await);
    let topic = topic(Class::Flow);
    let mut ear = bus.listen(&sub(&topic, "reader"), 5).await;
    inside.set_alarm(true).await.unwrap();
    let target = Target::Topic(topic.clone());
    // The first message meets the alarm; the broker answers it when the alarm is over.
    let waiting = {
        let (bus, target) = (bus.clone(), target.clone());
        tokio::spawn(async move { bus.say(&target, "first").await })
    };
    let mut link = bus.link();
    within(link.wait_for(|link| *link == Link::Blocked))
        .await
        .unwrap();
    // Consuming and declaring go on.
    assert!(
        bus.queue_state(&sub(&topic, "reader"))
            .await
            .unwrap()
            .is_some()
    );
    inside.set_alarm(false).await.unwrap();
    assert_eq!(within(waiting).await.unwrap(), Ok(Routed::Queued));
    assert_eq!(bus.say(&target, "second").await, Ok(Routed::Queued));
    assert_eq!(ear.texts(2).await, ["first", "second"]);
    assert_eq!(*bus.link().borrow(), Link::Up { generation: 1 });
    bus.close().await;
}

async fn what_was_confirmed_is_delivered(node: &mut RabbitNode) {
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

async fn down_is_said_while_the_node_is_down(node: &mut RabbitNode) {
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

/// Exactly the declarations of the reference: any other is refused by the broker.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interop_declares_what_foreign_processors_declare() {
    let node = RabbitNode::start().await.unwrap();
    let bus: Arc<dyn Bus> = Arc::new(connect(&node.url(), Mode::Interop).await);
    let native: Arc<dyn Bus> = Arc::new(connect(&node.url(), Mode::Native).await);
    let parse = |text: &str| Topic::parse(text).unwrap();
    let flow = parse("flow:tg:triples-store:default:default");
    let request = parse("request:tg:agent:default:default");
    let response = parse("response:tg:agent:default:default");
    let notify = parse("notify:tg:config");
    let mut ears = Vec::new();
    for topic in [&flow, &request, &response, &notify] {
        ears.push(
            bus.listen(&sub(topic, "p--default--default--input"), 1)
                .await,
        );
        ears.push(native.listen(&sub(topic, "p"), 1).await);
    }
    let mut exchanges = node.exchanges().await.unwrap();
    exchanges.sort_by(|a, b| a.name.cmp(&b.name));
    let names: Vec<_> = exchanges.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "nt.flow.triples-store:default:default",
            "nt.notify.config",
            "nt.request.agent:default:default",
            "nt.response.agent:default:default",
            "tg.flow.triples-store:default:default",
            "tg.notify.config",
            "tg.request.agent:default:default",
            "tg.response.agent:default:default",
        ]
    );
    for exchange in &exchanges {
        assert_eq!(exchange.kind, "fanout");
        // Foreign processors declare all of them durable; of ours, only records need theirs after a restart.
        let lasts = exchange.name.starts_with("tg.") || exchange.name.starts_with("nt.flow.");
        assert_eq!(
            (exchange.durable, exchange.auto_delete),
            (lasts, false),
            "{exchange:?}"
        );
    }
    let queues = node.queues().await.unwrap();
    let flags = |name: &str| {
        let queue = queues.iter().find(|queue| queue.name == name).unwrap();
        assert_eq!(queue.arguments.as_array().map(Vec::len), Some(0), "{name}");
        (queue.durable, queue.exclusive, queue.auto_delete)
    };
    assert_eq!(
        flags("tg.flow.triples-store:default:default.p--default--default--input"),
        (true, false, false)
    );
    assert_eq!(
        flags("tg.request.agent:default:default.p--default--default--input"),
        (false, false, false)
    );
    assert_eq!(
        flags("nt.request.agent:default:default.p"),
        (false, false, true)
    );
    let private: Vec<_> = queues
        .iter()
        .filter(|queue| queue.name.starts_with("amq_"))
        .collect();
    assert_eq!(private.len(), 4);
    for queue in private {
        assert_eq!(queue.name.len(), 36);
        assert_eq!(flags(&queue.name), (false, true, true));
    }
    for binding in node.bindings().await.unwrap() {
        assert_eq!(binding.routing_key, binding.destination_name);
    }
}

/// Another program uses one of our names with other properties.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_declaration_is_refused_and_harms_nobody() {
    let world = World::rabbit(Mode::Native).await;
    let bus = world.connect().await;
    let topic = topic(Class::Flow);
    let mut ear = bus.listen(&sub(&topic, "reader"), 1).await;
    // The queue of one topic is the inbox of another program.
    let taken = sub(&topic, "taken");
    let (sink, _deliveries) = collector();
    let name = taken.queue(Mode::Native.rules().prefix);
    let inbox = bus.open_inbox(&name, sink.clone()).await.unwrap();
    let how = tg_bus::bus::Consume::prefetch(1);
    let refused = bus.consume(&taken, how, sink).await;
    assert_eq!(refused.err(), Some(BusError::Refused));
    let refused = bus.declare(&[], std::slice::from_ref(&taken)).await;
    assert_eq!(refused, Err(BusError::Refused));
    bus.send(&topic, "still alive").await;
    assert_eq!(ear.texts(1).await, ["still alive"]);
    inbox.stop().await;
}

/// An exchange that goes away behind our back takes only its own messages along.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vanished_topic_harms_nobody() {
    let world = World::rabbit(Mode::Native).await;
    let bus = world.connect().await;
    let other = world.connect().await;
    let (gone, stays) = (topic(Class::Request), topic(Class::Request));
    let mut ear = bus.listen(&sub(&stays, "server"), 1).await;
    let at_gone = Target::Topic(gone.clone());
    for _ in 0..3 {
        bus.declare(std::slice::from_ref(&gone), &[]).await.unwrap();
        assert_eq!(other.delete_topic(&gone).await, Ok(true));
        let at_stays = Target::Topic(stays.clone());
        let said = futures::future::join_all((0..20).map(async |n| match n % 2 {
            0 => bus.say(&at_gone, "x").await == Ok(Routed::Unroutable),
            _ => bus.say(&at_stays, "x").await == Ok(Routed::Queued),
        }));
        assert!(said.await.into_iter().all(|right| right));
        bus.declare(std::slice::from_ref(&gone), &[]).await.unwrap();
        assert_eq!(other.delete_topic(&gone).await, Ok(true));
        let sent = bus
            .publish(&at_gone, message("x"), PublishMode::FireAndForget)
            .await;
        assert_eq!(sent, Ok(Routed::Queued));
    }
    while ear.now().is_some() {}
    // The channel without confirms comes back, too.
    let at_stays = Target::Topic(stays.clone());
    until(async || {
        let _ = bus
            .publish(&at_stays, message("y"), PublishMode::FireAndForget)
            .await;
        // A question to the broker, so that it has time to deliver.
        let _ = bus.queue_state(&sub(&gone, "none")).await;
        ear.now().is_some_and(|delivery| text(&delivery) == "y")
    })
    .await;
    assert_eq!(*bus.link().borrow(), Link::Up { generation: 1 });
}

/// A broker node that goes away takes its temporary queues along; their consumers declare them again. A
/// record queue that was deleted stays deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vanished_queue_comes_back_unless_it_was_durable() {
    let world = World::rabbit(Mode::Native).await;
    let bus = world.connect().await;
    let other = world.connect().await;
    let (question, record) = (topic(Class::Request), topic(Class::Flow));
    let (server, reader) = (sub(&question, "server"), sub(&record, "reader"));
    let _records = bus.listen(&reader, 1).await;
    let mut questions = bus.listen(&server, 1).await;
    assert!(delete(&*other, &reader).await);
    assert!(delete(&*other, &server).await);
    let target = Target::Topic(question.clone());
    until(async || other.say(&target, "again").await == Ok(Routed::Queued)).await;
    assert_eq!(questions.texts(1).await, ["again"]);
    assert_eq!(other.queue_state(&reader).await, Ok(None));
}

/// Whoever lets go last of a consumer while the connection closes: the closing must not wait for itself.
#[test]
fn consumers_may_go_while_the_bus_closes() {
    let (done, ended) = std::sync::mpsc::sync_channel(1);
    // On a thread of its own: a lock that waits for itself would keep the runtime from ever ending.
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let world = World::rabbit(Mode::Native).await;
            for _ in 0..5 {
                let bus = world.connect().await;
                let mut ears = Vec::new();
                for class in [Class::Flow, Class::Request, Class::Notify] {
                    ears.push(bus.listen(&sub(&topic(class), "reader"), 2).await);
                }
                let mut closing = Box::pin(bus.close());
                assert!(futures::poll!(closing.as_mut()).is_pending());
                drop(ears);
                within(closing).await;
            }
        });
        done.send(()).unwrap();
    });
    let bound = Duration::from_secs(60);
    assert!(ended.recv_timeout(bound).is_ok(), "the bus did not close");
}
