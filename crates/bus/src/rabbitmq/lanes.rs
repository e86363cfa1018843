//! Publishing with **publisher confirms**: a few channels, each sending a batch and collecting its confirms before
//! the next. Publishers never wait for one another's confirms, only for a free lane.
//!
//! The client library hands a returned message to whichever confirm comes next, so a batch is judged
//! as a whole: once all its confirms are in, the returned ids say which of its messages went nowhere.

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use lapin::options::{BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions};
use lapin::types::ShortString;
use lapin::{Channel, Confirmation, PublisherConfirm};
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::options::RecordQueues;
use super::session::Session;
use super::wire;
use crate::bus::{BusError, Envelope, Routed};
use crate::task::{TaskKind, Tasks};

/// Messages waiting for a lane; more make their publishers wait.
const WAITING: usize = 1024;
/// Messages of a batch, and (roughly) their bytes.
const BATCH: usize = 128;
const BATCH_BYTES: usize = 4 << 20;
/// How often a batch that lost its channel is tried again.
const TRIES: usize = 3;
/// How long nothing of a batch may be written or confirmed by quorum queues; so much more for each [`BATCH_BYTES`] of it. A node
/// that has not heard yet which node leads the queue passes messages on to the one that is gone, and forgets them: nothing is ever
/// said of them on this channel.
const CONFIRMED: Duration = Duration::from_secs(5);
/// It is twice as long after each batch that was overdue, so many times at most: what is slow is not sent faster and faster.
const DOUBLED: u32 = 3;
/// Between two looks at whether anything went on.
const LOOK: Duration = Duration::from_secs(1);
/// How often a lane takes another channel as the broker refused a message, at most. A full queue refuses all that is new, and the
/// other messages of the lane must not wait for a channel each time.
const RENEWAL: Duration = Duration::from_secs(1);
/// Unconfirmed messages of which one waits until all before it are written out.
const UNCHECKED: usize = 32;

/// Where a message is published.
#[derive(Debug, Clone)]
pub(super) struct Address {
    /// Empty for the default exchange.
    pub(super) exchange: ShortString,
    /// Empty, or the name of a queue.
    pub(super) key: ShortString,
    /// Kept through a restart of the broker.
    pub(super) record: bool,
}

struct Job {
    address: Address,
    envelope: Envelope,
    id: String,
    done: oneshot::Sender<Result<Routed, BusError>>,
}

/// The way out for all publishers of a session.
pub(super) struct Lanes {
    questions: mpsc::Sender<Job>,
    records: mpsc::Sender<Job>,
    unconfirmed: Mutex<Arc<Channel>>,
    unchecked: AtomicUsize,
}

impl Lanes {
    /// Opens the lanes: questions never wait for the disk that records wait for.
    pub(super) async fn start(
        session: &Arc<Session>,
        tasks: &Tasks,
        publishers: usize,
    ) -> lapin::Result<Self> {
        let start = async |tasks: &Tasks| {
            let (sender, receiver) = mpsc::channel(WAITING);
            let receiver = Arc::new(AsyncMutex::new(receiver));
            for _ in 0..publishers.max(1) {
                let lane = Lane {
                    session: session.clone(),
                    receiver: receiver.clone(),
                    channel: Some(confirming(session).await?),
                    overdue: 0,
                    renewed: None,
                };
                tasks.spawn(TaskKind::Background, lane.run());
            }
            Ok::<_, lapin::Error>(sender)
        };
        Ok(Self {
            questions: start(tasks).await?,
            records: start(tasks).await?,
            unconfirmed: Mutex::new(Arc::new(session.publishing.create_channel().await?)),
            unchecked: AtomicUsize::new(0),
        })
    }

    /// Publishes and waits until the broker has taken the message, or had nowhere to put it.
    pub(super) async fn confirmed(
        &self,
        address: Address,
        envelope: Envelope,
    ) -> Result<Routed, BusError> {
        let lanes = match address.record {
            true => &self.records,
            false => &self.questions,
        };
        let (done, outcome) = oneshot::channel();
        let job = Job {
            address,
            envelope,
            id: uuid::Uuid::new_v4().simple().to_string(),
            done,
        };
        lanes.send(job).await.map_err(|_| BusError::Down)?;
        outcome.await.map_err(|_| BusError::Down)?
    }

