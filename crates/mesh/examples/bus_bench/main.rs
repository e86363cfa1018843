//! How fast the buses are: `cargo run --release -p tg-mesh --example bus_bench [amqp-url | embedded]`.
//!
//! Without a URL it starts a private broker. Prints latency of questions and records, throughput with
//! many publishers, the time of a question and its answer, and the bare client library's figures beside ours.
//! Each figure is the median of three rounds.

mod dialog;

use std::sync::Arc;
use std::time::{Duration, Instant};

use lapin::options::{
    BasicConsumeOptions, BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Connection, ConnectionProperties};
use tg_mesh::Mode;
use tg_mesh::bus::{Bus, Consume, Delivery, Envelope, PublishMode, Sink, Target};
use tg_mesh::embedded::EmbeddedBus;
use tg_mesh::rabbitmq::{RabbitBus, RabbitOptions};
use tg_schemas::topic::Class;
use tg_schemas::{Headers, Subscription, Topic};
use tg_storage::Durability;
use tg_testkit::bench::{ROUNDS, Rounds, headline, processor_time};
use tg_testkit::machine::load;
use tg_testkit::rabbitmq::RabbitNode;
use tokio::sync::mpsc;

const BODY: usize = 500;

struct Arrivals(mpsc::UnboundedSender<Instant>);

impl Sink for Arrivals {
    fn deliver(&self, delivery: Delivery) {
        let _ = self.0.send(Instant::now());
        delivery.ack();
    }
}

#[tokio::main]
async fn main() {
    let wanted = std::env::args().nth(1);
    println!("{}", headline(1));
    measured(wanted).await;
    println!("load after: {}", load());
}

async fn measured(wanted: Option<String>) {
    let dir = tempfile::tempdir().expect("a directory");
    for durability in [Durability::Process, Durability::Power] {
        let count = match durability {
            Durability::Process => 100_000,
            Durability::Power => 2_000,
        };
        println!("embedded, durability {durability}");
        let mut rounds = Rounds::default();
        for nth in 0..ROUNDS {
            let path = dir.path().join(format!("{durability}-{nth}"));
            let bus = EmbeddedBus::open(&path, durability).expect("an embedded bus");
            measure(Arc::new(bus), count, None, &mut rounds).await;
        }
        rounds.print();
    }
    println!("embedded, in memory");
    let mut rounds = Rounds::default();
    for _ in 0..ROUNDS {
        let bus = Arc::new(EmbeddedBus::in_memory());
        measure(bus, 100_000, None, &mut rounds).await;
    }
    rounds.print();
    dialog::embedded().await;
    if wanted.as_deref() == Some("embedded") {
        return;
    }
    let (url, node) = match wanted {
        Some(url) => (url, None),
        None => {
            let node = RabbitNode::start().await.expect("a broker");
            (node.url(), Some(node))
        }
    };
    let broker = node.as_ref().and_then(|node| node.pid().ok());
    for mode in [Mode::Native, Mode::Interop] {
        println!("rabbitmq, {mode:?}");
        let mut rounds = Rounds::default();
        for _ in 0..ROUNDS {
            let options = RabbitOptions::of(mode);
            let bus = RabbitBus::connect(&url, mode, options)
                .await
                .expect("a broker");
            measure(Arc::new(bus), 20_000, broker, &mut rounds).await;
        }
        rounds.print();
    }
    println!("rabbitmq, bare client library");
    let mut rounds = Rounds::default();
    for _ in 0..ROUNDS {
        bare(&url, 20_000, &mut rounds).await;
    }
    rounds.print();
    dialog::over_rabbitmq(&url).await;
}

