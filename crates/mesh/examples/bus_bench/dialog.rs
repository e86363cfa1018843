//! A question and its answer: through the mesh, and by the bare client library between two connections, with
//! bodies of the same size, transient, the question confirmed and the answer not, as many under way.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use lapin::message::DeliveryResult;
use lapin::options::{
    BasicConsumeOptions, BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions,
};
use lapin::types::{FieldTable, ShortString};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use parking_lot::Mutex;
use tg_mesh::Mode;
use tg_mesh::bus::Bus;
use tg_mesh::embedded::EmbeddedBus;
use tg_mesh::rabbitmq::{RabbitBus, RabbitOptions};
use tg_mesh::{Ask, Cx, Host, Processor, RequestHandler, Responder};
use tg_schemas::codec::{self, ContentType};
use tg_schemas::msg::{TextCompletionRequest, TextCompletionResponse};
use tg_schemas::processors::{ProcessorSpec, Serves, Spec};
use tg_schemas::{Error, Topic};
use tg_testkit::bench::{ROUNDS, Rounds, spread};
use tokio::sync::oneshot;

use crate::BODY;

const ECHO: Spec<Serves<TextCompletionRequest, TextCompletionResponse>> =
    Spec::new("bench-echo").system();

/// Questions of a measurement, after some that are not counted.
const COUNT: usize = 4_000;
const WARM_UP: usize = 400;
/// Questions under way at a time.
const UNDER_WAY: [usize; 2] = [1, 32];

struct Echo;

#[async_trait]
impl RequestHandler<TextCompletionRequest, TextCompletionResponse> for Echo {
    async fn serve(
        &self,
        _: Cx,
        question: TextCompletionRequest,
        mut out: Responder<TextCompletionResponse>,
    ) -> Result<(), Error> {
        out.send(TextCompletionResponse {
            response: question.prompt,
            end_of_stream: true,
            ..TextCompletionResponse::default()
        })
        .await
    }
}

fn topic() -> Topic {
    ECHO.of_system()
}

fn question() -> TextCompletionRequest {
    TextCompletionRequest {
        prompt: "x".repeat(BODY),
        ..TextCompletionRequest::default()
    }
}

/// A process's place in the mesh.
async fn mesh(bus: Arc<dyn Bus>) -> Host {
    tg_testkit::place::host(bus).await
}

async fn host(mesh: &Host) {
    let processor =
        Processor::new(ProcessorSpec::unlisted("bench-echo")).serves(ECHO, Arc::new(Echo));
    mesh.host(processor).await.expect("hosted");
}

/// Asks through the embedded bus.
pub async fn embedded() {
    let mesh = mesh(Arc::new(EmbeddedBus::in_memory())).await;
    host(&mesh).await;
    println!("a question and its answer of {BODY} bytes, embedded (target: p50 at most 60 us)");
    let mut rounds = Rounds::default();
    for _ in 0..ROUNDS {
        for under_way in UNDER_WAY {
            let [middle, late] = super::quantiles(asked(&mesh, under_way).await);
            rounds.add(format!("{under_way} under way, p50"), "us", middle);
            rounds.add(format!("{under_way} under way, p99"), "us", late);
        }
    }
    rounds.print();
    mesh.stop(Duration::from_secs(1)).await;
}

/// Asks over a broker, and has the bare client library do the same.
pub async fn over_rabbitmq(url: &str) {
    let connect = async || {
        let options = RabbitOptions::of(Mode::Native);
        let bus = RabbitBus::connect(url, Mode::Native, options);
        mesh(Arc::new(bus.await.expect("a broker"))).await
    };
    let (asker, server) = (connect().await, connect().await);
    host(&server).await;
    let bare = Bare::connect(url).await;
    println!(
        "a question and its answer of {BODY} bytes, over RabbitMQ (target: p50 at most 1.5 x bare)"
    );
    for under_way in UNDER_WAY {
        // In turn, so that both sides meet the same machine; the median counts.
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ours.push(p50(asked(&asker, under_way).await));
            theirs.push(p50(bare.asked(under_way).await));
        }
        for (who, times) in [("mesh", &ours), ("bare", &theirs)] {
            let micros = |time: &Duration| time.as_secs_f64() * 1_000_000.0;
            let micros: Vec<f64> = times.iter().map(micros).collect();
            println!(
                "  {under_way} under way, {who} p50, us: {}",
                spread(&micros)
            );
        }
        let (ours, theirs) = (p50(ours), p50(theirs));
        let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
        println!("  {under_way} under way, ratio of the medians: {ratio:.2}");
    }
    for mesh in [asker, server] {
        mesh.stop(Duration::from_secs(1)).await;
    }
}

