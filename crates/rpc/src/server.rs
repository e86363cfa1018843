//! Server side of a streamed reply: numbers the parts, keeps them for retransmission, sends a heartbeat while
//! silent, applies backpressure, and stops when it is asked to.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tg_bus::pause::doubled;
use tg_bus::{Envelope, Handover, Link, PublishMode, Routed, Target, TaskKind};
use tg_schemas::codec::ContentType;
use tg_schemas::{Error, ErrorCode, Frame, Headers};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::address::{AskerState, ReplyAddress};
use crate::cancelled::Cancelled;
use crate::ended::Ended;
use crate::joined::join;
use crate::liveness::Liveness;
use crate::port::Port;
use crate::stream::{FIRST_PAUSE, LONGEST_PAUSE, ReplyStream};

/// How often silent answers and old ones are looked for.
const TICK: Duration = Duration::from_millis(100);
/// How long this process speaks for an answer that another message is to continue.
const KEEP_RELEASED: Duration = Duration::from_secs(15);
/// Pause before an asker is asked once more where it stands.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// A handler that waits this long for its asker has the asker looked for.
const ASKER_SILENT: Duration = Duration::from_secs(10);

type StateSender = watch::Sender<Option<AskerState>>;

/// All answers of this process. Cheap to clone.
#[derive(Clone)]
pub struct ReplyServer(Arc<Inner>);

struct Inner {
    port: Port,
    streams: Mutex<HashMap<Arc<str>, Arc<ReplyStream>>>,
    /// Those of them that are looked after: those that had ended at the last look are not.
    open: Mutex<Vec<Arc<ReplyStream>>>,
    ended: Mutex<Ended>,
    cancelled: Cancelled,
    askers: Liveness,
    /// Questions about where askers stand; bounded by the handlers that wait for them.
    standings: Mutex<HashMap<Arc<str>, StateSender>>,
}

impl ReplyServer {
    pub(crate) fn new(port: Port, keep_bytes: usize) -> Self {
        Self(Arc::new(Inner {
            askers: Liveness::new(port.clone()),
            port,
            streams: Mutex::default(),
            open: Mutex::default(),
            ended: Mutex::new(Ended::within(keep_bytes)),
            cancelled: Cancelled::default(),
            standings: Mutex::default(),
        }))
    }

    /// Largest part, in bytes, that a message can hold.
    pub(crate) fn largest_part(&self) -> usize {
        self.0.port.bus().max_body()
    }

    /// Whether parts can be handed over as they are, without bodies.
    pub(crate) fn in_process(&self) -> bool {
        self.0.port.bus().in_process()
    }

    /// Whether parts can be handed over beside their bodies: their asker is in this process.
    pub(crate) fn hands_over(&self, held: &ReplyStream) -> bool {
        self.in_process() || held.is_for(self.0.port.inbox())
    }

    /// Takes an answer on. `None` when this process holds the id already; it then says where it stands.
    pub fn open(&self, address: &ReplyAddress) -> Option<Arc<ReplyStream>> {
        let cancel = self.0.port.shutdown().child_token();
        self.hold(address, ReplyStream::new(address, cancel)?)
    }

    /// As [`Self::open`], of an answer that another process goes on with if this one dies, until its handler notes that it is
    /// over: when its last part is sent, the bus has all parts.
    pub(crate) fn resume(&self, address: &ReplyAddress) -> Option<Arc<ReplyStream>> {
        let cancel = self.0.port.shutdown().child_token();
        let held = ReplyStream::new(address, cancel)?;
        let resumed = true;
        self.hold(address, ReplyStream { resumed, ..held })
    }

    fn hold(&self, address: &ReplyAddress, held: ReplyStream) -> Option<Arc<ReplyStream>> {
        let held = Arc::new(held);
        let mut all = self.0.streams.lock();
        if all
            .get(&held.id)
            .is_some_and(|known| !held.continues(known))
        {
            return None;
        }
        if !address.detach && self.0.cancelled.has(&held.id, &address.reply_to) {
            held.cancel.cancel();
        }
        all.insert(held.id.clone(), held.clone());
        drop(all);
        self.0.open.lock().push(held.clone());
        Some(held)
    }

