//! How many bytes of records consumers hold at once, on both buses.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tg_bus::embedded::{EmbeddedBus, EmbeddedOptions};
use tg_bus::rabbitmq::{RabbitBus, RabbitOptions};
use tg_bus::{Bus, Delivery, Mode};
use tg_schemas::topic::Class;
use tg_testkit::bus::*;
use tokio::time::timeout;

/// Bytes that consumers may hold.
const ROOM: usize = 1 << 20;
/// Bytes of a record, and how many there are: eight times the room.
const RECORD: usize = 200_000;
const RECORDS: usize = 40;
/// What would come has come by then.
const QUIET: Duration = Duration::from_millis(700);

/// Two processes on a bus with little room, each with room of its own where there is a broker.
struct Small {
    bus: Arc<dyn Bus>,
    other: Arc<dyn Bus>,
    _dir: Option<TempDir>,
}

async fn embedded() -> Small {
    let dir = TempDir::new().unwrap();
    let options = EmbeddedOptions {
        memory: ROOM,
        ..EmbeddedOptions::default()
    };
    let bus: Arc<dyn Bus> = Arc::new(EmbeddedBus::open_with(dir.path(), options).unwrap());
    Small {
        other: bus.clone(),
        bus,
        _dir: Some(dir),
    }
}

async fn rabbitmq() -> Small {
    let World::Rabbit(url, mode) = World::rabbit(Mode::Native).await else {
        panic!("a broker was asked for");
    };
    let options = RabbitOptions {
        in_hand: ROOM,
        ..RabbitOptions::of(mode)
    };
    let connect = async || {
        Arc::new(
            RabbitBus::connect(&url, mode, options.clone())
                .await
                .unwrap(),
        )
    };
    Small {
        bus: connect().await,
        other: connect().await,
        _dir: None,
    }
}

/// What a consumer is handed until nothing more comes: something does.
async fn handed(ear: &mut Ear) -> Vec<Delivery> {
    let mut all = vec![ear.next().await];
    while let Ok(Some(delivery)) = timeout(QUIET, ear.deliveries.recv()).await {
        all.push(delivery);
    }
    all
}

fn number(delivery: &Delivery) -> usize {
    let text = text(delivery);
    text.split(' ').next().unwrap().parse().unwrap()
}

async fn bytes_in_hand_are_bounded(small: Small) {
    let bus = &small.bus;
    let (record, reader) = (topic(Class::Flow), "reader");
    let queue = sub(&record, reader);
    bus.declare(&[], std::slice::from_ref(&queue))
        .await
        .unwrap();
    let filler = "x".repeat(RECORD);
    for n in 0..RECORDS {
        bus.send(&record, &format!("{n} {filler}")).await;
    }
    let mut ear = bus.listen(&queue, 64).await;
    let mut held = handed(&mut ear).await;
    let fit = ROOM.div_ceil(RECORD);
    assert!((1..=fit).contains(&held.len()), "{} in hand", held.len());

    // Who holds nothing has one, however full it is.
    let another = topic(Class::Flow);
    let mut idle = bus.listen(&sub(&another, reader), 64).await;
    bus.send(&another, "0 small").await;
    idle.next().await.ack();

    // Each comes once, and never are more in hand.
    let mut seen = BTreeSet::new();
    while seen.len() < RECORDS / 2 {
        let done = held.pop().expect("something is in hand");
        assert!(seen.insert(number(&done)), "handed out twice");
        done.ack();
        held.push(ear.next().await);
        while let Some(more) = ear.now() {
            held.push(more);
        }
        assert!(held.len() <= fit, "{} in hand", held.len());
    }

    // Who stops leaves what it was not handed.
    ear.stop().await;
    while let Some(more) = ear.now() {
        held.push(more);
    }
    let left = RECORDS - seen.len() - held.len();
    until(async || {
        let state = bus.queue_state(&queue).await.unwrap();
        state.is_some_and(|state| state.ready == left as u64)
    })
    .await;
    for delivery in held {
        assert!(seen.insert(number(&delivery)), "handed out twice");
        delivery.ack();
    }

    // Two that compete: what one gives back may go to the other, and all come.
    let mut ears = [
        bus.listen(&queue, 64).await,
        small.other.listen(&queue, 64).await,
    ];
    let all = async {
        while seen.len() < RECORDS {
            let [first, second] = &mut ears;
            let delivery = tokio::select! {
                delivery = first.deliveries.recv() => delivery,
                delivery = second.deliveries.recv() => delivery,
            };
            let delivery = delivery.unwrap();
            assert!(seen.insert(number(&delivery)), "handed out twice");
            delivery.ack();
        }
    };
    within(all).await;
    assert!(delete(&**bus, &queue).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_in_hand_are_bounded_embedded() {
    bytes_in_hand_are_bounded(embedded().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_in_hand_are_bounded_rabbitmq() {
    bytes_in_hand_are_bounded(rabbitmq().await).await;
}
