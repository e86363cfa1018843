//! Who asks looks after the answer: matches parts by id, puts them in order by number, asks again for
//! what is missing, notices a holder that fell silent, and ends every question by its deadline.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Buf;
use parking_lot::Mutex;
use tg_schemas::{Class, Error, ErrorCode, Frame, Headers, Topic};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::deadline::Deadline;
use crate::mesh::Mesh;
use tg_bus::TaskKind;
use tg_bus::{BusError, Envelope, Link, Promise, Routed, Target};

/// Parts kept for a reader that is behind; the holder stops before (see [`crate::holder`]).
const MAX_PARTS: usize = 256;
/// Bytes kept for a reader that is behind, at least one part.
const MAX_BYTES: usize = 8 << 20;
/// The holder is told after this many parts, or bytes, were used up.
const CREDIT_PARTS: u64 = 64;
const CREDIT_BYTES: usize = 1 << 20;
/// A question that no queue wants is tried again this long, ...
const UNSERVED: Duration = Duration::from_millis(900);
/// ... and this long after a reconnect, while servers attach again.
const UNSERVED_AFTER_RECONNECT: Duration = Duration::from_secs(3);
/// Silence before the first sign of life (a holder speaks after 300 ms).
const FIRST_SIGN: Duration = Duration::from_millis(1500);
/// A holder that another wants to replace has this long to say that it lives.
const PROBE: Duration = Duration::from_millis(400);
/// How often silent and gapped answers are looked at.
const TICK: Duration = Duration::from_millis(100);

/// What [`Asker::next`] found.
pub(crate) enum Got {
    /// A part, and whether its number is the last.
    Part(Envelope, bool),
    /// The answer ends here.
    Failed(Error),
}

/// One question under way.
pub(crate) struct Pending {
    pub(crate) id: Arc<str>,
    target: Target,
    question: Envelope,
    deadline: Deadline,
    gap: Duration,
    cancel: CancellationToken,
    detach: bool,
    foreign: bool,
    wake: Notify,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sent: bool,
    ready: VecDeque<(Envelope, bool)>,
    ready_bytes: usize,
    early: BTreeMap<u64, (Envelope, bool)>,
    /// Number of the next part to put into `ready`.
    next: u64,
    /// Number of the next part to hand to the reader.
    taken: u64,
    credited: u64,
    bytes_since_credit: usize,
    holder: Option<Arc<str>>,
    /// The holder before, from which another process took over: what it still says comes too late.
    gone: Option<Arc<str>>,
    /// Since when the holder was asked whether it lives, for another wants to take over.
    probed: Option<Instant>,
    heard: Option<Instant>,
    patience: Duration,
    gap_since: Option<Instant>,
    ask_again: bool,
    complete: bool,
    failed: Option<Error>,
}

impl State {
    /// Whether the reader has something to look at.
    fn has_news(&self) -> bool {
        !self.ready.is_empty() || self.failed.is_some() || self.complete
    }
}

/// All questions of this process.
#[derive(Default)]
pub(crate) struct Asker {
    pending: Mutex<HashMap<Arc<str>, Arc<Pending>>>,
}

pub(crate) struct NewQuestion {
    pub(crate) id: Arc<str>,
    pub(crate) target: Target,
    pub(crate) question: Envelope,
    pub(crate) deadline: Deadline,
    pub(crate) gap: Duration,
    pub(crate) cancel: CancellationToken,
    pub(crate) detach: bool,
    pub(crate) foreign: bool,
}

impl Asker {
    pub(crate) fn open(&self, new: NewQuestion) -> Arc<Pending> {
        let pending = Arc::new(Pending {
            id: new.id,
            target: new.target,
            question: new.question,
            deadline: new.deadline,
            gap: new.gap,
            cancel: new.cancel,
            detach: new.detach,
            foreign: new.foreign,
            wake: Notify::new(),
            state: Mutex::new(State {
                patience: FIRST_SIGN,
                ..State::default()
            }),
        });
        self.pending
            .lock()
            .insert(pending.id.clone(), pending.clone());
        metrics::gauge!("tg_questions_open").increment(1.0);
        pending
    }

