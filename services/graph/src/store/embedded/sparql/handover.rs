//! Results on their way from a query's thread to its reader: a few at a time. The thread waits for the reader no
//! longer than it says; the reader never holds a thread.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

/// Parts that may wait for the reader.
const ROOM: usize = 2;

/// The thread's end. Dropped, it ends what the reader hears.
pub(super) struct Giver<T>(Arc<Shared<T>>);

/// The reader's end. Dropped, it tells the thread to end.
pub(super) struct Taker<T>(Arc<Shared<T>>);

struct Shared<T> {
    state: Mutex<State<T>>,
    room: Condvar,
    news: Notify,
}

struct State<T> {
    parts: VecDeque<T>,
    giver_gone: bool,
    taker_gone: bool,
}

/// Why a part was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused<T> {
    /// There is no room at the moment.
    Full(T),
    /// Nobody reads any more.
    Gone,
}

pub(super) fn handover<T>() -> (Giver<T>, Taker<T>) {
    let shared = Arc::new(Shared {
        state: Mutex::new(State {
            parts: VecDeque::with_capacity(ROOM + 1),
            giver_gone: false,
            taker_gone: false,
        }),
        room: Condvar::new(),
        news: Notify::new(),
    });
    (Giver(shared.clone()), Taker(shared))
}

impl<T> Giver<T> {
    /// Hands over a part if there is room for it now.
    pub(super) fn give(&self, part: T) -> Result<(), Refused<T>> {
        self.give_within(part, Duration::ZERO)
    }

    /// Waits for room, so long at most.
    pub(super) fn give_within(&self, part: T, longest: Duration) -> Result<(), Refused<T>> {
        let mut state = self.0.state.lock();
        self.0.room.wait_while_for(
            &mut state,
            |state| state.parts.len() >= ROOM && !state.taker_gone,
            longest,
        );
        if state.taker_gone {
            return Err(Refused::Gone);
        }
        if state.parts.len() >= ROOM {
            return Err(Refused::Full(part));
        }
        state.parts.push_back(part);
        drop(state);
        self.0.news.notify_one();
        Ok(())
    }

    /// The last word, for which there is always room.
    pub(super) fn end(self, part: T) {
        self.0.state.lock().parts.push_back(part);
    }
}

impl<T> Drop for Giver<T> {
    fn drop(&mut self) {
        self.0.state.lock().giver_gone = true;
        self.0.news.notify_one();
    }
}

impl<T> Taker<T> {
    /// The next part; `None` when there are no more.
    pub(super) async fn take(&mut self) -> Option<T> {
        loop {
            {
                let mut state = self.0.state.lock();
                if let Some(part) = state.parts.pop_front() {
                    self.0.room.notify_one();
                    return Some(part);
                }
                if state.giver_gone {
                    return None;
                }
            }
            self.0.news.notified().await;
        }
    }
}

impl<T> Drop for Taker<T> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.taker_gone = true;
        let parts = std::mem::take(&mut state.parts);
        drop(state);
        self.0.room.notify_one();
        drop(parts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn parts_come_in_order_and_the_last_word_always() {
        let (giver, mut taker) = handover();
        assert_eq!((giver.give(1), giver.give(2)), (Ok(()), Ok(())));
        assert_eq!(giver.give(3), Err(Refused::Full(3)));
        let wait = Duration::from_millis(5);
        assert_eq!(giver.give_within(3, wait), Err(Refused::Full(3)));
        let thread = std::thread::spawn(move || {
            let given = giver.give_within(3, Duration::from_secs(20));
            giver.end(4);
            given
        });
        let mut heard = Vec::new();
        while let Some(part) = taker.take().await {
            heard.push(part);
        }
        assert_eq!(heard, [1, 2, 3, 4]);
        assert_eq!(thread.join().unwrap(), Ok(()));
    }

    #[tokio::test]
    async fn who_waits_for_room_hears_that_nobody_reads() {
        let (giver, taker) = handover();
        let _ = (giver.give(1), giver.give(2));
        let thread = std::thread::spawn(move || giver.give_within(3, Duration::from_secs(20)));
        drop(taker);
        assert_eq!(thread.join().unwrap(), Err(Refused::Gone));
    }
}
