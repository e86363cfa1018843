//! Client side of a streamed request: sends the question, hands its parts to the reader in order, requests
//! retransmission, detects a dead server, and enforces the deadline.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tg_bus::bus::check_size;
use tg_bus::pause::{ONCE_UP, doubled};
use tg_bus::{
    BusError, Consume, Consumer, Delivery, Envelope, Link, PublishMode, Routed, Sink, Target,
};
use tg_schemas::{Class, Error, ErrorCode, Frame, Headers, Subscription, Topic};
use tg_telemetry::Span;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::control::broadcast_cancel;
use crate::deadline::Deadline;
use crate::exchange::{Exchange, Look, Next, Stands, Tell};
use crate::liveness::{COMING_BACK, Liveness};
use crate::port::Port;
use crate::reorder::Part;

/// A question that no queue wants is tried again this long (its asker is to hear within a second), ...
const UNSERVED: Duration = Duration::from_millis(700);
/// ... and this long after a reconnect, while servers attach again.
const UNSERVED_AFTER_RECONNECT: Duration = COMING_BACK;
/// How often silent and gapped answers are looked at.
const TICK: Duration = Duration::from_millis(100);
/// ... and this long when its server is known to have died: whoever could take over is attached already.
const UNSERVED_AFTER_DEATH: Duration = Duration::from_millis(250);
/// ... and this long when a queue had it, and has kept silent: its asker waited for that already.
const UNSERVED_AFTER_SILENCE: Duration = Duration::from_millis(100);
/// ... and this long when a queue had it and its work goes on elsewhere: whoever looks after processes has started a killed one again
/// by then.
const UNSERVED_TAKEN_OVER: Duration = Duration::from_secs(30);
/// Longest pause between two tries, and between those that go on for so long.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_TAKEN_OVER: Duration = Duration::from_millis(500);
/// A server that is silent this long is looked for: it would have sent a heartbeat if it had just begun.
const SUSPECT: Duration = Duration::from_millis(300);
/// After its deadline a question waits this long for the server's own last words.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// What [`RequestClient::next`] found.
pub(crate) enum Got {
    /// A part, and whether its number is the last.
    Part(Envelope, bool),
    /// The answer ends here.
    Failed(Error),
}

/// One question under way.
pub(crate) struct InFlight {
    id: Arc<str>,
    target: Target,
    question: Envelope,
    deadline: Deadline,
    gap: Duration,
    cancel: CancellationToken,
    detach: bool,
    taken_over: bool,
    plain: bool,
    wake: Notify,
    exchange: Mutex<Exchange>,
    /// Ends with the answer.
    span: Mutex<Span>,
}

/// All questions of this process. Cheap to clone.
#[derive(Clone)]
pub struct RequestClient(Arc<Inner>);

struct Inner {
    port: Port,
    in_flight: Mutex<HashMap<Arc<str>, Arc<InFlight>>>,
    /// Consumers of response topics, where answers are plain.
    responses: tokio::sync::Mutex<HashMap<Topic, Box<dyn Consumer>>>,
    servers: Liveness,
}

pub(crate) struct NewQuestion {
    pub(crate) id: Arc<str>,
    pub(crate) target: Target,
    pub(crate) question: Envelope,
    pub(crate) deadline: Deadline,
    pub(crate) gap: Duration,
    pub(crate) cancel: CancellationToken,
    pub(crate) detach: bool,
    pub(crate) taken_over: bool,
    pub(crate) plain: bool,
    pub(crate) span: Span,
}

impl InFlight {
    fn new(new: NewQuestion) -> Self {
        Self {
            id: new.id,
            target: new.target,
            question: new.question,
            deadline: new.deadline,
            gap: new.gap,
            cancel: new.cancel,
            detach: new.detach,
            taken_over: new.taken_over,
            plain: new.plain,
            wake: Notify::new(),
            exchange: Mutex::new(Exchange::new(new.plain)),
            span: Mutex::new(new.span),
        }
    }

    /// How long it is tried again while no queue wants it, and the longest pause between two tries. In a system of one process
    /// no other one comes.
    fn patience(&self, in_process: bool) -> (Duration, Duration) {
        let exchange = self.exchange.lock();
        let (died, queued) = (exchange.has_lost_its_server(), exchange.was_queued());
        let goes_on = self.taken_over && (self.detach || exchange.lacks_from() > 0);
        match (died, queued) {
            (false, false) => (UNSERVED, PAUSE),
            _ if goes_on && !in_process => (UNSERVED_TAKEN_OVER, PAUSE_TAKEN_OVER),
            (true, _) => (UNSERVED_AFTER_DEATH, PAUSE),
            (false, true) => (UNSERVED_AFTER_SILENCE, PAUSE),
        }
    }