    /// The answer is over, or nobody wants it.
    pub(crate) fn forget(&self, pending: &Pending) {
        if self.pending.lock().remove(&pending.id).is_some() {
            metrics::gauge!("tg_questions_open").decrement(1.0);
        }
    }

    /// The reader went away: stop whoever works on it.
    pub(crate) fn abandon(&self, mesh: &Mesh, pending: &Arc<Pending>) {
        self.forget(pending);
        if pending.detach || pending.foreign || !pending.state.lock().sent {
            return;
        }
        send_cancel(mesh, pending.id.clone());
    }

    /// Questions waiting for an answer.
    pub(crate) fn open_count(&self) -> usize {
        self.pending.lock().len()
    }

    /// The next part, or how the question ended.
    pub(crate) async fn next(&self, mesh: &Mesh, pending: &Arc<Pending>) -> Got {
        let waiting_since = Instant::now();
        loop {
            let notified = pending.wake.notified();
            let ask = {
                let mut state = pending.state.lock();
                if let Some((envelope, last)) = state.ready.pop_front() {
                    state.ready_bytes -= envelope.body.len();
                    state.taken += 1;
                    state.bytes_since_credit += envelope.body.len();
                    let due = !last
                        && (state.taken - state.credited >= CREDIT_PARTS
                            || state.bytes_since_credit >= CREDIT_BYTES);
                    if due && !pending.foreign {
                        state.credited = state.taken;
                        state.bytes_since_credit = 0;
                        let (holder, taken) = (state.holder.clone(), state.taken);
                        drop(state);
                        tell(mesh, holder, &pending.id, Frame::Credit, taken);
                    }
                    return Got::Part(envelope, last);
                }
                if let Some(error) = state.failed.clone() {
                    return Got::Failed(error);
                }
                if state.complete {
                    return Got::Failed(Error::new(ErrorCode::Internal, "the answer has ended"));
                }
                let ask = !state.sent || state.ask_again;
                state.sent = true;
                state.ask_again = false;
                ask
            };
            if ask {
                if let Err(error) = self.send_question(mesh, pending).await {
                    return Got::Failed(error);
                }
                continue;
            }
            let silence = pending.gap.saturating_sub(waiting_since.elapsed());
            tokio::select! {
                () = notified => {}
                () = pending.cancel.cancelled() => {
                    self.abandon(mesh, pending);
                    return Got::Failed(Error::new(ErrorCode::Cancelled, "cancelled"));
                }
                () = pending.deadline.reached() => {
                    if let Some(got) = self.grace(pending).await {
                        return got;
                    }
                    self.abandon(mesh, pending);
                    return Got::Failed(Error::new(ErrorCode::Timeout, "the deadline has passed"));
                }
                () = tokio::time::sleep(silence) => {
                    self.abandon(mesh, pending);
                    return Got::Failed(Error::new(ErrorCode::Timeout, "no answer in time"));
                }
            }
        }
    }

    /// The holder decides expiry: a moment is left for its own last words.
    async fn grace(&self, pending: &Arc<Pending>) -> Option<Got> {
        let notified = pending.wake.notified();
        let ready = |pending: &Pending| {
            let mut state = pending.state.lock();
            state.ready.pop_front().map(|(envelope, last)| {
                state.ready_bytes -= envelope.body.len();
                state.taken += 1;
                Got::Part(envelope, last)
            })
        };
        if let Some(got) = ready(pending) {
            return Some(got);
        }
        let _ = tokio::time::timeout(Duration::from_millis(250), notified).await;
        ready(pending)
    }

