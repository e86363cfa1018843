//! The pump: it alone writes envelopes. It takes a message, checks it, gives it to a handler, and makes what the handler
//! returns into the next messages. It does nothing itself: whoever runs it carries its effects out, in order.

use crate::directory::{Admitted, Directory};
use crate::envelope::{Caller, Delivery, Envelope, Meta, Metadata, Place};
use crate::id::{ThreadId, World};
use crate::listener::{Kind, Listener};
use crate::name::Name;
use crate::payload::{Payload, SystemError};
use crate::registry::{Limits, Registry, Room};
use crate::turn::{Checked, Effect, Note, Returned, Sending};

/// Messages in a row that could not be processed, after which a turn ends.
const HUHS: u32 = 3;

/// A message from outside.
#[derive(Debug, Clone)]
pub struct External<'a> {
    /// Its id.
    pub id: &'a str,
    /// Who sends it.
    pub caller: Caller,
    /// As a listener takes it, if one does.
    pub admitted: Option<Admitted>,
    /// Its body as it came.
    pub raw: &'a [u8],
    /// What is inherited.
    pub meta: Meta,
}

/// The pump with all of its threads. One that exists has booted.
#[derive(Debug)]
pub struct Pump {
    registry: Registry,
    /// Messages in a row that a listener may have from itself or from the system.
    iterations: u32,
}

impl Pump {
    /// Makes the root thread and the one boot message, before anybody can send anything.
    pub fn start(
        (mesh, place): (&Name, &Place),
        (limits, room, iterations): (Limits, Room, u32),
        (timestamp, listeners): (&str, usize),
        world: &mut dyn World,
    ) -> (Self, Delivery) {
        let mut registry = Registry::new(limits, room);
        let root = registry.initialize_root(mesh, world);
        let payload = Payload::boot(mesh, timestamp, listeners);
        let envelope = Envelope {
            id: root.to_string(),
            thread: root,
            from: Name::system(),
            to: Name::boot(),
            kind: payload.kind,
            workspace: place.workspace.clone(),
            meta: Meta::default(),
            payload: payload.body,
        };
        let metadata = Metadata {
            thread_id: root,
            since: world.time(),
            from_id: Name::system(),
            own_name: None,
            is_self_call: false,
        };
        let boot = Delivery {
            envelope,
            metadata,
            place: place.clone(),
            tree: root,
            parent: None,
        };
        (
            Self {
                registry,
                iterations,
            },
            boot,
        )
    }

    /// The threads, for who may look into everything.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Takes a message from outside. The thread is the one under which its sender goes on.
    pub fn external(
        &mut self,
        external: External<'_>,
        world: &mut dyn World,
    ) -> (ThreadId, Vec<Effect>) {
        let caller = &external.caller;
        let answer = |thread, payload: Payload| {
            let (from, to) = (Name::system(), caller.initiator.clone());
            let workspace = caller.place.workspace.clone();
            let envelope = Envelope {
                id: external.id.to_owned(),
                thread,
                from,
                to,
                kind: payload.kind,
                workspace,
                meta: external.meta.clone(),
                payload: payload.body,
            };
            (thread, vec![Effect::Door(envelope)])
        };
        let Some(Admitted { listener, payload }) = external.admitted else {
            let thread = self.registry.id_for(caller, world);
            return answer(thread, Payload::huh(external.raw));
        };
        let registered = self.registry.register(caller, &listener.name, world);
        let mut effects = Vec::new();
        self.ended(Registry::pushed_out, &mut effects);
        let Ok(thread) = registered else {
            let thread = self.registry.id_for(caller, world);
            let (thread, told) = answer(thread, Payload::system_error(SystemError::Routing));
            effects.extend(told);
            return (thread, effects);
        };
        let sent = Sent {
            id: external.id,
            meta: &external.meta,
            place: &caller.place,
            from: caller.initiator.clone(),
            thread,
            anew: true,
        };
        self.deliver(&listener, sent, payload, &mut effects);
        (thread, effects)
    }

    /// What a handler made of a message. Of a thread that ended meanwhile nothing follows.
    pub fn returned(
        &mut self,
        directory: &Directory,
        delivery: &Delivery,
        Checked(returned): Checked,
        world: &mut dyn World,
    ) -> Vec<Effect> {
        let thread = delivery.envelope.thread;
        if let Some(tree) = self.registry.tree_mut(delivery.tree) {
            tree.in_flight = tree.in_flight.saturating_sub(1);
            tree.touched = world.time();
        }
        let mut effects = Vec::new();
        if !self.registry.is_live(thread) {
            effects.push(Effect::Note(Note::late(delivery)));
            return effects;
        }
        let mut at = At {
            directory,
            delivery,
            world,
        };
        match returned {
            Returned::Turn(forwards, respond) => {
                self.turn(&mut at, forwards, respond, &mut effects);
            }
            Returned::Unreadable(raw) => {
                self.huh(&mut at, &raw, &mut effects);
            }
            Returned::Failed(why) => {
                effects.push(Effect::Note(Note::failed(delivery, why)));
                self.fail(&mut at, SystemError::Validation, &mut effects);
            }
            Returned::TimedOut => {
                self.fail(&mut at, SystemError::Timeout, &mut effects);
            }
            Returned::Unserved => {
                effects.push(Effect::Note(Note::failed(
                    delivery,
                    "nobody serves it".into(),
                )));
                self.fail(&mut at, SystemError::Routing, &mut effects);
            }
            Returned::Cancelled => self.ended(|it| it.terminate_below(thread), &mut effects),
        }
        self.ended(Registry::pushed_out, &mut effects);
        effects
    }