/// `broker`: its process, where it is one of ours.
async fn measure(bus: Arc<dyn Bus>, count: usize, broker: Option<u32>, rounds: &mut Rounds) {
    for class in [Class::Request, Class::Flow] {
        let topic = Topic::system(class, "bench");
        let reader = Subscription::service(topic.clone(), "reader");
        let (sender, mut arrivals) = mpsc::unbounded_channel();
        let how = Consume::prefetch(256);
        let sink = Arc::new(Arrivals(sender));
        let consumer = bus.consume(&reader, how, sink).await.expect("a consumer");
        let target = Target::Topic(topic.clone());

        let mut published = Vec::new();
        let mut delivered = Vec::new();
        let one_by_one = (count / 20).clamp(200, 2_000);
        let worked = || [Some(std::process::id()), broker].map(|one| one.and_then(processor_time));
        let before = worked();
        for _ in 0..one_by_one {
            let start = Instant::now();
            let sent = bus.publish(&target, envelope(), PublishMode::Confirmed);
            sent.await.expect("published");
            published.push(start.elapsed());
            let arrived = arrivals.recv().await.expect("delivered");
            delivered.push(arrived.saturating_duration_since(start));
        }
        let name = class.as_str();
        // With nothing else under way: what one message takes of its publisher and reader, and of the broker between them.
        for ((whose, before), after) in ["ours", "the broker's"].iter().zip(before).zip(worked()) {
            if let (Some(before), Some(after)) = (before, after) {
                let each = (after - before) * 1_000.0 / one_by_one as f64;
                rounds.add(
                    format!("{name}, processor time of one alone, {whose}"),
                    "us",
                    each,
                );
            }
        }
        for (what, times) in [("confirm", published), ("deliver", delivered)] {
            let [middle, late] = quantiles(times);
            rounds.add(format!("{name}, publish to {what}, p50"), "us", middle);
            rounds.add(format!("{name}, publish to {what}, p99"), "us", late);
        }

        let start = Instant::now();
        let publishers = (0..32).map(|_| {
            let (bus, target) = (bus.clone(), target.clone());
            tokio::spawn(async move {
                for _ in 0..count / 32 {
                    let sent = bus.publish(&target, envelope(), PublishMode::Confirmed);
                    sent.await.expect("published");
                }
            })
        });
        futures::future::join_all(publishers).await;
        for _ in 0..count / 32 * 32 {
            arrivals.recv().await.expect("delivered");
        }
        rounds.add(format!("{name}, 32 publishers"), "/s", rate(count, start));

        if class == Class::Request {
            let start = Instant::now();
            for _ in 0..count {
                let sent = bus.publish(&target, envelope(), PublishMode::FireAndForget);
                sent.await.expect("sent");
            }
            for _ in 0..count {
                arrivals.recv().await.expect("delivered");
            }
            let rate = rate(count, start);
            rounds.add(format!("{name}, 1 without confirms"), "/s", rate);
        }
        consumer.stop().await;
    }
    bus.close().await;
}

async fn bare(url: &str, count: usize, rounds: &mut Rounds) {
    let connection = Connection::connect(url, ConnectionProperties::default())
        .await
        .expect("a connection");
    let channel = connection.create_channel().await.expect("a channel");
    let options = ConfirmSelectOptions::default();
    channel.confirm_select(options).await.expect("confirms");
    let queue = QueueDeclareOptions {
        durable: true,
        ..QueueDeclareOptions::default()
    };
    channel
        .queue_declare("bench".into(), queue, FieldTable::default())
        .await
        .expect("a queue");
    let consumer = channel
        .basic_consume(
            "bench".into(),
            "bench".into(),
            BasicConsumeOptions {
                no_ack: true,
                ..BasicConsumeOptions::default()
            },
            FieldTable::default(),
        )
        .await
        .expect("a consumer");
    let (sender, mut arrivals) = mpsc::unbounded_channel();
    consumer.set_delegate(move |_| {
        let _ = sender.send(());
        std::future::ready(())
    });
    let body = [b'x'; BODY];
    for mode in [1, 2] {
        let start = Instant::now();
        let mut waiting = std::collections::VecDeque::new();
        for _ in 0..count {
            let confirm = channel
                .basic_publish(
                    "".into(),
                    "bench".into(),
                    BasicPublishOptions::default(),
                    &body,
                    BasicProperties::default().with_delivery_mode(mode),
                )
                .await
                .expect("sent");
            waiting.push_back(confirm);
            if waiting.len() >= 256
                && let Some(first) = waiting.pop_front()
            {
                first.await.expect("confirmed");
            }
        }
        for confirm in waiting {
            confirm.await.expect("confirmed");
        }
        for _ in 0..count {
            arrivals.recv().await;
        }
        let rate = rate(count, start);
        rounds.add(format!("mode {mode}, 256 unconfirmed"), "/s", rate);
    }
    // Its consumer goes with it: the next round's would else share the queue.
    let closed = connection.close(200, "done".into()).await;
    closed.expect("closed");
}

fn envelope() -> Envelope {
    Envelope {
        headers: Arc::new(Headers {
            id: Some("0123456789abcdef0123456789abcdef".into()),
            reply_to: Some("inbox-0123456789abcdef".into()),
            deadline: Some(1_700_000_000_000),
            workspace: Some("default".into()),
            ..Headers::default()
        }),
        body: vec![b'x'; BODY].into(),
        ..Envelope::default()
    }
}

/// Half and 99 % take at most so many microseconds.
fn quantiles(mut times: Vec<Duration>) -> [f64; 2] {
    times.sort_unstable();
    [0.5, 0.99].map(|part| {
        let time = times[((times.len() - 1) as f64 * part) as usize];
        time.as_secs_f64() * 1_000_000.0
    })
}

fn rate(count: usize, start: Instant) -> f64 {
    count as f64 / start.elapsed().as_secs_f64()
}
