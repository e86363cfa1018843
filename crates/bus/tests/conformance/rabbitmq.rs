//! RabbitMQ: what foreign processors see, and what outages do.

mod outages;

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tg_bus::rabbitmq::{RabbitBus, RabbitOptions};
use tg_bus::{Bus, BusError, Link, Mode, PublishMode, Routed, Target};
use tg_schemas::Topic;
use tg_schemas::topic::Class;
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

/// The whole answer arrives although the process that sent it died at once. The victim is this test in another process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_flushed_survives_kill_9() {
    const VICTIM: &str = "TG_BUS_TEST_VICTIM";
    let inbox = "nt.inbox.test.flushed";
    if let Ok(url) = std::env::var(VICTIM) {
        let bus = connect(&url, Mode::Native).await;
        crate::suite::say_an_answer(&bus, &Target::Inbox(inbox.into())).await;
        // It says no goodbye to the broker, and writes nothing more.
        std::process::abort();
    }
    let host = VirtualHost::new().await.unwrap();
    let asker = connect(&host.url(), Mode::Native).await;
    let (sink, deliveries) = collector();
    let consumer = asker.open_inbox(inbox, sink).await.unwrap();
    let mut ear = Ear {
        consumer,
        deliveries,
    };
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--nocapture", "--exact"])
        .arg("rabbitmq::what_was_flushed_survives_kill_9")
        .env(VICTIM, host.url())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    crate::suite::hears_the_answer(&mut ear).await;
    let ended = victim.wait().unwrap();
    assert_eq!(ended.code(), None, "it was to die, and not to end");
}

/// Everything that needs a broker of its own, on one: starting it takes seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outages_are_bridged() {
    let mut node = RabbitNode::start().await.unwrap();
    let inside = Inside::of(&node).await.unwrap();
    eprintln!("a silent peer is noticed as soon as the mode says");
    outages::a_silent_peer_is_noticed_as_soon_as_the_mode_says(&node, inside).await;
    eprintln!("everything is in place after a cut");
    outages::everything_is_in_place_after_a_cut(&node, inside).await;
    eprintln!("a claim that is refused for a while holds up nobody");
    outages::a_claim_that_is_refused_for_a_while_holds_up_nobody(&node, inside).await;
    eprintln!("many consumers share few channels");
    outages::many_consumers_share_few_channels(&node, inside).await;
    eprintln!("who does not wait ends no connection");
    outages::who_does_not_wait_ends_no_connection(&node).await;
    eprintln!("longer headers than frames end a reader once");
    outages::longer_headers_than_frames_end_a_reader_once(&node).await;
    eprintln!("an alarm blocks publishers only");
    outages::an_alarm_blocks_publishers_only(&node, inside).await;
    eprintln!("what was confirmed is delivered");
    outages::what_was_confirmed_is_delivered(&mut node).await;
    eprintln!("a queue of questions whose server died goes");
    outages::a_queue_of_questions_whose_server_died_goes(&mut node).await;
    eprintln!("down is said while the node is down");
    outages::down_is_said_while_the_node_is_down(&mut node).await;
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
    let (sink, _answers) = collector();
    let _inbox = native.open_inbox("nt.inbox.test.1", sink).await.unwrap();
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
    let find = |name: &str| queues.iter().find(|queue| queue.name == name).unwrap();
    let flags = |name: &str| {
        let queue = find(name);
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
    // Newer brokers refuse queues that are neither durable nor exclusive. Among foreign processors only the permission of such queues
    // helps; among ours they are durable, and go by themselves.
    let ours = find("nt.request.agent:default:default.p");
    assert_eq!(
        (ours.durable, ours.exclusive, ours.auto_delete),
        (true, false, true)
    );
    let arguments = ours.arguments.to_string();
    assert!(arguments.contains("x-expires"), "{arguments}");
    let refused = queues.iter().filter(|one| !one.durable && !one.exclusive);
    let refused: Vec<_> = refused.map(|one| one.name.as_str()).collect();
    assert_eq!(
        refused,
        ["tg.request.agent:default:default.p--default--default--input"]
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

/// Processes of an earlier release declare queues of questions as neither durable nor with arguments. Those that are set up for a
/// cluster still do. Whoever comes second shares the queue as it is. When nobody consumes it any more it goes, and is declared anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn releases_share_the_queue_of_a_question() {
    let host = VirtualHost::new().await.unwrap();
    let transient: Arc<dyn Bus> = Arc::new(connect_quorum(&host.url()).await);
    let durable: Arc<dyn Bus> = Arc::new(connect(&host.url(), Mode::Native).await);
    for (first, second) in [(&transient, &durable), (&durable, &transient)] {
        let topic = topic(Class::Request);
        let server = sub(&topic, "server");
        let one = first.listen(&server, 1).await;
        let mut other = second.listen(&server, 1).await;
        let shared = second.queue_state(&server).await.unwrap().unwrap();
        assert_eq!(shared.consumers, 2);
        one.stop().await;
        first.send(&topic, "for the other").await;
        assert_eq!(other.texts(1).await, ["for the other"]);
        other.stop().await;
        let target = Target::Topic(topic.clone());
        until(async || first.say(&target, "late").await == Ok(Routed::Unroutable)).await;
        let mut anew = second.listen(&server, 1).await;
        first.send(&topic, "anew").await;
        assert_eq!(anew.texts(1).await, ["anew"]);
        anew.stop().await;
    }
}

/// A queue of questions that is deleted behind our back is declared again by its consumers. A record queue that was deleted stays
/// deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vanished_queue_comes_back_unless_it_kept_records() {
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
