//! Who answers keeps what it sent: numbers the parts, repeats them on request, speaks up while silent,
//! and stops when told.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tg_schemas::codec::ContentType;
use tg_schemas::{Error, ErrorCode, Frame, Headers, Topic};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::answer::ReplyAddress;
use crate::deadline::Deadline;
use crate::mesh::Mesh;
use tg_bus::Handover;
use tg_bus::{Envelope, Link, Promise, Routed, Target};

/// Parts, and bytes, sent ahead of what the asker has used up.
const WINDOW_PARTS: u64 = 192;
const WINDOW_BYTES: usize = 4 << 20;
/// Largest message that holds several parts.
const JOINED_BYTES: usize = 256 << 10;
/// First pause before a silent holder speaks up; doubles to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(300);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long an ended answer is kept for repeats.
const KEEP_ENDED: Duration = Duration::from_secs(10);
/// How long this process speaks for an answer that another message is to continue.
const KEEP_RELEASED: Duration = Duration::from_secs(15);
/// Pause before an asker is asked once more where it stands.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// Bytes of ended answers kept at most.
const KEEP_BYTES: usize = 32 << 20;
/// Cancelled ids remembered, for work that is between two messages when the cancel comes.
const KEEP_CANCELLED: usize = 4096;

/// One answer under way in this process.
pub(crate) struct Held {
    id: Arc<str>,
    reply_to: Target,
    foreign: bool,
    detach: bool,
    deadline: Deadline,
    /// Cancelled when the asker gave up.
    pub(crate) cancel: CancellationToken,
    credit: Notify,
    state: Mutex<State>,
}

struct State {
    parts: VecDeque<(u64, Envelope)>,
    next: u64,
    credited: u64,
    /// Numbers and sizes of the parts that the asker has not used up, and their sum.
    ahead: VecDeque<(u64, usize)>,
    bytes_ahead: usize,
    kept_bytes: usize,
    spoke: Instant,
    pause: Duration,
    ended: Option<Instant>,
    /// Since when another message is to continue it.
    released: Option<Instant>,
}

impl Held {
    pub(crate) fn next_seq(&self) -> u64 {
        self.state.lock().next
    }

    /// Whether it was ended, or given to another message to continue.
    pub(crate) fn settled(&self) -> bool {
        let state = self.state.lock();
        state.ended.is_some() || state.released.is_some()
    }

    pub(crate) fn address(&self) -> ReplyAddress {
        let mut state = self.state.lock();
        state.released = Some(Instant::now());
        ReplyAddress {
            id: self.id.to_string(),
            reply_to: match &self.reply_to {
                Target::Inbox(name) => name.to_string(),
                Target::Topic(topic) => topic.to_string(),
                Target::Subscription(_) => String::new(),
            },
            seq: state.next,
            deadline: self.deadline.millis(),
            detach: self.detach,
            foreign: self.foreign,
        }
    }

    fn frame(&self, mesh: &Mesh, frame: Frame, seq: u64, body: Bytes) -> Envelope {
        let headers = if self.foreign {
            Headers {
                id: Some(self.id.to_string()),
                ..Headers::default()
            }
        } else {
            Headers {
                id: Some(self.id.to_string()),
                from: Some(mesh.inbox().to_owned()),
                frame: Some(frame),
                seq: Some(seq),
                detach: self.detach,
                ..Headers::default()
            }
        };
        Envelope {
            headers,
            content_type: ContentType::Json,
            body,
            ..Envelope::default()
        }
    }
}

/// Where the asker of an answer stands that another process began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It lacks the parts from this one on.
    Lacks(u64),
    /// It does not wait any more.
    Gone,
}

type Told = watch::Sender<Option<Standing>>;

/// All answers of this process.
#[derive(Default)]
pub(crate) struct Holder {
    held: Mutex<HashMap<Arc<str>, Arc<Held>>>,
    cancelled: Mutex<VecDeque<Arc<str>>>,
    /// Questions about where askers stand; bounded by the handlers that wait for them.
    standings: Mutex<HashMap<Arc<str>, Told>>,
}