    /// Publishes in order, on one channel, and hopes.
    pub(super) async fn unconfirmed(
        &self,
        session: &Session,
        address: Address,
        envelope: Envelope,
    ) -> Result<(), BusError> {
        let channel = self.unconfirming(session).await?;
        // Waiting for the socket now and then bounds its queue.
        let wait = self.unchecked.fetch_add(1, Ordering::Relaxed) % UNCHECKED == UNCHECKED - 1;
        write_on(session, &channel, (address, &envelope), wait).await
    }

    /// Publishes on the same channel, and waits until the broker has handled the message and all before it. The message leaves
    /// as early as without that: a channel with confirms would keep it waiting for a free lane, and let it overtake those before.
    pub(super) async fn flushed(
        &self,
        session: &Session,
        address: Address,
        envelope: Envelope,
    ) -> Result<(), BusError> {
        let channel = self.unconfirming(session).await?;
        // The client library writes a request before the messages that wait: they are written out first.
        write_on(session, &channel, (address, &envelope), true).await?;
        // The broker handles what comes on a channel in order, so its reply means that it has the messages. The request changes
        // nothing, as nobody consumes here.
        let handled = channel.basic_qos(0, BasicQosOptions::default());
        tokio::select! {
            () = session.ended.cancelled() => Err(BusError::Down),
            handled = handled => handled.map_err(|_| BusError::Down),
        }
    }

    /// The channel without confirms.
    async fn unconfirming(&self, session: &Session) -> Result<Arc<Channel>, BusError> {
        let channel = self.unconfirmed.lock().clone();
        if channel.status().connected() {
            return Ok(channel);
        }
        // The broker closes it when an exchange was deleted behind our back.
        session.forget_all();
        // Or the whole connection is closing, and would never answer.
        let fresh = tokio::select! {
            () = session.ended.cancelled() => return Err(BusError::Down),
            fresh = session.publishing.create_channel() => fresh,
        };
        let channel = Arc::new(fresh.map_err(|_| BusError::Down)?);
        *self.unconfirmed.lock() = channel.clone();
        Ok(channel)
    }
}

/// Puts a message into the socket's queue; with `wait` until it is written out, and all before it.
async fn write_on(
    session: &Session,
    channel: &Channel,
    (address, envelope): (Address, &Envelope),
    wait: bool,
) -> Result<(), BusError> {
    let id = uuid::Uuid::new_v4().simple().to_string();
    let properties = wire::properties(envelope, address.record, &id);
    let mut write = Box::pin(channel.basic_publish(
        address.exchange,
        address.key,
        BasicPublishOptions::default(),
        &envelope.body,
        properties,
    ));
    // The first poll puts the message into the queue.
    let now = (&mut write).now_or_never();
    let written = match now {
        Some(written) => written,
        None if wait => tokio::select! {
            () = session.ended.cancelled() => return Err(BusError::Down),
            written = write => written,
        },
        None => return Ok(()),
    };
    written.map(drop).map_err(|_| BusError::Down)
}

async fn confirming(session: &Session) -> lapin::Result<Channel> {
    let channel = session.publishing.create_channel().await?;
    channel
        .confirm_select(ConfirmSelectOptions::default())
        .await?;
    Ok(channel)
}

struct Lane {
    session: Arc<Session>,
    receiver: Arc<AsyncMutex<mpsc::Receiver<Job>>>,
    channel: Option<Channel>,
    /// Batches in a row of which nothing was said in time.
    overdue: u32,
    /// When it last took another channel after a refusal.
    renewed: Option<Instant>,
}

impl Lane {
    async fn run(mut self) {
        let ended = self.session.ended.clone();
        // Jobs dropped here tell their publishers that nothing is known.
        ended.run_until_cancelled_owned(self.work()).await;
    }

