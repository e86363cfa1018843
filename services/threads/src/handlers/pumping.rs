//! What all messages from outside go through: the listeners, the threads of their workspaces, and the room for payloads.

use std::sync::Arc;

use tg_clients::listeners::tell_ended;
use tg_mesh::{Cx, Derived, Mesh, TaskKind, clock};
use tg_schemas::msg::ThreadsRequest;
use tg_schemas::{Error, WorkspaceId};
use tg_threads::{Admitted, Checked, Delivery, Name, Outcome, Place, Pump, Room, ThreadId, Turn};

use super::bodies::Bodies;
use super::checks::Checks;
use super::workspaces::{EndedIn, OneWorkspace, PLACES, Wall, Workspaces};
use crate::engine::rows::{CONFIG, Listeners};
use crate::error::ThreadsError;
use crate::options::Options;

/// The name of the mesh in its boot message and in all chains.
const MESH: &str = "mesh";

/// What messages of all workspaces go through, each with a pump of its own: none waits for what another checks.
pub(super) struct Pumping {
    pub(super) options: Options,
    listeners: Arc<Derived<Listeners>>,
    checks: Checks,
    workspaces: Workspaces,
    /// Room for payloads that listeners have or wait for, and for what agents read of their peers.
    pub(super) bodies: Bodies,
}

impl Pumping {
    pub(super) fn new(options: Options) -> Self {
        Self {
            options,
            listeners: Arc::default(),
            checks: Checks::default(),
            workspaces: Workspaces::default(),
            bodies: Bodies::default(),
        }
    }

