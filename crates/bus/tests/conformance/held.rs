//! A broker's `consumer_timeout`: what is held for longer than the broker lets a consumer hold it harms no record. On the embedded
//! bus nothing is ever taken back.

use std::sync::Arc;
use std::time::Duration;

use tg_bus::{Bus, Link, Mode};
use tg_schemas::Subscription;
use tg_schemas::topic::Class;
use tg_testkit::bus::*;
use tg_testkit::rabbitmq::RabbitNode;
use tg_testkit::shared_node::Inside;

/// What the node lets a consumer hold.
const LONGEST: Duration = Duration::from_secs(2);

/// One node for all: starting it takes seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_held_too_long_is_handed_out_once() {
    let node = RabbitNode::start_impatient(LONGEST).await.unwrap();
    let inside = Inside::of(&node).await.unwrap();
    for mode in [Mode::Native, Mode::Interop] {
        whoever_holds_it_goes_on(&node, inside, mode).await;
    }
    what_is_settled_meanwhile_stays_settled(&node, inside).await;
    what_is_given_back_late_comes_again(&node, inside).await;
    what_went_to_another_process_is_settled_by_either(&node, inside).await;
    what_there_was_no_room_for_comes_when_there_is(&node, inside).await;
}

/// Waits until the node has taken back something once more.
async fn taken_back(node: &RabbitNode) {
    let before = node.taken_back().unwrap();
    until(async || {
        tokio::time::sleep(Duration::from_millis(10)).await;
        node.taken_back().unwrap() > before
    })
    .await;
}

/// Nothing is in the queue, handed out or not.
async fn empty(inside: Inside, mode: Mode, reader: &Subscription) {
    let name = reader.queue(mode.rules().prefix);
    until(async || {
        let all = inside.queues().await.unwrap();
        let queue = all.iter().find(|queue| queue.name == name);
        queue.is_some_and(|queue| queue.messages == 0)
    })
    .await;
}

/// Those that are on the same channel read on, and after its end they are there again.
async fn whoever_holds_it_goes_on(node: &RabbitNode, inside: Inside, mode: Mode) {
    let bus: Arc<dyn Bus> = Arc::new(connect(&node.url(), mode).await);
    let slow = topic(Class::Flow);
    let reader = sub(&slow, "reader");
    let mut slow_ear = bus.listen(&reader, 2).await;
    let mut others = Vec::new();
    // More than there are channels for records.
    for _ in 0..8 {
        let topic = topic(Class::Flow);
        let ear = bus.listen(&sub(&topic, "reader"), 1).await;
        others.push((topic, ear));
    }
    for text in ["long", "longer", "waits"] {
        bus.send(&slow, text).await;
    }
    let held = [slow_ear.next().await, slow_ear.next().await];
    assert_eq!(held.each_ref().map(text), ["long", "longer"]);
    for round in 0..2 {
        taken_back(node).await;
        for (topic, ear) in &mut others {
            let said = format!("{round}");
            bus.send(topic, &said).await;
            assert_eq!(ear.texts(1).await, [said]);
        }
        assert!(
            slow_ear.now().is_none(),
            "in hand, or behind those that are"
        );
    }
    let [long, longer] = held;
    long.ack();
    let waits = slow_ear.next().await;
    assert_eq!(text(&waits), "waits");
    longer.ack();
    waits.ack();
    empty(inside, mode, &reader).await;
    bus.send(&slow, "after").await;
    let after = slow_ear.next().await;
    assert_eq!((text(&after).as_str(), after.redelivered), ("after", false));
    after.ack();
    empty(inside, mode, &reader).await;
    assert_eq!(*bus.link().borrow(), Link::Up { generation: 1 });
    bus.close().await;
}

/// Also while it is nobody's: the channel is gone, and the next is not there yet.
async fn what_is_settled_meanwhile_stays_settled(node: &RabbitNode, inside: Inside) {
    let bus: Arc<dyn Bus> = Arc::new(connect(&node.url(), Mode::Native).await);
    let topic = topic(Class::Flow);
    let reader = sub(&topic, "reader");
    let mut ear = bus.listen(&reader, 4).await;
    for text in ["first", "second"] {
        bus.send(&topic, text).await;
    }
    let held = [ear.next().await, ear.next().await];
    taken_back(node).await;
    let [first, second] = held;
    first.ack();
    tokio::time::sleep(Duration::from_millis(100)).await;
    second.ack();
    empty(inside, Mode::Native, &reader).await;
    assert!(ear.now().is_none(), "handled, and not handed out again");
    bus.send(&topic, "third").await;
    assert_eq!(ear.texts(1).await, ["third"]);
    bus.close().await;
}

async fn what_is_given_back_late_comes_again(node: &RabbitNode, inside: Inside) {
    let bus: Arc<dyn Bus> = Arc::new(connect(&node.url(), Mode::Native).await);
    let topic = topic(Class::Flow);
    let reader = sub(&topic, "reader");
    let mut ear = bus.listen(&reader, 1).await;
    bus.send(&topic, "once more").await;
    let held = ear.next().await;
    taken_back(node).await;
    drop(held);
    let again = ear.next().await;
    assert!(again.redelivered);
    assert_eq!(text(&again), "once more");
    again.ack();
    empty(inside, Mode::Native, &reader).await;
    bus.close().await;
}

async fn what_went_to_another_process_is_settled_by_either(node: &RabbitNode, inside: Inside) {
    let bus: Arc<dyn Bus> = Arc::new(connect(&node.url(), Mode::Native).await);
    let other: Arc<dyn Bus> = Arc::new(connect(&node.url(), Mode::Native).await);
    let topic = topic(Class::Flow);
    let reader = sub(&topic, "reader");
    let mut here = bus.listen(&reader, 1).await;
    bus.send(&topic, "long").await;
    let held = here.next().await;
    let mut there = other.listen(&reader, 1).await;
    let second = there.next().await;
    assert!(second.redelivered);
    held.ack();
    second.ack();
    empty(inside, Mode::Native, &reader).await;
    assert!(here.now().is_none() && there.now().is_none());
    bus.send(&topic, "after").await;
    let after = tokio::select! { one = here.next() => one, one = there.next() => one };
    assert!(!after.redelivered);
    after.ack();
    empty(inside, Mode::Native, &reader).await;
    bus.close().await;
    other.close().await;
}

/// A process holds so many bytes at once; what it has no room for stays the broker's, and is taken back with all else.
async fn what_there_was_no_room_for_comes_when_there_is(node: &RabbitNode, inside: Inside) {
    let options = tg_bus::rabbitmq::RabbitOptions {
        in_hand: 10,
        ..tg_bus::rabbitmq::RabbitOptions::of(Mode::Native)
    };
    let bus = tg_bus::rabbitmq::RabbitBus::connect(&node.url(), Mode::Native, options).await;
    let bus: Arc<dyn Bus> = Arc::new(bus.unwrap());
    let topic = topic(Class::Flow);
    let reader = sub(&topic, "reader");
    let mut ear = bus.listen(&reader, 4).await;
    let texts = [
        "the first of them",
        "the second of them",
        "the third of them",
    ];
    for text in texts {
        bus.send(&topic, text).await;
    }
    let held = ear.next().await;
    for _ in 0..2 {
        taken_back(node).await;
        assert!(ear.now().is_none(), "there is no room");
    }
    held.ack();
    assert_eq!(ear.texts(2).await, texts[1..]);
    empty(inside, Mode::Native, &reader).await;
    assert!(ear.now().is_none());
    bus.close().await;
}
