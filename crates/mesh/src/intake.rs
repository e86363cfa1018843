//! Whether consumers take what waits for them. Each sink counts what it takes, and a look asks the bus how many messages wait. A
//! look asks for a bounded number of queues; it takes and moves nothing.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tg_bus::{Bus, BusError, QueueState};
use tg_schemas::Subscription;
use tokio::time::Instant;

/// Looks in the time after which a consumer that takes nothing is reported.
const LOOKS: u32 = 3;
/// Queues that one look asks for at most. A process with more of them looks at the others next time.
const QUEUES: usize = 256;

/// What the consumer of one subscription takes.
pub(crate) struct Intake {
    processor: String,
    subscription: Subscription,
    /// Messages that it has in hand at once, at most.
    places: usize,
    taken: AtomicU64,
    in_hand: Arc<AtomicUsize>,
    waits: Mutex<Option<Waits>>,
}

/// A message that a consumer has in hand, until this is dropped. The consumer may have left by then.
pub(crate) struct InHand(Arc<AtomicUsize>);

impl Drop for InHand {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Messages wait, and none was taken since a moment.
#[derive(Clone, Copy)]
struct Waits {
    since: Instant,
    /// What had been taken then.
    taken: u64,
    /// It has been so for as long as it may.
    long: bool,
}

impl Intake {
    fn new(processor: &str, subscription: &Subscription, places: usize) -> Arc<Self> {
        Arc::new(Self {
            processor: processor.to_owned(),
            subscription: subscription.clone(),
            places,
            taken: AtomicU64::new(0),
            in_hand: Arc::default(),
            waits: Mutex::new(None),
        })
    }

    /// The consumer takes a message.
    pub(crate) fn take(&self) {
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// The same of a message that takes a place for as long as it is in hand.
    pub(crate) fn hold(&self) -> InHand {
        self.take();
        self.in_hand.fetch_add(1, Ordering::Relaxed);
        InHand(self.in_hand.clone())
    }

    /// Notes how many messages wait now.
    fn note(&self, ready: u64, now: Instant, period: Duration) {
        let taken = self.taken.load(Ordering::Relaxed);
        let mut waits = self.waits.lock();
        *waits = match *waits {
            _ if ready == 0 => None,
            Some(before) if before.taken == taken => Some(Waits {
                long: now - before.since >= period,
                ..before
            }),
            _ => Some(Waits {
                since: now,
                taken,
                long: false,
            }),
        };
    }

    /// Nothing is known of the queue.
    fn forget(&self) {
        *self.waits.lock() = None;
    }

    /// It takes no more until it is done with one.
    fn is_full(&self) -> bool {
        self.in_hand.load(Ordering::Relaxed) >= self.places
    }

    /// Messages wait for too long already, and the consumer has still taken none.
    fn is_idle(&self) -> bool {
        let waits = *self.waits.lock();
        waits.is_some_and(|waits| waits.long && waits.taken == self.taken.load(Ordering::Relaxed))
    }
}

/// The consumers of this process.
#[derive(Default)]
pub(crate) struct Intakes {
    /// As many as instances are attached; those that left are struck at the next look, and when another one comes.
    all: Mutex<Vec<Weak<Intake>>>,
    /// Where the next look begins.
    next: AtomicUsize,
}

impl Intakes {
    /// Another consumer, with so many places, for as long as its sink holds this.
    pub(crate) fn add(
        &self,
        processor: &str,
        subscription: &Subscription,
        places: usize,
    ) -> Arc<Intake> {
        let intake = Intake::new(processor, subscription, places);
        let mut all = self.all.lock();
        if all.len() == all.capacity() {
            all.retain(|one| one.strong_count() > 0);
        }
        all.push(Arc::downgrade(&intake));
        intake
    }

    /// Processors with a consumer that took nothing of what waits for it; each once.
    pub(crate) fn idle(&self) -> Vec<String> {
        self.named(Intake::is_idle)
    }

    /// Those of them that have such a consumer whose places are all taken.
    pub(crate) fn full(&self) -> Vec<String> {
        self.named(|one| one.is_idle() && one.is_full())
    }

    fn named(&self, wanted: impl Fn(&Intake) -> bool) -> Vec<String> {
        let all = self.all.lock();
        let idle = all.iter().filter_map(Weak::upgrade);
        let idle = idle.filter(|one| wanted(one));
        let mut idle: Vec<String> = idle.map(|one| one.processor.clone()).collect();
        drop(all);
        idle.sort();
        idle.dedup();
        idle
    }

    /// Looks again and again.
    pub(crate) async fn watch(&self, bus: &dyn Bus, period: Duration) {
        let pause = period / LOOKS;
        loop {
            tokio::time::sleep(pause).await;
            self.look(bus, period).await;
        }
    }

    async fn look(&self, bus: &dyn Bus, period: Duration) {
        for intake in self.some() {
            let state = bus.queue_state(&intake.subscription).await;
            if !self.heard(&intake, state, Instant::now(), period) {
                return;
            }
        }
    }