    async fn work(&mut self) {
        loop {
            let mut jobs = self.next().await;
            if jobs.is_empty() {
                return;
            }
            for _ in 0..TRIES {
                let Some(channel) = self.channel().await else {
                    break;
                };
                let silence = allowed(bytes(&jobs), self.overdue);
                let went = AtomicUsize::new(0);
                let mut said = Said::default();
                let published = publish(&channel, &jobs, &went, &mut said);
                let in_time = self.in_time(published, &went, silence).await.is_some();
                jobs = match in_time {
                    true => {
                        self.overdue = 0;
                        if said.refused() && may_renew(self.renewed) {
                            self.renewed = Some(Instant::now());
                            self.channel = None;
                        }
                        judge(jobs, &said)
                    }
                    false => {
                        self.channel = None;
                        self.overdue = (self.overdue + 1).min(DOUBLED);
                        give_up(jobs, said);
                        Vec::new()
                    }
                };
                if jobs.is_empty() {
                    break;
                }
                jobs = self.without_missing(jobs).await;
            }
            for job in jobs {
                let _ = job.done.send(Err(BusError::Down));
            }
        }
    }

    /// Waits for the broker's word; `None` if it is overdue, and the broker does not hold all publishers up.
    async fn in_time<T>(
        &self,
        work: impl Future<Output = T>,
        went: &AtomicUsize,
        silence: Duration,
    ) -> Option<T> {
        if self.session.queues == RecordQueues::Classic {
            return Some(work.await);
        }
        let held_up = || self.session.publishing.status().blocked();
        let done = within(work, went, silence, held_up).await;
        if done.is_none() {
            tracing::warn!("the broker has not confirmed records in time");
        }
        done
    }

    /// The next batch: what waits now, at least one.
    async fn next(&self) -> Vec<Job> {
        let mut receiver = self.receiver.lock().await;
        let mut jobs: Vec<Job> = receiver.recv().await.into_iter().collect();
        let mut bytes = bytes(&jobs);
        while !jobs.is_empty() && jobs.len() < BATCH && bytes < BATCH_BYTES {
            let Ok(job) = receiver.try_recv() else { break };
            bytes += job.envelope.body.len();
            jobs.push(job);
        }
        jobs
    }

    async fn channel(&mut self) -> Option<Channel> {
        if let Some(channel) = &self.channel
            && channel.status().connected()
        {
            return Some(channel.clone());
        }
        self.channel = confirming(&self.session).await.ok();
        self.channel.clone()
    }

    /// The channel died under these: one of their exchanges may be gone. Its messages went nowhere, the
    /// others are tried again.
    async fn without_missing(&self, jobs: Vec<Job>) -> Vec<Job> {
        let mut there = HashMap::new();
        let mut left = Vec::new();
        for job in jobs {
            let exchange = job.address.exchange.to_string();
            let exists = match there.get(&exchange) {
                Some(exists) => *exists,
                None => {
                    let exists = exchange.is_empty()
                        || self.session.exchange_exists(&exchange, true).await != Ok(false);
                    there.insert(exchange, exists);
                    exists
                }
            };
            match exists {
                true => left.push(job),
                false => drop(job.done.send(Ok(Routed::Unroutable))),
            }
        }
        left
    }
}

fn bytes(jobs: &[Job]) -> usize {
    jobs.iter().map(|job| job.envelope.body.len()).sum()
}

/// How long nothing may happen to a batch of so many bytes, when so many before it were overdue.
fn allowed(bytes: usize, overdue: u32) -> Duration {
    let parts = u32::try_from(bytes / BATCH_BYTES).unwrap_or(u32::MAX);
    let once = CONFIRMED.saturating_mul(parts.saturating_add(1));
    crate::pause::after(once, overdue.min(DOUBLED), Duration::MAX)
}

/// Whether a lane takes another channel after a refusal, when it did so last at this time.
fn may_renew(last: Option<Instant>) -> bool {
    last.is_none_or(|last| last.elapsed() >= RENEWAL)
}

/// What comes of the work; `None` once nothing `went` on for as long as `silence`, and nothing held it up meanwhile.
async fn within<T>(
    work: impl Future<Output = T>,
    went: &AtomicUsize,
    silence: Duration,
    held_up: impl Fn() -> bool,
) -> Option<T> {
    let mut work = std::pin::pin!(work);
    let mut silent = Duration::ZERO;
    while silent < silence {
        let before = went.load(Ordering::Relaxed);
        if let Ok(done) = timeout(LOOK, work.as_mut()).await {
            return Some(done);
        }
        silent = match held_up() || went.load(Ordering::Relaxed) != before {
            true => Duration::ZERO,
            false => silent + LOOK,
        };
    }
    None
}

