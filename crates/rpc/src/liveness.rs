//! Which other processes are connected: one that is silent is looked for at its inbox.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tg_bus::{Envelope, PublishMode, Routed, Target, TaskKind};

use crate::port::Port;

/// Pause between two looks for a process; two in a row that find nothing mean that it died.
const RETRY_DELAY: Duration = Duration::from_millis(150);
/// After a reconnect everybody is coming back for this long: nothing is concluded.
pub(crate) const COMING_BACK: Duration = Duration::from_secs(3);
/// Processes remembered; then memory starts over.
const KNOWN: usize = 4096;

/// What is known of other processes. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Liveness(Arc<Inner>);

struct Inner {
    port: Port,
    /// Processes that are being looked for.
    suspects: Mutex<HashSet<Arc<str>>>,
    /// Processes that were looked for when they were met.
    met: Mutex<HashSet<Arc<str>>>,
    /// Processes that were found connected once. Of others nothing is concluded: a process of an earlier release
    /// cannot be looked for.
    found: Mutex<HashSet<Arc<str>>>,
}

impl Liveness {
    pub(crate) fn new(port: Port) -> Self {
        Self(Arc::new(Inner {
            port,
            suspects: Mutex::default(),
            met: Mutex::default(),
            found: Mutex::default(),
        }))
    }

    /// Whether a process was found connected once.
    pub(crate) fn has_found(&self, inbox: &str) -> bool {
        self.0.found.lock().contains(inbox)
    }

    /// Looks once for a process that was not met before, so that its death can be told later.
    pub(crate) fn meet(&self, inbox: &Arc<str>) {
        if self.is_blind() || self.has_found(inbox) || !note(&self.0.met, inbox) {
            return;
        }
        self.look_for(inbox.clone(), |_| {});
    }

    /// Looks for a silent process, once at a time; `gone` is called when it was found before and is not found now.
    pub(crate) fn look_for(&self, inbox: Arc<str>, gone: impl FnOnce(&str) + Send + 'static) {
        if self.is_blind() || !self.0.suspects.lock().insert(inbox.clone()) {
            return;
        }
        let this = self.clone();
        self.0.port.spawn(TaskKind::Background, async move {
            let found_before = this.has_found(&inbox);
            let missed = this.misses(&inbox).await;
            this.0.suspects.lock().remove(&inbox);
            if missed && found_before && !this.0.port.reconnected_within(COMING_BACK) {
                gone(&inbox);
            }
        });
    }

    /// Whether two looks in a row find nothing.
    async fn misses(&self, inbox: &Arc<str>) -> bool {
        let target = Target::Liveness(inbox.clone());
        let mut missed = true;
        for _ in 0..2 {
            let look = Envelope::default();
            let port = &self.0.port;
            let found = port.publish(&target, look, PublishMode::Confirmed).await;
            missed &= found == Ok(Routed::Unroutable);
            if found == Ok(Routed::Queued) {
                note(&self.0.found, inbox);
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
        missed
    }

    /// Inside one process nobody dies alone; after an outage everybody is coming back.
    fn is_blind(&self) -> bool {
        let port = &self.0.port;
        port.bus().in_process() || port.reconnected_within(COMING_BACK)
    }
}

/// Whether the process is new to this memory.
fn note(memory: &Mutex<HashSet<Arc<str>>>, inbox: &Arc<str>) -> bool {
    let mut memory = memory.lock();
    if memory.len() >= KNOWN {
        memory.clear();
    }
    memory.insert(inbox.clone())
}
