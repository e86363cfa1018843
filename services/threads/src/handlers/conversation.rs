//! One message from outside and all that follows from it: listeners are asked, several at once but each thread in turn,
//! until nothing is in progress.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use futures::future::{AbortHandle, BoxFuture, abortable};
use futures::stream::{FuturesUnordered, StreamExt};
use tg_clients::listeners::{Listening, tell_ended};
use tg_mesh::fair::Share;
use tg_mesh::{Cx, Responder, warn_of};
use tg_schemas::msg::{ThreadMessage, ThreadsRequest, ThreadsResponse};
use tg_schemas::{Error, limits};
use tg_threads::{
    Caller, Delivery, Directory, Effect, External, Meta, Name, Outcome, ThreadId, console,
};
use tokio::sync::mpsc;

use super::pumping::{OnePump, Pumping, Wall};
use crate::engine::rows::{AGENT, AGENT_REQUEST};
use crate::engine::words;
use crate::error::ThreadsError;

/// Pieces that wait for whoever is outside; then listeners wait.
const PIECES: usize = 64;
/// Bytes of messages in an answer that is not streamed, at most.
const WHOLE: usize = limits::PART / 4;

/// Most messages for listeners that one from outside leads to: beyond that they cannot be delivered, which ends who goes
/// round and round.
const MOST: u64 = 10_000;
/// Bytes of payloads that listeners have or wait for, at most; beyond that a message cannot be delivered.
const HELD: usize = 8 << 20;

/// A message for a listener, with its number in the conversation.
type Numbered = (u64, Arc<Delivery>);
/// A piece of what a listener is about to say.
type Piece = (Name, String);

/// A message that the pump is not told the end of yet.
struct Open {
    delivery: Arc<Delivery>,
    size: usize,
    /// Its part of what all workspaces have for payloads.
    _share: Option<Share>,
    /// Its listener has it, and is stopped by this; one that waits, or is beyond the bounds, has none.
    stop: Option<AbortHandle>,
}

pub(super) struct Conversation<'a> {
    threads: &'a Pumping,
    cx: &'a Cx,
    pump: OnePump,
    directory: Arc<Directory>,
    caller: Caller,
    asked: &'a ThreadsRequest,
    out: Responder<ThreadsResponse>,
    /// Threads whose listener has a message now, and messages that wait for it.
    busy: HashSet<ThreadId>,
    waiting: HashMap<ThreadId, VecDeque<Numbered>>,
    work: FuturesUnordered<BoxFuture<'a, (Numbered, Outcome)>>,
    /// What is not told to the pump yet, by number.
    open: HashMap<u64, Open>,
    /// Bytes of their payloads.
    held: usize,
    given: u64,
    /// What the pump wants done, in order, and is not yet.
    effects: VecDeque<Effect>,
    pieces: (mpsc::Sender<Piece>, mpsc::Receiver<Piece>),
    messages: Vec<ThreadMessage>,
    size: usize,
}

impl<'a> Conversation<'a> {
    pub(super) fn new(
        (threads, cx, pump): (&'a Pumping, &'a Cx, OnePump),
        directory: Arc<Directory>,
        caller: Caller,
        asked: &'a ThreadsRequest,
        out: Responder<ThreadsResponse>,
    ) -> Self {
        Self {
            threads,
            cx,
            pump,
            directory,
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
            messages: Vec::new(),
            size: 0,
        }
    }

