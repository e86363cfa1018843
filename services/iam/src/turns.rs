//! Turns at what takes a processor: few at once, and those who wait are served in turn by where they come from. Who floods
//! from one network waits for itself, and where no room is left to wait, whoever has most of it makes some.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tg_schemas::{Error, ErrorCode};
use tokio::sync::oneshot;

/// Most that wait. More are told to come again.
pub(crate) const WAITING: usize = 64;

/// Whom a place in the row is counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Lane {
    /// Somebody who is not known yet: their network, if that is known.
    Stranger(Option<IpAddr>),
    /// Somebody who is known.
    Known([u8; 32]),
}

/// On whose behalf something is computed, how much at once at most, and with whom it waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim {
    pub(crate) whose: [u8; 32],
    pub(crate) most: usize,
    pub(crate) lane: Lane,
}

#[derive(Debug)]
struct Row {
    free: usize,
    waiting: usize,
    next: u64,
    /// Of each, those that wait or compute.
    of: HashMap<[u8; 32], usize>,
    lanes: HashMap<Lane, VecDeque<Waiter>>,
    /// Lanes in which somebody waits, each once: the first is next.
    order: VecDeque<Lane>,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    whose: [u8; 32],
    wake: oneshot::Sender<Result<Turn, Error>>,
}

/// Those that compute, and those that wait.
#[derive(Debug, Clone)]
pub(crate) struct Turns(Arc<Mutex<Row>>);

/// A place among those that compute, until dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    row: Arc<Mutex<Row>>,
    whose: [u8; 32],
}

impl Turns {
    pub(crate) fn new(at_once: usize) -> Self {
        Self(Arc::new(Mutex::new(Row {
            free: at_once,
            waiting: 0,
            next: 0,
            of: HashMap::new(),
            lanes: HashMap::new(),
            order: VecDeque::new(),
        })))
    }

    /// A place. Who does not wait for it any more leaves.
    ///
    /// # Errors
    /// `busy`: too many wait, or too many for this one.
    pub(crate) async fn turn(&self, claim: Claim) -> Result<Turn, Error> {
        let (number, woken, pushed_out) = {
            let mut row = self.0.lock();
            let own = row.of.get(&claim.whose).copied().unwrap_or(0);
            if own >= claim.most {
                return Err(busy());
            }
            if row.free > 0 {
                row.free -= 1;
                row.of.insert(claim.whose, own + 1);
                return Ok(Turn {
                    row: self.0.clone(),
                    whose: claim.whose,
                });
            }
            let pushed_out = match row.waiting >= WAITING {
                true => Some(row.make_room(claim.lane).ok_or_else(busy)?),
                false => None,
            };
            let (number, woken) = row.join(claim);
            (number, woken, pushed_out)
        };
        if let Some(waiter) = pushed_out {
            let _ = waiter.wake.send(Err(busy()));
        }
        let _leaves = Leaves {
            row: &self.0,
            lane: claim.lane,
            number,
        };
        let stopped = || Error::new(ErrorCode::Internal, "the password could not be looked at");
        woken.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Those that wait or compute.
    #[cfg(test)]
    pub(crate) fn all(&self) -> usize {
        self.0.lock().of.values().sum()
    }

    /// Those that wait.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.0.lock().waiting
    }
}

impl Row {
    fn join(&mut self, claim: Claim) -> (u64, oneshot::Receiver<Result<Turn, Error>>) {
        let (wake, woken) = oneshot::channel();
        let number = self.next;
        self.next += 1;
        self.waiting += 1;
        *self.of.entry(claim.whose).or_default() += 1;
        let lane = self.lanes.entry(claim.lane).or_default();
        if lane.is_empty() {
            self.order.push_back(claim.lane);
        }
        lane.push_back(Waiter {
            number,
            whose: claim.whose,
            wake,
        });
        (number, woken)
    }

    /// The youngest of the longest lane goes, if that is longer than this one will be; one of strangers goes for who is known.
    fn make_room(&mut self, lane: Lane) -> Option<Waiter> {
        let own = self.lanes.get(&lane).map_or(0, VecDeque::len);
        let is_stranger = |one: &Lane| matches!(one, Lane::Stranger(_));
        let lanes = self.lanes.iter();
        let (longest, waiters) = lanes.max_by_key(|(one, all)| (all.len(), is_stranger(one)))?;
        // Who is known is kept out by no strangers, however many networks these have.
        let yields = !is_stranger(&lane) && is_stranger(longest);
        if waiters.len() <= own + 1 && !yields {
            return None;
        }
        let (longest, number) = (*longest, waiters.back()?.number);
        self.leave(longest, number)
    }