    /// Asks the asker of an answer that another process began where it stands, and has it listen to this
    /// process only. `None` if it says nothing for this long.
    pub(crate) async fn standing(
        &self,
        address: &ReplyAddress,
        patience: Duration,
    ) -> Option<AskerState> {
        let id: Arc<str> = address.id.as_str().into();
        let told = self
            .0
            .standings
            .lock()
            .entry(id.clone())
            .or_default()
            .clone();
        let mut answer = told.subscribe();
        let to = Target::Inbox(address.reply_to.as_str().into());
        let asking = async {
            loop {
                let headers = Headers {
                    id: Some(id.to_string()),
                    from: Some(self.0.port.inbox().to_owned()),
                    frame: Some(Frame::Where),
                    detach: address.detach,
                    ..Headers::default()
                };
                let envelope = Envelope {
                    headers: Arc::new(headers),
                    ..Envelope::default()
                };
                // A bus that is away for now is asked again.
                let _ = self
                    .0
                    .port
                    .publish(&to, envelope, PublishMode::FireAndForget)
                    .await;
                tokio::time::sleep(RETRY_DELAY).await;
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
        self.0.standings.lock().remove(&id);
        standing
    }

    fn told(&self, id: &str, standing: AskerState) {
        if let Some(told) = self.0.standings.lock().get(id) {
            told.send_replace(Some(standing));
        }
    }

    /// Whether a question is answered here already; then its asker is sent the number of the next part. Not if the
    /// answer has ended and what this asker lacks is not kept: then the question is a new one under the same id. Who
    /// asks under the id of another asker's question succeeds that one, whose answer ends unless it is detached.
    pub fn is_held(&self, address: &ReplyAddress) -> bool {
        let Some(held) = self.0.streams.lock().get(address.id.as_str()).cloned() else {
            return false;
        };
        if held.is_over_for(address, self.in_process()) {
            self.forget(&held);
            return false;
        }
        if held.is_passed_on() {
            return false;
        }
        if held.plain || held.is_for(&address.reply_to) {
            self.say_position(&held);
            return true;
        }
        if held.detach {
            self.still_working(&Headers {
                id: Some(address.id.clone()),
                reply_to: Some(address.reply_to.clone()),
                seq: Some(address.seq),
                ..Headers::default()
            });
            return true;
        }
        metrics::counter!("tg_answers_cancelled_total").increment(1);
        held.cancel.cancel();
        self.forget(&held);
        false
    }

    fn say_position(&self, held: &ReplyStream) {
        self.post(held, Frame::Alive, held.next_seq());
    }

    fn post(&self, held: &ReplyStream, frame: Frame, seq: u64) {
        if held.plain {
            return;
        }
        let envelope = held.frame(self.0.port.inbox(), frame, seq, Bytes::new());
        self.0.port.post(held.reply_to.clone(), envelope);
    }

    /// Sends parts that are there together, in one message where that can be; `last` is of the last of them.
    ///
    /// # Errors
    /// `cancelled` where nobody waits for the answer any more, `timeout` where its deadline passed while the asker used up what
    /// was sent before, `internal` after its end: its handler has nothing more to do. To a plain asker also how the bus failed.
    pub async fn send(
        &self,
        held: &Arc<ReplyStream>,
        bodies: Vec<(Bytes, Handover)>,
        last: bool,
    ) -> Result<(), Error> {
        self.wait_for_credit(held, last).await?;
        let keep = !held.plain && !self.in_process();
        let parts: Vec<Envelope> = {
            let mut state = held.state.lock();
            if state.ended.is_some() {
                return Err(Error::new(ErrorCode::Internal, "the answer has ended"));
            }
            state.spoke = Instant::now();
            state.pause = FIRST_PAUSE;
            let inbox = self.0.port.inbox();
            let (begin, end) = (state.next, state.next + bodies.len() as u64);
            let frame = |next: u64| match last && next == end {
                true => Frame::Last,
                false => Frame::Part,
            };
            let mut parts = Vec::with_capacity(bodies.len());
            if bodies.len() > 1 && bodies.iter().all(|(_, one)| one.is_unwritten()) {
                let each: Vec<Handover> = bodies.into_iter().map(|(_, one)| one).collect();
                each.iter().for_each(|one| state.goes_ahead(one.size()));
                parts.push(held.together(inbox, frame(end), begin, each));
            } else {
                for (body, handover) in bodies {
                    let seq = state.next;
                    match held.plain {
                        true => state.next += 1,
                        false => state.goes_ahead(body.len() + handover.size()),
                    }
                    let mut part = held.frame(inbox, frame(state.next), seq, body);
                    // What is kept counts by its body: no message is kept beside it.
                    if keep {
                        state.kept_bytes += part.body.len();
                        state.parts.push_back((seq, part.clone()));
                    }
                    part.handover = handover;
                    parts.push(part);
                }
            }
            if last {
                state.ended = Some(Instant::now());
            }
            parts
        };
        // What is lost here shows as a gap and is asked for again: also of another process, until the answer is noted as over.
        let mut messages = join(parts, !held.plain).into_iter().peekable();
        let mut sent = Ok(Routed::Queued);
        while let Some(message) = messages.next() {
            let ends = last && messages.peek().is_none();
            let promise = match (held.plain, held.resumed && ends) {
                (true, _) => PublishMode::Confirmed,
                (false, true) => PublishMode::Flushed,
                (false, false) => PublishMode::FireAndForget,
            };
            sent = self.0.port.publish(&held.reply_to, message, promise).await;
            if sent.is_err() && held.plain {
                break;
            }
        }
        if last && (held.plain || self.in_process()) {
            self.forget(held);
        }
        match sent {
            Err(fault) if held.plain => Err(fault.into()),
            _ => Ok(()),
        }
    }

    async fn wait_for_credit(&self, held: &Arc<ReplyStream>, last: bool) -> Result<(), Error> {
        loop {
            let credited = held.credit.notified();
            let blocked = !held.plain && !last && held.waits_for_credit();
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

    /// Forgets an answer that is over, that another message continues, or that was refused; not another one under its
    /// id.
    pub fn forget(&self, held: &Arc<ReplyStream>) {
        let mut all = self.0.streams.lock();
        if all
            .get(&held.id)
            .is_some_and(|known| Arc::ptr_eq(known, held))
        {
            all.remove(&held.id);
        }
    }

    /// A control frame from an asker.
    pub fn deliver(&self, headers: &Headers) {
        let (Some(id), Some(frame)) = (headers.id.as_deref(), headers.frame) else {
            return;
        };
        match frame {
            Frame::Cancel => {
                self.told(id, AskerState::Gone);
                self.cancel(id, headers.from.as_deref(), headers.detach);
                return;
            }
            Frame::Resend => self.told(id, AskerState::Lacks(headers.seq.unwrap_or(0))),
            _ => {}
        }
        let Some(held) = self.0.streams.lock().get(id).cloned() else {
            return;
        };
        let seq = headers.seq.unwrap_or(0);
        match frame {
            Frame::Credit => held.used_up(seq),
            Frame::Resend => {
                let parts = held.parts_from(seq);
                if parts.is_empty() {
                    self.say_position(&held);
                    return;
                }
                let (bus, to) = (self.0.port.bus().clone(), held.reply_to.clone());
                self.0.port.spawn(TaskKind::Handler, async move {
                    for part in parts {
                        let _ = bus.publish(&to, part, PublishMode::FireAndForget).await;
                    }
                });
            }
            _ => {}
        }
    }

    /// Ends an answer that goes on without its asker, on behalf of whom it is for.
    pub fn cancel_detached(&self, id: &str) {
        self.cancel(id, None, true);
    }

    /// A detached answer is stopped only if the cancel says that it is about one, another one only by its own asker.
    fn cancel(&self, id: &str, from: Option<&str>, detached: bool) {
        let held = self.0.streams.lock().get(id).cloned();
        let another = |held: &ReplyStream| {
            !detached && from.is_some_and(|from| !held.plain && !held.is_for(from))
        };
        if let Some(held) = held.filter(|held| !another(held)) {
            if (held.detach && !detached) || held.has_ended() {
                return;
            }
            metrics::counter!("tg_answers_cancelled_total").increment(1);
            held.cancel.cancel();
            self.post(&held, Frame::Cancelled, 0);
            if held.state.lock().released.is_some() {
                self.forget(&held);
            }
        }
        self.0.cancelled.note(id, from);
    }

    /// Handlers that wait for an asker that died wait for nobody, unless their answers are detached.
    fn asker_died(&self, inbox: &str) {
        let all: Vec<_> = self.0.streams.lock().values().cloned().collect();
        for held in all {
            let waits = held.state.lock().waits.is_some();
            if waits && held.is_for(inbox) && !held.detach && !held.has_ended() {
                metrics::counter!("tg_answers_cancelled_total").increment(1);
                held.cancel.cancel();
            }
        }
    }

    /// Speaks up for silent answers and lets go of old ones, until the process stops.
    pub(crate) async fn watch(self) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let link = self.0.port.bus().link();
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
            self.look_after(now, again);
        }
    }

    /// One look at all answers; `again`: the bus came back since the last one.
    fn look_after(&self, now: Instant, again: bool) {
        let ended = self.newly_ended();
        let open = self.0.open.lock().clone();
        for held in open {
            let mut state = held.state.lock();
            if state.ended.is_some() {
                continue;
            }
            if again {
                state.released = state.released.map(|_| now);
            }
            let lost = state.waits.is_some_and(|since| now - since > ASKER_SILENT);
            if lost {
                state.waits = Some(now);
            }
            let next = (now - state.spoke >= state.pause).then_some(state.next);
            if next.is_some() {
                state.spoke = now;
                state.pause = doubled(state.pause, LONGEST_PAUSE);
            }
            let released = state.released;
            drop(state);
            if let Some(asker) = held.asker() {
                self.look_for(asker, lost);
            }
            if let Some(next) = next {
                self.post(&held, Frame::Alive, next);
                if released.is_some_and(|since| now - since > KEEP_RELEASED) {
                    self.forget(&held);
                }
            }
        }
        let gone = {
            let mut all = self.0.ended.lock();
            all.add(ended);
            if again {
                all.begin_anew(now);
            }
            all.let_go(now)
        };
        gone.iter().for_each(|held| self.forget(held));
    }

    /// Those that ended since the last look. They are looked after no more, nor are those that are forgotten.
    fn newly_ended(&self) -> Vec<(Instant, Arc<ReplyStream>)> {
        let mut ended = Vec::new();
        let mut open = self.0.open.lock();
        let all = self.0.streams.lock();
        open.retain(|held| {
            let known = all.get(&held.id);
            let known = known.is_some_and(|known| Arc::ptr_eq(known, held));
            match held.ended().filter(|_| known) {
                None => known,
                Some(since) => {
                    ended.push((since, held.clone()));
                    false
                }
            }
        });
        ended
    }

    /// An asker is looked for when it is met, so that its death can be told, and when a handler waits for it.
    fn look_for(&self, asker: &Arc<str>, lost: bool) {
        if !lost {
            self.0.askers.meet(asker);
            return;
        }
        let this = self.clone();
        let gone = move |inbox: &str| this.asker_died(inbox);
        self.0.askers.look_for(asker.clone(), gone);
    }

    /// Answers under way, ended ones left out.
    pub fn open_count(&self) -> usize {
        self.0
            .streams
            .lock()
            .values()
            .filter(|held| !held.has_ended())
            .count()
    }

    /// Tells an asker that its question is not taken, without holding it.
    pub fn refuse(&self, headers: &Headers, error: &Error) {
        let body = serde_json::to_vec(error).unwrap_or_default();
        self.reply(headers, Frame::Refuse, None, body.into());
    }

    /// Tells an asker that its answer goes on elsewhere: no part is missing, but wait.
    pub fn still_working(&self, headers: &Headers) {
        self.reply(headers, Frame::Alive, headers.seq, Bytes::new());
    }

    fn reply(&self, headers: &Headers, frame: Frame, seq: Option<u64>, body: Bytes) {
        let (Some(id), Some(reply_to)) = (&headers.id, &headers.reply_to) else {
            return;
        };
        let envelope = Envelope {
            headers: Arc::new(Headers {
                id: Some(id.clone()),
                from: Some(self.0.port.inbox().to_owned()),
                frame: Some(frame),
                seq,
                ..Headers::default()
            }),
            content_type: ContentType::Json,
            body,
            ..Envelope::default()
        };
        let to = Target::Inbox(reply_to.as_str().into());
        self.0.port.post(to, envelope);
    }
}

#[cfg(test)]
mod tests;
