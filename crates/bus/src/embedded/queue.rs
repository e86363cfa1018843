//! A record queue: order, **prefetch**, acknowledgement, **redelivery**; so delivery is **at least once**.
//!
//! One caller at a time pumps records into sinks, without a lock while a sink runs; bodies that are on
//! disk only are read on a blocking thread. Storing is the [`Store`]'s business.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::record::Record;
use super::store::Store;
use crate::bus::{BusError, Delete, Delivery, Envelope, Settle};
use crate::in_hand::{Hand, Wake};
use crate::pause;
use crate::tap::Tap;

/// Deliveries made on a publisher's or acknowledger's time before a task goes on.
const BURST: usize = 64;
/// Bodies read from disk at once.
const PAGE: usize = 64;
/// And not many more bytes than this.
const PAGE_BYTES: usize = 4 << 20;
/// A body that could not be read is tried again after this, then after longer pauses, up to the second.
const READ_AGAIN: Duration = Duration::from_millis(500);
const READ_AGAIN_LATEST: Duration = Duration::from_secs(60);

/// A durable queue of one flow subscription.
pub(super) struct Queue {
    /// Its number in the store.
    pub(super) id: u32,
    store: Arc<Store>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By record number, so what is given back is first again.
    ready: BTreeMap<u64, Item>,
    /// Whose bodies could not be read: they wait here for a pause, so that one of them holds nobody up.
    aside: BTreeMap<u64, Item>,
    /// Somebody brings them back after the pause.
    coming_back: bool,
    slots: Vec<QueueConsumer>,
    next_slot: u64,
    turn: usize,
    pumping: bool,
    /// Until others have settled what they hold.
    waits: bool,
    gone: bool,
    /// Where tasks go when the caller is in no runtime.
    runtime: Option<Handle>,
}

struct Item {
    record: Arc<Record>,
    redelivered: bool,
    /// How often its body could not be read.
    unread: u32,
}

/// A consumer and how much more it takes.
struct QueueConsumer {
    id: u64,
    tap: Arc<Tap>,
    room: u32,
}

enum Step {
    Deliver(Arc<Tap>, Ticket, Arc<Envelope>, bool),
    Load(Vec<Arc<Record>>),
    Idle,
}

impl Queue {
    /// An empty queue.
    pub(super) fn new(id: u32, store: Arc<Store>) -> Arc<Self> {
        Arc::new(Self {
            id,
            store,
            state: Mutex::default(),
        })
    }

    /// Adds a record; call [`Queue::pump`] afterwards. `false` if the queue is gone.
    pub(super) fn push(&self, record: Arc<Record>, redelivered: bool) -> bool {
        let mut state = self.state.lock();
        if state.gone {
            drop(state);
            self.store.done(self.id, &record);
            return false;
        }
        let item = Item {
            record,
            redelivered,
            unread: 0,
        };
        state.ready.insert(item.record.seq, item);
        true
    }

    /// Adds a consumer; call [`Queue::pump`] afterwards. Returns its number.
    pub(super) fn join(&self, tap: Arc<Tap>, prefetch: u16) -> u64 {
        let mut state = self.state.lock();
        state.runtime = Handle::try_current().ok().or(state.runtime.take());
        state.next_slot += 1;
        let id = state.next_slot;
        state.slots.push(QueueConsumer {
            id,
            tap,
            room: u32::from(prefetch.max(1)),
        });
        id
    }

    /// Removes a consumer; what it holds stays handed out.
    pub(super) fn leave(&self, slot: u64) {
        self.state.lock().slots.retain(|other| other.id != slot);
    }