    /// Takes one that waits out of the row.
    fn leave(&mut self, lane: Lane, number: u64) -> Option<Waiter> {
        let waiters = self.lanes.get_mut(&lane)?;
        let at = waiters.iter().position(|one| one.number == number)?;
        let waiter = waiters.remove(at)?;
        if waiters.is_empty() {
            self.lanes.remove(&lane);
            self.order.retain(|one| *one != lane);
        }
        self.waiting -= 1;
        self.discount(waiter.whose);
        Some(waiter)
    }

    fn discount(&mut self, whose: [u8; 32]) {
        if let Some(own) = self.of.get_mut(&whose) {
            *own -= 1;
            if *own == 0 {
                self.of.remove(&whose);
            }
        }
    }

    /// The next one, who computes from now on.
    fn next(&mut self) -> Option<Waiter> {
        let lane = self.order.pop_front()?;
        let waiters = self.lanes.get_mut(&lane)?;
        let waiter = waiters.pop_front();
        match waiters.is_empty() {
            true => drop(self.lanes.remove(&lane)),
            false => self.order.push_back(lane),
        }
        self.waiting -= usize::from(waiter.is_some());
        waiter
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let next = {
            let mut row = self.row.lock();
            row.discount(self.whose);
            let next = row.next();
            row.free += usize::from(next.is_none());
            next
        };
        if let Some(Waiter { whose, wake, .. }) = next {
            let row = self.row.clone();
            // Who went away meanwhile gives it back.
            drop(wake.send(Ok(Turn { row, whose })));
        }
    }
}

/// Leaves the row, unless it was served or pushed out.
struct Leaves<'a> {
    row: &'a Mutex<Row>,
    lane: Lane,
    number: u64,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.row.lock().leave(self.lane, self.number);
    }
}

fn busy() -> Error {
    let text = "too many passwords are being looked at; try again in 2 seconds";
    Error::new(ErrorCode::Busy, text)
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    type Pending<'a> = Pin<Box<dyn Future<Output = Result<Turn, Error>> + 'a>>;

    fn stranger(number: usize, from: u8) -> Claim {
        let mut whose = [0; 32];
        whose[..8].copy_from_slice(&(number as u64).to_be_bytes());
        Claim {
            whose,
            most: 2,
            lane: Lane::Stranger(Some(IpAddr::from([10, 0, 0, from]))),
        }
    }

    fn look(one: &mut Pending<'_>) -> Option<Result<Turn, Error>> {
        let mut context = Context::from_waker(Waker::noop());
        match one.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        }
    }

    /// So many of one address that wait, each for another name.
    fn flood(turns: &Turns, count: usize) -> Vec<Pending<'_>> {
        let waits = (0..count).map(|at| {
            let mut one: Pending<'_> = Box::pin(turns.turn(stranger(1_000 + at, 1)));
            assert!(look(&mut one).is_none());
            one
        });
        waits.collect()
    }

    #[tokio::test]
    async fn who_comes_from_elsewhere_is_next_whoever_floods() {
        let turns = Turns::new(1);
        let computes = turns.turn(stranger(0, 1)).await.unwrap();
        let mut flood = flood(&turns, WAITING);
        let mut more: Pending<'_> = Box::pin(turns.turn(stranger(7, 1)));
        let refused = look(&mut more).unwrap().unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Busy);
        assert!(refused.message.contains("in 2 seconds"), "{refused}");
        // Of the flood one makes room.
        let mut ada: Pending<'_> = Box::pin(turns.turn(stranger(8, 2)));
        assert!(look(&mut ada).is_none());
        let pushed_out = look(flood.last_mut().unwrap()).unwrap().unwrap_err();
        assert_eq!(pushed_out.code(), ErrorCode::Busy);
        drop(computes);
        let one = look(&mut flood[0]).unwrap().unwrap();
        drop(one);
        let ada = look(&mut ada).expect("one of the flood, then another's");
        drop(ada.unwrap());
        assert!(look(&mut flood[1]).unwrap().is_ok());
        drop(flood);
        assert_eq!((turns.all(), turns.waiting()), (0, 0));
        assert_eq!(turns.0.lock().free, 1);
    }

    #[tokio::test]
    async fn who_goes_away_leaves_and_what_was_theirs_already_goes_on() {
        let turns = Turns::new(1);
        let computes = turns.turn(stranger(0, 1)).await.unwrap();
        let mut flood = flood(&turns, 3);
        drop(flood.remove(1));
        assert_eq!(turns.waiting(), 2);
        drop(computes);
        // Handed over, and never looked at.
        drop(flood.remove(0));
        assert!(look(&mut flood[0]).unwrap().is_ok());
        drop(flood);
        assert_eq!((turns.all(), turns.waiting()), (0, 0));
        assert_eq!(turns.0.lock().free, 1);
    }
}