/// What the broker has said of a batch so far.
#[derive(Default)]
struct Said {
    confirms: Vec<lapin::Result<PublisherConfirm>>,
    /// Whether it took each message, in order; `None`: nothing is known.
    outcomes: Vec<Option<bool>>,
    /// Ids of those that went nowhere.
    returned: HashSet<String>,
}

impl Said {
    fn note(&mut self, confirmation: Option<Confirmation>) {
        let outcome = confirmation.map(|confirmation| {
            let acked = confirmation.is_ack() || confirmation == Confirmation::NotRequested;
            if let Some(message) = confirmation.take_message() {
                let id = message.properties.message_id().as_ref();
                self.returned.extend(id.map(ToString::to_string));
            }
            acked
        });
        self.outcomes.push(outcome);
    }

    /// Whether the broker refused a message. Another channel may then be better: a node that does not reach the leader of a
    /// quorum queue when a channel first publishes to it (RabbitMQ 3.10, `rabbit_fifo_client:enqueue`) keeps the servers that it knew
    /// then. On that channel it refuses every message until the old leader is back. On another one it asks the new leader.
    fn refused(&self) -> bool {
        self.outcomes.contains(&Some(false))
    }

    /// Notes the confirms that are here, and waits for none.
    fn drain(&mut self) {
        for at in self.outcomes.len()..self.confirms.len() {
            let confirmation = match &mut self.confirms[at] {
                Ok(confirm) => confirm.now_or_never().and_then(Result::ok),
                Err(_) => None,
            };
            self.note(confirmation);
        }
    }
}

/// Publishes a batch; `went` counts what was written and confirmed.
async fn publish(channel: &Channel, jobs: &[Job], went: &AtomicUsize, said: &mut Said) {
    type Write<'a> = Pin<Box<dyn Future<Output = lapin::Result<PublisherConfirm>> + Send + 'a>>;
    let options = BasicPublishOptions {
        mandatory: true,
        ..BasicPublishOptions::default()
    };
    {
        let mut writes: Vec<(Write, Option<_>)> = Vec::with_capacity(jobs.len());
        for job in jobs {
            let mut write: Write = Box::pin(channel.basic_publish(
                job.address.exchange.clone(),
                job.address.key.clone(),
                options,
                &job.envelope.body,
                wire::properties(&job.envelope, job.address.record, &job.id),
            ));
            // Polled once each, in order: all are in the socket's queue before any is waited for.
            let done = futures::poll!(write.as_mut());
            writes.push((write, Some(done)));
        }
        for (write, done) in writes {
            said.confirms.push(match done {
                Some(std::task::Poll::Ready(result)) => result,
                _ => write.await,
            });
            went.fetch_add(1, Ordering::Relaxed);
        }
    }
    for at in 0..said.confirms.len() {
        let confirmation = match &mut said.confirms[at] {
            Ok(confirm) => confirm.await.ok(),
            Err(_) => None,
        };
        went.fetch_add(1, Ordering::Relaxed);
        said.note(confirmation);
    }
}

/// Sends the verdicts on a batch. Gives back what nothing is known about.
fn judge(jobs: Vec<Job>, said: &Said) -> Vec<Job> {
    let mut unknown = Vec::new();
    for (at, job) in jobs.into_iter().enumerate() {
        let verdict = match said.outcomes.get(at).copied().flatten() {
            Some(true) if said.returned.contains(&job.id) => Ok(Routed::Unroutable),
            Some(true) => Ok(Routed::Queued),
            Some(false) => Err(BusError::Down),
            None => {
                unknown.push(job);
                continue;
            }
        };
        let _ = job.done.send(verdict);
    }
    unknown
}

