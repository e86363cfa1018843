//! What every bus does, in both modes unless said otherwise.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::join_all;
use tg_bus::Mode;
use tg_bus::bus::{Bus, BusError, Consume, Delivery, Envelope, PublishMode, Routed, Sink, Target};
use tg_schemas::codec::ContentType;
use tg_schemas::topic::Class;
use tg_schemas::{Headers, limits};

use tg_testkit::bus::*;

pub use crate::queues::*;

/// Instantiates the suite for one world.
macro_rules! suite {
    ($world:expr) => {
        $crate::suite::suite!($world;
            subscriptions_get_copies_and_replicas_compete
            prefetch_bounds_what_is_handed_out
            what_is_dropped_comes_again_first
            a_stopped_consumer_keeps_what_it_holds
            what_is_on_its_way_to_a_consumer_that_stops_is_not_lost
            questions_go_to_one_replica_each
            an_unserved_question_goes_nowhere
            every_listener_gets_a_notice
            observers_see_records_and_hold_nothing
            an_inbox_takes_answers_in_order
            what_was_flushed_arrives_though_its_publisher_leaves
            what_a_process_sends_to_itself_is_there_at_once
            a_claim_has_one_holder
            topics_go_when_nothing_is_bound
            a_deleted_queue_is_gone_with_its_messages
            only_an_empty_queue_goes_when_asked_so
            no_confirmed_record_goes_with_an_empty_queue
            messages_can_be_taken_one_by_one
            one_subscription_can_be_addressed
            envelopes_arrive_as_they_were
            too_large_is_refused
            the_largest_headers_arrive_and_larger_ones_are_refused
            each_publisher_learns_its_own_fate
            records_wait_for_their_reader
            a_relayed_record_is_in_the_queues_of_all_its_topics
            a_sink_may_spawn_and_acknowledge_at_once
            a_closed_bus_says_so
        );
    };
    ($world:expr; $($name:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                $crate::suite::$name($world.await).await;
            }
        )*
    };
}
pub(crate) use suite;

pub async fn subscriptions_get_copies_and_replicas_compete(world: World) {
    let bus = world.connect().await;
    let other = world.connect().await;
    let topic = topic(Class::Flow);
    let mut first = bus.listen(&sub(&topic, "a"), 5).await;
    let mut second = other.listen(&sub(&topic, "a"), 5).await;
    let mut alone = bus.listen(&sub(&topic, "b"), 5).await;
    let sent: BTreeSet<String> = (0..40).map(|n| format!("m{n:02}")).collect();
    for text in &sent {
        bus.send(&topic, text).await;
    }
    let whole: BTreeSet<String> = alone.texts(40).await.into_iter().collect();
    assert_eq!(whole, sent);
    let mut shared = BTreeSet::new();
    let mut counts = [0, 0];
    while shared.len() < 40 {
        let (who, delivery) = tokio::select! {
            delivery = first.next() => (0, delivery),
            delivery = second.next() => (1, delivery),
        };
        counts[who] += 1;
        assert!(shared.insert(text(&delivery)), "delivered twice");
        delivery.ack();
    }
    assert!(counts[0] > 0 && counts[1] > 0, "{counts:?}");
}

pub async fn prefetch_bounds_what_is_handed_out(world: World) {
    let bus = world.connect().await;
    let topic = topic(Class::Flow);
    let reader = sub(&topic, "reader");
    let mut ear = bus.listen(&reader, 2).await;
    for n in 0..5 {
        bus.send(&topic, &n.to_string()).await;
    }
    let first = ear.next().await;
    let second = ear.next().await;
    assert_eq!((text(&first).as_str(), text(&second).as_str()), ("0", "1"));
    until(async || bus.queue_state(&reader).await.unwrap().unwrap().ready == 3).await;
    assert!(ear.now().is_none());
    second.ack();
    assert_eq!(text(&ear.next().await), "2", "given back below");
    first.ack();
}

pub async fn what_is_dropped_comes_again_first(world: World) {
    let bus = world.connect().await;
    let topic = topic(Class::Flow);
    let mut ear = bus.listen(&sub(&topic, "reader"), 1).await;
    bus.send(&topic, "first").await;
    bus.send(&topic, "second").await;
    let delivery = ear.next().await;
    assert!(!delivery.redelivered);
    drop(delivery);
    let again = ear.next().await;
    assert_eq!(text(&again), "first");
    assert!(again.redelivered);
    again.ack();
    let next = ear.next().await;
    assert_eq!(text(&next), "second");
    assert!(!next.redelivered);
    next.ack();
}

