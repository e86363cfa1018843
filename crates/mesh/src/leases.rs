//! **Leader election** per store: holds a claim on the bus and the store's own lock; starts its processors while both
//! are held, stops them and lets the store go when the claim is lost, and stands by otherwise. The file lock
//! **fences**: whoever lost the claim cannot write to a store that another process opened. A store that is not the
//! one that served last (see `lease_record.rs`) never takes over.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tg_schemas::Error;
use tokio::time::Instant;

use crate::attached::Hosted;
use crate::lease_record::{self, Lease};
use crate::leased_store::Leased;
use crate::mesh::Mesh;
use tg_bus::TaskKind;
use tg_bus::{Claim, Link};

/// How often the claim is looked at, and asked for while standing by.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// Looks at a lost claim before it is believed: the bus adapter asks for it again by itself after a
/// reconnect. The store's own lock keeps others from serving meanwhile; without one there is no such grace.
const GRACE: u32 = 5;
/// How long a store that is not the one that served last leaves the claim to others.
const REFUSED: Duration = Duration::from_secs(5);

/// The stores of this process by name.
#[derive(Default)]
pub(crate) struct LeaderElection {
    stores: Mutex<HashMap<String, Arc<Candidacy>>>,
}

struct Candidacy {
    name: String,
    /// `None`: the claim alone decides.
    owned: Option<Arc<dyn Leased>>,
    members: Mutex<Vec<Arc<Hosted>>>,
    turn: tokio::sync::Mutex<Turn>,
    /// This store serves whichever served before.
    adopt: bool,
    /// It was said that another store served before.
    refused: AtomicBool,
}

#[derive(Default)]
struct Turn {
    claim: Option<Box<dyn Claim>>,
    missed: u32,
    serving: bool,
    /// The store was found to be the one that served last.
    checked: bool,
    /// It was found not to be; not looked at again before.
    not_before: Option<Instant>,
}

impl LeaderElection {
    /// Adds a processor to those of a store. It serves as soon as, and as long as, this process owns it.
    pub(crate) async fn join(
        &self,
        mesh: &Mesh,
        store: &str,
        owned: Option<Arc<dyn Leased>>,
        served: &Arc<Hosted>,
    ) {
        let mut new = false;
        let kept = {
            let mut stores = self.stores.lock();
            let kept = stores.entry(store.to_owned()).or_insert_with(|| {
                new = true;
                Arc::new(Candidacy {
                    name: store.to_owned(),
                    owned,
                    members: Mutex::default(),
                    turn: tokio::sync::Mutex::default(),
                    adopt: mesh.adopts(store),
                    refused: AtomicBool::new(false),
                })
            });
            kept.clone()
        };
        let mut turn = kept.turn.lock().await;
        kept.members.lock().push(served.clone());
        if turn.serving {
            served.begin(mesh).await;
        } else {
            let outcome = kept.look(mesh, &mut turn).await;
            match &outcome {
                _ if turn.serving => {}
                Ok(()) => {
                    tracing::warn!(processor = %served.id, "another process holds the lease of this store; waiting as standby");
                }
                // A bus that went away just now is asked again when it is back.
                Err(error) => {
                    tracing::warn!(processor = %served.id, %error, "the lease of this store cannot be checked; waiting as standby");
                }
            }
            if !turn.serving {
                served.stand_by(mesh).await;
            }
        }
        drop(turn);
        if new {
            let mesh = mesh.clone();
            mesh.clone()
                .spawn(TaskKind::Background, async move { kept.keep(&mesh).await });
        }
    }

    /// Lets every store go; nothing of this process serves any more.
    pub(crate) async fn release_all(&self) {
        let all: Vec<_> = self.stores.lock().values().cloned().collect();
        for kept in all {
            if let Some(owned) = &kept.owned {
                owned.release().await;
            }
        }
    }
}

impl Candidacy {
    async fn keep(&self, mesh: &Mesh) {
        loop {
            tokio::select! {
                () = mesh.stopping().cancelled() => return,
                () = tokio::time::sleep(RETRY_DELAY) => {}
            }
            let mut turn = self.turn.lock().await;
            if mesh.stopping().is_cancelled() {
                return;
            }
            if let Err(error) = self.look(mesh, &mut turn).await {
                tracing::debug!(store = %self.name, %error, "the lease cannot be checked");
            }
        }
    }

    async fn look(&self, mesh: &Mesh, turn: &mut Turn) -> Result<(), Error> {
        let holds = self.holds(mesh, turn).await?;
        let members = self.members.lock().clone();
        if holds && !turn.serving {
            turn.serving = true;
            tracing::debug!(store = %self.name, "this process owns the store");
            for served in members {
                served.begin(mesh).await;
            }
        } else if !holds && turn.serving {
            turn.serving = false;
            turn.checked = false;
            tracing::warn!(store = %self.name, "lost the lease; waiting as standby");
            let ends = members.iter().map(|served| served.end(mesh));
            futures::future::join_all(ends).await;
            if let Some(owned) = &self.owned {
                owned.release().await;
            }
        }
        Ok(())
    }

    /// Whether this process holds the claim and the store.
    async fn holds(&self, mesh: &Mesh, turn: &mut Turn) -> Result<bool, Error> {
        if turn.not_before.is_some_and(|at| Instant::now() < at) {
            return Ok(false);
        }
        let stands = turn.claim.as_ref().map(|claim| claim.holds());
        match stands {
            Some(true) => turn.missed = 0,
            Some(false) => {
                if !matches!(*mesh.bus().link().borrow(), Link::Up { .. }) {
                    return Ok(turn.serving);
                }
                turn.missed += 1;
                if turn.serving && self.owned.is_some() && turn.missed < GRACE {
                    return Ok(true);
                }
                turn.claim = None;
            }
            None => {}
        }
        if turn.claim.is_none() {
            turn.claim = mesh.bus().claim(&self.name).await?;
            turn.missed = 0;
        }
        if turn.claim.is_none() {
            return Ok(false);
        }
        let Some(owned) = &self.owned else {
            return Ok(true);
        };
        match owned.acquire(mesh).await {
            Ok(false) => return Ok(false),
            Ok(true) => {}
            // Its processors say why.
            Err(_) => return Ok(true),
        }
        if turn.serving || turn.checked {
            return Ok(true);
        }
        turn.checked = self.served_last(mesh, &**owned).await?;
        if !turn.checked {
            owned.release().await;
            turn.claim = None;
            turn.not_before = Some(Instant::now() + REFUSED);
        }
        Ok(turn.checked)
    }

    /// Whether this process's store is the one that served last under its name. An empty or another one never takes
    /// over: what is confirmed into it would be lost to the rest.
    async fn served_last(&self, mesh: &Mesh, owned: &dyn Leased) -> Result<bool, Error> {
        // On the bus of one process the store and the bus share a directory.
        if mesh.bus().in_process() || !mesh.rules().leases {
            return Ok(true);
        }
        let Some(identity) = owned.identity().await? else {
            return Ok(true);
        };
        let adopt = self.adopt;
        let lease = lease_record::check(&**mesh.bus(), &self.name, &identity, adopt).await?;
        if lease == Lease::Others && !self.refused.swap(true, Ordering::AcqRel) {
            tracing::error!(
                store = %self.name,
                "another store of this name served before; waiting as standby: \
                 start with the data directory that it has, or with --adopt-store if it is lost"
            );
        }
        Ok(lease == Lease::Ours)
    }
}
