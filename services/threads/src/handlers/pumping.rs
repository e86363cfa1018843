//! The pump, the listeners it goes by, and the clock and ids that it is given.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tg_mesh::fair::Pool;
use tg_mesh::{Cx, Derived, clock};
use tg_schemas::WorkspaceKey;
use tg_threads::{Delivery, Directory, Name, Outcome, Place, Pump, Room, ThreadId, Turn, World};

use crate::engine::rows::{self, CONFIG};
use crate::error::ThreadsError;
use crate::options::Options;

/// The name of the mesh in its boot message and in all chains.
const MESH: &str = "mesh";
/// Most workspaces that have threads at a time.
const WORKSPACES: usize = 10_000;

/// KiB of payloads of all workspaces, of which one may have half.
const BODIES: usize = 128 << 10;

/// The pump of a workspace.
pub(super) type OnePump = Arc<Mutex<Pump>>;

/// What messages of all workspaces go through, each with a pump of its own: none waits for what another checks.
pub(super) struct Pumping {
    pub(super) options: Options,
    directories: Derived<Directory>,
    /// The threads of each workspace, once the first message came.
    pumps: Mutex<HashMap<WorkspaceKey, OnePump>>,
    /// Of all of them.
    room: Room,
    /// KiB of payloads that listeners have or wait for.
    pub(super) bodies: Pool,
}

/// The clock and the ids of this process.
pub(super) struct Wall;

impl World for Wall {
    fn time(&self) -> u64 {
        clock::header_millis()
    }

    fn fresh(&mut self) -> ThreadId {
        ThreadId::from_random(uuid::Uuid::new_v4().into_bytes())
    }
}

impl Pumping {
    pub(super) fn new(options: Options) -> Self {
        Self {
            options,
            directories: Derived::default(),
            pumps: Mutex::default(),
            room: Room::default(),
            bodies: Pool::new(BODIES, BODIES / 2),
        }
    }

    /// The listeners of the workspace of a message, as its configuration has them now.
    pub(super) fn directory(&self, cx: &Cx) -> Arc<Directory> {
        let rows = [cx.config().values(cx.workspace(), CONFIG)];
        if let Some(directory) = self.directories.get(cx.workspace(), &rows) {
            return directory;
        }
        let texts = rows[0]
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_ref()));
        let (directory, refused) = rows::directory(texts);
        for (name, why) in refused {
            tg_mesh::warn_of!(cx, listener = %name, %why, "a listener is left out");
        }
        self.directories.put(cx.workspace(), rows.into(), directory)
    }

    /// The pump of the workspace of a message. The first who wants it starts it: nothing from outside comes before its boot
    /// message. One without live threads makes room for another.
    ///
    /// # Errors
    /// Too many workspaces have threads.
    pub(super) fn pump(
        &self,
        cx: &Cx,
        place: &Place,
        directory: &Directory,
    ) -> Result<OnePump, ThreadsError> {
        let key = cx.workspace_key();
        let mut pumps = self.pumps.lock();
        if self.room.is_full() || pumps.len() >= WORKSPACES {
            // Threads of workspaces that nobody sends anything to end by themselves.
            let now = Wall.time();
            for pump in pumps.values() {
                if let Some(mut pump) = pump.try_lock() {
                    pump.cleanup(now);
                }
            }
        }
        if let Some(pump) = pumps.get(&key) {
            return Ok(pump.clone());
        }
        // Those of earlier generations of the workspace are nobody's any more.
        pumps.retain(|known, _| known.name() != key.name());
        if pumps.len() >= WORKSPACES {
            let used =
                |pump: &OnePump| Arc::strong_count(pump) > 1 || pump.lock().registry().live() > 0;
            pumps.retain(|_, pump| used(pump));
        }
        if pumps.len() >= WORKSPACES {
            return Err(ThreadsError::Busy);
        }
        let (mut pump, boot) = self.start(place, directory);
        tracing::info!(
            workspace = %place.workspace,
            thread = %boot.metadata().thread_id,
            listeners = directory.all().count(),
            "the mesh of listeners has started"
        );
        pump.returned(directory, &boot, Outcome::Turn(Turn::none()), &mut Wall);
        let pump = OnePump::new(Mutex::new(pump));
        pumps.insert(key, pump.clone());
        Ok(pump)
    }

    fn start(&self, place: &Place, directory: &Directory) -> (Pump, Delivery) {
        let mesh = Name::any(MESH).unwrap_or_else(|_| Name::system());
        let iterations = u32::try_from(self.options.iterations).unwrap_or(u32::MAX);
        let timestamp = clock::rfc3339();
        Pump::start(
            (&mesh, place),
            (self.options.limits(), self.room.clone(), iterations),
            (&timestamp, directory.all().count()),
            &mut Wall,
        )
    }
}