pub async fn a_stopped_consumer_keeps_what_it_holds(world: World) {
    let bus = world.connect().await;
    let topic = topic(Class::Flow);
    let reader = sub(&topic, "reader");
    let mut ear = bus.listen(&reader, 10).await;
    for text in ["acked", "dropped", "late"] {
        bus.send(&topic, text).await;
    }
    let acked = ear.next().await;
    let dropped = ear.next().await;
    let late = ear.next().await;
    ear.stop().await;
    bus.send(&topic, "after").await;
    assert!(ear.now().is_none());
    acked.ack();
    drop(dropped);
    let mut next = bus.listen(&reader, 10).await;
    let mut got = BTreeSet::new();
    for _ in 0..2 {
        let delivery = next.next().await;
        assert_eq!(delivery.redelivered, text(&delivery) == "dropped");
        got.insert(text(&delivery));
        delivery.ack();
    }
    assert_eq!(got, BTreeSet::from(["after".into(), "dropped".into()]));
    late.ack();
    next.stop().await;
    until(async || bus.queue_state(&reader).await.unwrap().unwrap().ready == 0).await;
}

pub async fn questions_go_to_one_replica_each(world: World) {
    let bus = world.connect().await;
    let other = world.connect().await;
    let topic = topic(Class::Request);
    let server = sub(&topic, "server");
    let mut first = bus.listen(&server, 1).await;
    let mut second = other.listen(&server, 1).await;
    let sent: BTreeSet<String> = (0..20).map(|n| format!("q{n:02}")).collect();
    for text in &sent {
        bus.send(&topic, text).await;
    }
    let mut got = BTreeSet::new();
    let mut counts = [0, 0];
    while got.len() < 20 {
        let (who, delivery) = tokio::select! {
            delivery = first.next() => (0, delivery),
            delivery = second.next() => (1, delivery),
        };
        assert!(
            delivery.settle.is_none(),
            "a question is settled by taking it"
        );
        counts[who] += 1;
        assert!(got.insert(text(&delivery)));
    }
    assert_eq!(counts, [10, 10]);
}

pub async fn an_unserved_question_goes_nowhere(world: World) {
    let bus = world.connect().await;
    let topic = topic(Class::Request);
    let target = Target::Topic(topic.clone());
    assert_eq!(bus.say(&target, "undeclared").await, Ok(Routed::Unroutable));
    bus.declare(std::slice::from_ref(&topic), &[])
        .await
        .unwrap();
    assert_eq!(bus.say(&target, "unserved").await, Ok(Routed::Unroutable));
    let server = sub(&topic, "server");
    let mut ear = bus.listen(&server, 1).await;
    assert_eq!(bus.say(&target, "served").await, Ok(Routed::Queued));
    assert_eq!(text(&ear.next().await), "served");
    ear.stop().await;
    if world.mode() == Mode::Interop {
        // As foreign processors declare it, the queue stays.
        assert_eq!(bus.say(&target, "waits").await, Ok(Routed::Queued));
        let mut ear = bus.listen(&server, 1).await;
        assert_eq!(text(&ear.next().await), "waits");
        return;
    }
    until(async || bus.say(&target, "late").await == Ok(Routed::Unroutable)).await;
    assert_eq!(bus.queue_state(&server).await, Ok(None));
}

pub async fn every_listener_gets_a_notice(world: World) {
    for class in [Class::Notify, Class::Response] {
        let bus = world.connect().await;
        let other = world.connect().await;
        let topic = topic(class);
        let listener = sub(&topic, "same-name");
        let mut ears = [
            bus.listen(&listener, 1).await,
            bus.listen(&listener, 1).await,
            other.listen(&listener, 1).await,
        ];
        bus.send(&topic, "hello").await;
        for ear in &mut ears {
            assert_eq!(text(&ear.next().await), "hello");
            ear.stop().await;
        }
        let target = Target::Topic(topic.clone());
        until(async || bus.say(&target, "late").await == Ok(Routed::Unroutable)).await;
    }
}