    /// Ends a tree for the caller whose it is.
    pub fn close(&mut self, thread: ThreadId, caller: &Caller) -> Vec<ThreadId> {
        match self.registry.is_theirs(thread, caller) {
            true => self.registry.terminate_tree(thread),
            false => Vec::new(),
        }
    }

    /// Ends trees that nobody touched for long.
    pub fn cleanup(&mut self, now: u64) -> Vec<ThreadId> {
        self.registry.cleanup(now)
    }

    /// Ends a tree to make room for whoever needs it; see [`Registry::give_up`].
    pub fn give_up(&mut self, first: ThreadId) -> Vec<ThreadId> {
        self.registry.give_up(first)
    }

    fn turn(
        &mut self,
        at: &mut At<'_>,
        forwards: Vec<Sending>,
        respond: Option<Result<Payload, Vec<u8>>>,
        effects: &mut Vec<Effect>,
    ) {
        let nothing = forwards.is_empty() && respond.is_none();
        for forward in forwards {
            if self.forward(at, forward, effects) {
                return;
            }
        }
        if let Some(payload) = respond {
            self.respond(at, payload, effects);
        }
        let tree = at.delivery.tree;
        let idle = self
            .registry
            .tree(tree)
            .is_some_and(|tree| tree.in_flight == 0);
        if nothing && idle {
            self.ended(|it| it.terminate_tree(tree), effects);
        }
    }

    /// Whether the turn has ended: its caller has an answer then, and what the handler wants beside goes nowhere.
    fn forward(&mut self, at: &mut At<'_>, forward: Sending, effects: &mut Vec<Effect>) -> bool {
        let thread = at.delivery.envelope.thread;
        let own = at.own();
        // Both are looked at before anything is said, so that neither shows by the time that it takes.
        let may = own.is_some_and(|own| at.directory.may(own, &forward.to));
        let target = at.directory.get(&forward.to);
        let (true, Some(target), Some(own)) = (may, target, own) else {
            let peers = own.map(|own| own.peers()).unwrap_or_default();
            let why = format!("not a peer, or no such listener; allowed are: {peers}");
            effects.push(Effect::Note(Note::refused(at.delivery, &forward.to, &why)));
            return self.routing(at, effects);
        };
        let payload = match forward.payload {
            Ok(payload) => payload,
            Err(raw) => return self.huh(at, &raw, effects),
        };
        let itself = target.name == own.name;
        if itself && self.one_more(thread) {
            return self.fail(at, SystemError::Iterations, effects);
        }
        let extended = match itself {
            true => Ok(thread),
            false => self.registry.extend(thread, &target.name, at.world),
        };
        let next = match extended {
            Ok(next) => next,
            Err(why) => {
                let why = why.to_string();
                effects.push(Effect::Note(Note::refused(at.delivery, &forward.to, &why)));
                return self.routing(at, effects);
            }
        };
        self.went_well(thread);
        let sent = at.sent(own.name.clone(), next, !itself);
        self.deliver(target, sent, payload, effects);
        false
    }

    fn respond(
        &mut self,
        at: &mut At<'_>,
        payload: Result<Payload, Vec<u8>>,
        effects: &mut Vec<Effect>,
    ) {
        let payload = match payload {
            Ok(payload) => payload,
            Err(raw) => {
                self.huh(at, &raw, effects);
                return;
            }
        };
        self.went_well(at.delivery.envelope.thread);
        let from = at.delivery.envelope.to.clone();
        self.answer(at, from, payload, effects);
    }

    /// The caller gets the error by the way of a respond, which ends the turn.
    fn fail(&mut self, at: &mut At<'_>, fault: SystemError, effects: &mut Vec<Effect>) -> bool {
        self.answer(at, Name::system(), Payload::system_error(fault), effects);
        true
    }

    fn answer(&mut self, at: &mut At<'_>, from: Name, payload: Payload, effects: &mut Vec<Effect>) {
        let (thread, tree) = (at.delivery.envelope.thread, at.delivery.tree);
        match self.registry.prune(thread, at.world) {
            Ok(Some((target, above))) => {
                let sent = at.sent(from, above, false);
                let depth = self.registry.lookup(above).map_or(0, |chain| chain.len());
                match at.directory.get(target.as_str()) {
                    // Below the root there is nobody but whoever came in from outside.
                    _ if depth <= 3 => effects.push(Effect::Door(sent.envelope(target, payload))),
                    Some(listener) => self.deliver(listener, sent, payload, effects),
                    None => {
                        let why = "the caller is not registered any more";
                        effects.push(Effect::Note(Note::refused(
                            at.delivery,
                            target.as_str(),
                            why,
                        )));
                    }
                }
                self.ended(|it| it.terminate_below(thread), effects);
            }
            Ok(None) => self.ended(|it| it.terminate_tree(tree), effects),
            Err(why) => effects.push(Effect::Note(Note::failed(at.delivery, why.to_string()))),
        }
    }