impl Holder {
    /// Takes an answer on. `None` when this process holds the id already; it then says where it stands.
    pub(crate) fn open(&self, mesh: &Mesh, address: &ReplyAddress) -> Option<Arc<Held>> {
        let id: Arc<str> = address.id.as_str().into();
        let reply_to = if address.foreign {
            Target::Topic(Topic::parse(&address.reply_to).ok()?)
        } else {
            Target::Inbox(address.reply_to.as_str().into())
        };
        let mut all = self.held.lock();
        let earlier = all.get(&id).cloned();
        let mut parts = VecDeque::new();
        let mut kept_bytes = 0;
        if let Some(known) = earlier {
            let mut state = known.state.lock();
            if state.released.is_none() || state.ended.is_some() {
                return None;
            }
            parts = std::mem::take(&mut state.parts);
            kept_bytes = state.kept_bytes;
        }
        let held = Arc::new(Held {
            id: id.clone(),
            reply_to,
            foreign: address.foreign,
            detach: address.detach,
            deadline: Deadline::from_millis(address.deadline),
            cancel: mesh.shutdown_child(),
            credit: Notify::new(),
            state: Mutex::new(State {
                parts,
                next: address.seq,
                credited: address.seq,
                ahead: VecDeque::new(),
                bytes_ahead: 0,
                kept_bytes,
                spoke: Instant::now(),
                pause: FIRST_PAUSE,
                ended: None,
                released: None,
            }),
        });
        if self.cancelled.lock().contains(&id) && !address.detach {
            held.cancel.cancel();
        }
        all.insert(id, held.clone());
        Some(held)
    }

    /// Asks the asker of an answer that another process began where it stands, and has it listen to this
    /// process only. `None` if it says nothing for this long.
    pub(crate) async fn standing(
        &self,
        mesh: &Mesh,
        address: &ReplyAddress,
        patience: Duration,
    ) -> Option<Standing> {
        let id: Arc<str> = address.id.as_str().into();
        let told = self.standings.lock().entry(id.clone()).or_default().clone();
        let mut answer = told.subscribe();
        let to = Target::Inbox(address.reply_to.as_str().into());
        let asking = async {
            loop {
                let headers = Headers {
                    id: Some(id.to_string()),
                    from: Some(mesh.inbox().to_owned()),
                    frame: Some(Frame::Where),
                    detach: address.detach,
                    ..Headers::default()
                };
                let envelope = Envelope {
                    headers,
                    ..Envelope::default()
                };
                // A bus that is away for now is asked again.
                let _ = mesh.publish(&to, envelope, Promise::Sent).await;
                tokio::time::sleep(ASK_AGAIN).await;
            }
        };
        let standing = async {
            answer
                .wait_for(Option::is_some)
                .await
                .ok()
                .and_then(|told| *told)
        };
        let standing = tokio::select! {
            standing = standing => standing,
            () = asking => None,
            () = tokio::time::sleep(patience) => None,
        };
        self.standings.lock().remove(&id);
        standing
    }

    fn told(&self, id: &str, standing: Standing) {
        if let Some(told) = self.standings.lock().get(id) {
            told.send_replace(Some(standing));
        }
    }

    /// The id is held here: tells the asker the number of the next part.
    pub(crate) fn repeat_position(&self, mesh: &Mesh, id: &str) -> bool {
        let Some(held) = self.held.lock().get(id).cloned() else {
            return false;
        };
        let next = held.next_seq();
        self.post(mesh, &held, Frame::Alive, next);
        true
    }

    fn post(&self, mesh: &Mesh, held: &Arc<Held>, frame: Frame, seq: u64) {
        if held.foreign {
            return;
        }
        let envelope = held.frame(mesh, frame, seq, Bytes::new());
        let (bus, to) = (mesh.bus().clone(), held.reply_to.clone());
        mesh.spawn(tg_bus::TaskKind::Handler, async move {
            let _ = bus.publish(&to, envelope, Promise::Sent).await;
        });
    }

    /// Sends parts that are there together, in one message where that can be; `last` is of the last of them.
    pub(crate) async fn send(
        &self,
        mesh: &Mesh,
        held: &Arc<Held>,
        bodies: Vec<(Bytes, Handover)>,
        last: bool,
    ) -> Result<(), Error> {
        self.wait_for_credit(held, last).await?;
        let keep = !held.foreign && !mesh.bus().in_process();
        let parts: Vec<Envelope> = {
            let mut state = held.state.lock();
            if state.ended.is_some() {
                return Err(Error::new(ErrorCode::Internal, "the answer has ended"));
            }
            state.spoke = Instant::now();
            state.pause = FIRST_PAUSE;
            let end = state.next + bodies.len() as u64;
            let mut parts = Vec::with_capacity(bodies.len());
            for (body, handover) in bodies {
                let seq = state.next;
                state.next += 1;
                if !held.foreign {
                    state.bytes_ahead += body.len();
                    state.ahead.push_back((seq, body.len()));
                }
                let ends = last && state.next == end;
                let frame = if ends { Frame::Last } else { Frame::Part };
                let mut part = held.frame(mesh, frame, seq, body);
                part.handover = handover;
                if keep {
                    state.kept_bytes += part.body.len();
                    state.parts.push_back((seq, part.clone()));
                }
                parts.push(part);
            }
            if last {
                state.ended = Some(Instant::now());
            }
            parts
        };
        // What is lost here shows as a gap and is asked for again.
        let promise = if held.foreign {
            Promise::Confirmed
        } else {
            Promise::Sent
        };
        let mut sent = Ok(Routed::Queued);
        for message in messages(parts, held.foreign) {
            sent = mesh.publish(&held.reply_to, message, promise).await;
            if sent.is_err() && held.foreign {
                break;
            }
        }
        if last && (held.foreign || mesh.bus().in_process()) {
            self.held.lock().remove(&held.id);
        }
        match sent {
            Err(fault) if held.foreign => Err(fault.into()),
            _ => Ok(()),
        }
    }