pub async fn observers_see_records_and_hold_nothing(world: World) {
    let bus = world.connect().await;
    let other = world.connect().await;
    let topic = topic(Class::Flow);
    let reader = sub(&topic, "reader");
    let mut ear = bus.listen(&reader, 5).await;
    bus.send(&topic, "before").await;
    let (sink, mut first) = collector();
    let one = within(bus.observe(&topic, sink)).await.unwrap();
    let (sink, mut second) = collector();
    let two = within(other.observe(&topic, sink)).await.unwrap();
    bus.send(&topic, "seen").await;
    for seen in [&mut first, &mut second] {
        let delivery = within(seen.recv()).await.unwrap();
        assert_eq!(text(&delivery), "seen");
        assert!(delivery.settle.is_none());
    }
    within(one.stop()).await;
    within(two.stop()).await;
    bus.send(&topic, "after").await;
    assert_eq!(ear.texts(3).await, ["before", "seen", "after"]);
    assert!(first.try_recv().is_err() && second.try_recv().is_err());
    ear.stop().await;
    delete(&*bus, &reader).await;
    until(async || bus.delete_topic(&topic).await == Ok(true)).await;
}

pub async fn an_inbox_takes_answers_in_order(world: World) {
    let bus = world.connect().await;
    let asker = world.connect().await;
    let name: Arc<str> = format!("inbox-{:?}", topic(Class::Response)).into();
    let inbox = Target::Inbox(name.clone());
    assert_eq!(bus.say(&inbox, "too early").await, Ok(Routed::Unroutable));
    let (sink, deliveries) = collector();
    let consumer = within(asker.open_inbox(&name, sink)).await.unwrap();
    let mut ear = Ear {
        consumer,
        deliveries,
    };
    for n in 0..500 {
        let part = message(&n.to_string());
        within(bus.publish(&inbox, part, PublishMode::FireAndForget))
            .await
            .unwrap();
    }
    for n in 0..500 {
        assert_eq!(text(&ear.next().await), n.to_string());
    }
    ear.stop().await;
    until(async || bus.say(&inbox, "late").await == Ok(Routed::Unroutable)).await;
}

/// What else waits is lost when a connection is closed.
pub async fn what_was_flushed_arrives_though_its_publisher_leaves(world: World) {
    let bus = world.connect().await;
    let asker = world.connect().await;
    let name: Arc<str> = format!("inbox-{:?}", topic(Class::Response)).into();
    let (sink, deliveries) = collector();
    let consumer = within(asker.open_inbox(&name, sink)).await.unwrap();
    let mut ear = Ear {
        consumer,
        deliveries,
    };
    within(say_an_answer(&*bus, &Target::Inbox(name))).await;
    bus.close().await;
    hears_the_answer(&mut ear).await;
}

/// Parts of an answer that are more than a connection takes at once.
const PARTS: usize = 24;

/// Says an answer, and flushes its end.
pub async fn say_an_answer(bus: &dyn Bus, to: &Target) {
    let large = "x".repeat(LARGEST / 8);
    for n in 0..PARTS {
        let part = message(&format!("{n} {large}"));
        let sent = bus.publish(to, part, PublishMode::FireAndForget).await;
        assert_eq!(sent, Ok(Routed::Queued));
    }
    let end = bus.publish(to, message("end"), PublishMode::Flushed).await;
    assert_eq!(end, Ok(Routed::Queued));
}

/// All of it comes, in order.
pub async fn hears_the_answer(ear: &mut Ear) {
    for n in 0..PARTS {
        let part = text(&ear.next().await);
        assert!(part.starts_with(&format!("{n} ")), "{n}: {part:.9}");
    }
    assert_eq!(text(&ear.next().await), "end");
}

/// Over a broker it would come later.
pub async fn what_a_process_sends_to_itself_is_there_at_once(world: World) {
    let bus = world.connect().await;
    let other = world.connect().await;
    let name: Arc<str> = format!("inbox-{:?}", topic(Class::Response)).into();
    let inbox = Target::Inbox(name.clone());
    let (sink, deliveries) = collector();
    let consumer = within(bus.open_inbox(&name, sink)).await.unwrap();
    let mut ear = Ear {
        consumer,
        deliveries,
    };
    for n in 0..500 {
        let part = message(&n.to_string());
        let sent = within(bus.publish(&inbox, part, PublishMode::FireAndForget)).await;
        assert_eq!(sent, Ok(Routed::Queued));
        let there = ear.now().expect("it is there");
        assert_eq!(text(&there), n.to_string());
    }
    assert_eq!(other.say(&inbox, "of another").await, Ok(Routed::Queued));
    assert_eq!(ear.texts(1).await, ["of another"]);
    ear.stop().await;
    until(async || bus.say(&inbox, "late").await == Ok(Routed::Unroutable)).await;
}

