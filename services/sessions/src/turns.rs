//! Turns in progress. Those of a session follow one another, in the order in which they came; a workspace has so many at once.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tg_schemas::WorkspaceKey;
use tg_schemas::operations::WhenBusy;
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::engine::request::DEPTH;
use crate::error::SessionsError;

/// Those that may wait in a workspace, and for one session; more are refused. So one session leaves room to the others. As many
/// readers may wait, beside them.
const WAITING: usize = 1_024;
const WAITING_HERE: usize = 16;

/// The order of the turns of one session, and what ends the one in progress.
#[derive(Clone, Default)]
struct Lane {
    order: Arc<tokio::sync::Mutex<()>>,
    running: Arc<Mutex<InProgress>>,
    waiting: Arc<AtomicUsize>,
    reading: Arc<AtomicUsize>,
    line: Arc<watch::Sender<Line>>,
}

/// A turn in progress, for whoever ends it.
#[derive(Clone, Default)]
struct InProgress {
    interrupted: CancellationToken,
    /// The message that it answers, once that is kept.
    message: Arc<OnceLock<String>>,
}

/// Those who have the session or wait for it, by the order in which they came.
#[derive(Default)]
struct Line {
    last: u64,
    there: BTreeSet<u64>,
}

impl Line {
    /// Whether all are gone who came up to this one.
    fn is_past(&self, number: u64) -> bool {
        self.there.first().is_none_or(|first| *first > number)
    }
}

/// One of them, until it is dropped.
struct Ticket {
    line: Arc<watch::Sender<Line>>,
    number: u64,
}

impl Ticket {
    fn of(lane: &Lane) -> Self {
        let mut number = 0;
        lane.line.send_modify(|line| {
            line.last += 1;
            number = line.last;
            line.there.insert(number);
        });
        Self {
            line: lane.line.clone(),
            number,
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.line.send_modify(|line| {
            line.there.remove(&self.number);
        });
    }
}

/// Turns of a workspace.
struct Room {
    /// Of each depth of nesting: a turn whose tool asks an agent holds its place while that one waits for another.
    at_once: [Arc<Semaphore>; DEPTH],
    waiting: AtomicUsize,
    reading: AtomicUsize,
    /// Sessions that have a turn.
    sessions: HashMap<String, Lane>,
}

/// See the module.
pub(crate) struct Turns {
    most: usize,
    /// Workspaces that have a turn.
    rooms: Mutex<HashMap<WorkspaceKey, Room>>,
}

/// The right to a turn, until it is dropped.
pub(crate) struct Turn {
    // In this order: readers are told once the lane is free, and the last of a session looks whether anybody else has its lane.
    _lane: OwnedMutexGuard<()>,
    _ticket: Ticket,
    _permit: OwnedSemaphorePermit,
    _place: Place,
    own: InProgress,
}

impl Turn {
    /// Cancelled when a later turn takes the place of this one.
    pub(crate) fn interrupted(&self) -> &CancellationToken {
        &self.own.interrupted
    }

    /// The turn answers this message: whoever names it ends this turn.
    pub(crate) fn answers(&self, message: &str) {
        // A turn answers one message, so it is set once.
        let _ = self.own.message.set(message.to_owned());
    }
}

/// No turn of the session is in progress, until it is dropped. It is none of those that a workspace has at once.
pub(crate) struct Alone {
    _lane: OwnedMutexGuard<()>,
    _ticket: Ticket,
    _place: Place,
}

/// A place among those who have a turn or wait for one. The last of a session takes its lane away, and the last of a
/// workspace its room.
struct Place {
    turns: Arc<Turns>,
    workspace: WorkspaceKey,
    session: String,
}

impl Place {
    /// The lane of its session, and what bounds its workspace.
    fn of(turns: &Arc<Turns>, workspace: WorkspaceKey, session: &str) -> Self {
        Self {
            turns: turns.clone(),
            workspace,
            session: session.to_owned(),
        }
    }

