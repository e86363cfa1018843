//! How fast the buses are: `cargo run --release -p tg-mesh --example bus_bench [amqp-url | embedded]`.
//!
//! Without a URL it starts a private broker. Prints latency of questions and records, throughput with
//! many publishers, the time of a question and its answer, and the bare client library's figures beside ours.

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
use tg_testkit::machine::{described, load};
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
    println!("machine: {}", described());
    println!("load before: {}", load());
    measured(wanted).await;
    println!("load after: {}", load());
}

async fn measured(wanted: Option<String>) {
    let dir = tempfile::tempdir().expect("a directory");
    for durability in [Durability::Process, Durability::Power] {
        let path = dir.path().join(durability.as_str());
        let bus = EmbeddedBus::open(&path, durability).expect("an embedded bus");
        let count = match durability {
            Durability::Process => 100_000,
            Durability::Power => 2_000,
        };
        println!("embedded, durability {durability}");
        measure(Arc::new(bus), count).await;
    }
    println!("embedded, in memory");
    measure(Arc::new(EmbeddedBus::in_memory()), 100_000).await;
    dialog::embedded().await;
    if wanted.as_deref() == Some("embedded") {
        return;
    }
    let (url, _node) = match wanted {
        Some(url) => (url, None),
        None => {
            let node = RabbitNode::start().await.expect("a broker");
            (node.url(), Some(node))
        }
    };
    for mode in [Mode::Native, Mode::Interop] {
        let options = RabbitOptions::of(mode);
        let bus = RabbitBus::connect(&url, mode, options)
            .await
            .expect("a broker");
        println!("rabbitmq, {mode:?}");
        measure(Arc::new(bus), 20_000).await;
    }
    println!("rabbitmq, bare client library");
    bare(&url, 20_000).await;
    dialog::over_rabbitmq(&url).await;
}

async fn measure(bus: Arc<dyn Bus>, count: usize) {
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
        for _ in 0..(count / 20).clamp(200, 2_000) {
            let start = Instant::now();
            let sent = bus.publish(&target, envelope(), PublishMode::Confirmed);
            sent.await.expect("published");
            published.push(start.elapsed());
            let arrived = arrivals.recv().await.expect("delivered");
            delivered.push(arrived.saturating_duration_since(start));
        }
        let name = class.as_str();
        println!("  {name:8} publish to confirm:  {}", quantiles(published));
        println!("  {name:8} publish to deliver:  {}", quantiles(delivered));

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
        println!("  {name:8} 32 publishers:       {}", rate(count, start));

        if class == Class::Request {
            let start = Instant::now();
            for _ in 0..count {
                let sent = bus.publish(&target, envelope(), PublishMode::FireAndForget);
                sent.await.expect("sent");
            }
            for _ in 0..count {
                arrivals.recv().await.expect("delivered");
            }
            println!("  {name:8} 1 without confirms:  {}", rate(count, start));
        }
        consumer.stop().await;
    }
    bus.close().await;
}

async fn bare(url: &str, count: usize) {
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
        println!(
            "  mode {mode}, 256 unconfirmed:      {}",
            rate(count, start)
        );
    }
}

fn envelope() -> Envelope {
    Envelope {
        headers: Headers {
            id: Some("0123456789abcdef0123456789abcdef".into()),
            reply_to: Some("inbox-0123456789abcdef".into()),
            deadline: Some(1_700_000_000_000),
            workspace: Some("default".into()),
            ..Headers::default()
        },
        body: vec![b'x'; BODY].into(),
        ..Envelope::default()
    }
}

fn quantiles(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
    format!("p50 {:?}, p99 {:?}", at(0.5), at(0.99))
}

fn rate(count: usize, start: Instant) -> String {
    let seconds = start.elapsed().as_secs_f64();
    format!("{:.0}/s", count as f64 / seconds)
}
