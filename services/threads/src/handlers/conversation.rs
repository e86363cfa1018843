//! One message from outside and all that follows from it: listeners are asked, several at once but each thread in turn,
//! until nothing is in progress.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use futures::future::{BoxFuture, abortable};
use futures::stream::{FuturesUnordered, StreamExt};
use tg_clients::listeners::Listening;
use tg_mesh::fair::Share;
use tg_mesh::{Cx, Responder, clock, warn_of};
use tg_schemas::msg::{ThreadMessage, ThreadsRequest, ThreadsResponse};
use tg_schemas::{Error, limits};
use tg_threads::{
    Caller, Checked, Delivery, Effect, External, Meta, Name, Outcome, ThreadId, console,
};
use tokio::sync::mpsc;

use super::pumping::{Pumping, notify, report};
use super::running::Turn;
use super::workspaces::OneWorkspace;
use crate::engine::rows::{AGENT, AGENT_REQUEST, Listeners};
use crate::engine::{ids, words};
use crate::error::ThreadsError;

/// Pieces that wait for whoever is outside; then listeners wait.
const PIECES: usize = 64;
/// Bytes of messages in an answer that is not streamed, at most.
const WHOLE: usize = limits::PART / 4;

/// Most messages for listeners that one from outside leads to: beyond that they cannot be delivered, which ends who goes
/// round and round.
const MOST: u64 = 10_000;
/// Bytes that listeners have or wait for, at most: payloads, and what agents read of their peers. Beyond that a message cannot be
/// delivered.
const HELD: usize = 8 << 20;

/// A message for a listener, with its number in the conversation.
type Numbered = (u64, Arc<Delivery>);
/// What the outside caller gets before a listener returns.
enum Piece {
    /// A piece of the listener's answer.
    Chunk(Name, String),
    /// A message of the system.
    Message(ThreadMessage),
}

/// A message whose end has not been reported to the pump.
struct Open {
    delivery: Arc<Delivery>,
    size: usize,
    /// Its parts of what all workspaces have for payloads.
    shares: Vec<Share>,
    /// Its thread is busy with it. Not so while it waits, or where it is beyond the bounds.
    has_thread: bool,
    /// Its listener has it: the number of the turn.
    turn: Option<u64>,
}

pub(super) struct Conversation<'a> {
    threads: &'a Pumping,
    cx: &'a Cx,
    workspace: OneWorkspace,
    listeners: Arc<Listeners>,
    caller: Caller,
    asked: &'a ThreadsRequest,
    out: Responder<ThreadsResponse>,
    /// Threads whose listener has a message now, and messages that wait for it.
    busy: HashSet<ThreadId>,
    waiting: HashMap<ThreadId, VecDeque<Numbered>>,
    work: FuturesUnordered<BoxFuture<'a, (Numbered, Checked)>>,
    /// Messages whose end has not been reported to the pump, by number.
    open: HashMap<u64, Open>,
    /// Bytes that they take.
    held: usize,
    given: u64,
    /// What the pump wants done, in order, and is not yet.
    effects: VecDeque<Effect>,
    pieces: (mpsc::Sender<Piece>, mpsc::Receiver<Piece>),
    /// The thread that whoever is outside knows.
    thread: String,
    messages: Vec<ThreadMessage>,
    size: usize,
}

impl<'a> Conversation<'a> {
    pub(super) fn new(
        (threads, cx, workspace): (&'a Pumping, &'a Cx, OneWorkspace),
        listeners: Arc<Listeners>,
        caller: Caller,
        asked: &'a ThreadsRequest,
        out: Responder<ThreadsResponse>,
    ) -> Self {
        Self {
            threads,
            cx,
            workspace,
            listeners,
            caller,
            asked,
            out,
            busy: HashSet::new(),
            waiting: HashMap::new(),
            work: FuturesUnordered::new(),
            open: HashMap::new(),
            held: 0,
            given: 0,
            effects: VecDeque::new(),
            pieces: mpsc::channel(PIECES),
            thread: String::new(),
            messages: Vec::new(),
            size: 0,
        }
    }