    async fn wait_for_credit(&self, held: &Arc<Held>, last: bool) -> Result<(), Error> {
        loop {
            let credited = held.credit.notified();
            let blocked = {
                let state = held.state.lock();
                let ahead = state.next.saturating_sub(state.credited);
                !held.foreign
                    && !last
                    && (ahead >= WINDOW_PARTS || (state.bytes_ahead >= WINDOW_BYTES && ahead > 0))
            };
            // A cancelled answer still gets its last words.
            if held.cancel.is_cancelled() && !last {
                return Err(Error::new(ErrorCode::Cancelled, "cancelled"));
            }
            if !blocked {
                return Ok(());
            }
            tokio::select! {
                () = credited => {}
                () = held.cancel.cancelled() => {}
                () = held.deadline.reached() => {
                    return Err(Error::new(ErrorCode::Timeout, "the deadline has passed"));
                }
            }
        }
    }

    /// Forgets an answer that another message continues, or that was refused.
    pub(crate) fn drop_unended(&self, held: &Arc<Held>) {
        let mut all = self.held.lock();
        if all
            .get(&held.id)
            .is_some_and(|known| Arc::ptr_eq(known, held))
        {
            all.remove(&held.id);
        }
    }

    /// A control frame from an asker.
    pub(crate) fn deliver(&self, mesh: &Mesh, headers: &Headers) {
        let (Some(id), Some(frame)) = (headers.id.as_deref(), headers.frame) else {
            return;
        };
        match frame {
            Frame::Cancel => {
                self.told(id, Standing::Gone);
                self.cancel(mesh, id);
                return;
            }
            Frame::Resend => self.told(id, Standing::Lacks(headers.seq.unwrap_or(0))),
            _ => {}
        }
        let Some(held) = self.held.lock().get(id).cloned() else {
            return;
        };
        let seq = headers.seq.unwrap_or(0);
        match frame {
            Frame::Credit => {
                let mut state = held.state.lock();
                state.credited = state.credited.max(seq);
                while state.ahead.front().is_some_and(|(number, _)| *number < seq) {
                    if let Some((_, bytes)) = state.ahead.pop_front() {
                        state.bytes_ahead -= bytes;
                    }
                }
                while state.parts.front().is_some_and(|(number, _)| *number < seq) {
                    if let Some((_, part)) = state.parts.pop_front() {
                        state.kept_bytes -= part.body.len();
                    }
                }
                drop(state);
                held.credit.notify_one();
            }
            Frame::Resend => {
                let parts: Vec<_> = {
                    let state = held.state.lock();
                    state
                        .parts
                        .iter()
                        .filter(|(n, _)| *n >= seq)
                        .map(|(_, p)| p.clone())
                        .collect()
                };
                if parts.is_empty() {
                    self.repeat_position(mesh, id);
                    return;
                }
                let (bus, to) = (mesh.bus().clone(), held.reply_to.clone());
                mesh.spawn(tg_bus::TaskKind::Handler, async move {
                    for part in parts {
                        let _ = bus.publish(&to, part, Promise::Sent).await;
                    }
                });
            }
            _ => {}
        }
    }

    fn cancel(&self, mesh: &Mesh, id: &str) {
        let held = self.held.lock().get(id).cloned();
        if let Some(held) = held {
            if held.detach || held.state.lock().ended.is_some() {
                return;
            }
            metrics::counter!("tg_answers_cancelled_total").increment(1);
            held.cancel.cancel();
            self.post(mesh, &held, Frame::Cancelled, 0);
            if held.state.lock().released.is_some() {
                self.drop_unended(&held);
            }
        }
        let mut cancelled = self.cancelled.lock();
        if cancelled.len() >= KEEP_CANCELLED {
            cancelled.pop_front();
        }
        cancelled.push_back(id.into());
    }

    /// Whether the asker of an id gave up lately.
    pub(crate) fn is_cancelled(&self, id: &str) -> bool {
        self.cancelled.lock().iter().any(|known| &**known == id)
    }