    /// Waits before it is tried again; ends early when an answer, the deadline or a cancel is quicker. `true`: an answer was.
    async fn is_answered_within(&self, pause: Duration) -> bool {
        let mut pause = std::pin::pin!(tokio::time::sleep(pause));
        loop {
            tokio::select! {
                () = &mut pause => return false,
                () = self.wake.notified() => {
                    if self.exchange.lock().has_news() {
                        self.wake.notify_one();
                        return true;
                    }
                }
                () = self.deadline.reached() => return false,
                () = self.cancel.cancelled() => return false,
            }
        }
    }

    /// The answer is over; `failed` says what kind of failure it was.
    fn over(&self, failed: Option<ErrorCode>) {
        let mut span = self.span.lock();
        if let Some(code) = failed {
            span.fail(code.as_str());
        }
        span.end();
    }
}

impl RequestClient {
    pub(crate) fn new(port: Port) -> Self {
        Self(Arc::new(Inner {
            servers: Liveness::new(port.clone()),
            port,
            in_flight: Mutex::default(),
            responses: tokio::sync::Mutex::default(),
        }))
    }

    pub(crate) fn open(&self, new: NewQuestion) -> Arc<InFlight> {
        let question = Arc::new(InFlight::new(new));
        let mut all = self.0.in_flight.lock();
        match all.insert(question.id.clone(), question.clone()) {
            // The answer goes to one reader only.
            Some(earlier) => {
                earlier.exchange.lock().superseded();
                earlier.wake.notify_one();
            }
            None => metrics::gauge!("tg_questions_open").increment(1.0),
        }
        question
    }

    /// Sends a question whose answer goes to somebody else's inbox.
    pub(crate) async fn forward(&self, new: NewQuestion) -> Result<(), Error> {
        let question = Arc::new(InFlight::new(new));
        let sent = self.send_question(&question).await;
        question.over(sent.as_ref().err().map(Error::code));
        sent
    }

    /// The answer is over, with this failure if it is one.
    pub(crate) fn ended(&self, question: &InFlight, failed: Option<ErrorCode>) {
        question.over(failed);
        self.forget(question);
    }

    /// The answer is over, or nobody wants it. `false` if it was forgotten before; another question under its id stays.
    fn forget(&self, question: &InFlight) -> bool {
        let mut all = self.0.in_flight.lock();
        let known = all
            .get(&question.id)
            .is_some_and(|known| std::ptr::eq(&**known, question));
        if known {
            all.remove(&question.id);
            metrics::gauge!("tg_questions_open").decrement(1.0);
        }
        known
    }

    /// The reader went away: stop whoever works on it. What is detached is stopped only if it was cancelled in so
    /// many words.
    pub(crate) fn abandon(&self, question: &InFlight) {
        question.over(None);
        // Whoever works on the id works for another question that was asked under it.
        if !self.forget(question) {
            return;
        }
        let asked = question.exchange.lock().was_asked();
        let stops = !question.detach || question.cancel.is_cancelled();
        if asked && stops && !question.plain {
            broadcast_cancel(&self.0.port, question.id.clone(), question.detach);
        }
    }

    /// How far the question with this id is. `None`: it is not of this process, over, or nobody can know.
    pub fn stands(&self, id: &str) -> Option<Stands> {
        let question = self.0.in_flight.lock().get(id).cloned()?;
        question.exchange.lock().stands(Instant::now())
    }

    /// Questions waiting for an answer.
    pub fn open_count(&self) -> usize {
        self.0.in_flight.lock().len()
    }

    /// The next part, or how the question ended.
    pub(crate) async fn next(&self, question: &Arc<InFlight>) -> Got {
        let waiting_since = Instant::now();
        loop {
            let notified = question.wake.notified();
            let next = question.exchange.lock().read();
            match next {
                Next::Part((envelope, last), credit) => {
                    self.tell(&question.id, credit);
                    return Got::Part(envelope, last);
                }
                Next::Failed(error) => return Got::Failed(error),
                Next::Ask => {
                    if let Err(error) = self.send_question(question).await {
                        return Got::Failed(error);
                    }
                    continue;
                }
                Next::Wait => {}
            }
            let silence = question.gap.saturating_sub(waiting_since.elapsed());
            let ended = tokio::select! {
                () = notified => continue,
                () = question.cancel.cancelled() => Error::new(ErrorCode::Cancelled, "cancelled"),
                () = question.deadline.reached() => {
                    if let Some((envelope, last)) = last_words(question).await {
                        return Got::Part(envelope, last);
                    }
                    Error::new(ErrorCode::Timeout, "the deadline has passed")
                }
                () = tokio::time::sleep(silence) => {
                    Error::new(ErrorCode::Timeout, "no answer in time")
                }
            };
            question.over(Some(ended.code()));
            self.abandon(question);
            return Got::Failed(ended);
        }
    }

