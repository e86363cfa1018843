//! Declarations, looks and deletions on the broker: which exchange and queue a topic or subscription is,
//! with exactly the properties that other processors on the broker declare, where there are such.

use std::time::Duration;

use futures::future::try_join_all;
use futures::{StreamExt, TryStreamExt, stream};
use lapin::options::{
    BasicGetOptions, BasicRejectOptions, ExchangeBindOptions, ExchangeDeclareOptions,
    ExchangeDeleteOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::ShortString;
use lapin::{Channel, ErrorKind, ExchangeKind};
use tg_schemas::topic::Class;
use tg_schemas::{Subscription, Topic};

use super::arguments;
use super::options::{INBOX_EXCHANGE, RecordQueues};
use super::session::Session;
use super::wire::{AmqpError, short};
use crate::bus::{BusError, Delete, Deleted, QueueState};
use crate::mode::WireRules;

/// Declarations sent before their answers are awaited.
const PIPELINE: usize = 128;
/// Channels that many declarations are spread over.
const CHANNELS: usize = 8;
/// What a broker says of something that is there with other properties.
const OTHER: u16 = 406;
/// How long a message that the broker has routed may take to arrive in its queue.
const ARRIVAL: Duration = Duration::from_millis(20);

/// Declares topics and record queues.
pub(super) async fn declare(
    session: &Session,
    rules: &WireRules,
    topics: &[Topic],
    queues: &[Subscription],
) -> Result<(), BusError> {
    let mut exchanges: Vec<(String, bool)> = topics
        .iter()
        .chain(queues.iter().map(|queue| &queue.topic))
        .map(|topic| (topic.exchange(rules.prefix), lasts(topic.class(), rules)))
        .collect();
    exchanges.sort_unstable();
    exchanges.dedup();
    let names = shorts(exchanges.iter().map(|(name, _)| name.clone()))?;
    let lasting = exchanges.iter().map(|(_, lasts)| *lasts);
    let records = || queues.iter().filter(|q| q.topic.class() == Class::Flow);
    let sources = shorts(records().map(|q| q.topic.exchange(rules.prefix)))?;
    let queues = shorts(records().map(|q| q.queue(rules.prefix)))?;
    let sourced = names.into_iter().zip(lasting);
    let sourced = sourced.map(|(name, lasts)| Declaration::Exchange(name, lasts));
    let named = queues.iter().cloned().map(Declaration::Queue);
    spread(session, rules, &sourced.chain(named).collect::<Vec<_>>()).await?;
    let bindings = queues.into_iter().zip(sources);
    let bindings = bindings.map(|(queue, source)| Declaration::Binding(queue, source));
    spread(session, rules, &bindings.collect::<Vec<_>>()).await?;
    for (exchange, _) in &exchanges {
        session.remember(exchange);
    }
    Ok(())
}

/// Binds exchanges to the exchange of a topic. None of them is declared: one that is missing was deleted with its flow.
pub(super) async fn relay(
    session: &Session,
    rules: &WireRules,
    from: &Topic,
    to: &[Topic],
) -> Result<(), BusError> {
    let source = short(from.exchange(rules.prefix))?;
    let others = shorts(to.iter().map(|topic| topic.exchange(rules.prefix)))?;
    let bound = session.apart(async |channel| {
        let bindings = others.iter().map(|other| {
            channel.exchange_bind(
                other.clone(),
                source.clone(),
                ShortString::default(),
                ExchangeBindOptions::default(),
                arguments::none(),
            )
        });
        try_join_all(bindings).await?;
        Ok(())
    });
    match bound.await {
        Err(AmqpError::Missing) => Err(BusError::Refused),
        bound => Ok(bound?),
    }
}

/// What records need on the broker.
enum Declaration {
    /// And whether it outlives the broker.
    Exchange(ShortString, bool),
    Queue(ShortString),
    /// Queue and source.
    Binding(ShortString, ShortString),
}

/// Declares all: pipelined, and on several channels, since the broker makes each durable before it answers, but
/// those of different channels together.
async fn spread(session: &Session, rules: &WireRules, all: &[Declaration]) -> Result<(), BusError> {
    let share = all.len().div_ceil(CHANNELS).clamp(1, PIPELINE);
    let shares = all.chunks(share).map(|some| {
        session.apart(async move |channel| {
            let each = some.iter();
            try_join_all(each.map(|one| declaration(session, channel, rules, one))).await?;
            Ok(())
        })
    });
    let shares: Vec<_> = shares.collect();
    stream::iter(shares)
        .buffer_unordered(CHANNELS)
        .try_collect::<()>()
        .await?;
    Ok(())
}

async fn declaration(
    session: &Session,
    channel: &Channel,
    rules: &WireRules,
    of: &Declaration,
) -> lapin::Result<()> {
    match of {
        Declaration::Exchange(name, lasts) => exchange(channel, name, *lasts).await,
        Declaration::Queue(name) => declare_queue(session, channel, rules, Class::Flow, name).await,
        Declaration::Binding(queue, source) => bind(channel, queue.clone(), source.clone()).await,
    }
}

/// Declares what a consumer of this subscription needs; returns the queue to consume.
pub(super) async fn declare_for_consumer(
    session: &Session,
    rules: &WireRules,
    of: &Subscription,
) -> Result<ShortString, AmqpError> {
    let class = of.topic.class();
    let queue = match class {
        Class::Flow | Class::Request => of.queue(rules.prefix),
        Class::Response | Class::Notify => private_name(),
    };
    declare_bound(session, rules, &of.topic, class, queue).await
}

/// Declares a private queue that gets a copy of what is published from now on, and goes with its consumer.
pub(super) async fn declare_observer(
    session: &Session,
    rules: &WireRules,
    topic: &Topic,
) -> Result<ShortString, AmqpError> {
    declare_bound(session, rules, topic, Class::Notify, private_name()).await
}

/// A new name each time, as an old connection may still hold the last one.
fn private_name() -> String {
    format!("amq_{}", uuid::Uuid::new_v4().simple())
}

/// Declares a queue as queues of `class` are, bound to a topic.
async fn declare_bound(
    session: &Session,
    rules: &WireRules,
    topic: &Topic,
    class: Class,
    queue: String,
) -> Result<ShortString, AmqpError> {
    let source = topic.exchange(rules.prefix);
    let (source_name, queue) = match (short(source.clone()), short(queue)) {
        (Ok(source), Ok(queue)) => (source, queue),
        _ => return Err(AmqpError::Refused),
    };
    let name = queue.clone();
    let lasts = lasts(topic.class(), rules);
    let declared = session
        .apart(async |channel| {
            // Sent in one go; the broker answers in order.
            futures::try_join!(
                exchange(channel, &source_name, lasts),
                declare_queue(session, channel, rules, class, &name),
                bind(channel, name.clone(), source_name.clone()),
            )?;
            Ok(())
        })
        .await;
    match declared {
        Err(AmqpError::Refused) if class == Class::Request => {
            join(session, &source_name, lasts, &name).await?;
        }
        declared => declared?,
    }
    session.remember(&source);
    Ok(queue)
}

/// Binds a queue of questions as it is: a process of another release declared it with other properties, and consumes it. Once
/// nobody does, the broker deletes it, and the next process declares it anew.
async fn join(
    session: &Session,
    source: &ShortString,
    lasts: bool,
    queue: &ShortString,
) -> Result<(), AmqpError> {
    session
        .apart(async |channel| {
            futures::try_join!(
                exchange(channel, source, lasts),
                passive(channel, queue.clone()),
                bind(channel, queue.clone(), source.clone()),
            )?;
            Ok(())
        })
        .await?;
    tracing::info!(
        %queue,
        "questions are taken from a queue that another process has declared with other properties"
    );
    Ok(())
}

/// Binds an inbox, or its liveness queue, to the exchange of inboxes by its own name.
pub(super) async fn bind_inbox(session: &Session, queue: &str) -> Result<(), AmqpError> {
    let queue = short(queue.to_owned()).map_err(|_| AmqpError::Refused)?;
    session
        .apart(async |channel| Ok(bind(channel, queue, INBOX_EXCHANGE.into()).await?))
        .await
}

/// Declares an inbox. A durable queue of a node that is away cannot be declared at another one, and the process could not
/// go on there: in a cluster an inbox goes with its node. What was on its way is asked for again.
pub(super) async fn declare_inbox(session: &Session, name: &str) -> Result<ShortString, AmqpError> {
    let queue = short(name.to_owned()).map_err(|_| AmqpError::Refused)?;
    let name = queue.clone();
    session
        .apart(async |channel| {
            let options = QueueDeclareOptions {
                durable: session.queues == RecordQueues::Classic,
                ..QueueDeclareOptions::default()
            };
            channel
                .queue_declare(name, options, arguments::inbox())
                .await?;
            Ok(())
        })
        .await?;
    Ok(queue)
}

/// Name of the queue that is there exactly as long as the process of an inbox is connected.
pub(super) fn liveness(inbox: &str) -> String {
    format!("{inbox}.alive")
}

/// Declares the liveness queue of an inbox: exclusive, and it keeps nothing. `Locked` while the broker still holds a
/// connection of this process from before.
pub(super) async fn declare_liveness(session: &Session, inbox: &str) -> Result<(), AmqpError> {
    let name = short(liveness(inbox)).map_err(|_| AmqpError::Refused)?;
    session
        .apart(async |channel| {
            let options = QueueDeclareOptions {
                exclusive: true,
                ..QueueDeclareOptions::default()
            };
            channel
                .queue_declare(name, options, arguments::liveness())
                .await?;
            Ok(())
        })
        .await
}

/// Declares a queue that only this connection may have. `Locked` if another one has it.
pub(super) async fn declare_claim(session: &Session, name: &str) -> Result<(), AmqpError> {
    let name = short(name.to_owned()).map_err(|_| AmqpError::Refused)?;
    session
        .apart(async |channel| {
            let options = QueueDeclareOptions {
                exclusive: true,
                ..QueueDeclareOptions::default()
            };
            channel
                .queue_declare(name, options, arguments::none())
                .await?;
            Ok(())
        })
        .await
}

/// What is in a queue; `None` if there is none.
pub(super) async fn look(session: &Session, name: &str) -> Result<Option<QueueState>, BusError> {
    let name = short(name.to_owned())?;
    let look = session.apart(async |channel| Ok(passive(channel, name).await?));
    match look.await {
        Ok(queue) => Ok(Some(QueueState {
            ready: u64::from(queue.message_count()),
            consumers: queue.consumer_count(),
        })),
        Err(AmqpError::Missing) => Ok(None),
        Err(fault) => Err(fault.into()),
    }
}

/// Deletes a record queue of an exchange. The broker would confirm a message that it has routed to the
/// queue and that arrives there just after its end; so the queue is taken off the exchange first, and what
/// was routed before has a moment to arrive, so that it is counted.
pub(super) async fn delete_record_queue(
    session: &Session,
    source: &str,
    name: &str,
    when: Delete,
) -> Result<Deleted, BusError> {
    let (queue, source) = (short(name.to_owned())?, short(source.to_owned())?);
    let unbind = session.apart(async |channel| {
        passive(channel, queue.clone()).await?;
        let key = queue.clone();
        Ok(channel
            .queue_unbind(queue.clone(), source, key, arguments::none())
            .await?)
    });
    match unbind.await {
        Ok(()) => tokio::time::sleep(ARRIVAL).await,
        // No such queue, which the next step finds too, or no such exchange.
        Err(AmqpError::Missing) => {}
        Err(fault) => return Err(fault.into()),
    }
    delete_queue(session, name, when).await
}

/// Deletes a queue. A quorum queue is not deleted on the condition that it is empty: the broker has no such deletion. It is
/// looked at before, and [`delete_record_queue`] has taken it off its exchange by then. The broker also says that nothing is in a
/// queue whose leader does not answer in time; so a message is asked for, too, and only the leader can say that there is none.
pub(super) async fn delete_queue(
    session: &Session,
    name: &str,
    when: Delete,
) -> Result<Deleted, BusError> {
    let name = short(name.to_owned())?;
    let delete = session.apart(async |channel| {
        // The broker does not say whether a deleted queue was there.
        let there = passive(channel, name.clone()).await?;
        let if_empty = when == Delete::IfEmpty;
        if if_empty && there.message_count() > 0 {
            return Err(AmqpError::Refused);
        }
        let classic = session.queues == RecordQueues::Classic;
        if if_empty && !classic {
            let got = channel.basic_get(name.clone(), BasicGetOptions::default());
            if let Some(message) = got.await? {
                let back = BasicRejectOptions { requeue: true };
                message.delivery.acker.reject(back).await?;
                return Err(AmqpError::Refused);
            }
        }
        let options = QueueDeleteOptions {
            if_empty: if_empty && classic,
            ..QueueDeleteOptions::default()
        };
        Ok(channel.queue_delete(name, options).await?)
    });
    match delete.await {
        Ok(messages) => Ok(Deleted::Gone {
            messages: messages.into(),
        }),
        Err(AmqpError::Missing) => Ok(Deleted::Missing),
        Err(AmqpError::Refused) if when == Delete::IfEmpty => Ok(Deleted::NotEmpty),
        Err(fault) => Err(fault.into()),
    }
}

/// Deletes an exchange that nothing is bound to; `false` if something is, or if there was none.
pub(super) async fn delete_exchange(
    session: &Session,
    name: &str,
    if_unused: bool,
) -> Result<bool, BusError> {
    if !session.exchange_exists(name, true).await? {
        return Ok(false);
    }
    let exchange = short(name.to_owned())?;
    session.forget(name);
    let delete = session.apart(async |channel| {
        let options = ExchangeDeleteOptions {
            if_unused,
            ..ExchangeDeleteOptions::default()
        };
        Ok(channel.exchange_delete(exchange, options).await?)
    });
    match delete.await {
        Ok(()) => Ok(true),
        Err(AmqpError::Missing | AmqpError::Refused) => Ok(false),
        Err(fault) => Err(fault.into()),
    }
}

/// Fetches one message.
pub(super) async fn take(
    session: &Session,
    name: &str,
) -> Result<Option<lapin::message::Delivery>, BusError> {
    if look(session, name)
        .await?
        .is_none_or(|state| state.ready == 0)
    {
        return Ok(None);
    }
    let name = short(name.to_owned())?;
    let mut slot = session.taking.lock().await;
    let channel = match slot.take().filter(|channel| channel.status().connected()) {
        Some(channel) => channel,
        None => session
            .consuming
            .create_channel()
            .await
            .map_err(|_| BusError::Down)?,
    };
    let got = channel.basic_get(name, BasicGetOptions::default()).await;
    *slot = Some(channel);
    match got {
        Ok(message) => Ok(message.map(|message| message.delivery)),
        Err(error) if AmqpError::from(&error) == AmqpError::Missing => Ok(None),
        Err(error) => Err(AmqpError::from(error).into()),
    }
}

fn queue_options(class: Class, rules: &WireRules, queues: RecordQueues) -> QueueDeclareOptions {
    let plain = QueueDeclareOptions::default();
    match class {
        Class::Flow => QueueDeclareOptions {
            durable: true,
            ..plain
        },
        Class::Request => QueueDeclareOptions {
            durable: questions_last(rules, queues),
            auto_delete: rules.questions_come_back,
            ..plain
        },
        Class::Response | Class::Notify => QueueDeclareOptions {
            exclusive: true,
            auto_delete: true,
            ..plain
        },
    }
}

/// Whether queues of questions are durable: RabbitMQ 4.3 refuses those that are neither durable nor exclusive. Where nodes of a
/// cluster may fail they are not: a durable queue of a node that is away cannot be declared at another one.
fn questions_last(rules: &WireRules, queues: RecordQueues) -> bool {
    rules.own_question_queues && queues == RecordQueues::Classic
}

/// Whether an exchange outlives the broker. Questions, answers and notices do not, and whoever takes them declares
/// the exchange in each session: so it need not be on the broker's disk.
fn lasts(class: Class, rules: &WireRules) -> bool {
    class == Class::Flow || rules.exchanges_last
}

async fn exchange(channel: &Channel, name: &ShortString, lasts: bool) -> lapin::Result<()> {
    let options = ExchangeDeclareOptions {
        durable: lasts,
        ..ExchangeDeclareOptions::default()
    };
    let kind = ExchangeKind::Fanout;
    channel
        .exchange_declare(name.clone(), kind, options, arguments::none())
        .await
}

async fn declare_queue(
    session: &Session,
    channel: &Channel,
    rules: &WireRules,
    class: Class,
    name: &ShortString,
) -> lapin::Result<()> {
    let options = queue_options(class, rules, session.queues);
    let table = match class {
        Class::Flow => arguments::records(session.queues),
        Class::Request if options.durable => arguments::questions(),
        Class::Request | Class::Response | Class::Notify => arguments::none(),
    };
    let declared = channel.queue_declare(name.clone(), options, table).await;
    if class == Class::Flow
        && let Err(error) = &declared
        && let ErrorKind::ProtocolError(error) = error.kind()
        && error.get_id() == OTHER
    {
        tracing::warn!(
            queue = %name,
            "the broker has a queue of this name with other properties; is broker.queues the same in all processes, and \
             what the system began with?"
        );
    }
    declared.map(drop)
}

async fn bind(channel: &Channel, queue: ShortString, source: ShortString) -> lapin::Result<()> {
    let options = QueueBindOptions::default();
    let key = queue.clone();
    channel
        .queue_bind(queue, source, key, options, arguments::none())
        .await
}

async fn passive(channel: &Channel, name: ShortString) -> lapin::Result<lapin::Queue> {
    let options = QueueDeclareOptions {
        passive: true,
        ..QueueDeclareOptions::default()
    };
    channel
        .queue_declare(name, options, arguments::none())
        .await
}

fn shorts(names: impl Iterator<Item = String>) -> Result<Vec<ShortString>, BusError> {
    names.map(short).collect()
}
