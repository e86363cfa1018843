//! A pool of bytes that users share fairly: each may hold a part of it only, and who waits for their own share to come
//! back is in nobody else's way. Users are whoever the owner of the pool tells apart: workspaces, or people.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The pool.
#[derive(Debug, Clone)]
pub struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    total: usize,
    /// What one user may hold.
    each: usize,
}

#[derive(Debug, Default)]
struct State {
    used: usize,
    users: HashMap<Arc<str>, usize>,
    /// In the order in which they came. Bounded by who may wait: the owner of the pool sees to that.
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    user: Arc<str>,
    units: usize,
    /// What is held already where this goes to.
    held: UnitsInUse,
    /// Units that others, who hold something, took meanwhile without waiting.
    passed: usize,
    granted: oneshot::Sender<Share>,
}

/// Why nothing was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTaken {
    /// It is more than there will ever be.
    TooLarge,
    /// The pool is gone.
    Gone,
}

/// Units that are held in one place, such as a socket. Changed under the lock of the pool.
pub type UnitsInUse = Arc<AtomicUsize>;

/// What somebody holds, until it is dropped.
#[derive(Debug)]
pub struct Share {
    pool: Arc<Shared>,
    user: Arc<str>,
    units: usize,
    held: Option<UnitsInUse>,
}

impl Pool {
    /// So much in all, and for one user.
    pub fn new(total: usize, each: usize) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::default(),
            total,
            each: each.min(total),
        }))
    }

    /// The most that can be had at once.
    pub fn total(&self) -> usize {
        self.0.total
    }

    /// The most that one user can have.
    pub fn each(&self) -> usize {
        self.0.each
    }

    /// Takes units that are free now.
    pub fn try_take(&self, user: &Arc<str>, units: usize) -> Option<Share> {
        let mut state = self.0.state.lock();
        let own = state.users.get(user).copied().unwrap_or(0);
        let fits = own.saturating_add(units) <= self.0.each
            && state.used.saturating_add(units) <= self.0.total;
        if !fits {
            return None;
        }
        // What is free is kept for who waits already, but from who holds something: that they go on makes room. They do so
        // until the whole pool went past who waits, or large ones would wait for ever.
        let mut waiting = std::mem::take(&mut state.waiting);
        let is_before = |one: &Waiting| {
            let waits = one.user == *user || self.0.waits_for_room(&state, one);
            waits && !one.granted.is_closed()
        };
        let mut before: Vec<_> = waiting.iter_mut().filter(|one| is_before(one)).collect();
        let passes = |one: &&mut Waiting| own > 0 && one.passed + units <= self.0.total;
        let is_next = before.iter().all(passes);
        if is_next {
            for one in &mut before {
                one.passed += units;
            }
        }
        state.waiting = waiting;
        is_next.then(|| self.0.give(&mut state, user, units, None))
    }

    /// Waits for units. Who holds nothing may have more than a user's share.
    ///
    /// # Errors
    /// [`NotTaken::TooLarge`] for more than [`Pool::total`], which would never come.
    pub async fn take(&self, user: &Arc<str>, units: usize) -> Result<Share, NotTaken> {
        self.take_at(user, units, &UnitsInUse::default()).await
    }

    /// The same for one of many places: it may hold as much as is free beside. So however many places are stuck, something
    /// is left for others, and the more there are the less each has.
    ///
    /// # Errors
    /// As of [`Pool::take`].
    pub async fn take_at(
        &self,
        user: &Arc<str>,
        units: usize,
        held: &UnitsInUse,
    ) -> Result<Share, NotTaken> {
        if units > self.0.total {
            return Err(NotTaken::TooLarge);
        }
        let granted = {
            let (sender, granted) = oneshot::channel();
            let mut state = self.0.state.lock();
            state.waiting.push_back(Waiting {
                user: user.clone(),
                units,
                held: held.clone(),
                passed: 0,
                granted: sender,
            });
            granted
        };
        self.0.serve();
        granted.await.map_err(|_| NotTaken::Gone)
    }
}

impl Shared {
    fn give(
        self: &Arc<Self>,
        state: &mut State,
        user: &Arc<str>,
        units: usize,
        held: Option<UnitsInUse>,
    ) -> Share {
        state.used += units;
        if let Some(held) = &held {
            held.fetch_add(units, Ordering::Relaxed);
        }
        *state.users.entry(user.clone()).or_default() += units;
        Share {
            pool: self.clone(),
            user: user.clone(),
            units,
            held,
        }
    }