    fn enter(&self, depth: usize) -> (Lane, Arc<Semaphore>) {
        let mut rooms = self.turns.rooms.lock();
        let room = rooms.entry(self.workspace.clone()).or_insert_with(|| Room {
            at_once: [(); DEPTH].map(|()| Arc::new(Semaphore::new(self.turns.most))),
            waiting: AtomicUsize::new(0),
            reading: AtomicUsize::new(0),
            sessions: HashMap::new(),
        });
        let lane = room.sessions.entry(self.session.clone()).or_default();
        let at_once = &room.at_once[depth.min(DEPTH - 1)];
        (lane.clone(), at_once.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut rooms = self.turns.rooms.lock();
        let Some(room) = rooms.get_mut(&self.workspace) else {
            return;
        };
        let lane = room.sessions.get(&self.session);
        if lane.is_some_and(|lane| Arc::strong_count(&lane.order) == 1) {
            room.sessions.remove(&self.session);
        }
        if room.sessions.is_empty() {
            rooms.remove(&self.workspace);
        }
    }
}

/// Counts one who waits.
struct Waiting<'a> {
    place: &'a Place,
    here: Arc<AtomicUsize>,
    all: fn(&Room) -> &AtomicUsize,
}

impl<'a> Waiting<'a> {
    /// For a turn.
    fn of(place: &'a Place, lane: &Lane) -> Result<Self, SessionsError> {
        Self::counted(place, &lane.waiting, |room| &room.waiting)
    }

    /// To read what the turns leave.
    fn reading(place: &'a Place, lane: &Lane) -> Result<Self, SessionsError> {
        Self::counted(place, &lane.reading, |room| &room.reading)
    }

    fn counted(
        place: &'a Place,
        here: &Arc<AtomicUsize>,
        all: fn(&Room) -> &AtomicUsize,
    ) -> Result<Self, SessionsError> {
        let rooms = place.turns.rooms.lock();
        let waiting = rooms.get(&place.workspace).map(all);
        let before = waiting.map_or(0, |waiting| waiting.fetch_add(1, Ordering::Relaxed));
        drop(rooms);
        let counted = Self {
            place,
            here: here.clone(),
            all,
        };
        let here = here.fetch_add(1, Ordering::Relaxed);
        match before < WAITING && here < WAITING_HERE {
            true => Ok(counted),
            false => Err(SessionsError::Crowded),
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.here.fetch_sub(1, Ordering::Relaxed);
        if let Some(room) = self.place.turns.rooms.lock().get(&self.place.workspace) {
            (self.all)(room).fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Turns {
    /// So many at once in a workspace, of each depth of nesting.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            rooms: Mutex::default(),
        })
    }

    /// Waits for the turn, or is refused where the caller does not want to wait for another turn of the session.
    ///
    /// # Errors
    /// Another turn is in progress, or too many wait.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        workspace: WorkspaceKey,
        session: &str,
        when_busy: WhenBusy,
        depth: i64,
    ) -> Result<Turn, SessionsError> {
        let place = Place::of(self, workspace, session);
        let (lane, at_once) = place.enter(usize::try_from(depth).unwrap_or_default());
        let waiting = Waiting::of(&place, &lane)?;
        let ticket = Ticket::of(&lane);
        let order = lane.order;
        let own = match (order.clone().try_lock_owned(), when_busy) {
            (Ok(free), _) => free,
            (Err(_), WhenBusy::Refuse) => return Err(SessionsError::Busy),
            (Err(_), WhenBusy::Queue) => order.lock_owned().await,
            (Err(_), WhenBusy::Interrupt) => {
                lane.running.lock().interrupted.cancel();
                order.lock_owned().await
            }
        };
        let turn = InProgress::default();
        lane.running.lock().clone_from(&turn);
        // Nobody closes the semaphore.
        let permit = at_once.acquire_owned().await;
        let permit = permit.map_err(|_| SessionsError::Crowded)?;
        drop(waiting);
        Ok(Turn {
            _lane: own,
            _ticket: ticket,
            _permit: permit,
            _place: place,
            own: turn,
        })
    }

