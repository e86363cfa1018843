//! What only a foreign publisher does: it is written in AMQP's own words.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Connection, ConnectionProperties};
use tg_schemas::{Headers, limits};
use tg_testkit::place::Place;

use super::*;

const BOUND: Duration = Duration::from_secs(10);

struct Collector(std::sync::mpsc::Sender<Delivery>);

impl Sink for Collector {
    fn deliver(&self, delivery: Delivery) {
        let _ = self.0.send(delivery);
    }
}

fn next(deliveries: &Receiver<Delivery>) -> Delivery {
    let delivery = tokio::task::block_in_place(|| deliveries.recv_timeout(BOUND));
    delivery.expect("it is delivered")
}

/// Publishes as a foreign process does, with a header of so many bytes.
async fn publish(url: &str, exchange: &str, header: usize) {
    let connection = Connection::connect(url, ConnectionProperties::default()).await;
    let connection = connection.unwrap();
    let channel = connection.create_channel().await.unwrap();
    let confirms = ConfirmSelectOptions::default();
    channel.confirm_select(confirms).await.unwrap();
    let mut headers = FieldTable::default();
    let long = "x".repeat(header);
    headers.insert("user-id".into(), AMQPValue::LongString(long.into()));
    let properties = BasicProperties::default().with_headers(headers);
    let options = BasicPublishOptions::default();
    let body = b"foreign";
    let sent = channel.basic_publish(exchange.into(), "".into(), options, body, properties);
    assert!(sent.await.unwrap().await.unwrap().is_ack());
    connection.close(200, "OK".into()).await.unwrap();
}

/// Headers larger than our own frames come through, and nothing is disconnected over them: else the same record would
/// come again with each connection. What would be too large to be published is refused before it can do harm.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_headers_as_large_as_the_broker_takes_them_break_no_connection() {
    let Place::RabbitMq(url) = Place::rabbitmq().await else {
        panic!("a broker")
    };
    let options = RabbitOptions::of(Mode::Native);
    let bus = RabbitBus::connect(&url, Mode::Native, options).await;
    let bus = bus.unwrap();
    let topic = Topic::parse("flow:tg:triples-store:default:default").unwrap();
    let subscription = Subscription::service(topic.clone(), "reader");
    let (sender, deliveries) = channel();
    let sink = Arc::new(Collector(sender));
    let consume = bus.consume(&subscription, Consume::prefetch(8), sink);
    let _consumer = consume.await.unwrap();
    let exchange = bus.core.exchange(&topic);
    for header in [100, 40 << 10, limits::BROKER_FRAME - (1 << 10)] {
        publish(&url, &exchange, header).await;
        let delivery = next(&deliveries);
        let told = delivery.envelope.headers.user_id.as_deref();
        assert_eq!(told.map(str::len), Some(header));
        delivery.ack();
    }

    let target = Target::Topic(topic);
    let of = |bytes: usize| Envelope {
        headers: Headers {
            user_id: Some("x".repeat(bytes)),
            ..Headers::default()
        },
        ..Envelope::default()
    };
    let room = limits::HEADERS - of(0).headers.bytes();
    let refused = bus.publish(&target, of(room + 1), PublishMode::Confirmed);
    assert_eq!(refused.await, Err(BusError::HeadersTooLarge));
    let sent = bus.publish(&target, of(room), PublishMode::Confirmed);
    assert_eq!(sent.await, Ok(Routed::Queued));
    next(&deliveries).ack();
    let end = Instant::now() + Duration::from_millis(500);
    while Instant::now() < end {
        assert_eq!(*bus.link().borrow(), Link::Up { generation: 1 });
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    bus.close().await;
}