    async fn send_question(&self, mesh: &Mesh, pending: &Arc<Pending>) -> Result<(), Error> {
        let mut link = mesh.bus().link();
        let started = Instant::now();
        let mut patience = UNSERVED;
        let mut pause = Duration::from_millis(20);
        loop {
            if pending.cancel.is_cancelled() {
                return Err(Error::new(ErrorCode::Cancelled, "cancelled"));
            }
            if pending.deadline.passed() {
                return Err(Error::new(ErrorCode::Timeout, "the deadline has passed"));
            }
            if pending.foreign
                && let Target::Topic(topic) = &pending.target
                && let Err(fault) = mesh
                    .listen_for_responses(&topic.with_class(Class::Response))
                    .await
                && fault != BusError::Down
            {
                return Err(fault.into());
            }
            let mut envelope = pending.question.clone();
            let passed_on = pending.state.lock().next;
            if passed_on > 0 {
                envelope.headers.seq = Some(passed_on);
            }
            let publish = mesh.publish(&pending.target, envelope, Promise::Confirmed);
            let mut publish = std::pin::pin!(publish);
            let sent = loop {
                tokio::select! {
                    sent = &mut publish => break Some(sent),
                    // The answer can be quicker than the confirmation.
                    () = pending.wake.notified() => {
                        if pending.state.lock().has_news() {
                            pending.wake.notify_one();
                            return Ok(());
                        }
                    }
                    () = pending.deadline.reached() => break None,
                    () = pending.cancel.cancelled() => break None,
                }
            };
            let Some(sent) = sent else { continue };
            match sent {
                Ok(Routed::Queued) => {
                    let mut state = pending.state.lock();
                    state.heard = Some(Instant::now());
                    return Ok(());
                }
                Ok(Routed::Nowhere) => {
                    if mesh.reconnected_within(UNSERVED_AFTER_RECONNECT) {
                        patience = UNSERVED_AFTER_RECONNECT;
                    }
                    if started.elapsed() >= patience {
                        let mut state = pending.state.lock();
                        return Err(if state.next > 0 {
                            state.complete = true;
                            interrupted()
                        } else {
                            Error::new(ErrorCode::NobodyServes, "nobody serves this at the moment")
                        });
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_millis(100));
                }
                Err(BusError::Down) => {
                    tokio::select! {
                        up = link.wait_for(|link| !matches!(link, Link::Down)) => {
                            if up.is_err() {
                                return Err(BusError::Closed.into());
                            }
                        }
                        () = pending.deadline.reached() => {}
                        () = pending.cancel.cancelled() => {}
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                Err(other) => return Err(other.into()),
            }
        }
    }

    /// A frame for one of our questions came into the inbox (or a response topic).
    pub(crate) fn deliver(&self, mesh: &Mesh, envelope: Envelope) {
        let Some(id) = envelope.headers.id.as_deref() else {
            return;
        };
        let Some(pending) = self.pending.lock().get(id).cloned() else {
            self.nobody_waits(mesh, &envelope.headers);
            return;
        };
        let mut state = pending.state.lock();
        if envelope.headers.frame == Some(Frame::Where) {
            take_over(mesh, &pending, &mut state, &envelope.headers);
            return;
        }
        if state.complete {
            return;
        }
        if pending.foreign {
            let seq = state.next;
            accept(&mut state, seq, envelope, false);
            drop(state);
            pending.wake.notify_one();
            return;
        }
        let frame = envelope.headers.frame.unwrap_or(Frame::Part);
        let from: Option<Arc<str>> = envelope.headers.from.as_deref().map(Arc::from);
        if from.is_some() && state.gone == from && frame != Frame::Refuse {
            return;
        }
        if let (Some(first), Some(other)) = (&state.holder, &from) {
            let older = envelope.headers.seq.is_some_and(|seq| seq < state.next);
            if first != other && frame != Frame::Refuse && older {
                return;
            }
        }
        if frame != Frame::Refuse && from.is_some() {
            state.holder = from;
        }
        state.heard = Some(Instant::now());
        match frame {
            Frame::Part | Frame::Last => {
                let Some(seq) = envelope.headers.seq else {
                    return;
                };
                state.patience = FIRST_SIGN;
                for (seq, part, last) in parts(seq, envelope, frame == Frame::Last) {
                    accept(&mut state, seq, part, last);
                }
            }
            Frame::Alive => {
                // The holder doubles its pauses from 300 ms to 5 s.
                state.patience = (state.patience * 2).min(Duration::from_secs(12));
                if envelope.headers.seq.is_some_and(|next| next > state.next) {
                    state.gap_since.get_or_insert_with(Instant::now);
                } else if state.taken > 0 && !pending.foreign {
                    // Nothing is missing: it may wait for a credit that was lost.
                    state.credited = state.taken;
                    state.bytes_since_credit = 0;
                    let (holder, taken) = (state.holder.clone(), state.taken);
                    tell(mesh, holder, &pending.id, Frame::Credit, taken);
                }
            }
            Frame::Refuse => {
                let error = serde_json::from_slice(&envelope.body)
                    .unwrap_or_else(|_| Error::new(ErrorCode::Internal, "refused"));
                state.failed.get_or_insert(error);
            }
            _ => return,
        }
        drop(state);
        pending.wake.notify_one();
    }

    fn nobody_waits(&self, mesh: &Mesh, headers: &Headers) {
        let wanted = match headers.frame {
            Some(Frame::Part | Frame::Alive) => !headers.detach,
            Some(Frame::Where) => true,
            _ => false,
        };
        if wanted && headers.from.is_some() {
            let id: Arc<str> = headers.id.as_deref().unwrap_or_default().into();
            tell(
                mesh,
                headers.from.as_deref().map(Arc::from),
                &id,
                Frame::Cancel,
                0,
            );
        }
    }

    /// Looks after gaps and silence until the process stops.
    pub(crate) async fn watch(&self, mesh: Mesh) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let link = mesh.bus().link();
        let mut generation = 0;
        loop {
            tick.tick().await;
            let now = *link.borrow();
            let Link::Up {
                generation: current,
            } = now
            else {
                continue;
            };
            let reconnected = generation != 0 && generation != current;
            generation = current;
            let all: Vec<_> = self.pending.lock().values().cloned().collect();
            for pending in all {
                if !pending.foreign {
                    look_after(&mesh, &pending, reconnected);
                }
            }
        }
    }
}

fn look_after(mesh: &Mesh, pending: &Arc<Pending>, reconnected: bool) {
    let mut state = pending.state.lock();
    if !state.sent || state.complete || state.failed.is_some() {
        return;
    }
    let now = Instant::now();
    if reconnected {
        state.heard = Some(now);
        state.patience = FIRST_SIGN;
        if state.holder.is_some() {
            let (holder, next) = (state.holder.clone(), state.next);
            drop(state);
            tell(mesh, holder, &pending.id, Frame::Resend, next);
        } else {
            state.ask_again = true;
            drop(state);
            pending.wake.notify_one();
        }
        return;
    }
    if state.gap_since.is_some_and(|since| now - since > TICK / 2) {
        state.gap_since = Some(now);
        let (holder, next) = (state.holder.clone(), state.next);
        drop(state);
        tell(mesh, holder, &pending.id, Frame::Resend, next);
        return;
    }
    if state
        .heard
        .is_some_and(|heard| now - heard > state.patience)
    {
        // The holder is gone; the question is asked again under its id.
        state.heard = Some(now);
        state.holder = None;
        state.gone = None;
        state.ask_again = true;
        drop(state);
        metrics::counter!("tg_questions_asked_again_total").increment(1);
        pending.wake.notify_one();
    }
}

/// Another process wants to go on with the answer. Where its holder says nothing when asked, the other is
/// told from which part on; until then it gets no reply and asks again.
fn take_over(mesh: &Mesh, pending: &Pending, state: &mut State, headers: &Headers) {
    let from: Option<Arc<str>> = headers.from.as_deref().map(Arc::from);
    if from.is_none() || pending.foreign {
        return;
    }
    let now = Instant::now();
    if state.holder.is_some() && state.holder != from && !state.complete {
        match state.probed {
            Some(at) if state.heard.is_some_and(|heard| heard > at) => state.probed = None,
            Some(at) if now - at < PROBE => return,
            Some(_) => {}
            None => {
                state.probed = Some(now);
                let (holder, next) = (state.holder.clone(), state.next);
                tell(mesh, holder, &pending.id, Frame::Resend, next);
            }
        }
        if state.probed.is_none_or(|at| now - at < PROBE) {
            return;
        }
        state.gone = state.holder.take();
        // What came early belongs to words that nobody will complete.
        state.early.clear();
        state.gap_since = None;
    }
    state.probed = None;
    state.holder = from.clone();
    state.heard = Some(now);
    state.patience = FIRST_SIGN;
    tell(mesh, from, &pending.id, Frame::Resend, state.next);
}

/// The parts of a message, each with its number and whether it is the last. None if the message does not
/// hold as many as it says: they are asked for again like lost ones.
fn parts(seq: u64, envelope: Envelope, last: bool) -> Vec<(u64, Envelope, bool)> {
    let Some(number) = envelope.headers.parts else {
        return vec![(seq, envelope, last)];
    };
    let mut handover = envelope.handover.split().into_iter();
    let mut rest = envelope.body;
    let mut parts = Vec::new();
    while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
        parts.push(rest.split_to(at));
        rest.advance(1);
    }
    parts.push(rest);
    if u32::try_from(parts.len()) != Ok(number) || parts.len() > MAX_PARTS {
        tracing::warn!("a message of an answer does not hold the parts it names");
        return Vec::new();
    }
    let end = seq + parts.len() as u64 - 1;
    (seq..)
        .zip(parts)
        .map(|(seq, body)| {
            let part = Envelope {
                content_type: envelope.content_type,
                body,
                handover: handover.next().unwrap_or_default(),
                ..Envelope::default()
            };
            (seq, part, last && seq == end)
        })
        .collect()
}