    /// Notes what the bus says of the queue of one consumer. Returns whether the look goes on.
    fn heard(
        &self,
        intake: &Intake,
        state: Result<Option<QueueState>, BusError>,
        now: Instant,
        period: Duration,
    ) -> bool {
        match state {
            Ok(queue) => {
                let ready = queue.map_or(0, |queue| queue.ready);
                intake.note(ready, now, period);
            }
            // A bus that is away delivers nothing; its link reports that.
            Err(BusError::Down | BusError::Closed) => {
                self.forget();
                return false;
            }
            // The bus answers, but not for this queue: the others are still looked at.
            Err(_) => intake.forget(),
        }
        true
    }

    /// The consumers of the next look.
    fn some(&self) -> Vec<Arc<Intake>> {
        let mut all = self.all.lock();
        all.retain(|one| one.strong_count() > 0);
        let count = all.len().min(QUEUES);
        let begin = self.next.fetch_add(count, Ordering::Relaxed);
        let some = (0..count).filter_map(|at| all[begin.wrapping_add(at) % all.len()].upgrade());
        some.collect()
    }

    fn forget(&self) {
        let all: Vec<_> = self.all.lock().iter().filter_map(Weak::upgrade).collect();
        all.iter().for_each(|one| one.forget());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tg_schemas::{Class, Topic};

    const MINUTE: Duration = Duration::from_secs(60);

    fn of(name: &str) -> Subscription {
        Subscription::service(Topic::system(Class::Flow, name), "reader")
    }

    #[test]
    fn a_consumer_is_idle_when_something_waits_for_a_minute_and_it_takes_nothing() {
        let intakes = Intakes::default();
        let one = intakes.add("reader", &of("a"), 1);
        let start = Instant::now();
        // It was idle for an hour, as nothing waited; the first that waits begins the minute.
        one.note(0, start, MINUTE);
        let later = start + 60 * MINUTE;
        one.note(1, later, MINUTE);
        one.note(1, later + MINUTE / 2, MINUTE);
        assert!(intakes.idle().is_empty());
        one.note(7, later + MINUTE, MINUTE);
        assert_eq!(intakes.idle(), ["reader"]);
        one.take();
        assert!(intakes.idle().is_empty(), "it takes again");
        one.note(6, later + 2 * MINUTE, MINUTE);
        assert!(intakes.idle().is_empty(), "the minute begins anew");
        one.note(6, later + 3 * MINUTE, MINUTE);
        assert_eq!(intakes.idle(), ["reader"]);
        one.note(0, later + 3 * MINUTE, MINUTE);
        assert!(intakes.idle().is_empty(), "another one took it");
    }

    #[test]
    fn a_consumer_whose_places_are_all_taken_is_listed_apart() {
        let intakes = Intakes::default();
        let (one, other) = (
            intakes.add("one", &of("a"), 2),
            intakes.add("other", &of("b"), 2),
        );
        let (first, _second) = (one.hold(), one.hold());
        let start = Instant::now();
        for intake in [&one, &other] {
            intake.note(1, start, MINUTE);
            assert!(intakes.full().is_empty(), "not for a minute yet");
        }
        for intake in [&one, &other] {
            intake.note(1, start + MINUTE, MINUTE);
        }
        assert_eq!(intakes.idle(), ["one", "other"]);
        assert_eq!(intakes.full(), ["one"]);
        drop(first);
        assert!(intakes.full().is_empty(), "it has a place, and takes none");
    }

    #[test]
    fn a_queue_that_fails_hides_no_other_and_a_bus_that_is_away_hides_all() {
        let intakes = Intakes::default();
        let (one, other) = (
            intakes.add("one", &of("a"), 1),
            intakes.add("other", &of("b"), 1),
        );
        let start = Instant::now();
        for intake in [&one, &other] {
            intake.note(1, start, MINUTE);
            intake.note(1, start + MINUTE, MINUTE);
        }
        assert_eq!(intakes.idle(), ["one", "other"]);
        let heard = |fault| intakes.heard(&one, Err(fault), start + MINUTE, MINUTE);
        assert!(heard(BusError::Refused), "the look goes on");
        assert_eq!(intakes.idle(), ["other"]);
        assert!(!heard(BusError::Down));
        assert!(intakes.idle().is_empty());
    }

    #[test]
    fn who_left_is_not_looked_at_and_of_many_each_has_its_turn() {
        let intakes = Intakes::default();
        let names: Vec<String> = (0..QUEUES + 10).map(|n| format!("q{n}")).collect();
        let mut all: Vec<_> = names
            .iter()
            .map(|name| intakes.add("reader", &of(name), 1))
            .collect();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..2 {
            let some = intakes.some();
            assert_eq!(some.len(), QUEUES);
            seen.extend(some.iter().map(|one| one.subscription.topic.to_string()));
        }
        assert_eq!(seen.len(), names.len());
        all.truncate(1);
        assert_eq!(intakes.some().len(), 1);
        // Its message is still in hand.
        let _in_hand = all[0].hold();
        all.clear();
        assert!(intakes.some().is_empty());
    }
}