    async fn send_question(&self, question: &Arc<InFlight>) -> Result<(), Error> {
        // A reader that goes away in the middle leaves the question unasked.
        let _asking = Asking(question);
        let port = &self.0.port;
        let mut link = port.bus().link();
        let started = Instant::now();
        let (mut patience, most) = question.patience(port.bus().in_process());
        let mut pause = Duration::from_millis(20);
        loop {
            if question.cancel.is_cancelled() {
                return Err(Error::new(ErrorCode::Cancelled, "cancelled"));
            }
            if question.deadline.passed() {
                return Err(Error::new(ErrorCode::Timeout, "the deadline has passed"));
            }
            match self.publish(question).await? {
                Published::Answered => return Ok(()),
                Published::Interrupted => {}
                Published::Sent(Ok(Routed::Queued)) => {
                    question.exchange.lock().asked(Instant::now());
                    return Ok(());
                }
                Published::Sent(Ok(Routed::Unroutable)) => {
                    if port.reconnected_within(UNSERVED_AFTER_RECONNECT) {
                        patience = patience.max(UNSERVED_AFTER_RECONNECT);
                    }
                    let left = patience.saturating_sub(started.elapsed());
                    if left.is_zero() {
                        return Err(question.exchange.lock().unserved());
                    }
                    if question.is_answered_within(pause.min(left)).await {
                        return Ok(());
                    }
                    pause = doubled(pause, most);
                }
                Published::Sent(Err(BusError::Down)) => {
                    tokio::select! {
                        up = link.wait_for(|link| !matches!(link, Link::Down)) => {
                            if up.is_err() {
                                return Err(BusError::Closed.into());
                            }
                        }
                        () = question.deadline.reached() => {}
                        () = question.cancel.cancelled() => {}
                    }
                    tokio::time::sleep(ONCE_UP).await;
                }
                Published::Sent(Err(other)) => return Err(other.into()),
            }
        }
    }

    /// Publishes the question once; ends early when an answer, the deadline or a cancel is quicker.
    async fn publish(&self, question: &InFlight) -> Result<Published, Error> {
        if question.plain
            && let Target::Topic(topic) = &question.target
            && let Err(fault) = self.listen(&topic.with_class(Class::Response)).await
            && fault != BusError::Down
        {
            return Err(fault.into());
        }
        let mut envelope = question.question.clone();
        let passed_on = question.exchange.lock().lacks_from();
        if passed_on > 0 {
            Arc::make_mut(&mut envelope.headers).seq = Some(passed_on);
        }
        let Some(envelope) = self.pass_near(question, envelope).await else {
            return Ok(Published::Sent(Ok(Routed::Queued)));
        };
        let publish = self
            .0
            .port
            .publish(&question.target, envelope, PublishMode::Confirmed);
        let mut publish = std::pin::pin!(publish);
        loop {
            tokio::select! {
                sent = &mut publish => return Ok(Published::Sent(sent)),
                // The answer can be quicker than the confirmation.
                () = question.wake.notified() => {
                    if question.exchange.lock().has_news() {
                        question.wake.notify_one();
                        return Ok(Published::Answered);
                    }
                }
                () = question.deadline.reached() => return Ok(Published::Interrupted),
                () = question.cancel.cancelled() => return Ok(Published::Interrupted),
            }
        }
    }

    /// Hands the question to the server of this process, where no other process serves. Otherwise it comes back.
    async fn pass_near(&self, question: &InFlight, envelope: Envelope) -> Option<Envelope> {
        let port = &self.0.port;
        let Target::Topic(topic) = &question.target else {
            return Some(envelope);
        };
        // Looked up first: most questions have none, and need no look at the link and the length.
        let Some(server) = port.near().only(topic).filter(|_| !question.plain) else {
            return Some(envelope);
        };
        // Nothing else waits here: who asks much lets others run, too. Not afterwards, as a question that was handed over is asked.
        tokio::task::consume_budget().await;
        let link = *port.bus().link().borrow();
        // What a bus refuses as too long is refused here, too.
        let fits = check_size(&envelope, port.bus().max_body()).is_ok();
        match matches!(link, Link::Up { .. }) && fits {
            true => server.pass(envelope),
            false => Some(envelope),
        }
    }

    /// Listens on a response topic before anything is asked. Once per topic and process.
    async fn listen(&self, topic: &Topic) -> Result<(), BusError> {
        let mut open = self.0.responses.lock().await;
        if open.contains_key(topic) {
            return Ok(());
        }
        let subscription = Subscription::service(topic.clone(), "responses");
        let sink = Arc::new(Responses(Arc::downgrade(&self.0)));
        let how = Consume::prefetch(256);
        let consumer = self.0.port.bus().consume(&subscription, how, sink).await?;
        open.insert(topic.clone(), consumer);
        Ok(())
    }