    pub(super) async fn run(mut self) -> Result<(), Error> {
        let asked = self.asked;
        let admitted = self.threads.admitted(self.cx, &self.listeners, asked);
        let external = External {
            id: &self.cx.id,
            caller: self.caller.clone(),
            admitted: admitted.await?,
            raw: asked.payload.as_bytes(),
            meta: Meta {
                request_id: self.cx.request().unwrap_or_default().to_owned(),
                user_id: self.caller.principal.clone(),
                ..Meta::default()
            },
        };
        let (thread, effects) = self.workspace.lock().external(external);
        self.thread = thread.to_string();
        if asked.streaming {
            let begun = ThreadsResponse {
                thread: self.thread.clone(),
                ..ThreadsResponse::default()
            };
            self.out.send(begun).await?;
        }
        self.effects.extend(effects);
        self.carry_out().await?;
        self.until_quiet().await?;
        let last = ThreadsResponse {
            thread: std::mem::take(&mut self.thread),
            messages: std::mem::take(&mut self.messages),
            end_of_stream: true,
            ..ThreadsResponse::default()
        };
        self.out.send(last).await
    }

    async fn until_quiet(&mut self) -> Result<(), Error> {
        while !self.work.is_empty() {
            tokio::select! {
                biased;
                Some(piece) = self.pieces.1.recv() => self.say(piece).await?,
                Some(((number, delivery), checked)) = self.work.next() => {
                    // What it said comes before what follows from it.
                    while let Ok(piece) = self.pieces.1.try_recv() {
                        self.say(piece).await?;
                    }
                    let thread = delivery.metadata().thread_id;
                    let open = self.close(number);
                    let effects = self.returned(&delivery, checked);
                    self.effects.extend(effects);
                    self.carry_out().await?;
                    // Until now its listener counted as busy, so that what waits goes before what is new.
                    if open.is_some_and(|open| open.has_thread) {
                        self.next_on(thread);
                    }
                }
            }
        }
        Ok(())
    }

    /// A message is over, and takes nothing any more.
    fn close(&mut self, number: u64) -> Option<Open> {
        let open = self.open.remove(&number)?;
        self.held -= open.size;
        if let Some(turn) = open.turn {
            let thread = open.delivery.metadata().thread_id;
            self.workspace.lock().running.remove(thread, turn);
        }
        Some(open)
    }

    fn returned(&self, delivery: &Delivery, checked: Checked) -> Vec<Effect> {
        if checked.forwards() {
            // Its own tree stays anyway: the message counts as in progress until the pump has it back.
            self.threads.make_room(self.cx, None);
        }
        let mut workspace = self.workspace.lock();
        workspace.returned(&self.listeners.directory, delivery, checked)
    }

    fn cancelled(&self, delivery: &Delivery) -> Vec<Effect> {
        let checked = Outcome::Cancelled.checked(&self.listeners.directory, delivery);
        self.returned(delivery, checked)
    }

    async fn carry_out(&mut self) -> Result<(), Error> {
        while let Some(effect) = self.effects.pop_front() {
            match effect {
                Effect::Deliver(delivery) if delivery.envelope().to == Name::console_router() => {
                    self.route(delivery);
                }
                Effect::Deliver(delivery) => self.give(delivery),
                Effect::Door(envelope) => {
                    if envelope.kind.as_str() == "huh" && !self.asked.console {
                        return Err(ThreadsError::Huh.into());
                    }
                    self.show(words::message(envelope)).await?;
                }
                Effect::Ended(threads) if threads.is_empty() => {}
                Effect::Ended(threads) => {
                    self.drop_waiting(&threads);
                    notify(&self.cx.mesh, &self.caller.place.workspace, &threads).await;
                }
                Effect::Note(note) => warn_of!(
                    self.cx,
                    thread = %note.thread,
                    sender = %note.sender,
                    wanted = %note.wanted,
                    why = %note.why,
                    "a message between listeners came to nothing"
                ),
            }
        }
        Ok(())
    }

    /// Notes a message of which the pump has no outcome yet.
    fn enter(&mut self, delivery: Delivery) -> Numbered {
        let delivery = Arc::new(delivery);
        self.given += 1;
        let open = Open {
            delivery: delivery.clone(),
            size: 0,
            shares: Vec::new(),
            has_thread: false,
            turn: None,
        };
        self.open.insert(self.given, open);
        (self.given, delivery)
    }

    /// The router of the console is part of the system: what it makes of a line is checked as what a listener returned.
    fn route(&mut self, delivery: Delivery) {
        let turn = console::route(&self.listeners.directory, &delivery);
        let numbered = self.enter(delivery);
        self.check(numbered, Outcome::Turn(turn));
    }