    fn routing(&mut self, at: &mut At<'_>, effects: &mut Vec<Effect>) -> bool {
        if self.one_more(at.delivery.envelope.thread) {
            return self.fail(at, SystemError::Iterations, effects);
        }
        self.tell(at, Payload::system_error(SystemError::Routing), effects);
        false
    }

    fn huh(&mut self, at: &mut At<'_>, raw: &[u8], effects: &mut Vec<Effect>) -> bool {
        let thread = at.delivery.envelope.thread;
        let tree = self.registry.tree_mut(thread);
        let Some(known) = tree.and_then(|tree| tree.threads.get_mut(&thread)) else {
            // The root thread: what boots is told nothing.
            return false;
        };
        known.huhs += 1;
        if known.huhs >= HUHS {
            known.huhs = 0;
            return self.fail(at, SystemError::Validation, effects);
        }
        self.tell(at, Payload::huh(raw), effects);
        false
    }

    /// A message of the system to the handler that sent what it is about, on its own thread.
    fn tell(&mut self, at: &mut At<'_>, payload: Payload, effects: &mut Vec<Effect>) {
        if let Some(own) = at.own() {
            let sent = at.sent(Name::system(), at.delivery.envelope.thread, false);
            self.deliver(own, sent, payload, effects);
        }
    }

    fn deliver(
        &mut self,
        to: &Listener,
        sent: Sent<'_>,
        payload: Payload,
        effects: &mut Vec<Effect>,
    ) {
        let (thread, place, anew) = (sent.thread, sent.place.clone(), sent.anew);
        let envelope = sent.envelope(to.name.clone(), payload);
        if to.kind == Kind::Door {
            effects.push(Effect::Door(envelope));
            return;
        }
        let Some(tree) = self.registry.tree_mut(thread) else {
            return;
        };
        tree.in_flight += 1;
        let first = tree.first;
        let mut since = 0;
        if let Some(known) = tree.threads.get_mut(&thread) {
            since = known.since;
            if anew {
                known.iterations = 0;
            }
        }
        let metadata = Metadata {
            thread_id: thread,
            since,
            from_id: envelope.from.clone(),
            own_name: to.is_agent().then(|| to.name.clone()),
            is_self_call: envelope.from == to.name,
        };
        effects.push(Effect::Deliver(Delivery {
            envelope,
            metadata,
            place,
            tree: first,
            parent: self.registry.parent(thread),
        }));
    }

    /// Counts one more message in a row; whether it is one too many.
    fn one_more(&mut self, thread: ThreadId) -> bool {
        let most = self.iterations;
        let tree = self.registry.tree_mut(thread);
        tree.and_then(|tree| tree.threads.get_mut(&thread))
            .is_some_and(|known| {
                known.iterations += 1;
                known.iterations > most
            })
    }

    fn went_well(&mut self, thread: ThreadId) {
        let tree = self.registry.tree_mut(thread);
        if let Some(known) = tree.and_then(|tree| tree.threads.get_mut(&thread)) {
            known.huhs = 0;
        }
    }

    fn ended(
        &mut self,
        end: impl FnOnce(&mut Registry) -> Vec<ThreadId>,
        effects: &mut Vec<Effect>,
    ) {
        let ended = end(&mut self.registry);
        if !ended.is_empty() {
            effects.push(Effect::Ended(ended));
        }
    }
}

/// The message that is being looked at, and among whom.
struct At<'a> {
    directory: &'a Directory,
    delivery: &'a Delivery,
    world: &'a mut dyn World,
}

impl<'a> At<'a> {
    fn own(&self) -> Option<&'a std::sync::Arc<Listener>> {
        self.directory.get(self.delivery.envelope.to.as_str())
    }

    fn sent(&self, from: Name, thread: ThreadId, anew: bool) -> Sent<'a> {
        Sent {
            id: &self.delivery.envelope.id,
            meta: &self.delivery.envelope.meta,
            place: &self.delivery.place,
            from,
            thread,
            anew,
        }
    }
}

/// What an envelope has beside its payload and whom it is for.
struct Sent<'a> {
    id: &'a str,
    meta: &'a Meta,
    place: &'a Place,
    from: Name,
    thread: ThreadId,
    /// It begins something new for who gets it.
    anew: bool,
}

impl Sent<'_> {
    fn envelope(self, to: Name, payload: Payload) -> Envelope {
        Envelope {
            id: self.id.to_owned(),
            thread: self.thread,
            from: self.from,
            to,
            kind: payload.kind,
            workspace: self.place.workspace.clone(),
            meta: self.meta.clone(),
            payload: payload.body,
        }
    }
}