    /// A frame for one of our questions came into the inbox (or a response topic).
    pub fn deliver(&self, envelope: Envelope) {
        let Some(id) = envelope.headers.id.as_deref() else {
            return;
        };
        let Some(question) = self.0.in_flight.lock().get(id).cloned() else {
            self.nobody_waits(&envelope.headers);
            return;
        };
        let now = Instant::now();
        let mut exchange = question.exchange.lock();
        if envelope.headers.frame == Some(Frame::Where) {
            let from = envelope.headers.from.as_deref();
            let tell = from.and_then(|from| exchange.take_over(from.into(), now));
            drop(exchange);
            self.tell(&question.id, tell);
            return;
        }
        let heard = exchange.hear(envelope, now);
        drop(exchange);
        self.tell(&question.id, heard.tell);
        if heard.wake {
            question.wake.notify_one();
        }
    }

    fn nobody_waits(&self, headers: &Headers) {
        let wanted = match headers.frame {
            Some(Frame::Part | Frame::Alive) => !headers.detach,
            Some(Frame::Where) => true,
            _ => false,
        };
        if let (true, Some(from)) = (wanted, headers.from.as_deref()) {
            let tell = Tell {
                to: from.into(),
                frame: Frame::Cancel,
                seq: 0,
            };
            self.tell(headers.id.as_deref().unwrap_or_default(), Some(tell));
        }
    }

    /// Sends a control frame to a server, without waiting.
    fn tell(&self, id: &str, tell: Option<Tell>) {
        let Some(tell) = tell else { return };
        let headers = Headers {
            id: Some(id.to_owned()),
            from: Some(self.0.port.inbox().to_owned()),
            frame: Some(tell.frame),
            seq: Some(tell.seq),
            ..Headers::default()
        };
        let envelope = Envelope {
            headers: Arc::new(headers),
            ..Envelope::default()
        };
        self.0.port.post(Target::Inbox(tell.to), envelope);
    }

    /// Looks after gaps and silence until the process stops.
    pub(crate) async fn watch(self) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let link = self.0.port.bus().link();
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
            let all: Vec<_> = self.0.in_flight.lock().values().cloned().collect();
            for question in all {
                let now = Instant::now();
                let (look, silent) = {
                    let mut exchange = question.exchange.lock();
                    (exchange.look(now, reconnected), exchange.silent_server(now))
                };
                if let Some((server, silence)) = silent
                    && (silence > SUSPECT || !self.0.servers.has_found(&server))
                {
                    let this = self.clone();
                    let gone = move |server: &str| this.server_died(server);
                    self.0.servers.look_for(server, gone);
                }
                match look {
                    Look::Fine => {}
                    Look::Tell(tell) => self.tell(&question.id, Some(tell)),
                    Look::AskAgain => {
                        metrics::counter!("tg_questions_asked_again_total").increment(1);
                        question.wake.notify_one();
                    }
                }
            }
        }
    }

    /// The questions of a server that is gone are asked again.
    fn server_died(&self, server: &str) {
        let all: Vec<_> = self.0.in_flight.lock().values().cloned().collect();
        for question in all {
            if question.exchange.lock().server_died(server) {
                metrics::counter!("tg_questions_asked_again_total").increment(1);
                question.wake.notify_one();
            }
        }
    }

    /// Lets go of what the bus delivers to.
    pub(crate) async fn close(&self) {
        self.0.responses.lock().await.clear();
    }
}

enum Published {
    Sent(Result<Routed, BusError>),
    /// The answer was quicker.
    Answered,
    /// The deadline, or a cancel.
    Interrupted,
}

/// While it lives the question is being published.
struct Asking<'a>(&'a InFlight);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.exchange.lock().not_asked();
    }
}

/// The server decides expiry: a moment is left for its own last words.
async fn last_words(question: &InFlight) -> Option<Part> {
    let notified = question.wake.notified();
    let ready = || question.exchange.lock().take_ready();
    if let Some(part) = ready() {
        return Some(part);
    }
    let _ = tokio::time::timeout(LAST_WORDS, notified).await;
    ready()
}

/// Takes what comes on a response topic.
struct Responses(std::sync::Weak<Inner>);

impl Sink for Responses {
    fn deliver(&self, mut delivery: Delivery) {
        let envelope = std::mem::take(&mut delivery.envelope);
        if let Some(inner) = self.0.upgrade() {
            RequestClient(inner).deliver(envelope);
        }
        delivery.ack();
    }
}

#[cfg(test)]
mod tests;