    pub(super) async fn run(mut self) -> Result<(), Error> {
        let asked = self.asked;
        let external = External {
            id: &self.cx.id,
            caller: self.caller.clone(),
            to: &asked.to,
            kind: &asked.r#type,
            raw: asked.payload.as_bytes(),
            meta: Meta {
                request_id: self.cx.request().unwrap_or_default().to_owned(),
                user_id: self.caller.principal.clone(),
                ..Meta::default()
            },
        };
        let directory = self.directory.clone();
        let (thread, effects) = {
            let mut pump = self.pump.lock();
            let idle = pump.cleanup(tg_threads::World::time(&Wall));
            let (thread, mut effects) = pump.external(&directory, external, &mut Wall);
            effects.push(Effect::Ended(idle));
            (thread, effects)
        };
        let thread = thread.to_string();
        if asked.streaming {
            let begun = ThreadsResponse {
                thread: thread.clone(),
                ..ThreadsResponse::default()
            };
            self.out.send(begun).await?;
        }
        self.effects.extend(effects);
        self.carry_out().await?;
        self.until_quiet().await?;
        let last = ThreadsResponse {
            thread,
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
                Some(((number, delivery), outcome)) = self.work.next() => {
                    // What it said comes before what follows from it.
                    while let Ok(piece) = self.pieces.1.try_recv() {
                        self.say(piece).await?;
                    }
                    let thread = delivery.metadata().thread_id;
                    let open = self.open.remove(&number);
                    self.held -= open.as_ref().map_or(0, |open| open.size);
                    let effects = self.returned(&delivery, outcome);
                    self.effects.extend(effects);
                    self.carry_out().await?;
                    // Until now its listener counted as busy, so that what waits goes before what is new.
                    if open.is_some_and(|open| open.stop.is_some()) {
                        self.next_on(thread);
                    }
                }
            }
        }
        Ok(())
    }

    fn returned(&self, delivery: &Delivery, outcome: Outcome) -> Vec<Effect> {
        let mut pump = self.pump.lock();
        pump.returned(&self.directory, delivery, outcome, &mut Wall)
    }

    async fn carry_out(&mut self) -> Result<(), Error> {
        while let Some(effect) = self.effects.pop_front() {
            match effect {
                Effect::Deliver(delivery) if delivery.envelope().to == Name::console_router() => {
                    let turn = console::route(&self.directory, &delivery);
                    let effects = self.returned(&delivery, Outcome::Turn(turn));
                    self.effects.extend(effects);
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
                    self.stop(&threads);
                    let threads: Vec<_> = threads.iter().map(ToString::to_string).collect();
                    tell_ended(self.cx, &self.caller.place.workspace, &threads).await;
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

    fn give(&mut self, delivery: Delivery) {
        let (thread, delivery) = (delivery.metadata().thread_id, Arc::new(delivery));
        let size = serde_json::to_vec(&delivery.envelope().payload).map_or(HELD, |body| body.len());
        self.given += 1;
        self.held += size;
        // What the system says is small, and says what came of what was refused.
        let told = delivery.envelope().from == Name::system();
        let user = Arc::from(self.caller.place.workspace.as_str());
        let share = self.threads.bodies.try_take(&user, (size >> 10).max(1));
        let much = self.held > HELD || share.is_none();
        let refused = self.given > MOST || (much && !told);
        let open = Open {
            delivery: delivery.clone(),
            size,
            _share: share,
            stop: None,
        };
        self.open.insert(self.given, open);
        let numbered = (self.given, delivery);
        if refused {
            let refused = std::future::ready((numbered, Outcome::Unserved));
            self.work.push(Box::pin(refused));
        } else if self.busy.insert(thread) {
            self.ask(numbered);
        } else {
            self.waiting.entry(thread).or_default().push_back(numbered);
        }
    }

    /// What listeners have on threads that ended is stopped, and what waits for them goes: nobody waits for what will be
    /// thrown away.
    fn stop(&mut self, ended: &[ThreadId]) {
        let ended: HashSet<_> = ended.iter().collect();
        for open in self.open.values() {
            if ended.contains(&open.delivery.metadata().thread_id)
                && let Some(stop) = &open.stop
            {
                stop.abort();
            }
        }
        for thread in ended {
            for (number, delivery) in self.waiting.remove(thread).into_iter().flatten() {
                self.held -= self.open.remove(&number).map_or(0, |open| open.size);
                let effects = self.returned(&delivery, Outcome::Cancelled);
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
        let id = format!("{}.{number}", self.cx.id);
        let pieces = self.pieces.0.clone();
        let (cx, patience) = (self.cx, self.threads.options.patience());
        let numbered = (number, delivery.clone());
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
                true => agent(&listening, id, &delivery, &pieces).await,
                false => listener(&listening, id, &delivery, &pieces).await,
            };
            outcome.unwrap_or_else(|error| words::broken(&error))
        });
        if let Some(open) = self.open.get_mut(&number) {
            open.stop = Some(stop);
        }
        self.work.push(Box::pin(async move {
            (numbered, asking.await.unwrap_or(Outcome::Cancelled))
        }));
    }

    async fn say(&mut self, (source, chunk): Piece) -> Result<(), Error> {
        if !self.asked.streaming {
            return Ok(());
        }
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
        let next = self.effects.drain(..).filter_map(|effect| match effect {
            Effect::Deliver(delivery) => Some(Arc::new(delivery)),
            _ => None,
        });
        let open = self.open.drain().map(|(_, open)| open.delivery);
        let mut pump = self.pump.lock();
        for delivery in open.chain(next) {
            pump.returned(&self.directory, &delivery, Outcome::Cancelled, &mut Wall);
        }
    }
}

async fn listener(
    listening: &Listening<'_>,
    id: String,
    delivery: &Delivery,
    pieces: &mpsc::Sender<Piece>,
) -> Result<Outcome, Error> {
    let name = &delivery.envelope().to;
    let mut answer = listening.give(name.as_str(), id, &words::request(delivery))?;
    while let Some(part) = answer.next().await {
        let mut part = part?;
        if !part.chunk.is_empty() && part.error.is_none() {
            let chunk = std::mem::take(&mut part.chunk);
            pieces.send((name.clone(), chunk)).await.ok();
        }
        if part.end_of_stream || part.error.is_some() {
            return Ok(words::outcome(part));
        }
    }
    Ok(Outcome::Unreadable(Vec::new()))
}

async fn agent(
    listening: &Listening<'_>,
    id: String,
    delivery: &Delivery,
    pieces: &mpsc::Sender<Piece>,
) -> Result<Outcome, Error> {
    let mut answer = listening.agent(id, &words::question(delivery))?;
    let mut text = String::new();
    while let Some(part) = answer.next().await {
        let part = part?;
        if let Some(error) = part.error {
            return Ok(Outcome::Failed(error.message));
        }
        if matches!(part.message_type.as_str(), "answer" | "final-answer")
            && !part.content.is_empty()
        {
            text.push_str(&part.content);
            let piece = (delivery.envelope().to.clone(), part.content);
            pieces.send(piece).await.ok();
        }
    }
    Ok(words::answered(&text))
}
