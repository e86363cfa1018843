//! Declarations, looks and deletions on the broker: which exchange and queue a topic or subscription is,
//! with exactly the properties that foreign processors declare in interop mode.

use futures::future::try_join_all;
use lapin::options::{
    BasicGetOptions, ExchangeDeclareOptions, ExchangeDeleteOptions, QueueBindOptions,
    QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{Channel, ExchangeKind};
use tg_schemas::topic::Class;
use tg_schemas::{Subscription, Topic};

use super::session::Session;
use super::wire::{Fault, short};
use crate::bus::{BusError, Mode, QueueState};

/// Declarations sent before their answers are awaited.
const PIPELINE: usize = 128;
/// An inbox outlives its process by this, so that answers survive a reconnect.
const INBOX_EXPIRES_MS: i32 = 60_000;

/// Declares topics and record queues.
pub(super) async fn declare(
    session: &Session,
    mode: Mode,
    topics: &[Topic],
    queues: &[Subscription],
) -> Result<(), BusError> {
    let mut exchanges: Vec<String> = topics
        .iter()
        .chain(queues.iter().map(|queue| &queue.topic))
        .map(|topic| topic.exchange(mode.prefix()))
        .collect();
    exchanges.sort_unstable();
    exchanges.dedup();
    let names = shorts(exchanges.iter().cloned())?;
    let records = || queues.iter().filter(|q| q.topic.class() == Class::Flow);
    let sources = shorts(records().map(|q| q.topic.exchange(mode.prefix())))?;
    let queues = shorts(records().map(|q| q.queue(mode.prefix())))?;
    session
        .apart(async |channel| {
            for names in names.chunks(PIPELINE) {
                try_join_all(names.iter().map(|name| exchange(channel, name))).await?;
            }
            for queues in queues.chunks(PIPELINE) {
                let declare = |name: &ShortString| {
                    let options = queue_options(Class::Flow, mode);
                    channel.queue_declare(name.clone(), options, FieldTable::default())
                };
                try_join_all(queues.iter().map(declare)).await?;
            }
            let bindings: Vec<_> = queues.iter().zip(&sources).collect();
            for bindings in bindings.chunks(PIPELINE) {
                let bind = |(queue, source): &(&ShortString, &ShortString)| {
                    bind(channel, (*queue).clone(), (*source).clone())
                };
                try_join_all(bindings.iter().map(bind)).await?;
            }
            Ok(())
        })
        .await?;
    for exchange in &exchanges {
        session.remember(exchange);
    }
    Ok(())
}

/// Declares what a consumer of this subscription needs; returns the queue to consume.
pub(super) async fn declare_for_consumer(
    session: &Session,
    mode: Mode,
    of: &Subscription,
) -> Result<ShortString, Fault> {
    let class = of.topic.class();
    let source = of.topic.exchange(mode.prefix());
    let queue = match class {
        Class::Flow | Class::Request => of.queue(mode.prefix()),
        // Private: a new name each time, as an old connection may still hold the last one.
        Class::Response | Class::Notify => format!("amq_{}", uuid::Uuid::new_v4().simple()),
    };
    let (source_name, queue) = match (short(source.clone()), short(queue)) {
        (Ok(source), Ok(queue)) => (source, queue),
        _ => return Err(Fault::Refused),
    };
    let name = queue.clone();
    session
        .apart(async |channel| {
            let options = queue_options(class, mode);
            // Sent in one go; the broker answers in order.
            futures::try_join!(
                exchange(channel, &source_name),
                channel.queue_declare(name.clone(), options, FieldTable::default()),
                bind(channel, name.clone(), source_name.clone()),
            )?;
            Ok(())
        })
        .await?;
    session.remember(&source);
    Ok(queue)
}

/// Declares an inbox.
pub(super) async fn declare_inbox(session: &Session, name: &str) -> Result<ShortString, Fault> {
    let queue = short(name.to_owned()).map_err(|_| Fault::Refused)?;
    let name = queue.clone();
    session
        .apart(async |channel| {
            let options = QueueDeclareOptions {
                durable: true,
                ..QueueDeclareOptions::default()
            };
            let mut arguments = FieldTable::default();
            arguments.insert("x-expires".into(), AMQPValue::LongInt(INBOX_EXPIRES_MS));
            channel.queue_declare(name, options, arguments).await?;
            Ok(())
        })
        .await?;
    Ok(queue)
}

/// Declares a queue that only this connection may have. `Locked` if another one has it.
pub(super) async fn declare_claim(session: &Session, name: &str) -> Result<(), Fault> {
    let name = short(name.to_owned()).map_err(|_| Fault::Refused)?;
    session
        .apart(async |channel| {
            let options = QueueDeclareOptions {
                exclusive: true,
                ..QueueDeclareOptions::default()
            };
            channel
                .queue_declare(name, options, FieldTable::default())
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
        Err(Fault::Missing) => Ok(None),
        Err(fault) => Err(fault.into()),
    }
}

/// Deletes a queue; `false` if there was none.
pub(super) async fn delete_queue(session: &Session, name: &str) -> Result<bool, BusError> {
    let name = short(name.to_owned())?;
    let delete = session.apart(async |channel| {
        // The broker does not say whether a deleted queue was there.
        passive(channel, name.clone()).await?;
        let options = QueueDeleteOptions::default();
        channel.queue_delete(name, options).await?;
        Ok(())
    });
    match delete.await {
        Ok(()) => Ok(true),
        Err(Fault::Missing) => Ok(false),
        Err(fault) => Err(fault.into()),
    }
}

/// Deletes an exchange that nothing is bound to; `false` if something is, or if there was none.
pub(super) async fn delete_exchange(session: &Session, name: &str) -> Result<bool, BusError> {
    if !session.exchange_exists(name, true).await? {
        return Ok(false);
    }
    let exchange = short(name.to_owned())?;
    session.forget(name);
    let delete = session.apart(async |channel| {
        let options = ExchangeDeleteOptions {
            if_unused: true,
            ..ExchangeDeleteOptions::default()
        };
        Ok(channel.exchange_delete(exchange, options).await?)
    });
    match delete.await {
        Ok(()) => Ok(true),
        Err(Fault::Missing | Fault::Refused) => Ok(false),
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
        Err(error) if Fault::from(&error) == Fault::Missing => Ok(None),
        Err(error) => Err(Fault::from(error).into()),
    }
}

fn queue_options(class: Class, mode: Mode) -> QueueDeclareOptions {
    let plain = QueueDeclareOptions::default();
    match class {
        Class::Flow => QueueDeclareOptions {
            durable: true,
            ..plain
        },
        Class::Request => QueueDeclareOptions {
            auto_delete: mode == Mode::Native,
            ..plain
        },
        Class::Response | Class::Notify => QueueDeclareOptions {
            exclusive: true,
            auto_delete: true,
            ..plain
        },
    }
}

async fn exchange(channel: &Channel, name: &ShortString) -> lapin::Result<()> {
    let options = ExchangeDeclareOptions {
        durable: true,
        ..ExchangeDeclareOptions::default()
    };
    let kind = ExchangeKind::Fanout;
    channel
        .exchange_declare(name.clone(), kind, options, FieldTable::default())
        .await
}

async fn bind(channel: &Channel, queue: ShortString, source: ShortString) -> lapin::Result<()> {
    let options = QueueBindOptions::default();
    let key = queue.clone();
    channel
        .queue_bind(queue, source, key, options, FieldTable::default())
        .await
}

async fn passive(channel: &Channel, name: ShortString) -> lapin::Result<lapin::Queue> {
    let options = QueueDeclareOptions {
        passive: true,
        ..QueueDeclareOptions::default()
    };
    channel
        .queue_declare(name, options, FieldTable::default())
        .await
}

fn shorts(names: impl Iterator<Item = String>) -> Result<Vec<ShortString>, BusError> {
    names.map(short).collect()
}