/// Gives an overdue batch up. Messages that the broker has confirmed are sent their verdicts, so that nobody publishes them once
/// more. Where one was returned nothing is certain: another return may not be here yet. Jobs dropped here report to their
/// publishers that nothing is known.
fn give_up(jobs: Vec<Job>, mut said: Said) {
    said.drain();
    if said.returned.is_empty() {
        drop(judge(jobs, &said));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    const NEVER: fn() -> bool = || false;

    #[test]
    fn long_batches_and_slow_brokers_are_given_more_time() {
        assert_eq!(allowed(0, 0), CONFIRMED);
        assert_eq!(allowed(BATCH_BYTES - 1, 0), CONFIRMED);
        assert_eq!(allowed(3 * BATCH_BYTES, 0), 4 * CONFIRMED);
        assert_eq!(allowed(0, 2), 4 * CONFIRMED);
        assert_eq!(allowed(0, u32::MAX), 8 * CONFIRMED);
    }

    /// What the publishers of an overdue batch hear.
    fn given_up(outcomes: &[Option<bool>], returned: &[&str]) -> Vec<Option<Routed>> {
        let said = Said {
            outcomes: outcomes.to_vec(),
            returned: returned.iter().map(|id| (*id).to_owned()).collect(),
            ..Said::default()
        };
        let (jobs, heard): (Vec<_>, Vec<_>) = ["a", "b", "c"].map(job).into_iter().unzip();
        give_up(jobs, said);
        let heard = heard.into_iter().map(|mut one: Heard| one.try_recv());
        heard.map(|one| one.ok().and_then(Result::ok)).collect()
    }

    type Heard = oneshot::Receiver<Result<Routed, BusError>>;

    fn job(id: &str) -> (Job, Heard) {
        let (done, heard) = oneshot::channel();
        let job = Job {
            address: Address {
                exchange: ShortString::default(),
                key: ShortString::default(),
                record: true,
            },
            envelope: Envelope::default(),
            id: id.to_owned(),
            done,
        };
        (job, heard)
    }

    #[test]
    fn what_is_confirmed_of_an_overdue_batch_is_not_published_once_more() {
        let queued = Some(Routed::Queued);
        let some = given_up(&[Some(true), None, Some(true)], &[]);
        assert_eq!(some, [queued, None, queued]);
        assert_eq!(given_up(&[Some(true)], &[]), [queued, None, None]);
        let unsure = given_up(&[Some(true), None, Some(true)], &["c"]);
        assert_eq!(unsure, [None, None, None]);
    }

    #[test]
    fn only_a_word_of_the_broker_is_a_refusal() {
        let said = |outcomes: &[Option<bool>]| Said {
            outcomes: outcomes.to_vec(),
            ..Said::default()
        };
        assert!(said(&[Some(true), Some(false), None]).refused());
        assert!(!said(&[Some(true), None]).refused());
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_queue_costs_a_lane_few_channels() {
        assert!(may_renew(None));
        let last = Some(Instant::now());
        assert!(!may_renew(last));
        tokio::time::advance(RENEWAL).await;
        assert!(may_renew(last));
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_is_overdue_when_nothing_went_on() {
        let went = AtomicUsize::new(0);
        let silent = std::future::pending::<()>();
        assert_eq!(within(silent, &went, CONFIRMED, NEVER).await, None);
        // One word now and then is enough.
        let slow = async {
            for _ in 0..8 {
                tokio::time::sleep(CONFIRMED - LOOK).await;
                went.fetch_add(1, Ordering::Relaxed);
            }
        };
        assert_eq!(within(slow, &went, CONFIRMED, NEVER).await, Some(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_broker_that_holds_all_up_is_waited_for() {
        let went = AtomicUsize::new(0);
        let looks = (4 * CONFIRMED).as_secs() / LOOK.as_secs();
        let left = Cell::new(looks);
        let held_up = || left.replace(left.get().saturating_sub(1)) > 0;
        let late = tokio::time::sleep(5 * CONFIRMED - LOOK / 2);
        assert_eq!(within(late, &went, CONFIRMED, held_up).await, Some(()));
        // The time counts from its last word of that on.
        left.set(looks);
        let began = Instant::now();
        let never = std::future::pending::<()>();
        assert_eq!(within(never, &went, CONFIRMED, held_up).await, None);
        assert_eq!(began.elapsed(), 5 * CONFIRMED);
    }
}
