//! A mesh without a bus: handlers are functions, effects are carried out one after another.

use std::collections::{BTreeSet, HashMap, VecDeque};

use serde_json::{Map, Value, json};
use tg_schemas::{FlowId, WorkspaceId};
use tg_threads::{
    Caller, Delivery, Directory, Effect, Envelope, External, Kind, Limits, Listener, Meta, Name,
    Note, Outcome, Place, Pump, Reach, Room, ThreadId, Turn, World,
};

/// Ids that count, and a clock that is set.
#[derive(Default)]
pub(crate) struct Counted {
    pub(crate) now: u64,
    count: u128,
}

impl World for Counted {
    fn time(&self) -> u64 {
        self.now
    }

    fn fresh(&mut self) -> ThreadId {
        self.count += 1;
        ThreadId::from_random((self.count << 64).to_be_bytes())
    }
}

type Handler = Box<dyn FnMut(&Delivery) -> Outcome>;

pub(crate) struct Mesh {
    pub(crate) world: Counted,
    pub(crate) pump: Pump,
    pub(crate) boot: Delivery,
    pub(crate) directory: Directory,
    handlers: HashMap<String, Handler>,
    /// What handlers got, in order.
    pub(crate) got: Vec<Delivery>,
    /// What left through the door.
    pub(crate) out: Vec<Envelope>,
    pub(crate) ended: Vec<ThreadId>,
    pub(crate) notes: Vec<Note>,
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

pub(crate) fn place(workspace: &str) -> Place {
    Place {
        workspace: WorkspaceId::new(workspace).unwrap(),
        flow: FlowId::new("default").unwrap(),
    }
}

pub(crate) fn tool(name: &str) -> Listener {
    Listener::new(name, &format!("The tool {name}."), Kind::Tool)
        .and_then(|tool| tool.takes("textinput", object(json!({"type": "object"}))))
        .unwrap()
}

pub(crate) fn agent(name: &str, peers: &[&str]) -> Listener {
    let peers: BTreeSet<Name> = peers.iter().map(|peer| Name::any(peer).unwrap()).collect();
    let kind = Kind::Agent(Reach::Only(peers));
    Listener::new(name, &format!("The agent {name}."), kind)
        .and_then(|agent| agent.takes("textinput", object(json!({"type": "object"}))))
        .unwrap()
}

/// A caller at a door.
pub(crate) fn caller(thread: Option<ThreadId>) -> Caller {
    Caller {
        place: place("default"),
        initiator: Name::console(),
        principal: "ann".to_owned(),
        thread,
    }
}

pub(crate) fn says(text: &str) -> Value {
    json!({ "text": text })
}

impl Mesh {
    pub(crate) fn of(listeners: impl IntoIterator<Item = Listener>) -> Self {
        Self::with(listeners, Limits::default())
    }

    pub(crate) fn with(listeners: impl IntoIterator<Item = Listener>, limits: Limits) -> Self {
        Self::within(listeners, limits, Room::default())
    }

    pub(crate) fn within(
        listeners: impl IntoIterator<Item = Listener>,
        limits: Limits,
        room: Room,
    ) -> Self {
        let mut world = Counted::default();
        let (directory, refused) = Directory::new(listeners);
        assert!(refused.is_empty(), "{refused:?}");
        let mesh = Name::any("mesh").unwrap();
        let count = directory.all().count();
        let (pump, boot) = Pump::start(
            (&mesh, &place("default")),
            (limits, room, 50),
            ("2026-01-01T00:00:00Z", count),
            &mut world,
        );
        Self {
            world,
            pump,
            boot,
            directory,
            handlers: HashMap::new(),
            got: Vec::new(),
            out: Vec::new(),
            ended: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(crate) fn handles(&mut self, name: &str, handler: impl FnMut(&Delivery) -> Turn + 'static) {
        let mut handler = handler;
        self.ends(name, move |delivery| Outcome::Turn(handler(delivery)));
    }

    pub(crate) fn ends(&mut self, name: &str, handler: impl FnMut(&Delivery) -> Outcome + 'static) {
        self.handlers.insert(name.to_owned(), Box::new(handler));
    }

    /// Sends a text from outside and lets everything happen.
    pub(crate) fn send(&mut self, to: &str, text: &str) -> ThreadId {
        self.send_on(None, to, text)
    }

    pub(crate) fn send_on(&mut self, thread: Option<ThreadId>, to: &str, text: &str) -> ThreadId {
        let raw = says(text).to_string();
        self.external(caller(thread), to, "textinput", raw.as_bytes())
    }

    pub(crate) fn external(&mut self, by: Caller, to: &str, kind: &str, raw: &[u8]) -> ThreadId {
        let (thread, effects) = self.enter(by, to, kind, raw);
        self.run(effects);
        thread
    }

    /// Sends a message from outside; what follows from it is left to the test.
    pub(crate) fn enter(
        &mut self,
        caller: Caller,
        to: &str,
        kind: &str,
        raw: &[u8],
    ) -> (ThreadId, Vec<Effect>) {
        let external = External {
            id: "question",
            caller,
            admitted: self.directory.admitted(to, kind, raw),
            raw,
            meta: Meta::default(),
        };
        self.pump.external(external, &mut self.world)
    }

    pub(crate) fn run(&mut self, effects: Vec<Effect>) {
        let mut waiting = VecDeque::from(effects);
        while let Some(effect) = waiting.pop_front() {
            match effect {
                Effect::Deliver(delivery) => {
                    let name = delivery.envelope().to.to_string();
                    let handler = self.handlers.get_mut(&name).expect(&name);
                    let outcome = handler(&delivery);
                    self.got.push(delivery.clone());
                    waiting.extend(self.back(&delivery, outcome));
                }
                Effect::Door(envelope) => self.out.push(envelope),
                Effect::Ended(threads) => self.ended.extend(threads),
                Effect::Note(note) => self.notes.push(note),
            }
        }
    }

    pub(crate) fn back(&mut self, delivery: &Delivery, outcome: Outcome) -> Vec<Effect> {
        let checked = outcome.checked(&self.directory, delivery);
        self.pump
            .returned(&self.directory, delivery, checked, &mut self.world)
    }

    /// What a listener got, in order.
    pub(crate) fn got_by(&self, name: &str) -> Vec<&Delivery> {
        let mine = |delivery: &&Delivery| delivery.envelope().to.as_str() == name;
        self.got.iter().filter(mine).collect()
    }

    pub(crate) fn chain(&self, thread: ThreadId) -> Option<String> {
        let chain = self.pump.registry().lookup(thread)?;
        let names: Vec<_> = chain.iter().map(Name::as_str).collect();
        Some(names.join(" "))
    }
}

/// The only delivery among effects.
pub(crate) fn delivery(effects: &[Effect]) -> Delivery {
    let found = effects.iter().find_map(|effect| match effect {
        Effect::Deliver(delivery) => Some(delivery.clone()),
        _ => None,
    });
    found.expect("a delivery")
}