    /// Ends the turn of a session that is in progress, as a later one would that takes its place. With a message it ends the turn
    /// that answers this one, and no other.
    pub(crate) fn cancel(&self, workspace: &WorkspaceKey, session: &str, message: Option<&str>) {
        let rooms = self.rooms.lock();
        let room = rooms.get(workspace);
        let Some(lane) = room.and_then(|room| room.sessions.get(session)) else {
            return;
        };
        let running = lane.running.lock();
        let answered = running.message.get().map(String::as_str);
        if message.is_none() || message == answered {
            running.interrupted.cancel();
        }
    }

    /// Returns when the turns of a session are over that are in progress or wait now. Takes no place among them: whoever only
    /// reads must not keep anybody from a turn.
    ///
    /// # Errors
    /// A turn is in progress and is not to be waited for, or too many readers wait.
    pub(crate) async fn settled(
        self: &Arc<Self>,
        workspace: WorkspaceKey,
        session: &str,
        when_busy: WhenBusy,
    ) -> Result<(), SessionsError> {
        let place = Place::of(self, workspace, session);
        let (lane, _) = place.enter(0);
        let last = lane.line.borrow().last;
        if lane.line.borrow().is_past(last) {
            return Ok(());
        }
        if when_busy == WhenBusy::Refuse {
            return Err(SessionsError::Busy);
        }
        let _waiting = Waiting::reading(&place, &lane)?;
        let mut line = lane.line.subscribe();
        // The lane is held here: its sender stays.
        let told = line.wait_for(|line| line.is_past(last)).await;
        drop(told);
        Ok(())
    }

    /// Waits until no turn of a session is in progress, and keeps others from beginning: for what asks no model, and so needs no
    /// place among the turns of the workspace. Whoever has one session so may wait for the one that continues it, never for an
    /// earlier one.
    ///
    /// # Errors
    /// Too many wait.
    pub(crate) async fn alone(
        self: &Arc<Self>,
        workspace: WorkspaceKey,
        session: &str,
    ) -> Result<Alone, SessionsError> {
        let place = Place::of(self, workspace.clone(), session);
        let (lane, _) = place.enter(0);
        let waiting = Waiting::of(&place, &lane)?;
        let alone = self.after(workspace, session).await;
        drop(waiting);
        Ok(alone)
    }

    /// The same for what is only noted there: it takes no place among those who wait for a turn, and is never refused.
    pub(crate) async fn after(self: &Arc<Self>, workspace: WorkspaceKey, session: &str) -> Alone {
        let place = Place::of(self, workspace, session);
        let (lane, _) = place.enter(0);
        let ticket = Ticket::of(&lane);
        let own = lane.order.lock_owned().await;
        Alone {
            _lane: own,
            _ticket: ticket,
            _place: place,
        }
    }