    /// Records that wait, and consumers.
    pub(super) fn counts(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.ready.len() + state.aside.len(), state.slots.len())
    }

    /// Takes the first record without being a consumer.
    pub(super) async fn take(self: &Arc<Self>) -> Result<Option<Delivery>, BusError> {
        let Some(item) = self.state.lock().first() else {
            return Ok(None);
        };
        let message = match item.record.cached() {
            Some(message) => Ok(message),
            None => {
                let (store, record) = (self.store.clone(), item.record.clone());
                let loaded = tokio::task::spawn_blocking(move || store.load(&record)).await;
                loaded.unwrap_or(Err(BusError::Store))
            }
        };
        let message = match message {
            Ok(message) => message,
            Err(error) => {
                self.put_aside(item);
                return Err(error);
            }
        };
        let ticket = Ticket {
            queue: self.clone(),
            record: item.record,
            slot: 0,
            _hand: None,
        };
        Ok(Some(Delivery {
            envelope: Envelope::clone(&message),
            redelivered: item.redelivered,
            settle: Some(Box::new(ticket)),
        }))
    }

    /// Ends the queue; everything in it is forgotten. Returns how much that was; `None` if it stays.
    pub(super) fn end(&self, when: Delete) -> Option<usize> {
        let ready = {
            let mut state = self.state.lock();
            state.bring_back();
            if when == Delete::IfEmpty && !state.ready.is_empty() {
                return None;
            }
            state.gone = true;
            state.slots.clear();
            std::mem::take(&mut state.ready)
        };
        let records: Vec<_> = ready.into_values().map(|item| item.record).collect();
        self.store.drop_all(self.id, &records);
        Some(records.len())
    }

    /// Hands out what can be handed out.
    pub(super) fn pump(self: &Arc<Self>) {
        {
            let mut state = self.state.lock();
            if state.pumping {
                return;
            }
            state.pumping = true;
        }
        self.pump_on();
    }

    fn pump_on(self: &Arc<Self>) {
        for _ in 0..BURST {
            let step = self.state.lock().step(self);
            match step {
                Step::Deliver(tap, ticket, message, redelivered) => {
                    let delivery = Delivery {
                        envelope: Envelope::clone(&message),
                        redelivered,
                        settle: Some(Box::new(ticket)),
                    };
                    // One that comes back from a shut tap is given back by being dropped.
                    drop(tap.deliver(delivery));
                }
                Step::Load(records) => return self.load(records),
                Step::Idle => return,
            }
        }
        self.go_on(Self::pump_on);
    }

    fn load(self: &Arc<Self>, records: Vec<Arc<Record>>) {
        self.go_on(move |queue| {
            for record in records {
                if queue.store.load(&record).is_err() {
                    let item = queue.state.lock().ready.remove(&record.seq);
                    item.into_iter().for_each(|item| queue.put_aside(item));
                }
            }
            queue.pump_on();
        });
    }

    /// Keeps a record whose body could not be read for later: the disk may be luckier then.
    fn put_aside(self: &Arc<Self>, mut item: Item) {
        let mut state = self.state.lock();
        if state.gone {
            drop(state);
            return self.store.done(self.id, &item.record);
        }
        let wait = pause::after(READ_AGAIN, item.unread, READ_AGAIN_LATEST);
        item.unread = item.unread.saturating_add(1);
        state.aside.insert(item.record.seq, item);
        let runtime = Handle::try_current().ok().or_else(|| state.runtime.clone());
        let Some(runtime) = runtime.filter(|_| !state.coming_back) else {
            return;
        };
        state.coming_back = true;
        let queue = Arc::downgrade(self);
        runtime.spawn(async move {
            tokio::time::sleep(wait).await;
            if let Some(queue) = queue.upgrade() {
                {
                    let mut state = queue.state.lock();
                    state.coming_back = false;
                    state.bring_back();
                }
                queue.pump();
            }
        });
    }

    /// Goes on elsewhere; `pumping` stays set.
    fn go_on(self: &Arc<Self>, work: impl FnOnce(&Arc<Self>) + Send + 'static) {
        let runtime = Handle::try_current()
            .ok()
            .or_else(|| self.state.lock().runtime.clone());
        let queue = self.clone();
        match runtime {
            Some(runtime) => drop(runtime.spawn_blocking(move || work(&queue))),
            None => work(&queue),
        }
    }

    /// The place of a record in what is handed out; nothing where that is full. It goes on when there is room.
    fn take_in_hand(self: &Arc<Self>, bytes: usize) -> Option<Hand> {
        let wake = || -> Wake {
            let queue = Arc::downgrade(self);
            Box::new(move || {
                if let Some(queue) = queue.upgrade() {
                    queue.state.lock().waits = false;
                    queue.pump();
                }
            })
        };
        self.store.in_hand.take(u64::from(self.id), bytes, wake)
    }

    fn settled(self: &Arc<Self>, slot: u64) {
        if let Some(slot) = self.state.lock().slots.iter_mut().find(|s| s.id == slot) {
            slot.room += 1;
        }
        self.pump();
    }
}

impl State {
    /// Takes the first record out, of those put aside if there is no other.
    fn first(&mut self) -> Option<Item> {
        let first = self.ready.pop_first().or_else(|| self.aside.pop_first());
        first.map(|(_, item)| item)
    }

    /// What was put aside is ready again.
    fn bring_back(&mut self) {
        let mut aside = std::mem::take(&mut self.aside);
        self.ready.append(&mut aside);
    }

    fn step(&mut self, queue: &Arc<Queue>) -> Step {
        let count = self.slots.len();
        let free = (0..count)
            .map(|step| (self.turn + step) % count)
            .find(|at| self.slots[*at].room > 0 && self.slots[*at].tap.is_open());
        let (Some(at), Some(first)) = (free, self.ready.first_entry()) else {
            self.pumping = false;
            return Step::Idle;
        };
        let Some(message) = first.get().record.cached() else {
            return Step::Load(self.page());
        };
        let hand = match self.waits {
            true => None,
            false => queue.take_in_hand(message.body.len()),
        };
        let Some(hand) = hand else {
            self.waits = true;
            self.pumping = false;
            return Step::Idle;
        };
        let item = first.remove();
        self.turn = at + 1;
        let slot = &mut self.slots[at];
        slot.room -= 1;
        let ticket = Ticket {
            queue: queue.clone(),
            record: item.record,
            slot: slot.id,
            _hand: Some(hand),
        };
        Step::Deliver(slot.tap.clone(), ticket, message, item.redelivered)
    }

    /// The next records that somebody has room for, within bounds.
    fn page(&self) -> Vec<Arc<Record>> {
        let room = self.slots.iter().map(|slot| slot.room as usize).sum();
        let mut bytes = 0;
        self.ready
            .values()
            .take(PAGE.min(room))
            .take_while(|item| {
                let fits = bytes < PAGE_BYTES;
                bytes += item.record.size;
                fits
            })
            .map(|item| item.record.clone())
            .collect()
    }
}

/// Settles one handed-out record.
struct Ticket {
    queue: Arc<Queue>,
    record: Arc<Record>,
    slot: u64,
    /// Free when it is settled.
    _hand: Option<Hand>,
}

impl Settle for Ticket {
    fn ack(self: Box<Self>) {
        self.queue.store.done(self.queue.id, &self.record);
        self.queue.settled(self.slot);
    }

    fn give_back(self: Box<Self>) {
        self.queue.push(self.record, true);
        self.queue.settled(self.slot);
    }
}
