//! Sole-owner claims: exclusive queues, which the broker gives to one connection at a time.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::Mutex;
use tg_schemas::topic::SPACE;

use super::session::Session;
use super::topology;
use super::wire::Fault;
use crate::bus::{BusError, Mode};

/// After a reconnect the broker may still hold a claim for the old connection; this often we ask again
/// before somebody else has it.
const TRIES: u32 = 20;

/// All claims of this process.
pub(super) struct Claims {
    prefix: &'static str,
    held: Mutex<HashMap<String, Arc<Held>>>,
}

/// One claim.
pub(super) struct Held {
    /// The name that was claimed.
    pub(super) name: String,
    holds: AtomicBool,
    tries: AtomicU32,
}

impl Held {
    /// Whether it stands.
    pub(super) fn holds(&self) -> bool {
        self.holds.load(Ordering::Acquire)
    }
}

impl Claims {
    /// No claims yet.
    pub(super) fn new(mode: Mode) -> Self {
        Self {
            prefix: mode.prefix().unwrap_or(SPACE),
            held: Mutex::default(),
        }
    }

    /// Claims a name; `None` while somebody has it, this process included.
    pub(super) async fn claim(
        &self,
        session: &Session,
        name: &str,
    ) -> Result<Option<Arc<Held>>, BusError> {
        let held = Arc::new(Held {
            name: name.to_owned(),
            holds: AtomicBool::new(false),
            tries: AtomicU32::new(0),
        });
        {
            let mut all = self.held.lock();
            if all.contains_key(name) {
                return Ok(None);
            }
            all.insert(name.to_owned(), held.clone());
        }
        match topology::declare_claim(session, &self.queue(name)).await {
            Ok(()) => {
                held.holds.store(true, Ordering::Release);
                Ok(Some(held))
            }
            Err(fault) => {
                self.held.lock().remove(name);
                match fault {
                    Fault::Locked => Ok(None),
                    other => Err(other.into()),
                }
            }
        }
    }

    /// Gives a name up.
    pub(super) async fn release(&self, session: Option<&Session>, name: &str) {
        let held = self.held.lock().remove(name);
        let holds = held.is_some_and(|held| held.holds.swap(false, Ordering::AcqRel));
        if let Some(session) = session.filter(|_| holds) {
            let _ = topology::delete_queue(session, &self.queue(name)).await;
        }
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
    /// while. Returns whether asking again may help.
    pub(super) async fn resume(&self, session: &Session) -> Result<bool, Fault> {
        let waiting: Vec<Arc<Held>> = {
            let held = self.held.lock();
            let waits = |held: &&Arc<Held>| held.tries.load(Ordering::Acquire) > 0;
            held.values().filter(waits).cloned().collect()
        };
        let mut again = false;
        for held in waiting {
            match topology::declare_claim(session, &self.queue(&held.name)).await {
                Ok(()) => {
                    held.tries.store(0, Ordering::Release);
                    held.holds.store(true, Ordering::Release);
                }
                Err(Fault::Locked) => {
                    again |= held.tries.fetch_sub(1, Ordering::AcqRel) > 1;
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(again)
    }

    fn queue(&self, name: &str) -> String {
        format!("{}.claim.{name}", self.prefix)
    }
}