    /// The same of the session that continues the one of a turn in progress: it is never refused.
    /// Whoever cancels there ends that turn.
    pub(crate) async fn beside(
        self: &Arc<Self>,
        workspace: WorkspaceKey,
        session: &str,
        turn: &Turn,
    ) -> Alone {
        let place = Place::of(self, workspace, session);
        let (lane, _) = place.enter(0);
        let ticket = Ticket::of(&lane);
        let own = lane.clone().order.lock_owned().await;
        lane.running.lock().clone_from(&turn.own);
        Alone {
            _lane: own,
            _ticket: ticket,
            _place: place,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(workspace: &str) -> WorkspaceKey {
        WorkspaceKey::new(workspace, 0)
    }

    #[tokio::test]
    async fn reading_waits_for_a_turn_and_takes_no_place() {
        let turns = Turns::new(1);
        let read = |when_busy| turns.settled(key("w"), "s", when_busy);
        assert_eq!(read(WhenBusy::Refuse).await, Ok(()));
        let turn = turns
            .enter(key("w"), "s", WhenBusy::Queue, 0)
            .await
            .unwrap();
        assert_eq!(read(WhenBusy::Refuse).await, Err(SessionsError::Busy));
        let mut waits = std::pin::pin!(read(WhenBusy::Queue));
        tokio::select! {
            biased;
            _ = &mut waits => panic!("it does not wait for the turn"),
            () = std::future::ready(()) => {}
        }
        assert!(!turn.interrupted().is_cancelled());
        drop(turn);
        assert_eq!(waits.await, Ok(()));
        assert!(turns.rooms.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn line_043_turns_of_a_session_follow_one_another() {
        let turns = Turns::new(8);
        let order: Arc<Mutex<Vec<usize>>> = Arc::default();
        let first = turns
            .enter(key("w"), "s", WhenBusy::Queue, 0)
            .await
            .unwrap();
        let later = |at: usize| {
            let (turns, order) = (turns.clone(), order.clone());
            async move {
                let turn = turns
                    .enter(key("w"), "s", WhenBusy::Queue, 0)
                    .await
                    .unwrap();
                order.lock().push(at);
                tokio::task::yield_now().await;
                order.lock().push(at);
                drop(turn);
            }
        };
        let refused = turns.enter(key("w"), "s", WhenBusy::Refuse, 0).await;
        assert_eq!(refused.err(), Some(SessionsError::Busy));
        let other = turns
            .enter(key("w"), "t", WhenBusy::Refuse, 0)
            .await
            .unwrap();
        drop(other);
        let rest = async {
            tokio::task::yield_now().await;
            assert!(order.lock().is_empty());
            drop(first);
        };
        tokio::join!(later(1), later(2), rest);
        assert_eq!(*order.lock(), [1, 1, 2, 2]);
        assert!(turns.rooms.lock().is_empty(), "nothing is left behind");
    }

    #[tokio::test(start_paused = true)]
    async fn an_interruption_ends_the_turn_in_progress_and_waits_for_its_place() {
        let turns = Turns::new(8);
        let first = turns
            .enter(key("w"), "s", WhenBusy::Queue, 0)
            .await
            .unwrap();
        let ended = first.interrupted().clone();
        let running = async move {
            first.interrupted().cancelled().await;
            drop(first);
        };
        let next = turns.enter(key("w"), "s", WhenBusy::Interrupt, 0);
        let ((), next) = tokio::join!(running, next);
        let next = next.unwrap();
        assert!(ended.is_cancelled() && !next.interrupted().is_cancelled());
        turns.cancel(&key("w"), "other", None);
        turns.cancel(&key("v"), "s", None);
        turns.cancel(&key("w"), "s", Some("m2"));
        next.answers("m2");
        turns.cancel(&key("w"), "s", Some("m1"));
        assert!(!next.interrupted().is_cancelled());
        let beside = turns.beside(key("w"), "t", &next).await;
        turns.cancel(&key("w"), "t", Some("m2"));
        assert!(next.interrupted().is_cancelled());
        drop((next, beside));
        assert!(turns.rooms.lock().is_empty(), "nothing is left behind");
    }

    #[tokio::test(start_paused = true)]
    async fn a_workspace_has_so_many_turns_at_once_and_others_have_theirs() {
        let turns = Turns::new(1);
        let first = turns
            .enter(key("w"), "a", WhenBusy::Queue, 0)
            .await
            .unwrap();
        let mut second = std::pin::pin!(turns.enter(key("w"), "b", WhenBusy::Queue, 0));
        let waits = tokio::time::timeout(std::time::Duration::from_secs(1), &mut second).await;
        assert!(waits.is_err());
        let other = turns
            .enter(key("x"), "a", WhenBusy::Queue, 0)
            .await
            .unwrap();
        drop((first, other));
        second.await.unwrap();
        assert!(turns.rooms.lock().is_empty());
    }

    /// Polls it once: it waits.
    async fn waits<T>(work: &mut (impl Future<Output = T> + Unpin)) {
        tokio::select! {
            biased;
            _ = work => panic!("it does not wait"),
            () = std::future::ready(()) => {}
        }
    }

    #[tokio::test]
    async fn a_session_leaves_room_for_others_to_wait() {
        let turns = Turns::new(8);
        let first = turns
            .enter(key("w"), "s", WhenBusy::Queue, 0)
            .await
            .unwrap();
        let mut waiting = Vec::new();
        for _ in 0..WAITING_HERE {
            let mut next = Box::pin(turns.enter(key("w"), "s", WhenBusy::Queue, 0));
            waits(&mut next).await;
            waiting.push(next);
        }
        let refused = turns.enter(key("w"), "s", WhenBusy::Queue, 0).await;
        assert_eq!(refused.err(), Some(SessionsError::Crowded));
        let refused = turns.alone(key("w"), "s").await;
        assert_eq!(refused.err(), Some(SessionsError::Crowded));
        let other = turns.enter(key("w"), "t", WhenBusy::Queue, 0).await;
        assert!(other.is_ok());
        drop((waiting, first, other));
        assert!(turns.rooms.lock().is_empty(), "nothing is left behind");
    }

    #[tokio::test]
    async fn what_is_only_noted_takes_no_place_of_those_who_wait_for_a_turn() {
        let turns = Turns::new(8);
        let first = turns.enter(key("w"), "s", WhenBusy::Queue, 0).await;
        let mut notes = Vec::new();
        for _ in 0..=WAITING_HERE {
            let mut note = Box::pin(turns.after(key("w"), "s"));
            waits(&mut note).await;
            notes.push(note);
        }
        let mut next = Box::pin(turns.enter(key("w"), "s", WhenBusy::Queue, 0));
        waits(&mut next).await;
        drop(first.unwrap());
        for note in notes {
            drop(note.await);
        }
        drop(next.await.unwrap());
        assert!(turns.rooms.lock().is_empty(), "nothing is left behind");
    }

    #[tokio::test]
    async fn readers_take_no_place_of_those_who_wait_for_a_turn() {
        let turns = Turns::new(8);
        let first = turns.enter(key("w"), "s", WhenBusy::Queue, 0).await;
        let first = first.unwrap();
        let mut readers = Vec::new();
        for _ in 0..WAITING_HERE {
            let mut reader = Box::pin(turns.settled(key("w"), "s", WhenBusy::Queue));
            waits(&mut reader).await;
            readers.push(reader);
        }
        let crowded = turns.settled(key("w"), "s", WhenBusy::Queue).await;
        assert_eq!(crowded, Err(SessionsError::Crowded));
        let mut next = Box::pin(turns.enter(key("w"), "s", WhenBusy::Queue, 0));
        waits(&mut next).await;
        drop(first);
        // They wait for what was there before them, and for nothing that came later.
        for reader in readers {
            assert_eq!(reader.await, Ok(()));
        }
        let next = next.await.unwrap();
        drop(next);
        // Readers alone keep no turn away.
        let refusing = turns.enter(key("w"), "s", WhenBusy::Refuse, 0).await;
        drop(refusing.unwrap());
        assert!(turns.rooms.lock().is_empty(), "nothing is left behind");
    }

    #[tokio::test]
    async fn what_asks_no_model_waits_for_no_place_among_the_turns() {
        let turns = Turns::new(1);
        let busy = turns
            .enter(key("w"), "a", WhenBusy::Queue, 0)
            .await
            .unwrap();
        let source = turns.alone(key("w"), "s").await.unwrap();
        // A turn of the session that continues it has its lane and waits for the place.
        let mut turn = Box::pin(turns.enter(key("w"), "t", WhenBusy::Queue, 0));
        waits(&mut turn).await;
        let mut successor = Box::pin(turns.alone(key("w"), "t"));
        waits(&mut successor).await;
        drop(busy);
        drop(turn.await.unwrap());
        drop((successor.await.unwrap(), source));
        assert!(turns.rooms.lock().is_empty(), "nothing is left behind");
    }

    #[tokio::test]
    async fn a_nested_turn_does_not_wait_for_the_one_that_it_is_made_for() {
        let turns = Turns::new(1);
        let mut all = Vec::new();
        for (depth, session) in ["a", "b", "c"].into_iter().enumerate() {
            let depth = i64::try_from(depth).unwrap();
            let turn = turns.enter(key("w"), session, WhenBusy::Queue, depth).await;
            all.push(turn.unwrap());
        }
        let mut second = Box::pin(turns.enter(key("w"), "d", WhenBusy::Queue, 1));
        waits(&mut second).await;
    }
}