    fn give(&mut self, delivery: Delivery) {
        let thread = delivery.metadata().thread_id;
        let size = serde_json::to_vec(&delivery.envelope().payload).map_or(HELD, |body| body.len());
        let numbered = self.enter(delivery);
        let number = numbered.0;
        let fits = self.takes(number, size);
        if number > MOST || !fits {
            self.refuse(numbered);
        } else if self.busy.insert(thread) {
            self.ask(numbered);
        } else {
            self.waiting.entry(thread).or_default().push_back(numbered);
        }
    }

    /// Counts what a message takes besides what was counted; whether there is room for it.
    fn takes(&mut self, number: u64, size: usize) -> bool {
        let workspace = &self.caller.place.workspace;
        let share = self.threads.bodies.try_take(workspace, size);
        self.held += size;
        let fits = self.held <= HELD && share.is_some();
        let Some(open) = self.open.get_mut(&number) else {
            return false;
        };
        open.size += size;
        open.shares.extend(share);
        // What the system sends is small, and reports what came of what was refused.
        fits || open.delivery.envelope().from == Name::system()
    }

    fn refuse(&mut self, numbered: Numbered) {
        self.check(numbered, Outcome::Unserved);
    }

    fn check(&mut self, numbered: Numbered, outcome: Outcome) {
        self.work_on(numbered, std::future::ready(outcome));
    }

    /// What comes of a message goes to the pump once it is checked.
    fn work_on(&mut self, numbered: Numbered, outcome: impl Future<Output = Outcome> + Send + 'a) {
        let (threads, cx, listeners) = (self.threads, self.cx, self.listeners.clone());
        self.work.push(Box::pin(async move {
            let outcome = outcome.await;
            let checked = threads.checked(cx, &listeners, &numbered.1, outcome).await;
            (numbered, checked)
        }));
    }

    /// What waits for listeners on threads that ended goes: nobody waits for what will be dropped.
    fn drop_waiting(&mut self, ended: &[ThreadId]) {
        for thread in ended {
            for (number, delivery) in self.waiting.remove(thread).into_iter().flatten() {
                self.close(number);
                let effects = self.cancelled(&delivery);
                self.effects.extend(effects);
            }
        }
    }

    fn next_on(&mut self, thread: ThreadId) {
        let next = self.waiting.get_mut(&thread).and_then(VecDeque::pop_front);
        match next {
            Some(numbered) => self.ask(numbered),
            None => {
                self.waiting.remove(&thread);
                self.busy.remove(&thread);
            }
        }
    }

    /// A message asked again, as its server died, has the same id: a listener that still has it goes on with it.
    fn ask(&mut self, (number, delivery): Numbered) {
        if let Some(open) = self.open.get_mut(&number) {
            open.has_thread = true;
        }
        let usage = self.listeners.directory.usage(&delivery.envelope().to);
        let size = usage.as_ref().map_or(0, String::len);
        if size > 0 && !self.takes(number, size) {
            return self.refuse((number, delivery));
        }
        let asked = delivery.envelope().to.clone();
        let id = ids::of_message(&self.cx.id, number, asked.as_str());
        let asked_as = id.clone();
        let (pieces, outside) = (self.pieces.0.clone(), self.thread.clone());
        let (cx, patience) = (self.cx, self.threads.options.patience());
        // The outside caller granted tools to its own requests only: for a listener's request the agent asks the caller first.
        let grant: &[String] = match is_from_outside(&delivery) {
            true => &self.asked.grant,
            false => &[],
        };
        let numbered = (number, delivery.clone());
        let thread = delivery.metadata().thread_id;
        let (asking, stop) = abortable(async move {
            let place = delivery.place().clone();
            let listening = Listening {
                cx,
                workspace: &place.workspace,
                flow: &place.flow,
                patience,
            };
            let own = delivery.envelope().to.as_str() == AGENT
                && delivery.envelope().kind.as_str() == AGENT_REQUEST;
            let outcome = match own {
                true => agent(&listening, (id, &outside), (&delivery, grant), &pieces).await,
                false => listener(&listening, id, (&delivery, usage), &pieces).await,
            };
            outcome.unwrap_or_else(|error| words::broken(&error))
        });
        let turn = {
            let mut workspace = self.workspace.lock();
            // Another message from outside may have ended the thread.
            if !workspace.registry().is_live(thread) {
                stop.abort();
            }
            let turn = Turn {
                listener: asked,
                id: asked_as,
                since: clock::millis(),
                stop,
            };
            workspace.running.add(thread, turn)
        };
        if let Some(open) = self.open.get_mut(&number) {
            open.turn = Some(turn);
        }
        self.work_on(numbered, async move {
            asking.await.unwrap_or(Outcome::Cancelled)
        });
    }

