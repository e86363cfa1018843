//! The state that the clones of an embedded bus share: topics and who reads them.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};
use tg_schemas::topic::Class;
use tg_schemas::{Subscription, Topic};
use tokio::sync::watch;

use super::frame::Entry;
use super::live::Group;
use super::options::EmbeddedOptions;
use super::queue::Queue;
use super::record::Record;
use super::store::{Store, queue_entry};
use crate::bus::{BusError, Envelope, Link, Routed, Sink};
use crate::tap::Tap;

/// What the clones of a bus share.
pub(super) struct Core {
    pub(super) options: EmbeddedOptions,
    pub(super) store: Arc<Store>,
    pub(super) topics: RwLock<HashMap<Topic, TopicState>>,
    pub(super) inboxes: RwLock<HashMap<Arc<str>, Arc<Tap>>>,
    pub(super) claims: Mutex<HashSet<String>>,
    pub(super) taps: Mutex<Vec<Weak<Tap>>>,
    pub(super) link: watch::Sender<Link>,
    pub(super) closed: AtomicBool,
}

/// Who gets what is published on a topic.
#[derive(Default)]
pub(super) struct TopicState {
    /// Copied on change, so that publishing holds no lock while sinks run.
    pub(super) readers: Arc<Vec<Reader>>,
    /// Topics whose readers get a copy, too.
    relays: Vec<Topic>,
}

/// One reader of a topic.
#[derive(Clone)]
pub(super) struct Reader {
    pub(super) name: Arc<str>,
    pub(super) kind: Kind,
    /// Gets nothing of its topic any more: it is being emptied.
    pub(super) off: bool,
}

/// How a reader gets its copy.
#[derive(Clone)]
pub(super) enum Kind {
    /// Stored, for the consumers of a record queue.
    Queue(Arc<Queue>),
    /// At once, to one server of a group.
    Group(Arc<Group>),
    /// At once, to one listener.
    Private(Arc<Tap>),
    /// A copy of each record, at once; does not count as a reader.
    Observer(Arc<Tap>),
}

impl Kind {
    /// Whether the reader is known by its name, and not by who listens.
    fn is_shared(&self) -> bool {
        matches!(self, Self::Queue(_) | Self::Group(_))
    }
}

