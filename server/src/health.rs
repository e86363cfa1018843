//! Whether this process serves what it hosts: for the probes of containers and whoever balances load. It looks at what the
//! process knows already and asks nobody, so a probe costs next to nothing and never waits. The mesh looks into queues now
//! and then.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tg_gateway::Readiness;
use tg_mesh::bus::Link;
use tg_mesh::{Host, Leased, Processor, TaskKind};

/// Pause between two looks at how many consumers take nothing.
const PAUSE: Duration = Duration::from_secs(5);

/// What a process hosts, as far as its health depends on it.
#[derive(Default)]
struct Hosted {
    processors: Vec<&'static str>,
    /// Each store once.
    stores: Vec<Arc<dyn Leased>>,
}

/// The health of this process. Cheap to clone.
#[derive(Clone)]
pub struct Health {
    mesh: Host,
    /// Empty until all processors are hosted.
    hosted: Arc<OnceLock<Hosted>>,
}

impl Health {
    /// Of a process that hosts nothing yet.
    pub fn new(mesh: &Host) -> Self {
        Self {
            mesh: mesh.clone(),
            hosted: Arc::default(),
        }
    }

    /// What is going to be hosted; the process counts as starting until [`Expected::all_hosted`].
    pub fn expect(&self, processors: &[Processor]) -> Expected {
        let mut hosted = Hosted::default();
        for processor in processors {
            hosted.processors.push(processor.declared().id);
            if let Some(store) = processor.store()
                && hosted
                    .stores
                    .iter()
                    .all(|known| known.name() != store.name())
            {
                hosted.stores.push(store);
            }
        }
        Expected {
            health: self.clone(),
            hosted,
        }
    }

    /// What the listener asks at each probe.
    pub fn readiness(&self) -> Readiness {
        let health = self.clone();
        Readiness::new(move || health.missing())
    }

    /// What keeps this process from serving.
    fn missing(&self) -> Vec<String> {
        if self.mesh.stopping().is_cancelled() {
            return vec!["the process is stopping".to_owned()];
        }
        let Some(hosted) = self.hosted.get() else {
            return vec!["the services are being started".to_owned()];
        };
        let mut missing = Vec::new();
        match *self.mesh.bus().link().borrow() {
            Link::Up { .. } => {}
            Link::Down => missing.push("the message bus is not connected".to_owned()),
            Link::Blocked => missing.push("the message bus accepts no messages".to_owned()),
        }
        if self.mesh.config().version() < 0 {
            missing.push("the configuration was not read yet".to_owned());
        }
        let presence = self.mesh.presence().own_full();
        if presence.disk_full {
            missing.push("the disk is full".to_owned());
        }
        let serves = |id: &str| {
            let mut known = presence.processors.iter();
            known.any(|one| one.id == id && one.state == "serving")
        };
        for id in hosted.processors.iter().filter(|id| !serves(id)) {
            missing.push(format!("{id} does not serve"));
        }
        let full = self.mesh.full_consumers();
        for id in self.mesh.idle_consumers() {
            let why = match full.contains(&id) {
                true => ": it has as many in hand as it takes at once",
                false => "",
            };
            missing.push(format!(
                "{id} takes none of the messages that wait for it{why}"
            ));
        }
        for store in hosted.stores.iter().filter(|store| !store.is_open()) {
            missing.push(format!("the store {} is not open", store.name()));
        }
        missing
    }
}

/// Has consumers that take nothing counted for alerts, too: readiness names them, and Prometheus does not read that.
pub fn count_idle(mesh: &Host) {
    let inner = mesh.clone();
    mesh.spawn(TaskKind::Background, async move {
        let stopping = inner.stopping().clone();
        tokio::select! {
            () = look(&inner) => {}
            () = stopping.cancelled() => {}
        }
    });
}

async fn look(mesh: &Host) {
    loop {
        let idle = mesh.idle_consumers().len();
        metrics::gauge!("tg_idle_consumers").set(idle as f64);
        tokio::time::sleep(PAUSE).await;
    }
}

/// What a process is about to host.
pub struct Expected {
    health: Health,
    hosted: Hosted,
}

impl Expected {
    /// From now on the process is ready whenever all of it serves.
    pub fn all_hosted(self) {
        let _ = self.health.hosted.set(self.hosted);
    }
}
