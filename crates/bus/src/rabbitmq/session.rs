//! One life of the connection: two sockets, their channels, and what is known to exist on the broker.
//!
//! A session never reconnects; when it ends, the supervisor opens the next one.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use lapin::options::{BasicQosOptions, ExchangeDeclareOptions};
use lapin::{Channel, Connection, ErrorKind, Event, ExchangeKind};
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::arguments;
use super::endpoint::Endpoint;
use super::options::RecordQueues;
use super::patience::ANSWERED;
use super::wire::{AmqpError, short};
use crate::bus::BusError;

/// Channels for declarations that are kept for the next one.
const SPARE: usize = 32;
/// Channels that are kept as what was asked on them was not waited for: more than are asked on at a time.
const UNANSWERED: usize = 256;
/// Names remembered as existing before starting over.
const KNOWN: usize = 100_000;
/// Channels shared by all consumers of records, and by all others.
const RECORD_CHANNELS: usize = 4;
const LIVE_CHANNELS: usize = 2;
/// With this a connection ends where a frame is longer than was agreed.
const FRAME_ERROR: u16 = 501;

/// A living pair of connections.
pub(super) struct Session {
    /// Counts connects, from 1.
    pub(super) generation: u64,
    /// What queues of records are declared as.
    pub(super) queues: RecordQueues,
    /// Publishing only: the broker may block it.
    pub(super) publishing: Connection,
    /// Consuming and declaring.
    pub(super) consuming: Connection,
    /// What happens to it, from its first moment on.
    events: AsyncMutex<BoxStream<'static, Event>>,
    long_frame: AtomicBool,
    /// Cancelled when the session is over.
    pub(super) ended: CancellationToken,
    records: Vec<SharedChannel>,
    live: Vec<SharedChannel>,
    spare: Mutex<Vec<Channel>>,
    unanswered: Mutex<VecDeque<Channel>>,
    /// Where single messages are fetched; lives as long as they may be settled.
    pub(super) taking: AsyncMutex<Option<Channel>>,
    known: Mutex<HashSet<String>>,
}

/// A channel that many consumers share, replaced when the broker closes it.
#[derive(Default)]
struct SharedChannel {
    /// Held while a consumer is being set up: prefetch is set per channel, for the next consumer.
    slot: AsyncMutex<Option<(Channel, u16)>>,
}

impl Session {
    /// Connects. Fails if the broker is not there or does not let us in.
    pub(super) async fn open(
        endpoint: &Endpoint,
        reads_longest: bool,
        generation: u64,
        queues: RecordQueues,
    ) -> lapin::Result<Arc<Self>> {
        let (publishing, consuming) = endpoint.open(reads_longest).await?;
        let events = consuming.events_listener().boxed();
        Ok(Arc::new(Self {
            generation,
            queues,
            publishing,
            consuming,
            events: AsyncMutex::new(events),
            long_frame: AtomicBool::new(false),
            ended: CancellationToken::new(),
            records: (0..RECORD_CHANNELS)
                .map(|_| SharedChannel::default())
                .collect(),
            live: (0..LIVE_CHANNELS)
                .map(|_| SharedChannel::default())
                .collect(),
            spare: Mutex::default(),
            unanswered: Mutex::default(),
            taking: AsyncMutex::default(),
            known: Mutex::default(),
        }))
    }

    /// Both sockets are fine.
    pub(super) fn connected(&self) -> bool {
        self.publishing.status().connected() && self.consuming.status().connected()
    }

    /// Ends the session; says good-bye to the broker if it still listens.
    pub(super) async fn end(&self) {
        self.ended.cancel();
        for connection in [&self.publishing, &self.consuming] {
            if connection.status().connected() {
                let closing = connection.close(200, "OK".into());
                let _ = timeout(Duration::from_secs(2), closing).await;
            }
        }
    }

    /// Waits for the next event of the connection that reads.
    pub(super) async fn reading_changed(&self) {
        match self.events.lock().await.next().await {
            Some(event) => self.note(&event),
            None => std::future::pending().await,
        }
    }

    /// Whether a frame came that is longer than was agreed; asked when the session has ended.
    pub(super) fn met_long_frame(&self) -> bool {
        if let Ok(mut events) = self.events.try_lock() {
            while let Some(Some(event)) = events.next().now_or_never() {
                self.note(&event);
            }
        }
        self.long_frame.load(Ordering::Relaxed)
    }

    fn note(&self, event: &Event) {
        if let Event::Error(error) = event
            && let ErrorKind::ProtocolError(error) = error.kind()
            && error.get_id() == FRAME_ERROR
        {
            self.long_frame.store(true, Ordering::Relaxed);
        }
    }

