//! Sole-owner claims, the bus's half of a **lease**: exclusive queues, which the broker gives to one connection at a
//! time.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::Mutex;
use tg_schemas::topic::SPACE;

use super::session::Session;
use super::topology;
use super::wire::AmqpError;
use crate::bus::{BusError, Delete};
use crate::mode::WireRules;

/// After a reconnect the broker may still hold a claim for the old connection; this often we ask again
/// before somebody else has it.
const TRIES: u32 = 20;

/// All claims of this process.
pub(super) struct Claims {
    prefix: &'static str,
    held: Mutex<HashMap<String, Arc<ClaimState>>>,
}

/// One claim.
pub(super) struct ClaimState {
    /// The name that was claimed.
    pub(super) name: String,
    holds: AtomicBool,
    /// It is being claimed for the first time.
    asking: AtomicBool,
    /// How often it will still be asked for after an outage.
    tries: AtomicU32,
}

impl ClaimState {
    /// Whether it stands.
    pub(super) fn holds(&self) -> bool {
        self.holds.load(Ordering::Acquire)
    }
}

impl Claims {
    /// No claims yet.
    pub(super) fn new(rules: &WireRules) -> Self {
        Self {
            prefix: rules.prefix.unwrap_or(SPACE),
            held: Mutex::default(),
        }
    }

    /// Claims a name; `None` while somebody has it, this process included. A claim of this process that
    /// was lost is replaced.
    pub(super) async fn claim(
        &self,
        session: &Session,
        name: &str,
    ) -> Result<Option<Arc<ClaimState>>, BusError> {
        let held = Arc::new(ClaimState {
            name: name.to_owned(),
            holds: AtomicBool::new(false),
            asking: AtomicBool::new(true),
            tries: AtomicU32::new(0),
        });
        {
            let mut all = self.held.lock();
            let stands =
                |held: &Arc<ClaimState>| held.holds() || held.asking.load(Ordering::Acquire);
            if all.get(name).is_some_and(stands) {
                return Ok(None);
            }
            all.insert(name.to_owned(), held.clone());
        }
        let declared = topology::declare_claim(session, &self.queue(name)).await;
        held.asking.store(false, Ordering::Release);
        match declared {
            Ok(()) => {
                held.holds.store(true, Ordering::Release);
                Ok(Some(held))
            }
            Err(fault) => {
                self.remove(&held);
                match fault {
                    AmqpError::Locked => Ok(None),
                    other => Err(other.into()),
                }
            }
        }
    }

    /// Whether this process holds the claim to a name.
    pub(super) fn holds(&self, name: &str) -> bool {
        self.held.lock().get(name).is_some_and(|held| held.holds())
    }

    /// Gives a claim up.
    pub(super) async fn release(&self, session: Option<&Session>, held: &Arc<ClaimState>) {
        let ours = self.remove(held);
        let holds = held.holds.swap(false, Ordering::AcqRel);
        if let Some(session) = session.filter(|_| ours && holds) {
            let _ = topology::delete_queue(session, &self.queue(&held.name), Delete::Always).await;
        }
    }

    /// Forgets a claim, unless another one has taken its place.
    fn remove(&self, held: &Arc<ClaimState>) -> bool {
        let mut all = self.held.lock();
        let ours = all
            .get(&held.name)
            .is_some_and(|known| Arc::ptr_eq(known, held));
        if ours {
            all.remove(&held.name);
        }
        ours
    }

    /// The connection is gone, and with it every claim.
    pub(super) fn suspend(&self) {
        for held in self.held.lock().values() {
            if held.holds.swap(false, Ordering::AcqRel) {
                held.tries.store(TRIES, Ordering::Release);
            }
        }
    }

    /// Claims again what was held before the connection was lost, unless somebody else has had it for a
    /// while. Returns whether asking again may help; an error of one claim keeps no other from being asked for.
    pub(super) async fn resume(&self, session: &Session) -> Result<bool, AmqpError> {
        let waiting: Vec<Arc<ClaimState>> = {
            let held = self.held.lock();
            let waits = |held: &&Arc<ClaimState>| held.tries.load(Ordering::Acquire) > 0;
            held.values().filter(waits).cloned().collect()
        };
        let (mut again, mut failed) = (false, None);
        for held in waiting {
            match topology::declare_claim(session, &self.queue(&held.name)).await {
                Ok(()) => {
                    if !self.regain(&held) {
                        self.delete_given_up(session, &held).await;
                    }
                }
                Err(AmqpError::Locked) => {
                    again |= held.tries.fetch_sub(1, Ordering::AcqRel) > 1;
                }
                Err(fault) if !session.connected() => return Err(fault),
                Err(fault) => failed = Some(fault),
            }
        }
        failed.map_or(Ok(again), Err)
    }

    /// Notes that the broker has given a claim once more. `false`: it was given up meanwhile, so its queue has to go. Nobody here
    /// claims the name until [`Self::remove`].
    fn regain(&self, held: &Arc<ClaimState>) -> bool {
        held.tries.store(0, Ordering::Release);
        let mut all = self.held.lock();
        match all.get(&held.name) {
            Some(known) if Arc::ptr_eq(known, held) => held.holds.store(true, Ordering::Release),
            // Another claim of this process took its place, and needs the queue.
            Some(_) => {}
            None => {
                held.asking.store(true, Ordering::Release);
                all.insert(held.name.clone(), held.clone());
                return false;
            }
        }
        true
    }

    /// Deletes the queue of a claim that nobody wants any more.
    async fn delete_given_up(&self, session: &Session, held: &Arc<ClaimState>) {
        // Also when whoever resumes is gone before the broker answers.
        let _removed = Removed { claims: self, held };
        let _ = topology::delete_queue(session, &self.queue(&held.name), Delete::Always).await;
    }

    fn queue(&self, name: &str) -> String {
        format!("{}.claim.{name}", self.prefix)
    }
}

/// Forgets a claim when it is dropped.
struct Removed<'a> {
    claims: &'a Claims,
    held: &'a Arc<ClaimState>,
}

impl Drop for Removed<'_> {
    fn drop(&mut self) {
        self.claims.remove(self.held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A claim that is asked for again.
    fn waiting(claims: &Claims) -> Arc<ClaimState> {
        let held = Arc::new(ClaimState {
            name: "store".to_owned(),
            holds: AtomicBool::new(false),
            asking: AtomicBool::new(false),
            tries: AtomicU32::new(TRIES),
        });
        let mut all = claims.held.lock();
        all.insert(held.name.clone(), held.clone());
        held
    }

    fn claims() -> Claims {
        Claims {
            prefix: SPACE,
            held: Mutex::default(),
        }
    }

    #[test]
    fn a_claim_that_was_given_up_is_not_held_again() {
        let claims = claims();
        let held = waiting(&claims);
        assert!(claims.remove(&held));
        assert!(!claims.regain(&held));
        assert!(!held.holds() && !claims.holds("store"));
        let kept = claims.held.lock().get("store").cloned();
        let kept = kept.expect("nobody claims the name before its queue is gone");
        assert!(kept.asking.load(Ordering::Acquire));
        drop(Removed {
            claims: &claims,
            held: &held,
        });
        assert!(claims.held.lock().is_empty());
    }

    #[test]
    fn a_claim_of_which_another_one_took_the_place_is_left_to_that_one() {
        let claims = claims();
        let first = waiting(&claims);
        let second = waiting(&claims);
        assert!(claims.regain(&first));
        assert!(!first.holds());
        assert!(claims.regain(&second));
        assert!(second.holds() && claims.holds("store"));
    }
}