    /// Whether somebody who waits lacks room in the pool, and not a part of their own share.
    fn waits_for_room(&self, state: &State, one: &Waiting) -> bool {
        let own = state.users.get(&one.user).copied().unwrap_or(0);
        let here = one.held.load(Ordering::Relaxed);
        let free = self.total.saturating_sub(state.used);
        // Where one may have it all, who finds no room is waited for.
        let has_its_part = self.each < self.total && own > 0 && own + one.units > self.each;
        !has_its_part && (here == 0 || here + one.units <= free)
    }

    /// Serves who waits: in order, but past those who have their share already. Who only lacks room in the pool is
    /// waited for, or small ones would keep large ones out for ever.
    fn serve(self: &Arc<Self>) {
        let mut granted = Vec::new();
        {
            let mut state = self.state.lock();
            state.waiting.retain(|one| !one.granted.is_closed());
            let mut at = 0;
            while let Some(one) = state.waiting.get(at) {
                let (user, units) = (one.user.clone(), one.units);
                if !self.waits_for_room(&state, one) {
                    at += 1;
                } else if state.used + units > self.total {
                    break;
                } else if let Some(one) = state.waiting.remove(at) {
                    let share = self.give(&mut state, &user, units, Some(one.held));
                    granted.push((one.granted, share));
                }
            }
        }
        for (sender, share) in granted {
            // Who went meanwhile gives back at once.
            drop(sender.send(share));
        }
    }
}

impl Share {
    /// How much it is.
    pub fn units(&self) -> usize {
        self.units
    }

    /// Holds what another one does, too: of the same user in the same pool and place.
    pub fn join(&mut self, mut other: Self) {
        self.units += std::mem::take(&mut other.units);
    }