impl Core {
    /// Fails once the bus is closed.
    pub(super) fn ready(&self) -> Result<(), BusError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(BusError::Closed);
        }
        Ok(())
    }

    /// All readers of a topic, those that it is relayed to among them; `None` if there is no such topic.
    pub(super) fn readers(&self, topic: &Topic) -> Option<Arc<Vec<Reader>>> {
        let known = self.topics.read();
        let state = known.get(topic)?;
        if state.relays.is_empty() {
            return Some(state.readers.clone());
        }
        let mut reached = vec![topic];
        let mut next = 0;
        while let Some(topic) = reached.get(next) {
            next += 1;
            let further = known
                .get(*topic)
                .into_iter()
                .flat_map(|state| &state.relays);
            for topic in further.collect::<Vec<_>>() {
                if !reached.contains(&topic) {
                    reached.push(topic);
                }
            }
        }
        let states = reached.iter().filter_map(|topic| known.get(*topic));
        let all = states.flat_map(|state| state.readers.iter().cloned());
        Some(Arc::new(all.collect()))
    }

    /// See [`crate::Bus::relay`].
    pub(super) fn relay(&self, from: &Topic, to: &[Topic]) -> Result<(), BusError> {
        let mut known = self.topics.write();
        if to.iter().any(|topic| !known.contains_key(topic)) {
            return Err(BusError::Refused);
        }
        let state = known.get_mut(from).ok_or(BusError::Refused)?;
        for topic in to {
            if !state.relays.contains(topic) {
                state.relays.push(topic.clone());
            }
        }
        Ok(())
    }

    /// The reader of a subscription.
    pub(super) fn reader(&self, of: &Subscription) -> Option<Kind> {
        Some(self.topics.read().get(&of.topic)?.find(&of.name)?.clone())
    }

    /// Makes sure topics and record queues exist: on disk first, all of them or none, then here. Returns a ticket of the
    /// store.
    pub(super) fn declare(
        &self,
        topics: &[Topic],
        queues: &[Subscription],
    ) -> Result<u64, BusError> {
        let mut known = self.topics.write();
        let mut new_topics = Vec::new();
        for topic in topics.iter().chain(queues.iter().map(|queue| &queue.topic)) {
            if !known.contains_key(topic) && !new_topics.contains(&topic) {
                new_topics.push(topic);
            }
        }
        let mut new_queues: Vec<(u32, &Subscription)> = Vec::new();
        let records = || queues.iter().filter(|of| of.topic.class() == Class::Flow);
        for of in records() {
            let there = known
                .get(&of.topic)
                .is_some_and(|t| t.find(&of.name).is_some());
            if !there && !new_queues.iter().any(|(_, new)| *new == of) {
                new_queues.push((self.store.number(), of));
            }
        }
        let topics = new_topics
            .iter()
            .map(|topic| Entry::Topic(topic.to_string()));
        let queues = new_queues.iter().map(|(id, of)| queue_entry(*id, of));
        let ticket = self.store.note(&topics.chain(queues).collect::<Vec<_>>())?;
        for topic in new_topics {
            known.entry(topic.clone()).or_default();
        }
        for (id, of) in new_queues {
            let queue = Queue::new(id, self.store.clone());
            let topic = known.entry(of.topic.clone()).or_default();
            topic.add(&of.name, Kind::Queue(queue));
        }
        for of in records() {
            if let Some(topic) = known.get_mut(&of.topic) {
                topic.set_off(&of.name, false);
            }
        }
        Ok(ticket)
    }

    /// Whether a queue took it, and the store's ticket.
    fn publish_record(
        &self,
        queues: &[Arc<Queue>],
        envelope: Envelope,
    ) -> Result<(bool, u64), BusError> {
        let ids = queues.iter().map(|queue| queue.id).collect();
        let put = self.store.put(ids, envelope);
        // Also where there was no room: some may be had back.
        self.store.tidy();
        let (record, ticket): (Arc<Record>, u64) = put?;
        let mut taken = false;
        for queue in queues {
            taken |= queue.push(record.clone(), false);
            queue.pump();
        }
        Ok((taken, ticket))
    }

    /// Delivers to each reader; records of all readers are stored once.
    pub(super) fn fan_out(
        &self,
        readers: &[Reader],
        envelope: Envelope,
    ) -> Result<(Routed, u64), BusError> {
        let mut queues = Vec::new();
        let mut live = Vec::with_capacity(readers.len());
        for reader in readers.iter().filter(|reader| !reader.off) {
            match &reader.kind {
                Kind::Queue(queue) => queues.push(queue.clone()),
                other => live.push(other),
            }
        }
        let mut routed = false;
        let mut envelope = Some(envelope);
        let last = live.len();
        for (at, kind) in live.into_iter().enumerate() {
            let wanted = at + 1 < last || !queues.is_empty();
            let copy = if wanted {
                envelope.clone()
            } else {
                envelope.take()
            };
            let Some(copy) = copy else { continue };
            routed |= match kind {
                Kind::Group(group) => group.offer(copy),
                Kind::Private(tap) => tap.pass(copy).is_none(),
                Kind::Observer(tap) => {
                    tap.pass(copy);
                    false
                }
                Kind::Queue(_) => false,
            };
        }
        let mut ticket = 0;
        if let Some(envelope) = envelope.take().filter(|_| !queues.is_empty()) {
            let (taken, stored) = self.publish_record(&queues, envelope)?;
            routed |= taken;
            ticket = stored;
        }
        Ok((
            if routed {
                Routed::Queued
            } else {
                Routed::Unroutable
            },
            ticket,
        ))
    }

    /// A consumer of a question topic, or a listener, is gone.
    pub(super) fn remove_tap(&self, subscription: &Subscription, tap: &Arc<Tap>) {
        let mut topics = self.topics.write();
        let Some(topic) = topics.get_mut(&subscription.topic) else {
            return;
        };
        let comes_back = self.options.rules.questions_come_back;
        Arc::make_mut(&mut topic.readers).retain(|reader| match &reader.kind {
            Kind::Private(other) | Kind::Observer(other) => !Arc::ptr_eq(other, tap),
            Kind::Group(group) if *reader.name == *subscription.name => {
                !(group.leave(tap) && comes_back)
            }
            _ => true,
        });
    }

    /// A tap that closing the bus will shut.
    pub(super) fn tap(&self, sink: Arc<dyn Sink>) -> Arc<Tap> {
        let tap = Tap::new(sink);
        let mut taps = self.taps.lock();
        if taps.len() == taps.capacity() {
            taps.retain(|tap| tap.strong_count() > 0);
        }
        taps.push(Arc::downgrade(&tap));
        tap
    }

    /// Adds a server of questions.
    pub(super) fn join_group(&self, of: &Subscription, tap: &Arc<Tap>) {
        let group = {
            let mut topics = self.topics.write();
            let topic = topics.entry(of.topic.clone()).or_default();
            let group = match topic.find(&of.name) {
                Some(Kind::Group(group)) => group.clone(),
                _ => {
                    let waits = !self.options.rules.questions_come_back;
                    let group = Arc::new(Group::new(waits));
                    topic.add(&of.name, Kind::Group(group.clone()));
                    group
                }
            };
            // Under the lock, so that a leaving last server does not take the group with it.
            group.enter(tap.clone());
            group
        };
        group.serve_waiting(tap);
    }
}

impl TopicState {
    /// Whether anybody but observers reads it.
    pub(super) fn is_used(&self) -> bool {
        let observes = |reader: &Reader| matches!(reader.kind, Kind::Observer(_));
        !self.readers.iter().all(observes)
    }

    /// A shared reader by name.
    pub(super) fn find(&self, name: &str) -> Option<&Kind> {
        let named = |reader: &&Reader| reader.kind.is_shared() && *reader.name == *name;
        Some(&self.readers.iter().find(named)?.kind)
    }

    /// Adds a reader.
    pub(super) fn add(&mut self, name: &str, kind: Kind) {
        Arc::make_mut(&mut self.readers).push(Reader {
            name: name.into(),
            kind,
            off: false,
        });
    }

    /// Takes a shared reader off its topic, or puts it back. It can still be addressed, read and emptied.
    pub(super) fn set_off(&mut self, name: &str, off: bool) {
        let named = |reader: &Reader| reader.kind.is_shared() && *reader.name == *name;
        let at = self.readers.iter().position(named);
        if let Some(at) = at.filter(|at| self.readers[*at].off != off) {
            Arc::make_mut(&mut self.readers)[at].off = off;
        }
    }

    /// Removes a shared reader.
    pub(super) fn remove(&mut self, name: &str) -> Option<Kind> {
        let kind = self.find(name)?.clone();
        Arc::make_mut(&mut self.readers)
            .retain(|reader| !reader.kind.is_shared() || *reader.name != *name);
        Some(kind)
    }
}