pub async fn a_claim_has_one_holder(world: World) {
    let bus = world.connect().await;
    let other = world.connect().await;
    let name = format!("claim-{:?}", topic(Class::Notify));
    let claim = bus.claim(&name).await.unwrap().expect("free");
    assert!(claim.holds());
    assert!(other.claim(&name).await.unwrap().is_none());
    assert!(bus.claim(&name).await.unwrap().is_none());
    drop(claim);
    until(async || other.claim(&name).await.unwrap().is_some()).await;
}

/// Takes everything at once.
#[derive(Default)]
struct Taker(AtomicU64);

impl Sink for Taker {
    fn deliver(&self, delivery: Delivery) {
        self.0.fetch_add(1, Ordering::SeqCst);
        delivery.ack();
    }
}

pub async fn what_is_on_its_way_to_a_consumer_that_stops_is_not_lost(world: World) {
    const RECORDS: u64 = 200;
    let bus = world.connect().await;
    let topic = topic(Class::Flow);
    let queue = sub(&topic, "reader");
    bus.declare(&[], std::slice::from_ref(&queue))
        .await
        .unwrap();
    for round in 0..10 {
        let sent = (0..RECORDS).map(|_| bus.send(&topic, "record"));
        join_all(sent).await;
        let taker = Arc::new(Taker::default());
        let consumer = bus.consume(&queue, Consume::prefetch(8), taker.clone());
        let consumer = within(consumer).await.unwrap();
        until(async || taker.0.load(Ordering::SeqCst) > 20).await;
        within(consumer.stop()).await;
        let taken = taker.0.load(Ordering::SeqCst);
        let mut left = 0;
        while let Some(delivery) = within(bus.take(&queue)).await.unwrap() {
            left += 1;
            delivery.ack();
        }
        assert_eq!(taken + left, RECORDS, "round {round}: {taken} were taken");
    }
}

pub async fn envelopes_arrive_as_they_were(world: World) {
    let bus = world.connect().await;
    let topic = topic(Class::Flow);
    let mut ear = bus.listen(&sub(&topic, "reader"), 5).await;
    let mut headers = Headers::default();
    for (name, value) in [
        ("id", "id-ä"),
        ("from", "me"),
        ("reply-to", "inbox"),
        ("frame", "resend"),
        ("seq", "18446744073709551615"),
        ("deadline", "1"),
        ("detach", "1"),
        ("attempt", "2"),
        ("workspace", "default"),
        ("epoch", "9"),
        ("thread", "t"),
        ("parent", "p"),
        ("depth", "4"),
        ("user-id", "u"),
        ("traceparent", "00-1-2-01"),
        ("request-id", "r-1"),
        ("schema", "0123456789abcdef"),
    ] {
        headers.set(name, value);
    }
    assert_eq!(headers.pairs().len(), 17);
    let full = Envelope {
        headers: Arc::new(headers),
        content_type: ContentType::Avro,
        body: (0..LARGEST).map(|n| n as u8).collect::<Vec<_>>().into(),
        ..Envelope::default()
    };
    for sent in [full, Envelope::default()] {
        let target = Target::Topic(topic.clone());
        let publish = bus.publish(&target, sent.clone(), PublishMode::Confirmed);
        assert_eq!(within(publish).await, Ok(Routed::Queued));
        let mut got = ear.next().await;
        let envelope = std::mem::take(&mut got.envelope);
        assert_eq!(envelope.headers, sent.headers);
        assert_eq!(envelope.content_type, sent.content_type);
        assert!(envelope.body == sent.body);
        got.ack();
    }
}

pub async fn too_large_is_refused(world: World) {
    let bus = world.connect().await;
    let topic = topic(Class::Flow);
    let body = Envelope {
        body: vec![0; LARGEST + 1].into(),
        ..Envelope::default()
    };
    let refused = bus
        .publish(&Target::Topic(topic), body, PublishMode::Confirmed)
        .await;
    assert_eq!(refused, Err(BusError::TooLarge { limit: LARGEST }));
}