    /// Runs a declaration or deletion on a channel of its own: the broker kills it on refusal.
    pub(super) async fn apart<T>(
        &self,
        work: impl AsyncFnOnce(&Channel) -> Result<T, AmqpError>,
    ) -> Result<T, AmqpError> {
        let spare = self.spare.lock().pop();
        let answer = async {
            let channel = match spare {
                Some(channel) => channel,
                None => self.consuming.create_channel().await?,
            };
            let lent = Lent {
                session: self,
                channel: Some(channel),
            };
            let result = lent.work(work).await;
            Ok((lent.back(), result))
        };
        let answer = tokio::select! {
            () = self.ended.cancelled() => return Err(AmqpError::Down),
            answer = timeout(ANSWERED, answer) => answer.map_err(|_| AmqpError::Down)?,
        };
        let (channel, result) = answer.map_err(|error: lapin::Error| AmqpError::from(error))?;
        // After a refusal the channel is closed or about to be.
        if result.is_ok()
            && let Some(channel) = channel
            && channel.status().connected()
        {
            let mut spare = self.spare.lock();
            if spare.len() < SPARE {
                spare.push(channel);
            }
        }
        result
    }

    /// A channel for a new consumer, picked by `number`. Set up under `work`, alone on it.
    pub(super) async fn consuming_channel<T>(
        &self,
        prefetch: Option<u16>,
        number: u64,
        work: impl AsyncFnOnce(&Channel) -> lapin::Result<T>,
    ) -> Result<(Channel, T), AmqpError> {
        let channels = match prefetch {
            Some(_) => &self.records,
            None => &self.live,
        };
        let shared = &channels[number as usize % channels.len()];
        let setup = async {
            let mut slot = shared.slot.lock().await;
            let current = slot
                .take()
                .filter(|(channel, _)| channel.status().connected());
            let (channel, mut set) = match current {
                Some(current) => current,
                None => (self.consuming.create_channel().await?, 0),
            };
            if let Some(prefetch) = prefetch.filter(|prefetch| *prefetch != set) {
                channel
                    .basic_qos(prefetch, BasicQosOptions::default())
                    .await?;
                set = prefetch;
            }
            let result = work(&channel).await;
            *slot = Some((channel.clone(), set));
            Ok((channel, result?))
        };
        tokio::select! {
            () = self.ended.cancelled() => Err(AmqpError::Down),
            done = timeout(ANSWERED, setup) => done
                .map_err(|_| AmqpError::Down)?
                .map_err(|error: lapin::Error| error.into()),
        }
    }

    /// Whether an exchange exists. Remembered once seen, until the broker says otherwise.
    pub(super) async fn exchange_exists(&self, name: &str, again: bool) -> Result<bool, BusError> {
        if !again && self.known.lock().contains(name) {
            return Ok(true);
        }
        let exchange = short(name.to_owned())?;
        let look = self.apart(async |channel| {
            let options = ExchangeDeclareOptions {
                passive: true,
                ..ExchangeDeclareOptions::default()
            };
            let kind = ExchangeKind::Fanout;
            let table = arguments::none();
            Ok(channel
                .exchange_declare(exchange, kind, options, table)
                .await?)
        });
        match look.await {
            Ok(()) => {
                self.remember(name);
                Ok(true)
            }
            Err(AmqpError::Missing) => {
                self.forget(name);
                Ok(false)
            }
            Err(fault) => Err(fault.into()),
        }
    }

    /// An exchange is there.
    pub(super) fn remember(&self, name: &str) {
        let mut known = self.known.lock();
        if known.len() >= KNOWN {
            known.clear();
        }
        known.insert(name.to_owned());
    }

    /// Any exchange may be gone.
    pub(super) fn forget_all(&self) {
        self.known.lock().clear();
    }

    /// An exchange is gone.
    pub(super) fn forget(&self, name: &str) {
        self.known.lock().remove(name);
    }
}

/// A channel on which something is asked. Whoever is dropped before the answer leaves the channel to the session: if it were
/// dropped, it would be closed from here, and where the broker closes it at the same time over what was asked, the client
/// library takes the second goodbye for a fault of the whole connection.
struct Lent<'a> {
    session: &'a Session,
    channel: Option<Channel>,
}

impl Lent<'_> {
    async fn work<T>(
        &self,
        work: impl AsyncFnOnce(&Channel) -> Result<T, AmqpError>,
    ) -> Result<T, AmqpError> {
        match &self.channel {
            Some(channel) => work(channel).await,
            None => Err(AmqpError::Down),
        }
    }

    /// What was asked is answered.
    fn back(mut self) -> Option<Channel> {
        self.channel.take()
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let Some(channel) = self.channel.take() else {
            return;
        };
        let mut unanswered = self.session.unanswered.lock();
        unanswered.retain(|channel| channel.status().connected());
        if unanswered.len() >= UNANSWERED {
            // Answered long ago.
            unanswered.pop_front();
        }
        unanswered.push_back(channel);
    }
}
