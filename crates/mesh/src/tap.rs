//! [`Tap`]: looking on while records pass, without being one of their readers.
//!
//! A tap sees what is published from when it is opened. It holds nothing up: who looks on too slowly misses
//! records, and learns how many.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tg_schemas::{Class, Error, ErrorCode, Message, Topic, limits};
use tokio::sync::mpsc;

use crate::mesh::Mesh;
use tg_bus::{Consumer, Delivery, Envelope, Sink};

/// Records that may wait for whoever looks on, whose bytes have a limit of their own; those of all taps of a process are
/// bounded besides.
const MOST: usize = 1024;

/// An open tap. Dropping it closes it.
pub struct Tap<M> {
    _consumer: Box<dyn Consumer>,
    waiting: mpsc::Receiver<Envelope>,
    shared: Arc<Shared>,
    kind: PhantomData<fn() -> M>,
}

struct Shared {
    bytes: AtomicUsize,
    missed: AtomicU64,
    /// Bytes in all taps of the process, and how many there may be.
    all: Arc<AtomicUsize>,
    most: usize,
}

impl Shared {
    /// Counts a record that is to wait; `false`: there is no room.
    fn take(&self, size: usize) -> bool {
        let own = self.bytes.fetch_add(size, Ordering::AcqRel);
        let all = self.all.fetch_add(size, Ordering::AcqRel);
        own <= limits::TAP && all <= self.most
    }

    fn give_back(&self, size: usize) {
        self.bytes.fetch_sub(size, Ordering::AcqRel);
        self.all.fetch_sub(size, Ordering::AcqRel);
    }
}

/// What nobody took goes with the tap.
impl Drop for Shared {
    fn drop(&mut self) {
        let left = *self.bytes.get_mut();
        self.all.fetch_sub(left, Ordering::AcqRel);
    }
}

struct Passing {
    waiting: mpsc::Sender<Envelope>,
    shared: Arc<Shared>,
}

impl Sink for Passing {
    fn deliver(&self, mut delivery: Delivery) {
        let envelope = std::mem::take(&mut delivery.envelope);
        delivery.ack();
        let size = envelope.body.len();
        if !self.shared.take(size) || self.waiting.try_send(envelope).is_err() {
            self.shared.give_back(size);
            self.shared.missed.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Mesh {
    /// Opens a tap on a topic of records or of notices.
    ///
    /// # Errors
    /// `bad-request` where the topic is neither; else the bus does not let anybody look on now.
    pub async fn tap<M: Message>(&self, topic: &Topic) -> Result<Tap<M>, Error> {
        if !matches!(topic.class(), Class::Flow | Class::Notify) {
            return Err(Error::new(
                ErrorCode::BadRequest,
                "topic: carries neither records nor notices",
            ));
        }
        let (sender, waiting) = mpsc::channel(MOST);
        let shared = Arc::new(Shared {
            bytes: AtomicUsize::new(0),
            missed: AtomicU64::new(0),
            all: self.tapped(),
            most: self.options().taps,
        });
        let passing = Passing {
            waiting: sender,
            shared: shared.clone(),
        };
        Ok(Tap {
            _consumer: self.bus().observe(topic, Arc::new(passing)).await?,
            waiting,
            shared,
            kind: PhantomData,
        })
    }
}

impl<M: Message> Tap<M> {
    /// The next record; `None` when the bus is closed. One that cannot be read is an `Err`, and the next one
    /// may be fine.
    pub async fn next(&mut self) -> Option<Result<M, Error>> {
        let envelope = self.waiting.recv().await?;
        self.shared.give_back(envelope.body.len());
        Some(envelope.read().map_err(Error::from))
    }

    /// How many records passed unseen so far.
    pub fn missed(&self) -> u64 {
        self.shared.missed.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_taps_together_hold_no_more_than_their_share() {
        let all = Arc::new(AtomicUsize::new(0));
        let tap = || Shared {
            bytes: AtomicUsize::new(0),
            missed: AtomicU64::new(0),
            all: all.clone(),
            most: 100,
        };
        let (first, second) = (tap(), tap());
        assert!(first.take(80) && second.take(80));
        assert!(!second.take(1), "the others' count too");
        second.give_back(1);
        // Closed with records in it.
        drop(first);
        assert!(second.take(1));
        drop(second);
        assert_eq!(all.load(Ordering::Acquire), 0);
    }
}