    /// Speaks up for silent answers and lets go of old ones, until the process stops.
    pub(crate) async fn watch(&self, mesh: Mesh) {
        let mut tick = tokio::time::interval(Duration::from_millis(100));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let link = mesh.bus().link();
        let mut generation = 0;
        loop {
            tick.tick().await;
            let now = Instant::now();
            // An asker can ask for repeats only while the bus is there: the time kept starts anew with it.
            let Link::Up {
                generation: current,
            } = *link.borrow()
            else {
                continue;
            };
            let again = generation != current;
            generation = current;
            let mut silent = Vec::new();
            let mut kept = 0;
            let mut over = Vec::new();
            {
                let all = self.held.lock();
                for held in all.values() {
                    let mut state = held.state.lock();
                    if again {
                        state.ended = state.ended.map(|_| now);
                        state.released = state.released.map(|_| now);
                    }
                    match state.ended {
                        Some(ended) => {
                            kept += state.kept_bytes + 512;
                            if now - ended > KEEP_ENDED || kept > KEEP_BYTES {
                                over.push(held.id.clone());
                            }
                        }
                        None if now - state.spoke >= state.pause => {
                            state.spoke = now;
                            state.pause = (state.pause * 2).min(LONGEST_PAUSE);
                            silent.push((held.clone(), state.next));
                            if state
                                .released
                                .is_some_and(|since| now - since > KEEP_RELEASED)
                            {
                                over.push(held.id.clone());
                            }
                        }
                        None => {}
                    }
                }
            }
            if !over.is_empty() {
                let mut all = self.held.lock();
                for id in over {
                    all.remove(&id);
                }
            }
            for (held, next) in silent {
                self.post(&mesh, &held, Frame::Alive, next);
            }
        }
    }

    /// Answers under way, ended ones left out.
    pub(crate) fn open_count(&self) -> usize {
        self.held
            .lock()
            .values()
            .filter(|held| held.state.lock().ended.is_none())
            .count()
    }
}

/// Parts as messages: one for all where the asker reads that, unless it would be large.
fn messages(mut parts: Vec<Envelope>, foreign: bool) -> Vec<Envelope> {
    let bytes: usize = parts.iter().map(|part| part.body.len() + 1).sum();
    let lines = parts.iter().all(|part| !part.body.contains(&b'\n'));
    if parts.len() < 2 || foreign || bytes > JOINED_BYTES || !lines {
        return parts;
    }
    let mut body = Vec::with_capacity(bytes);
    for part in &parts {
        if !body.is_empty() {
            body.push(b'\n');
        }
        body.extend_from_slice(&part.body);
    }
    let (first, number) = (parts[0].headers.seq, parts.len());
    let handover = parts
        .iter_mut()
        .map(|part| std::mem::take(&mut part.handover));
    let handover = Handover::joined(handover.collect());
    let mut joined = parts.pop().unwrap_or_default();
    joined.headers.seq = first;
    joined.headers.parts = u32::try_from(number).ok();
    joined.body = body.into();
    joined.handover = handover;
    vec![joined]
}

/// Tells an asker that its question is not taken, without holding it.
pub(crate) fn refuse(mesh: &Mesh, headers: &Headers, error: &Error) {
    let (Some(id), Some(reply_to)) = (&headers.id, &headers.reply_to) else {
        return;
    };
    let envelope = Envelope {
        headers: Headers {
            id: Some(id.clone()),
            from: Some(mesh.inbox().to_owned()),
            frame: Some(Frame::Refuse),
            ..Headers::default()
        },
        content_type: ContentType::Json,
        body: serde_json::to_vec(error).unwrap_or_default().into(),
        ..Envelope::default()
    };
    let to = Target::Inbox(reply_to.as_str().into());
    let bus = mesh.bus().clone();
    mesh.spawn(tg_bus::TaskKind::Handler, async move {
        let _ = bus.publish(&to, envelope, Promise::Sent).await;
    });
}

/// Tells an asker that its answer goes on elsewhere: no part is missing, but wait.
pub(crate) fn still_working(mesh: &Mesh, headers: &Headers) {
    let (Some(id), Some(reply_to)) = (&headers.id, &headers.reply_to) else {
        return;
    };
    let envelope = Envelope {
        headers: Headers {
            id: Some(id.clone()),
            from: Some(mesh.inbox().to_owned()),
            frame: Some(Frame::Alive),
            seq: headers.seq,
            ..Headers::default()
        },
        ..Envelope::default()
    };
    let to = Target::Inbox(reply_to.as_str().into());
    let bus = mesh.bus().clone();
    mesh.spawn(tg_bus::TaskKind::Handler, async move {
        let _ = bus.publish(&to, envelope, Promise::Sent).await;
    });
}
