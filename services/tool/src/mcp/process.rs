//! A program that is an MCP server, while it runs: it is ended when nobody has used it for a while, when its session is given
//! up, and with this process. Knows nothing of the protocol.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use tg_mesh::{Mesh, TaskKind};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::error::ToolError;
use crate::programs::{INHERITED, Program};

/// How long a program may take to go after its input ended, and again after it was asked to.
const LEAVE: Duration = Duration::from_secs(1);

/// A running program.
pub(super) struct Process {
    state: Arc<State>,
}

struct State {
    used: Mutex<Used>,
    /// Told when a call is over, and when nobody is to use it any more.
    news: Notify,
    /// Cancelled when it is over: whoever speaks with it lets go of its input.
    over: CancellationToken,
}

struct Used {
    calls: usize,
    last: Instant,
    /// No call begins any more.
    retired: bool,
}

/// A call that uses it.
pub(super) struct InUse(Arc<State>);

impl Drop for InUse {
    fn drop(&mut self) {
        let mut used = self.0.used.lock();
        used.calls -= 1;
        used.last = Instant::now();
        drop(used);
        self.0.news.notify_one();
    }
}

impl Process {
    /// Starts a program; what it reads and writes is for the caller. It is in a process group of its own, with all that it
    /// starts itself, and has few variables of this process. The place that it takes is free again when it is gone.
    pub(super) fn start(
        mesh: &Mesh,
        (name, program): (&str, &Program),
        idle: Duration,
        place: OwnedSemaphorePermit,
    ) -> Result<(Self, ChildStdout, ChildStdin), ToolError> {
        let mut command = Command::new(&program.command);
        command.args(&program.args).env_clear();
        let inherited = INHERITED
            .iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?)));
        command.envs(inherited);
        let own = program.env.iter();
        command.envs(own.map(|(name, value)| (name, value.0.expose())));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|fault| {
            tracing::warn!(server = name, %fault, "a program that is an MCP server cannot be started");
            ToolError::Unreachable
        })?;
        let (Some(reads), Some(writes)) = (child.stdout.take(), child.stdin.take()) else {
            return Err(ToolError::Unreachable);
        };
        let group = child
            .id()
            .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let state = Arc::new(State {
            used: Mutex::new(Used {
                calls: 0,
                last: Instant::now(),
                retired: false,
            }),
            news: Notify::new(),
            over: CancellationToken::new(),
        });
        let (watched, shutdown) = (state.clone(), mesh.shutdown().clone());
        mesh.spawn(TaskKind::Closing, async move {
            tokio::select! {
                () = watched.unused(idle) => {}
                () = shutdown.cancelled() => {}
                _ = child.wait() => {}
            }
            watched.used.lock().retired = true;
            watched.over.cancel();
            end(child, group).await;
            drop(place);
        });
        metrics::counter!("tg_tool_mcp_processes_total").increment(1);
        Ok((Self { state }, reads, writes))
    }

    /// Begins a call; `None`: it is over.
    pub(super) fn begin(&self) -> Option<InUse> {
        let mut used = self.state.used.lock();
        if used.retired {
            return None;
        }
        used.calls += 1;
        Some(InUse(self.state.clone()))
    }

    /// It is ended when no call uses it any more.
    pub(super) fn retire(&self) {
        self.state.used.lock().retired = true;
        self.state.news.notify_one();
    }

    /// The same, where no call uses it now.
    pub(super) fn retire_unused(&self) {
        let mut used = self.state.used.lock();
        used.retired |= used.calls == 0;
        drop(used);
        self.state.news.notify_one();
    }

    /// Whether no call begins any more.
    pub(super) fn is_over(&self) -> bool {
        self.state.used.lock().retired
    }

    /// Cancelled when it is over.
    pub(super) fn over(&self) -> &CancellationToken {
        &self.state.over
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.retire();
    }
}

impl State {
    /// Until nobody has used it for so long, or is to use it. From then on nobody may.
    async fn unused(&self, idle: Duration) {
        loop {
            let until = {
                let mut used = self.used.lock();
                let until = used.last + idle;
                if used.calls == 0 && (used.retired || Instant::now() >= until) {
                    used.retired = true;
                    return;
                }
                (used.calls == 0).then_some(until)
            };
            tokio::select! {
                () = self.news.notified() => {}
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {}
            }
        }
    }
}

/// Waits a moment for a program to go by itself, asks it to, and ends it, with all that it started.
async fn end(mut child: Child, group: Option<Pid>) {
    let tell = |signal| {
        if let Some(group) = group {
            // It may be gone already.
            let _ = kill_process_group(group, signal);
        }
    };
    if timeout(LEAVE, child.wait()).await.is_err() {
        tell(Signal::TERM);
        let _ = timeout(LEAVE, child.wait()).await;
    }
    tell(Signal::KILL);
    let _ = timeout(LEAVE, child.wait()).await;
}
