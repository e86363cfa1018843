//! Programs that run: so many at once, and those that stay until nobody has asked them for a while. Messages to one session follow
//! one another. No call is broken off for another.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tg_mesh::{Mesh, TaskKind};
use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};

use super::listed::{CliAgent, Engine};
use super::once;
use super::output::Reply;
use super::session::{Session, TurnError};

/// While no other program may be started, so long until one that nobody asks is ended again.
const ROOM: Duration = Duration::from_secs(1);
/// Longest part of what a program says went wrong that is logged, in characters.
const LOGGED: usize = 2000;

/// Names the session of a program.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// Its workspace, in the text form of its key.
    pub(crate) workspace: String,
    /// The user.
    pub(crate) user: String,
    /// Id of the agent.
    pub(crate) agent: String,
    /// Its name.
    pub(crate) session: String,
}

/// What a program is asked.
pub(crate) struct Asked<'a> {
    pub(crate) agent: &'a CliAgent,
    pub(crate) key: Key,
    pub(crate) message: &'a str,
    /// Somebody may come back to the session.
    pub(crate) lasts: bool,
}

/// A session, while somebody speaks with its program or waits for that; and its program in between.
#[derive(Default)]
struct Seat(AsyncMutex<Kept>);

#[derive(Default)]
struct Kept {
    session: Option<(Session, Instant)>,
    /// Somebody ends it when nobody has asked it for a while.
    watched: bool,
}

/// See the module.
pub(crate) struct Pool {
    places: Arc<Semaphore>,
    sessions: Mutex<HashMap<Key, Arc<Seat>>>,
}

/// A use of a seat. The last one takes it away.
struct Visit {
    pool: Arc<Pool>,
    key: Key,
    seat: Arc<Seat>,
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut sessions = self.pool.sessions.lock();
        // The other is the map's.
        if Arc::strong_count(&self.seat) == 2 {
            sessions.remove(&self.key);
        }
    }
}

impl Pool {
    /// So many programs at once.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            places: Arc::new(Semaphore::new(most)),
            sessions: Mutex::default(),
        })
    }

    /// What a program answers.
    ///
    /// # Errors
    /// It failed, or took too long. What it says of that is in the log alone.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        mesh: &Mesh,
        asked: &Asked<'_>,
    ) -> Result<Reply, String> {
        let agent = asked.agent;
        let answer = async {
            match agent.engine {
                Engine::Cli => {
                    let _place = self.place().await?;
                    let text = once::ask(agent, asked.message).await?;
                    Ok(Reply {
                        text,
                        ..Reply::default()
                    })
                }
                Engine::CliStream => self.turn(mesh, asked).await,
            }
        };
        let answer = timeout(agent.timeout(), answer).await;
        let (outcome, answer) = match answer {
            Ok(Ok(reply)) => ("ok", Ok(reply)),
            Ok(Err(fault)) => {
                let why: String = fault.chars().take(LOGGED).collect();
                tracing::warn!(agent = asked.key.agent, why, "a program failed");
                ("failed", Err("the program failed".to_owned()))
            }
            Err(_) => {
                let why = format!("timeout after {}s", agent.timeout_seconds);
                ("timeout", Err(why))
            }
        };
        metrics::counter!("tg_agent_program_calls_total", "outcome" => outcome).increment(1);
        answer
    }

    fn visit(self: &Arc<Self>, key: &Key) -> Visit {
        let seat = self.sessions.lock().entry(key.clone()).or_default().clone();
        Visit {
            pool: self.clone(),
            key: key.clone(),
            seat,
        }
    }

    async fn turn(self: &Arc<Self>, mesh: &Mesh, asked: &Asked<'_>) -> Result<Reply, String> {
        let visit = self.visit(&asked.key);
        let mut kept = visit.seat.0.lock().await;
        let mut known = kept.session.take().map(|(session, _)| session);
        let mut again = true;
        loop {
            let kept_before = known.take();
            let is_old = kept_before.is_some();
            let mut session = match kept_before {
                Some(session) => session,
                None => Session::start(asked.agent, self.place().await?)?,
            };
            // One that is left before its answer came ends with that.
            match session.turn(asked.message).await {
                Ok(reply) if asked.lasts => {
                    kept.session = Some((session, Instant::now()));
                    if !std::mem::replace(&mut kept.watched, true) {
                        let (watcher, idle) = (self.visit(&asked.key), asked.agent.idle());
                        let shutdown = mesh.shutdown().clone();
                        mesh.spawn(TaskKind::Closing, async move {
                            watch(&watcher, idle, shutdown.cancelled()).await;
                        });
                    }
                    return Ok(reply);
                }
                Ok(reply) => {
                    session.end().await;
                    return Ok(reply);
                }
                Err(TurnError::Gone(_)) if again => again = false,
                // One that was kept may have gone before it was asked. A new one was there, and may have done what it was asked.
                Err(TurnError::Silent(_)) if again && is_old => again = false,
                Err(TurnError::Gone(why) | TurnError::Silent(why) | TurnError::Failed(why)) => {
                    return Err(why);
                }
            }
        }
    }

    /// A place for a program, for which one that nobody asks is ended.
    async fn place(&self) -> Result<OwnedSemaphorePermit, String> {
        loop {
            let place = self.places.clone().acquire_owned();
            if self.places.available_permits() == 0 {
                self.make_room().await;
            }
            if let Ok(place) = timeout(ROOM, place).await {
                return place.map_err(|closed| closed.to_string());
            }
        }
    }

    /// Ends the program that nobody has asked for longest.
    async fn make_room(&self) {
        let seats: Vec<Arc<Seat>> = self.sessions.lock().values().cloned().collect();
        let mut oldest = None;
        for seat in &seats {
            let Ok(kept) = seat.0.try_lock() else {
                continue;
            };
            let Some((_, last)) = &kept.session else {
                continue;
            };
            let last = *last;
            if oldest.as_ref().is_none_or(|(before, _)| last < *before) {
                oldest = Some((last, kept));
            }
        }
        let session = oldest.and_then(|(_, mut kept)| kept.session.take());
        drop(seats);
        // Seats that somebody left while they were looked at here.
        let used = |seat: &mut Arc<Seat>| Arc::strong_count(seat) > 1;
        self.sessions.lock().retain(|_, seat| used(seat));
        if let Some((session, _)) = session {
            session.end().await;
        }
    }
}

/// Ends the program of a session when nobody has asked it for so long, or with this process.
async fn watch(visit: &Visit, idle: Duration, shutdown: impl Future<Output = ()>) {
    tokio::pin!(shutdown);
    let mut closing = false;
    loop {
        let until = {
            let mut kept = visit.seat.0.lock().await;
            let until = kept.session.as_ref().map(|(_, last)| *last + idle);
            let Some(until) = until.filter(|until| !closing && Instant::now() < *until) else {
                kept.watched = false;
                if let Some((session, _)) = kept.session.take() {
                    session.end().await;
                }
                return;
            };
            until
        };
        tokio::select! {
            () = sleep_until(until) => {}
            () = &mut shutdown => closing = true,
        }
    }
}