/// Unlike a body they travel in one frame: a broker ends the connection over one that is larger than was agreed.
pub async fn the_largest_headers_arrive_and_larger_ones_are_refused(world: World) {
    let bus = world.connect().await;
    let topic = topic(Class::Flow);
    let mut ear = bus.listen(&sub(&topic, "reader"), 1).await;
    let limit = limits::HEADERS;
    let mut sent = Envelope::default();
    let headers = Arc::make_mut(&mut sent.headers);
    headers.aside = Some("x".repeat(limit - headers.size()));
    let target = Target::Topic(topic);
    let publish = |envelope| bus.publish(&target, envelope, PublishMode::Confirmed);
    assert_eq!(within(publish(sent.clone())).await, Ok(Routed::Queued));
    let got = ear.next().await;
    assert_eq!(got.envelope.headers.aside, sent.headers.aside);
    got.ack();
    Arc::make_mut(&mut sent.headers).user_id = Some("x".to_owned());
    let refused = within(publish(sent)).await;
    assert_eq!(refused, Err(BusError::HeadersTooLarge { limit }));
}

/// Many publishers at once, some with nowhere to go: nobody is told another's result.
pub async fn each_publisher_learns_its_own_fate(world: World) {
    let bus = world.connect().await;
    let served = topic(Class::Request);
    let unserved = topic(Class::Request);
    let read = topic(Class::Flow);
    let unread = topic(Class::Flow);
    let topics = [
        served.clone(),
        unserved.clone(),
        read.clone(),
        unread.clone(),
    ];
    bus.declare(&topics, &[sub(&read, "reader")]).await.unwrap();
    let mut ear = bus.listen(&sub(&served, "server"), 1).await;
    let publishers = (0..64).map(|n| {
        let (bus, topics) = (bus.clone(), topics.clone());
        tokio::spawn(async move {
            for m in 0..30 {
                let at = (n + m) % topics.len();
                let target = Target::Topic(topics[at].clone());
                let expected = match at % 2 {
                    0 => Routed::Queued,
                    _ => Routed::Unroutable,
                };
                assert_eq!(bus.say(&target, "x").await, Ok(expected));
            }
        })
    });
    for done in join_all(publishers).await {
        done.unwrap();
    }
    assert_eq!(ear.texts(480).await.len(), 480);
    let state = bus.queue_state(&sub(&read, "reader")).await.unwrap();
    assert_eq!(state.unwrap().ready, 480);
}

pub async fn records_wait_for_their_reader(world: World) {
    let bus = world.connect().await;
    let topic = topic(Class::Flow);
    let target = Target::Topic(topic.clone());
    assert_eq!(bus.say(&target, "lost").await, Ok(Routed::Unroutable));
    let reader = sub(&topic, "reader");
    bus.declare(&[], std::slice::from_ref(&reader))
        .await
        .unwrap();
    for n in 0..200 {
        bus.send(&topic, &n.to_string()).await;
    }
    let mut ear = bus.listen(&reader, 7).await;
    let expected: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    assert_eq!(ear.texts(200).await, expected);
}

pub async fn a_sink_may_spawn_and_acknowledge_at_once(world: World) {
    struct Busy(tokio::sync::mpsc::UnboundedSender<String>);
    impl tg_bus::bus::Sink for Busy {
        fn deliver(&self, delivery: tg_bus::bus::Delivery) {
            let text = text(&delivery);
            delivery.ack();
            let sender = self.0.clone();
            tokio::spawn(async move { sender.send(text) });
        }
    }
    let bus = world.connect().await;
    let topic = topic(Class::Flow);
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let how = tg_bus::bus::Consume::prefetch(1);
    let reader = sub(&topic, "reader");
    let consumer = bus.consume(&reader, how, Arc::new(Busy(sender))).await;
    for n in 0..300 {
        bus.send(&topic, &n.to_string()).await;
    }
    let mut got = BTreeSet::new();
    while got.len() < 300 {
        got.insert(within(receiver.recv()).await.unwrap());
    }
    consumer.unwrap().stop().await;
    until(async || bus.queue_state(&reader).await.unwrap().unwrap().ready == 0).await;
}

pub async fn a_closed_bus_says_so(world: World) {
    let bus = world.connect().await;
    let topic = topic(Class::Flow);
    let _ear = bus.listen(&sub(&topic, "reader"), 1).await;
    within(bus.close()).await;
    let target = Target::Topic(topic.clone());
    assert_eq!(bus.say(&target, "late").await, Err(BusError::Closed));
    assert_eq!(*bus.link().borrow(), tg_bus::bus::Link::Down);
    let _: &dyn Bus = &*bus;
}
