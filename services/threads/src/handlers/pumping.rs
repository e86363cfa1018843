//! What all messages from outside go through: the listeners, the threads of their workspaces, and the room for payloads.

use std::sync::Arc;

use tg_clients::listeners::tell_ended;
use tg_mesh::fair::Pool;
use tg_mesh::{Cx, Derived, Mesh, TaskKind, clock};
use tg_schemas::WorkspaceId;
use tg_threads::{Name, Outcome, Place, Pump, Room, ThreadId, Turn};

use super::workspaces::{EndedIn, OneWorkspace, PLACES, Wall, Workspaces};
use crate::engine::rows::{CONFIG, Listeners};
use crate::error::ThreadsError;
use crate::options::Options;

/// The name of the mesh in its boot message and in all chains.
const MESH: &str = "mesh";

/// KiB of payloads of all workspaces, of which one may have half.
const BODIES: usize = 128 << 10;

/// What messages of all workspaces go through, each with a pump of its own: none waits for what another checks.
pub(super) struct Pumping {
    pub(super) options: Options,
    listeners: Derived<Listeners>,
    workspaces: Workspaces,
    /// KiB of payloads that listeners have or wait for, and of what agents read of their peers.
    pub(super) bodies: Pool,
}

impl Pumping {
    pub(super) fn new(options: Options) -> Self {
        Self {
            options,
            listeners: Derived::default(),
            workspaces: Workspaces::default(),
            bodies: Pool::new(BODIES, BODIES / 2),
        }
    }

    /// The listeners of the workspace of a message, as its configuration has them now.
    pub(super) fn listeners(&self, cx: &Cx) -> Arc<Listeners> {
        let rows = [cx.config().values(cx.workspace(), CONFIG)];
        if let Some(listeners) = self.listeners.get(cx.workspace(), &rows) {
            return listeners;
        }
        let texts = rows[0]
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_ref()));
        let listeners = Listeners::read(texts);
        for (name, why) in &listeners.refused {
            tg_mesh::warn_of!(cx, listener = %name, %why, "a listener is left out");
        }
        self.listeners.put(cx.workspace(), rows.into(), listeners)
    }

    /// The threads of the workspace of a message. Whoever wants them first starts them: nothing from outside comes before the
    /// boot message. A workspace without live threads makes room for another.
    ///
    /// # Errors
    /// Too many workspaces have threads.
    pub(super) fn workspace(
        &self,
        cx: &Cx,
        place: &Place,
        listeners: &Listeners,
    ) -> Result<OneWorkspace, ThreadsError> {
        self.make_room(cx);
        let start = |room| self.start(place, listeners, room);
        let workspace = self.workspaces.get(&cx.workspace_key(), start);
        workspace.ok_or(ThreadsError::Busy)
    }

    /// Ends the threads that were idle for too long at this time, of all workspaces.
    pub(super) fn end_idle(&self, now: u64) -> EndedIn {
        self.workspaces.cleanup(now)
    }

    /// Where all threads are taken, ends some that nothing is in progress of.
    pub(super) fn make_room(&self, cx: &Cx) {
        let ended = self.workspaces.make_room(&cx.workspace_key(), PLACES);
        report(cx, ended);
    }

    fn start(&self, place: &Place, listeners: &Listeners, room: Room) -> Pump {
        let mesh = Name::any(MESH).unwrap_or_else(|_| Name::system());
        let iterations = u32::try_from(self.options.iterations).unwrap_or(u32::MAX);
        let (timestamp, directory) = (clock::rfc3339(), &listeners.directory);
        let count = directory.all().count();
        let (mut pump, boot) = Pump::start(
            (&mesh, place),
            (self.options.limits(), room, iterations),
            (&timestamp, count),
            &mut Wall,
        );
        tracing::info!(
            workspace = %place.workspace,
            thread = %boot.metadata().thread_id,
            listeners = count,
            "the mesh of listeners has started"
        );
        let done = Outcome::Turn(Turn::none()).checked(directory, &boot);
        pump.returned(directory, &boot, done, &mut Wall);
        pump
    }
}

/// Notifies whoever keeps something for threads of a workspace that they have ended.
pub(super) async fn notify(mesh: &Mesh, workspace: &WorkspaceId, ended: &[ThreadId]) {
    let ended: Vec<_> = ended.iter().map(ToString::to_string).collect();
    tell_ended(mesh, workspace, &ended).await;
}

/// The same for several workspaces.
pub(super) async fn notify_all(mesh: &Mesh, ended: EndedIn) {
    for (key, threads) in ended {
        if let Ok(workspace) = WorkspaceId::new(key.name()) {
            notify(mesh, &workspace, &threads).await;
        }
    }
}

/// The same where nobody waits for it.
pub(super) fn report(cx: &Cx, ended: EndedIn) {
    if ended.is_empty() {
        return;
    }
    let mesh = cx.mesh.clone();
    cx.mesh.spawn(TaskKind::Handler, async move {
        notify_all(&mesh, ended).await;
    });
}