    /// The listeners of the workspace of a message, as its configuration has them now.
    ///
    /// # Errors
    /// The process ends.
    pub(super) async fn listeners(&self, cx: &Cx) -> Result<Arc<Listeners>, Error> {
        let rows = [cx.config().values(cx.workspace(), CONFIG)];
        if let Some(listeners) = self.listeners.get(cx.workspace(), &rows) {
            return Ok(listeners);
        }
        let permit = self.checks.permit(cx.workspace()).await?;
        // Of messages that come at once the first one reads the rows.
        if let Some(listeners) = self.listeners.get(cx.workspace(), &rows) {
            return Ok(listeners);
        }
        let (known, workspace) = (self.listeners.clone(), cx.workspace().to_owned());
        let read = move || {
            let texts = rows[0]
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_ref()));
            let listeners = Listeners::read(texts);
            known.put(&workspace, rows.into(), listeners)
        };
        let listeners = permit.run(read).await?;
        for (name, why) in &listeners.refused {
            tg_mesh::warn_of!(cx, listener = %name, why = %why.for_log(), "a listener is left out");
        }
        Ok(listeners)
    }

    /// A message from outside as its listener takes it, if it does. What takes long is checked beside the runtime.
    ///
    /// # Errors
    /// The process ends.
    pub(super) async fn admitted(
        &self,
        cx: &Cx,
        listeners: &Arc<Listeners>,
        asked: &ThreadsRequest,
    ) -> Result<Option<Admitted>, Error> {
        let admitted = |listeners: &Listeners, asked: &ThreadsRequest| {
            let raw = asked.payload.as_bytes();
            let directory = &listeners.directory;
            directory.admitted(&asked.to, &asked.r#type, raw)
        };
        let (to, kind, bytes) = (&asked.to, &asked.r#type, asked.payload.len());
        if !listeners.directory.is_costly(to, kind, bytes) {
            return Ok(admitted(listeners, asked));
        }
        let permit = self.checks.permit(cx.workspace()).await?;
        let (listeners, asked) = (listeners.clone(), asked.clone());
        permit.run(move || admitted(&listeners, &asked)).await
    }

    /// What a listener made of a message, checked by what its targets take. What takes long is checked beside the runtime.
    pub(super) async fn checked(
        &self,
        cx: &Cx,
        listeners: &Arc<Listeners>,
        delivery: &Arc<Delivery>,
        outcome: Outcome,
    ) -> Checked {
        if !outcome.is_costly(&listeners.directory, delivery) {
            return outcome.checked(&listeners.directory, delivery);
        }
        let (all, own) = (listeners.clone(), delivery.clone());
        let (checks, workspace) = (self.checks.clone(), cx.workspace().to_owned());
        let (mut sends, done) = tokio::sync::oneshot::channel();
        // In a task of its own: whoever waits for this may itself wait for a slow reader, and would keep the permit meanwhile.
        cx.mesh.spawn(TaskKind::Handler, async move {
            let permit = tokio::select! {
                permit = checks.permit(&workspace) => permit,
                // Nobody waits for it any more: what is checked takes no memory that nobody counts.
                () = sends.closed() => return,
            };
            let check = move || outcome.checked(&all.directory, &own);
            let checked = async { permit?.run(check).await };
            sends.send(checked.await).ok();
        });
        let checked = done.await.ok().and_then(Result::ok);
        checked.unwrap_or_else(|| Outcome::Unserved.checked(&listeners.directory, delivery))
    }

    /// The threads of the workspace of a message. Whoever wants them first starts them: nothing from outside comes before the
    /// boot message.
    ///
    /// # Errors
    /// Too many workspaces have threads.
    pub(super) fn workspace(
        &self,
        cx: &Cx,
        place: &Place,
        listeners: &Listeners,
    ) -> Result<OneWorkspace, ThreadsError> {
        let start = |room| self.start(place, listeners, room);
        let workspace = self.workspaces.get(&cx.workspace_key(), start);
        workspace.ok_or(ThreadsError::Busy)
    }

    /// Ends the threads that were idle for too long at this time, of all workspaces.
    pub(super) fn end_idle(&self, now: u64) -> EndedIn {
        self.workspaces.cleanup(now)
    }

    /// Where all threads are taken, ends some that nothing is in progress of.
    /// The tree of the thread that is `kept` stays.
    pub(super) fn make_room(&self, cx: &Cx, kept: Option<ThreadId>) {
        let key = cx.workspace_key();
        let ended = self.workspaces.make_room((&key, kept), PLACES);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_trait::async_trait;
    use serde_json::json;
    use tg_mesh::{Ask, Deadline, Processor, RequestHandler, Responder};
    use tg_schemas::msg::ThreadsResponse;
    use tg_schemas::processors::threads::{PROCESSOR, THREADS};
    use tg_schemas::{Class, FlowId, Topic};
    use tg_testkit::config::Config;
    use tg_testkit::flow::{SOON, TestFlow};
    use tg_testkit::place::Place;

    use super::*;

    /// Pause between two looks.
    const LOOK: Duration = Duration::from_millis(10);

    /// A listener that takes numbers, each of which is checked many times, and a return that sends it some.
    fn heavy() -> (String, Outcome) {
        let checks = vec![json!({"type": "number"}); 400];
        let schema = json!({"type": "object", "properties": {"all": {"items": {"allOf": checks}}}});
        let row = json!({"description": "Takes numbers.", "types": {"textinput": schema}});
        let numbers = json!({ "all": vec![1; 1000] });
        let sent = Turn::forward("heavy", "textinput", numbers);
        (row.to_string(), Outcome::Turn(sent))
    }

    /// A conversation that looks at its checks only when the permit of its workspace was free once more, and one that gives up.
    struct Slow(Pumping);

    #[async_trait]
    impl RequestHandler<ThreadsRequest, ThreadsResponse> for Slow {
        async fn serve(
            &self,
            cx: Cx,
            _asked: ThreadsRequest,
            mut out: Responder<ThreadsResponse>,
        ) -> Result<(), Error> {
            let Self(pumping) = self;
            let listeners = pumping.listeners(&cx).await?;
            let place = tg_threads::Place {
                workspace: WorkspaceId::new(cx.workspace()).unwrap(),
                flow: FlowId::new("default").unwrap(),
            };
            let mesh = Name::any(MESH).unwrap();
            let limits = (pumping.options.limits(), Room::default(), 50);
            let (_, boot) = Pump::start((&mesh, &place), limits, ("now", 1), &mut Wall);
            let boot = Arc::new(boot);
            let checked = || Box::pin(pumping.checked(&cx, &listeners, &boot, heavy().1));
            let held = pumping.checks.permit(cx.workspace()).await?;
            let mut given_up = checked();
            assert!(futures::poll!(given_up.as_mut()).is_pending());
            drop(given_up);
            let is_gone = async {
                while Arc::strong_count(&boot) > 1 {
                    tokio::time::sleep(LOOK).await;
                }
            };
            let is_gone = tokio::time::timeout(SOON, is_gone).await;
            is_gone.expect("what nobody waits for is let go of");
            let mut check = checked();
            assert!(futures::poll!(check.as_mut()).is_pending());
            drop(held);
            let next = pumping.checks.permit(cx.workspace());
            let next = tokio::time::timeout(SOON, next).await;
            drop(next.expect("the permit is free again")?);
            assert!(check.await.forwards(), "the check is done");
            let last = ThreadsResponse {
                end_of_stream: true,
                ..ThreadsResponse::default()
            };
            out.send(last).await
        }
    }

    /// A conversation that waits for its reader looks at none of its checks meanwhile. The permit that one of them waited for is
    /// free again for the other conversations of the workspace, and the check is done. One that nobody waits for is let go of.
    async fn a_slow_reader_holds_no_permit_for_checks(place: Place) {
        let config = Config::new();
        config.put("flow", "default", "{}");
        config.put("listener", "heavy", &heavy().0);
        let host = |_: &Mesh| {
            let slow = Arc::new(Slow(Pumping::new(Options::default())));
            let processor = Processor::new(PROCESSOR).watches(&[CONFIG]);
            vec![processor.serves(THREADS, slow)]
        };
        let flow = TestFlow::start(&place, config, &[], host).await;
        let workspace = WorkspaceId::new("default").unwrap();
        let topic = Topic::workspace(Class::Request, "threads", &workspace);
        let ask = Ask {
            deadline: Some(Deadline::after(3 * SOON)),
            ..Ask::default()
        };
        let request = ThreadsRequest::default();
        let answer = flow.mesh.ask::<_, ThreadsResponse>(&topic, &request, ask);
        assert!(answer.last().await.unwrap().end_of_stream);
    }

    tg_testkit::on_both_buses!(a_slow_reader_holds_no_permit_for_checks);
}