fn accept(state: &mut State, seq: u64, envelope: Envelope, last: bool) {
    if seq < state.next {
        return;
    }
    if state.early.len() >= MAX_PARTS {
        state.failed.get_or_insert_with(interrupted);
        return;
    }
    state.early.insert(seq, (envelope, last));
    while let Some(part) = state.early.remove(&state.next) {
        state.ready_bytes += part.0.body.len();
        state.complete = part.1;
        state.ready.push_back(part);
        state.next += 1;
    }
    state.gap_since = if state.early.is_empty() {
        None
    } else {
        state.gap_since.or_else(|| Some(Instant::now()))
    };
    let full =
        state.ready.len() > MAX_PARTS || (state.ready_bytes > MAX_BYTES && state.ready.len() > 1);
    if full && !state.complete {
        state.failed.get_or_insert_with(|| {
            Error::new(ErrorCode::Busy, "the reader is too slow for this answer")
        });
    }
}

/// How a question ends whose answer broke off after parts were passed on.
pub(crate) fn interrupted() -> Error {
    Error::new(
        ErrorCode::Interrupted,
        "the answer broke off; please ask again",
    )
}

/// Sends a control frame to the holder of an answer, without waiting.
fn tell(mesh: &Mesh, holder: Option<Arc<str>>, id: &Arc<str>, frame: Frame, seq: u64) {
    let Some(holder) = holder else { return };
    let headers = Headers {
        id: Some(id.to_string()),
        from: Some(mesh.inbox().to_owned()),
        frame: Some(frame),
        seq: Some(seq),
        ..Headers::default()
    };
    let (mesh, envelope) = (
        mesh.clone(),
        Envelope {
            headers,
            ..Envelope::default()
        },
    );
    let inner = mesh.clone();
    mesh.spawn(TaskKind::Handler, async move {
        let _ = inner
            .bus()
            .publish(&Target::Inbox(holder), envelope, Promise::Sent)
            .await;
    });
}

/// Broadcasts a cancel: whoever holds the id stops.
pub(crate) fn send_cancel(mesh: &Mesh, id: Arc<str>) {
    let headers = Headers {
        id: Some(id.to_string()),
        from: Some(mesh.inbox().to_owned()),
        frame: Some(Frame::Cancel),
        ..Headers::default()
    };
    let envelope = Envelope {
        headers,
        ..Envelope::default()
    };
    let inner = mesh.clone();
    mesh.spawn(TaskKind::Handler, async move {
        let control = Target::Topic(control_topic());
        let _ = inner.bus().publish(&control, envelope, Promise::Sent).await;
    });
}

/// Where processes tell each other what they do.
pub(crate) fn control_topic() -> Topic {
    Topic::system(Class::Notify, "control")
}
