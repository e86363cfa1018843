//! The part of the suite about queues and topics themselves: declared, looked at, taken from, relayed and deleted.

use tg_bus::bus::{BusError, Delete, Deleted, Envelope, PublishMode, Routed, Target};
use tg_schemas::topic::Class;
use tg_testkit::bus::*;

pub async fn topics_go_when_nothing_is_bound(world: World) {
    let bus = world.connect().await;
    let topic = topic(Class::Flow);
    let reader = sub(&topic, "reader");
    assert_eq!(bus.delete_topic(&topic).await, Ok(false), "there is none");
    bus.declare(&[], std::slice::from_ref(&reader))
        .await
        .unwrap();
    bus.declare(&[], std::slice::from_ref(&reader))
        .await
        .unwrap();
    assert_eq!(bus.delete_topic(&topic).await, Ok(false), "it is in use");
    bus.send(&topic, "still there").await;
    assert!(delete(&*bus, &reader).await);
    assert_eq!(bus.delete_topic(&topic).await, Ok(true));
    assert_eq!(bus.delete_topic(&topic).await, Ok(false));
    let target = Target::Topic(topic.clone());
    assert_eq!(bus.say(&target, "gone").await, Ok(Routed::Unroutable));
    bus.declare(&[], std::slice::from_ref(&reader))
        .await
        .unwrap();
    bus.send(&topic, "back").await;
}

pub async fn a_deleted_queue_is_gone_with_its_messages(world: World) {
    let bus = world.connect().await;
    let topic = topic(Class::Flow);
    let (kept, deleted) = (sub(&topic, "kept"), sub(&topic, "deleted"));
    bus.declare(&[], &[kept.clone(), deleted.clone()])
        .await
        .unwrap();
    for n in 0..3 {
        bus.send(&topic, &n.to_string()).await;
    }
    let state = bus.queue_state(&deleted).await.unwrap().unwrap();
    assert_eq!((state.ready, state.consumers), (3, 0));
    assert!(delete(&*bus, &deleted).await);
    assert!(!delete(&*bus, &deleted).await);
    assert_eq!(bus.queue_state(&deleted).await, Ok(None));
    let mut ear = bus.listen(&kept, 5).await;
    assert_eq!(ear.texts(3).await, ["0", "1", "2"]);
    bus.declare(&[], std::slice::from_ref(&deleted))
        .await
        .unwrap();
    assert_eq!(bus.queue_state(&deleted).await.unwrap().unwrap().ready, 0);
    assert!(delete(&*bus, &deleted).await);
}

pub async fn only_an_empty_queue_goes_when_asked_so(world: World) {
    let bus = world.connect().await;
    let topic = topic(Class::Flow);
    let queue = sub(&topic, "reader");
    let try_delete = async |when| bus.delete_queue(&queue, when).await.unwrap();
    assert_eq!(try_delete(Delete::IfEmpty).await, Deleted::Missing);
    bus.declare(&[], std::slice::from_ref(&queue))
        .await
        .unwrap();
    bus.send(&topic, "one").await;
    assert_eq!(try_delete(Delete::IfEmpty).await, Deleted::NotEmpty);
    // Off its topic: emptying it comes to an end.
    let late = Envelope {
        body: b"late".to_vec().into(),
        ..Envelope::default()
    };
    let target = Target::Topic(topic.clone());
    let late = bus.publish(&target, late, PublishMode::Confirmed).await;
    assert_eq!(late, Ok(Routed::Unroutable));
    let taken = bus.take(&queue).await.unwrap().unwrap();
    assert_eq!(text(&taken), "one");
    taken.ack();
    let gone = Deleted::Gone { messages: 0 };
    assert_eq!(try_delete(Delete::IfEmpty).await, gone);
    assert_eq!(bus.queue_state(&queue).await, Ok(None));
    bus.declare(&[], std::slice::from_ref(&queue))
        .await
        .unwrap();
    for n in 0..3 {
        bus.send(&topic, &n.to_string()).await;
    }
    let gone = Deleted::Gone { messages: 3 };
    assert_eq!(try_delete(Delete::Always).await, gone);
}

