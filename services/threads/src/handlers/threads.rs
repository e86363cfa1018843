//! `threads`: messages from outside, what listeners there are, and the end of threads.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tg_mesh::{Cx, Mesh, RequestHandler, Responder, TaskKind};
use tg_schemas::msg::{ThreadsRequest, ThreadsResponse};
use tg_schemas::paging::Asked;
use tg_schemas::{Error, FlowId, WorkspaceId, flow_record};
use tg_threads::{Caller, Name, Place, ThreadId};

use super::conversation::Conversation;
use super::pumping::{Pumping, notify, notify_all};
use crate::engine::words;
use crate::error::ThreadsError;
use crate::options::Options;

/// Most turns that are shown of a thread: those that began first.
const TURNS: usize = 100;

/// Serves `threads`.
pub(crate) struct Threads(Pumping);

impl Threads {
    pub(crate) fn new(options: Options) -> Self {
        Self(Pumping::new(options))
    }

    /// Looks for idle threads that often, by a clock in milliseconds since 1970, until the process stops.
    pub(crate) fn end_idle(
        self: &Arc<Self>,
        mesh: &Mesh,
        every: Duration,
        now: impl Fn() -> u64 + Send + 'static,
    ) {
        let (threads, own) = (self.clone(), mesh.clone());
        mesh.spawn(TaskKind::Background, async move {
            loop {
                tokio::time::sleep(every).await;
                let ended = threads.0.end_idle(now());
                notify_all(&own, ended).await;
            }
        });
    }

    fn caller(cx: &Cx, place: Place, asked: &ThreadsRequest) -> Caller {
        Caller {
            place,
            initiator: match asked.console {
                true => Name::console(),
                false => Name::gateway(),
            },
            principal: cx.headers.user_id.clone().unwrap_or_default(),
            thread: ThreadId::parse(&asked.thread).ok(),
        }
    }

    fn place(cx: &Cx, asked: &ThreadsRequest) -> Result<Place, Error> {
        let missing = || ThreadsError::Flow(asked.flow.chars().take(64).collect());
        let flow = FlowId::new(&asked.flow).map_err(|_| missing())?;
        let workspace = WorkspaceId::new(cx.workspace())?;
        let row = cx
            .config()
            .get(cx.workspace(), flow_record::KIND, flow.as_str());
        row.ok_or_else(missing)?;
        Ok(Place { workspace, flow })
    }
}

#[async_trait]
impl RequestHandler<ThreadsRequest, ThreadsResponse> for Threads {
    async fn serve(
        &self,
        cx: Cx,
        asked: ThreadsRequest,
        mut out: Responder<ThreadsResponse>,
    ) -> Result<(), Error> {
        let place = Self::place(&cx, &asked)?;
        let listeners = self.0.listeners(&cx).await?;
        let done = |response| ThreadsResponse {
            end_of_stream: true,
            ..response
        };
        let none = ThreadsResponse::default();
        let listed = match asked.operation.as_str() {
            "send-message" => {
                let caller = Self::caller(&cx, place, &asked);
                self.0.make_room(&cx, caller.thread);
                let workspace = self.0.workspace(&cx, &caller.place, &listeners)?;
                let through = (&self.0, &cx, workspace);
                return Conversation::new(through, listeners, caller, &asked, out)
                    .run()
                    .await;
            }
            "list-listeners" => {
                let page = Asked::read(&asked.operation, asked.limit, &asked.after)?;
                let page = words::listed(&listeners.directory, page)?;
                ThreadsResponse {
                    listeners: page.entries,
                    next: page.next,
                    ..none
                }
            }
            "list-refused-listeners" => {
                let page = Asked::read(&asked.operation, asked.limit, &asked.after)?;
                let page = words::refused(&listeners, page)?;
                ThreadsResponse {
                    listeners: page.entries,
                    next: page.next,
                    ..none
                }
            }
            "close-thread" => {
                let thread = ThreadId::parse(&asked.thread).map_err(|_| ThreadsError::Thread)?;
                let caller = Self::caller(&cx, place.clone(), &asked);
                let workspace = self.0.workspace(&cx, &place, &listeners)?;
                let ended = workspace.lock().close(thread, &caller);
                notify(&cx.mesh, &place.workspace, &ended).await;
                ThreadsResponse {
                    closed: i64::try_from(ended.len()).unwrap_or(i64::MAX),
                    ..none
                }
            }
            "show-thread" => {
                let thread = ThreadId::parse(&asked.thread).map_err(|_| ThreadsError::Thread)?;
                let workspace = self.0.workspace(&cx, &place, &listeners)?;
                let (chain, turns, in_progress) = {
                    let live = workspace.lock();
                    let registry = live.registry();
                    let here = registry.is_in(thread, &place);
                    let chain = here.then(|| registry.lookup(thread)).flatten();
                    let threads = registry.threads_beside(thread);
                    let turns = threads.flat_map(|one| live.running.on(one));
                    let mut turns: Vec<_> = turns.collect();
                    turns.sort_by_key(|turn| turn.since);
                    let first = turns.into_iter().take(TURNS).cloned();
                    (
                        chain,
                        first.collect::<Vec<_>>(),
                        registry.in_progress(thread),
                    )
                };
                let chain = chain.ok_or(ThreadsError::Thread)?;
                let turns = turns.into_iter().map(|turn| turn.shown(&cx.mesh));
                ThreadsResponse {
                    chain: chain.iter().map(ToString::to_string).collect(),
                    turns: turns.collect(),
                    in_progress: i64::from(in_progress),
                    ..none
                }
            }
            _ => return Err(ThreadsError::Operation.into()),
        };
        out.send(done(listed)).await
    }
}
