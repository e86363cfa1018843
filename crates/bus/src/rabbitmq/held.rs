//! What a consumer has in hand, known by the names of its messages. A broker takes back what was held for longer than its
//! `consumer_timeout`: it closes the channel, with all that is held on it by whichever consumer, and hands it out again on the
//! next. Whoever is at work on a record goes on, and what they say of it is said where the record is now; so nothing is done
//! twice, however long it takes.
//!
//! Only while the connection stands. After an outage a record may have become another process's, and comes again as such.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use lapin::Acker;
use lapin::message::Delivery;
use lapin::types::ShortString;
use parking_lot::Mutex;

use super::settle::{self, Verdict};
use crate::bus::Settle;
use crate::in_hand::Hand;

/// Records that were settled after the broker had taken them back, and did not come again yet. One that is forgotten is
/// handled again, as after an outage.
const SETTLED_LATE: usize = 4096;

/// Those of one consumer.
#[derive(Default)]
pub(super) struct Held {
    records: Mutex<Records>,
}

#[derive(Default)]
struct Records {
    next: u64,
    in_hand: HashMap<u64, Record>,
    /// Handled, but nobody could be told.
    settled_late: VecDeque<(u64, Name)>,
}

/// Of which message: each that is published has an id of its own, and keeps it when it comes again.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Name {
    id: ShortString,
    bytes: usize,
}

impl Name {
    /// One without an id is of a foreign sender, and nothing is known of it when it comes again.
    fn of(delivery: &Delivery) -> Option<Self> {
        let id = delivery.properties.message_id().clone()?;
        let bytes = delivery.data.len();
        (!id.as_str().is_empty()).then_some(Self { id, bytes })
    }
}

struct Record {
    /// Of which session.
    generation: u64,
    name: Option<Name>,
    acker: Acker,
}

impl Held {
    /// Whether a delivery is one that is in hand, or was handled: then it is not to be handed out.
    pub(super) fn comes_back(&self, generation: u64, delivery: &Delivery) -> bool {
        if !delivery.redelivered {
            return false;
        }
        let Some(name) = Name::of(delivery) else {
            return false;
        };
        let mut records = self.records.lock();
        if let Some(held) = records.taken_back(generation, &name) {
            held.acker = delivery.acker.clone();
            return true;
        }
        if !records.was_settled(generation, &name) {
            return false;
        }
        drop(records);
        settle::say(&delivery.acker, Verdict::Done);
        true
    }

    /// Remembers a record that is handed out.
    pub(super) fn hold(
        self: &Arc<Self>,
        generation: u64,
        delivery: &Delivery,
        hand: Hand,
    ) -> Box<dyn Settle> {
        let mut records = self.records.lock();
        let number = records.next;
        records.next += 1;
        let record = Record {
            generation,
            name: Name::of(delivery),
            acker: delivery.acker.clone(),
        };
        records.in_hand.insert(number, record);
        Box::new(HeldTicket {
            of: self.clone(),
            number,
            _hand: hand,
        })
    }

    fn settle(&self, number: u64, verdict: Verdict) {
        let acker = {
            let mut records = self.records.lock();
            let Some(record) = records.in_hand.remove(&number) else {
                return;
            };
            if record.acker.poisoned()
                && verdict == Verdict::Done
                && let Some(name) = record.name
            {
                if records.settled_late.len() >= SETTLED_LATE {
                    records.settled_late.pop_front();
                }
                records.settled_late.push_back((record.generation, name));
            }
            record.acker
        };
        settle::say(&acker, verdict);
    }
}

impl Records {
    /// One in hand whose channel is gone.
    fn taken_back(&mut self, generation: u64, name: &Name) -> Option<&mut Record> {
        self.in_hand.values_mut().find(|one| {
            one.generation == generation && one.name.as_ref() == Some(name) && one.acker.poisoned()
        })
    }

    fn was_settled(&mut self, generation: u64, name: &Name) -> bool {
        self.settled_late.retain(|(of, _)| *of == generation);
        let found = self.settled_late.iter().position(|(_, one)| one == name);
        found.is_some_and(|at| self.settled_late.remove(at).is_some())
    }
}

/// Settles a record in hand, on the channel on which the broker has handed it out last.
struct HeldTicket {
    of: Arc<Held>,
    number: u64,
    /// Its place among the records in hand.
    _hand: Hand,
}

impl Settle for HeldTicket {
    fn ack(self: Box<Self>) {
        self.of.settle(self.number, Verdict::Done);
    }

    fn give_back(self: Box<Self>) {
        self.of.settle(self.number, Verdict::Back);
    }
}