fn p50(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Asks with so many lanes at once; how long each question took.
async fn lanes<F, Fut>(under_way: usize, ask: F) -> Vec<Duration>
where
    F: Fn() -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Duration> + Send,
{
    let lane = |count: usize| {
        let ask = ask.clone();
        tokio::spawn(async move {
            let mut times = Vec::with_capacity(count);
            for _ in 0..count {
                times.push(ask().await);
            }
            times
        })
    };
    let mut times = Vec::new();
    for count in [WARM_UP, COUNT] {
        let lanes = (0..under_way).map(|_| lane(count / under_way));
        let all = futures::future::join_all(lanes).await;
        times = all
            .into_iter()
            .flat_map(|lane| lane.expect("a lane"))
            .collect();
    }
    times
}

async fn asked(mesh: &Host, under_way: usize) -> Vec<Duration> {
    let mesh = mesh.clone();
    lanes(under_way, move || {
        let mesh = mesh.clone();
        async move {
            let begun = Instant::now();
            let answer =
                mesh.ask::<_, TextCompletionResponse>(&topic(), &question(), Ask::default());
            answer.last().await.expect("an answer");
            begun.elapsed()
        }
    })
    .await
}

type Waiting = Arc<Mutex<HashMap<String, oneshot::Sender<Instant>>>>;

/// A client with its own connection, and a server with another.
struct Bare {
    client: Channel,
    waiting: Waiting,
    replies: ShortString,
    body: Arc<[u8]>,
    _connections: [Connection; 2],
}

impl Bare {
    async fn connect(url: &str) -> Self {
        let question = codec::encode(&question(), ContentType::Json).expect("encoded");
        let reply = TextCompletionResponse {
            response: "x".repeat(BODY),
            end_of_stream: true,
            ..TextCompletionResponse::default()
        };
        let reply = codec::encode(&reply, ContentType::Json).expect("encoded");
        let (serving, server) = channel(url).await;
        let (asking, client) = channel(url).await;
        let asked = queue(&server, "bench-asked").await;
        let replies = queue(&client, "bench-replies").await;

        let answering = server.clone();
        consumer(&server, &asked)
            .await
            .set_delegate(move |delivery: DeliveryResult| {
                let (channel, reply) = (answering.clone(), reply.clone());
                Box::pin(async move {
                    let Ok(Some(delivery)) = delivery else { return };
                    let (Some(to), Some(id)) = (
                        delivery.properties.reply_to().clone(),
                        delivery.properties.correlation_id().clone(),
                    ) else {
                        return;
                    };
                    let properties = BasicProperties::default()
                        .with_delivery_mode(1)
                        .with_correlation_id(id);
                    publish(&channel, to, &reply, properties).await;
                })
            });
        let waiting = Waiting::default();
        let told = waiting.clone();
        consumer(&client, &replies)
            .await
            .set_delegate(move |delivery: DeliveryResult| {
                let now = Instant::now();
                if let Ok(Some(delivery)) = delivery
                    && let Some(id) = delivery.properties.correlation_id()
                    && let Some(done) = told.lock().remove(id.as_str())
                {
                    let _ = done.send(now);
                }
                std::future::ready(())
            });
        client
            .confirm_select(ConfirmSelectOptions::default())
            .await
            .expect("confirms");
        Self {
            client,
            waiting,
            replies,
            body: question.to_vec().into(),
            _connections: [serving, asking],
        }
    }

    async fn asked(&self, under_way: usize) -> Vec<Duration> {
        let (client, waiting) = (self.client.clone(), self.waiting.clone());
        let (replies, body) = (self.replies.clone(), self.body.clone());
        lanes(under_way, move || {
            let (client, waiting) = (client.clone(), waiting.clone());
            let (replies, body) = (replies.clone(), body.clone());
            async move {
                let id = uuid::Uuid::new_v4().to_string();
                let (done, answer) = oneshot::channel();
                let begun = Instant::now();
                waiting.lock().insert(id.clone(), done);
                let properties = BasicProperties::default()
                    .with_delivery_mode(1)
                    .with_reply_to(replies)
                    .with_correlation_id(id.into());
                let sent = client
                    .basic_publish(
                        "".into(),
                        "bench-asked".into(),
                        BasicPublishOptions::default(),
                        &body,
                        properties,
                    )
                    .await
                    .expect("sent");
                let (confirmed, answered) = tokio::join!(sent, answer);
                confirmed.expect("confirmed");
                answered.expect("answered").duration_since(begun)
            }
        })
        .await
    }
}

async fn channel(url: &str) -> (Connection, Channel) {
    let connection = Connection::connect(url, ConnectionProperties::default())
        .await
        .expect("a connection");
    let channel = connection.create_channel().await.expect("a channel");
    (connection, channel)
}

async fn queue(channel: &Channel, name: &'static str) -> ShortString {
    let options = QueueDeclareOptions {
        auto_delete: true,
        ..QueueDeclareOptions::default()
    };
    channel
        .queue_declare(name.into(), options, FieldTable::default())
        .await
        .expect("a queue");
    name.into()
}

async fn consumer(channel: &Channel, queue: &ShortString) -> lapin::Consumer {
    let options = BasicConsumeOptions {
        no_ack: true,
        ..BasicConsumeOptions::default()
    };
    channel
        .basic_consume(queue.clone(), queue.clone(), options, FieldTable::default())
        .await
        .expect("a consumer")
}

async fn publish(channel: &Channel, to: ShortString, body: &[u8], properties: BasicProperties) {
    channel
        .basic_publish(
            "".into(),
            to,
            BasicPublishOptions::default(),
            body,
            properties,
        )
        .await
        .expect("sent");
}