    async fn say(&mut self, piece: Piece) -> Result<(), Error> {
        let (source, chunk) = match piece {
            Piece::Message(message) => return self.show(message).await,
            Piece::Chunk(..) if !self.asked.streaming => return Ok(()),
            Piece::Chunk(source, chunk) => (source, chunk),
        };
        let piece = ThreadsResponse {
            source: source.to_string(),
            chunk,
            ..ThreadsResponse::default()
        };
        self.out.send(piece).await
    }

    async fn show(&mut self, message: ThreadMessage) -> Result<(), Error> {
        if self.asked.streaming {
            let part = ThreadsResponse {
                messages: vec![message],
                ..ThreadsResponse::default()
            };
            return self.out.send(part).await;
        }
        self.size += serde_json::to_vec(&message.payload).map_or(WHOLE, |body| body.len() + 512);
        if self.size > WHOLE {
            return Err(ThreadsError::Large.into());
        }
        self.messages.push(message);
        Ok(())
    }
}

impl Drop for Conversation<'_> {
    /// Whoever asked is gone: what is in progress is so no more, and neither is what would have been next.
    fn drop(&mut self) {
        let (mut next, mut ended) = (Vec::new(), Vec::new());
        for effect in self.effects.drain(..) {
            match effect {
                Effect::Deliver(delivery) => next.push(Arc::new(delivery)),
                Effect::Ended(threads) => ended.extend(threads),
                Effect::Door(_) | Effect::Note(_) => {}
            }
        }
        let open: Vec<u64> = self.open.keys().copied().collect();
        let open = open.into_iter().filter_map(|number| self.close(number));
        let open: Vec<_> = open.map(|open| open.delivery).collect();
        for delivery in open.into_iter().chain(next) {
            for effect in self.cancelled(&delivery) {
                if let Effect::Ended(threads) = effect {
                    ended.extend(threads);
                }
            }
        }
        if !ended.is_empty() {
            report(self.cx, vec![(self.cx.workspace_key(), ended)]);
        }
    }
}

/// Whether whoever is outside wrote a message, at the console or elsewhere, and no listener did.
fn is_from_outside(delivery: &Delivery) -> bool {
    let outside = [Name::gateway(), Name::console(), Name::console_router()];
    outside.contains(&delivery.envelope().from)
}

async fn listener(
    listening: &Listening<'_>,
    id: String,
    (delivery, usage): (&Delivery, Option<String>),
    pieces: &mpsc::Sender<Piece>,
) -> Result<Outcome, Error> {
    let name = &delivery.envelope().to;
    let mut answer = listening.give(name.as_str(), id, &words::request(delivery, usage))?;
    while let Some(part) = answer.next().await {
        let mut part = part?;
        if !part.chunk.is_empty() && part.error.is_none() {
            let chunk = std::mem::take(&mut part.chunk);
            let piece = Piece::Chunk(name.clone(), chunk);
            pieces.send(piece).await.ok();
        }
        if part.end_of_stream || part.error.is_some() {
            return Ok(words::outcome(part));
        }
    }
    Ok(Outcome::Unreadable(Vec::new()))
}

/// Asks the flow's agent. If the agent asks before it uses a tool, the outside caller gets that question on the thread that it knows.
async fn agent(
    listening: &Listening<'_>,
    (id, outside): (String, &str),
    (delivery, grant): (&Delivery, &[String]),
    pieces: &mpsc::Sender<Piece>,
) -> Result<Outcome, Error> {
    let mut answer = listening.agent(id.clone(), &words::question(delivery, grant))?;
    let mut text = String::new();
    while let Some(part) = answer.next().await {
        let mut part = part?;
        if let Some(error) = part.error.take() {
            return Ok(Outcome::Failed(error.message));
        }
        let piece = match part.message_type.as_str() {
            "answer" | "final-answer" if !part.content.is_empty() => {
                text.push_str(&part.content);
                Piece::Chunk(delivery.envelope().to.clone(), part.content)
            }
            words::CONFIRM => Piece::Message(words::asks(outside, &id, &part)),
            _ => continue,
        };
        pieces.send(piece).await.ok();
    }
    Ok(words::answered(&text))
}