pub async fn no_confirmed_record_goes_with_an_empty_queue(world: World) {
    let bus = world.connect().await;
    let other = world.connect().await;
    let topic = topic(Class::Flow);
    let queue = sub(&topic, "reader");
    for _ in 0..20 {
        bus.declare(&[], std::slice::from_ref(&queue))
            .await
            .unwrap();
        let (publisher, to) = (other.clone(), Target::Topic(topic.clone()));
        let publishing = tokio::spawn(async move {
            let mut queued = 0;
            while queued < 200 && publisher.say(&to, "x").await == Ok(Routed::Queued) {
                queued += 1;
            }
            queued
        });
        let mut taken = 0;
        loop {
            while let Some(delivery) = within(bus.take(&queue)).await.unwrap() {
                delivery.ack();
                taken += 1;
            }
            match within(bus.delete_queue(&queue, Delete::IfEmpty)).await {
                Ok(Deleted::NotEmpty) => {}
                gone => break assert_eq!(gone, Ok(Deleted::Gone { messages: 0 })),
            }
        }
        assert_eq!(within(publishing).await.unwrap(), taken);
    }
}

pub async fn messages_can_be_taken_one_by_one(world: World) {
    let bus = world.connect().await;
    let topic = topic(Class::Flow);
    let reader = sub(&topic, "reader");
    assert!(bus.take(&reader).await.unwrap().is_none(), "no queue");
    bus.declare(&[], std::slice::from_ref(&reader))
        .await
        .unwrap();
    assert!(bus.take(&reader).await.unwrap().is_none(), "empty");
    bus.send(&topic, "one").await;
    bus.send(&topic, "two").await;
    let one = bus.take(&reader).await.unwrap().unwrap();
    assert_eq!(text(&one), "one");
    drop(one);
    until(async || bus.queue_state(&reader).await.unwrap().unwrap().ready == 2).await;
    for expected in ["one", "two"] {
        let taken = bus.take(&reader).await.unwrap().unwrap();
        assert_eq!(text(&taken), expected);
        taken.ack();
    }
    assert!(bus.take(&reader).await.unwrap().is_none());
}

pub async fn one_subscription_can_be_addressed(world: World) {
    let bus = world.connect().await;
    let topic = topic(Class::Flow);
    let (one, other) = (sub(&topic, "one"), sub(&topic, "other"));
    let target = Target::Subscription(one.clone());
    assert_eq!(bus.say(&target, "nobody").await, Ok(Routed::Unroutable));
    let mut first = bus.listen(&one, 5).await;
    let mut second = bus.listen(&other, 5).await;
    assert_eq!(bus.say(&target, "only one").await, Ok(Routed::Queued));
    bus.send(&topic, "both").await;
    assert_eq!(first.texts(2).await, ["only one", "both"]);
    assert_eq!(second.texts(1).await, ["both"]);
}

/// Also by way of another topic, and once for each queue.
pub async fn a_relayed_record_is_in_the_queues_of_all_its_topics(world: World) {
    let bus = world.connect().await;
    let [first, second, third, on, from] = [(); 5].map(|()| topic(Class::Flow));
    let queues = [&first, &second, &third].map(|topic| sub(topic, "reader"));
    let gone = bus.relay(&from, std::slice::from_ref(&first)).await;
    assert_eq!(gone, Err(BusError::Refused), "no such topic");
    bus.declare(&[on.clone(), from.clone()], &queues)
        .await
        .unwrap();
    let target = Target::Topic(from.clone());
    assert_eq!(bus.say(&target, "early").await, Ok(Routed::Unroutable));
    for _ in 0..2 {
        bus.relay(&from, &[first.clone(), on.clone()])
            .await
            .unwrap();
        bus.relay(&on, &[second.clone(), third.clone(), first.clone()])
            .await
            .unwrap();
    }
    assert_eq!(bus.say(&target, "one").await, Ok(Routed::Queued));
    assert_eq!(
        bus.say(&Target::Topic(on.clone()), "two").await,
        Ok(Routed::Queued)
    );
    bus.send(&second, "three").await;
    for (queue, expected) in queues.iter().zip([
        &["one", "two"][..],
        &["one", "two", "three"],
        &["one", "two"],
    ]) {
        let mut ear = bus.listen(queue, 5).await;
        assert_eq!(ear.texts(expected.len()).await, expected, "{queue:?}");
        let state = bus.queue_state(queue).await.unwrap().unwrap();
        assert_eq!(state.ready, 0, "{queue:?}");
    }
    assert_eq!(bus.delete_relay(&from).await, Ok(true));
    assert_eq!(bus.delete_relay(&from).await, Ok(false), "there is none");
    bus.declare(std::slice::from_ref(&from), &[]).await.unwrap();
    assert_eq!(
        bus.say(&target, "late").await,
        Ok(Routed::Unroutable),
        "it went with its topic"
    );
}