    /// Gives back what is more than so much.
    pub fn shrink(&mut self, units: usize) {
        let less = self.units.saturating_sub(units);
        if less > 0 {
            self.units -= less;
            // What is dropped gives itself back.
            drop(Self {
                pool: self.pool.clone(),
                user: self.user.clone(),
                units: less,
                held: self.held.clone(),
            });
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        {
            let mut state = self.pool.state.lock();
            state.used -= self.units;
            if let Some(held) = &self.held {
                held.fetch_sub(self.units, Ordering::Relaxed);
            }
            if let Some(own) = state.users.get_mut(&self.user) {
                *own -= self.units;
                if *own == 0 {
                    state.users.remove(&self.user);
                }
            }
        }
        self.pool.serve();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn a_user_has_a_share_and_others_pass_who_waits_for_it() {
        let pool = Pool::new(10, 6);
        let (ann, bob) = (Arc::from("ann"), Arc::from("bob"));
        let held = pool.try_take(&ann, 6).unwrap();
        assert!(pool.try_take(&ann, 1).is_none());
        let mut second = Box::pin(pool.take(&ann, 5));
        assert!((&mut second).now_or_never().is_none());
        let others = pool.take(&bob, 4).now_or_never().unwrap();
        assert!(others.is_ok(), "ann waits for herself only");
        drop(held);
        assert!(second.now_or_never().unwrap().is_ok());
    }

    #[test]
    fn who_comes_later_does_not_overtake_who_waits() {
        let pool = Pool::new(10, 8);
        let (ann, bob, eve) = (Arc::from("ann"), Arc::from("bob"), Arc::from("eve"));
        let held = pool.try_take(&ann, 6).unwrap();
        let mut large = Box::pin(pool.take(&bob, 5));
        assert!((&mut large).now_or_never().is_none());
        assert!(pool.try_take(&eve, 1).is_none(), "what is free is for bob");
        let more = pool.try_take(&ann, 1);
        assert!(more.is_some(), "who holds something goes on");
        drop((held, more));
        let large = large.now_or_never().unwrap();
        assert!(large.is_ok() && pool.try_take(&eve, 1).is_some());
    }

    #[test]
    fn who_holds_something_passes_who_waits_for_a_time_only() {
        let pool = Pool::new(10, 8);
        let (ann, bob) = (Arc::from("ann"), Arc::from("bob"));
        let mut held = pool.try_take(&ann, 4);
        let mut large = Box::pin(pool.take(&bob, 9));
        assert!((&mut large).now_or_never().is_none());
        // Ann is never without, and gives back what she had each time.
        let mut taken = 0;
        while let Some(more) = pool.try_take(&ann, 4) {
            held = Some(more);
            taken += 1;
            assert!(taken <= 2, "bob waits for ever");
        }
        assert_eq!(taken, 2);
        drop(held);
        assert!(large.now_or_never().unwrap().is_ok());
    }

    #[test]
    fn who_waits_for_their_own_share_is_not_kept_out_by_themselves() {
        let pool = Pool::new(20, 8);
        let ann = Arc::from("ann");
        let mut held = pool.try_take(&ann, 4);
        let mut large = Box::pin(pool.take(&ann, 8));
        assert!((&mut large).now_or_never().is_none());
        let mut taken = 0;
        while let Some(more) = pool.try_take(&ann, 4) {
            held = Some(more);
            taken += 1;
            assert!(taken <= 5, "ann waits for ever");
        }
        drop(held);
        assert!(large.now_or_never().unwrap().is_ok());
    }

    #[test]
    fn more_than_all_there_is_never_waits() {
        let pool = Pool::new(10, 5);
        let ann = Arc::from("ann");
        let all = pool.take(&ann, 10).now_or_never().unwrap();
        assert!(all.is_ok(), "who holds nothing may have it all");
        let more = pool.take(&ann, 11).now_or_never().unwrap();
        assert_eq!(more.err(), Some(NotTaken::TooLarge));
        assert!(pool.try_take(&ann, usize::MAX).is_none());
    }

    #[test]
    fn what_shrinks_gives_back_the_rest_once() {
        let pool = Pool::new(10, 10);
        let ann = Arc::from("ann");
        let mut held = pool.try_take(&ann, 10).unwrap();
        held.shrink(20);
        assert!(pool.try_take(&ann, 1).is_none());
        held.shrink(4);
        let rest = pool.try_take(&ann, 6).unwrap();
        assert!(pool.try_take(&ann, 1).is_none());
        held.join(rest);
        assert_eq!(held.units(), 10);
        assert!(pool.try_take(&ann, 1).is_none());
        drop(held);
        assert!(pool.try_take(&ann, 10).is_some());
    }

    #[test]
    fn places_that_are_stuck_leave_something() {
        let pool = Pool::new(16, 16);
        let user = Arc::from("");
        let places: Vec<UnitsInUse> = (0..4).map(|_| UnitsInUse::default()).collect();
        let mut held = Vec::new();
        for _ in 0..16 {
            for place in &places {
                held.extend(pool.take_at(&user, 1, place).now_or_never());
            }
        }
        assert_eq!(held.len(), 13, "a fifth is left, about");
        let other = UnitsInUse::default();
        assert!(pool.take_at(&user, 3, &other).now_or_never().is_some());
        drop(held);
        assert!(
            places
                .iter()
                .all(|place| place.load(Ordering::Relaxed) == 0)
        );
    }

    #[test]
    fn who_lacks_room_is_waited_for() {
        let pool = Pool::new(10, 10);
        let users: Vec<Arc<str>> = vec!["a".into(), "b".into(), "c".into()];
        let held = pool.try_take(&users[0], 4).unwrap();
        let mut large = Box::pin(pool.take(&users[1], 8));
        assert!((&mut large).now_or_never().is_none());
        let mut small = Box::pin(pool.take(&users[2], 3));
        assert!((&mut small).now_or_never().is_none());
        drop(held);
        let large = large.now_or_never().unwrap();
        assert!(large.is_ok() && (&mut small).now_or_never().is_none());
        drop(large);
        assert!(small.now_or_never().unwrap().is_ok());
    }

    #[test]
    fn who_stops_waiting_is_in_nobodys_way_and_nothing_is_lost() {
        let pool = Pool::new(4, 4);
        let (ann, bob) = (Arc::from("ann"), Arc::from("bob"));
        let held = pool.try_take(&ann, 4);
        let mut gone = Box::pin(pool.take(&bob, 4));
        assert!((&mut gone).now_or_never().is_none());
        let mut granted = Box::pin(pool.take(&bob, 4));
        assert!((&mut granted).now_or_never().is_none());
        drop(gone);
        drop(held);
        // Granted, but nobody looks any more.
        drop(granted);
        assert!(pool.try_take(&ann, 4).is_some());
        assert!(pool.0.state.lock().users.is_empty());
    }
}
