//! What runs have streamed so far in this process: the parts of their answers that the ledger does not have yet, and who waits
//! for more. With the record of each step, and of the run's end, they go to the ledger; a step that is taken up again tells
//! the same parts under the same numbers.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use super::rooms::{Held, Holds, Rooms};

/// Runs that are remembered at once; the oldest go first.
const KEEP: usize = 8192;
/// Bytes of one run that wait for the ledger at most; where there are more, they cannot be read again.
const MOST: usize = 8 << 20;

/// Those of all runs that are under way here.
#[derive(Default)]
pub(crate) struct Transcripts {
    all: Mutex<All>,
    rooms: Arc<Rooms>,
}

#[derive(Default)]
struct All {
    runs: HashMap<Arc<str>, (u64, Arc<Transcript>)>,
    /// By when they came.
    order: BTreeMap<u64, Arc<str>>,
    next: u64,
}

impl All {
    fn remove(&mut self, run: &str) -> Option<Arc<Transcript>> {
        let (at, known) = self.runs.remove(run)?;
        self.order.remove(&at);
        Some(known)
    }
}

impl Transcripts {
    /// All of them together hold so many bytes at most, those of one workspace half of that.
    pub(crate) fn within(bytes: usize) -> Self {
        Self {
            rooms: Arc::new(Rooms::within(bytes)),
            ..Self::default()
        }
    }

    /// That of a run in a workspace.
    pub(crate) fn of(&self, run: &str, workspace: &str) -> Arc<Transcript> {
        let mut all = self.all.lock();
        if let Some((_, known)) = all.runs.get(run) {
            return known.clone();
        }
        let run: Arc<str> = run.into();
        let new = Arc::new(Transcript {
            workspace: workspace.into(),
            rooms: self.rooms.clone(),
            state: Mutex::default(),
            news: Arc::default(),
        });
        let at = all.next;
        all.next += 1;
        all.runs.insert(run.clone(), (at, new.clone()));
        all.order.insert(at, run);
        let oldest = match all.runs.len() > KEEP {
            true => all.order.first_key_value().map(|(_, run)| run.clone()),
            false => None,
        };
        let gone = oldest.and_then(|run| all.remove(&run));
        // What it held is given back without the lock.
        drop(all);
        drop(gone);
        new
    }

    /// Nothing more comes of a run; the ledger has it all.
    pub(crate) fn over(&self, run: &str) {
        let known = self.all.lock().remove(run);
        if let Some(known) = known {
            known.change(|state| {
                state.over = true;
                state.clear(state.next());
            });
            known.news.notify_waiters();
        }
    }

    /// Who looked after a run that did nothing here, looks after it no more.
    pub(crate) fn unused(&self, run: &str) {
        let mut all = self.all.lock();
        let unused = all.runs.get(run).is_some_and(|(_, known)| {
            let state = known.state.lock();
            state.listeners == 0 && !state.begun && !state.timed
        });
        let gone = unused.then(|| all.remove(run));
        drop(all);
        drop(gone);
    }

    /// Another process may have gone on with them.
    pub(crate) fn forget(&self) {
        let all = std::mem::take(&mut *self.all.lock());
        for (_, known) in all.runs.into_values() {
            known.change(|state| {
                state.forgotten = true;
                state.clear(state.next());
            });
            known.news.notify_waiters();
        }
    }
}

/// That of one run.
#[derive(Default)]
pub(crate) struct Transcript {
    workspace: Arc<str>,
    rooms: Arc<Rooms>,
    state: Mutex<State>,
    news: Arc<Notify>,
}

#[derive(Default)]
struct State {
    /// Number of the first part that waits for the ledger.
    first: u64,
    /// Each with when it came, among all that come to the process.
    parts: VecDeque<(u64, String)>,
    bytes: usize,
    begun: bool,
    over: bool,
    forgotten: bool,
    /// Who asked does not listen any more.
    left: bool,
    listeners: usize,
    /// Since when nobody listens, of a run that is to end then.
    waits: Option<i64>,
    /// Somebody watches that.
    timed: bool,
}

impl State {
    fn next(&self) -> u64 {
        self.first + self.parts.len() as u64
    }

    fn pop(&mut self) {
        if let Some((_, part)) = self.parts.pop_front() {
            self.bytes -= part.len();
            self.first += 1;
        }
    }

    fn clear(&mut self, first: u64) {
        self.parts.clear();
        self.bytes = 0;
        self.first = first;
    }

    fn held(&self) -> Held {
        (self.bytes, self.parts.front().map(|(at, _)| *at))
    }
}

impl Holds for Transcript {
    fn drop_oldest(self: Arc<Self>) {
        self.change(State::pop);
    }
}

impl Drop for Transcript {
    fn drop(&mut self) {
        let was = self.state.get_mut().held();
        let none = || -> Weak<dyn Holds> { Weak::<Self>::new() };
        self.rooms.count(&self.workspace, was, (0, None), none);
    }
}

impl Transcript {
    /// Changes it, and counts what it holds then.
    fn change<T>(self: &Arc<Self>, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let was = state.held();
        let changed = change(&mut state);
        let this = || -> Weak<dyn Holds> { Arc::downgrade(self) as Weak<dyn Holds> };
        self.rooms.count(&self.workspace, was, state.held(), this);
        changed
    }

    /// A step begins, whose next part has this number. Its earlier parts are streamed again.
    pub(crate) fn begin(self: &Arc<Self>, at: u64) {
        self.change(|state| {
            state.begun = true;
            if at < state.first || at > state.next() {
                state.clear(at);
                return;
            }
            while state.next() > at {
                if let Some((_, part)) = state.parts.pop_back() {
                    state.bytes -= part.len();
                }
            }
        });
    }

    /// Parts were streamed, the first of them with this number.
    pub(crate) fn add(self: &Arc<Self>, first: u64, parts: Vec<String>) {
        let came = self.rooms.come(parts.len());
        self.change(|state| {
            if first != state.next() {
                state.clear(first);
            }
            state.bytes += parts.iter().map(String::len).sum::<usize>();
            state.parts.extend((came..).zip(parts));
            while state.bytes > MOST {
                state.pop();
            }
        });
        self.rooms.clear(&self.workspace);
        self.news.notify_waiters();
    }

    /// What the ledger does not have yet, with the number of the first.
    pub(crate) fn rest(&self) -> (u64, Vec<String>) {
        let state = self.state.lock();
        let parts = state.parts.iter().map(|(_, part)| part.clone());
        (state.first, parts.collect())
    }

    /// The ledger has what is before this number.
    pub(crate) fn kept(self: &Arc<Self>, until: u64) {
        self.change(|state| {
            while state.first < until && !state.parts.is_empty() {
                state.pop();
            }
        });
    }

    /// Parts from a number on that the ledger does not have yet, so many bytes of them, but one at least; with the number of the
    /// first, which may be a later one.
    pub(crate) fn from(&self, from: u64, bytes: usize) -> Option<(u64, Vec<String>)> {
        let state = self.state.lock();
        if from >= state.next() || state.parts.is_empty() {
            return None;
        }
        let skipped = usize::try_from(from.saturating_sub(state.first)).unwrap_or(usize::MAX);
        let mut size = 0;
        let some = state.parts.iter().skip(skipped).take_while(|(_, part)| {
            let more = size < bytes;
            size += part.len();
            more
        });
        let parts = some.map(|(_, part)| part.clone()).collect();
        Some((state.first.max(from), parts))
    }

    /// Whether it is known here that there is nothing yet from a number on, here or in the ledger.
    pub(crate) fn has_all_before(&self, from: u64) -> bool {
        let state = self.state.lock();
        state.begun && !state.over && !state.forgotten && from >= state.next()
    }

    /// Whether nothing more comes.
    pub(crate) fn is_over(&self) -> bool {
        self.state.lock().over
    }

    /// Whether it is not here that the run goes on.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.state.lock().forgotten
    }

    /// Ends with the next news from now on.
    pub(crate) fn news(&self) -> OwnedNotified {
        self.news.clone().notified_owned()
    }

    /// Who asked does not listen any more; whether nobody does.
    pub(crate) fn asker_left(&self) -> bool {
        let mut state = self.state.lock();
        state.left = true;
        state.listeners == 0
    }

    /// Somebody listens.
    pub(crate) fn joined(&self) {
        let mut state = self.state.lock();
        state.listeners += 1;
        state.waits = None;
    }

    /// Somebody listens no more; whether nobody does, not even who asked.
    pub(crate) fn parted(&self) -> bool {
        let mut state = self.state.lock();
        state.listeners -= 1;
        state.listeners == 0 && state.left && !state.over
    }

    /// Nobody has listened since then; whether somebody is to watch that, as nobody does yet.
    pub(crate) fn wait(&self, since_ms: i64) -> bool {
        let mut state = self.state.lock();
        if state.listeners > 0 || state.over || state.forgotten {
            return false;
        }
        state.waits = state.waits.max(Some(since_ms));
        !std::mem::replace(&mut state.timed, true)
    }

    /// Since when nobody has listened, later than a time that was seen to; `None`: it is watched no more.
    pub(crate) fn waits(&self, seen_ms: Option<i64>) -> Option<i64> {
        let mut state = self.state.lock();
        let ended = state.over || state.forgotten || state.listeners > 0;
        let waits = state.waits.filter(|since| !ended && seen_ms < Some(*since));
        state.timed = waits.is_some();
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_step_that_is_taken_up_again_tells_the_same_again() {
        let all = Transcripts::default();
        let run = all.of("r", "w");
        run.begin(0);
        run.add(0, parts(&["a", "b", "c"]));
        assert_eq!(all.of("r", "w").from(1, 99), Some((1, parts(&["b", "c"]))));
        run.kept(2);
        assert_eq!(run.rest(), (2, parts(&["c"])));
        // Of what the ledger has, it is told by that.
        assert_eq!(run.from(0, 99), Some((2, parts(&["c"]))));
        run.begin(2);
        assert_eq!((run.from(2, 99), run.rest()), (None, (2, Vec::new())));
        run.begin(1);
        run.add(1, parts(&["b", "c"]));
        assert_eq!(run.from(2, 99), Some((2, parts(&["c"]))));
        run.begin(9);
        run.add(9, parts(&["x"]));
        assert_eq!(run.from(2, 99), Some((9, parts(&["x"]))));
    }

    #[tokio::test]
    async fn who_waits_hears_of_what_is_told_and_of_the_end() {
        let all = Transcripts::default();
        let run = all.of("r", "w");
        let news = run.news();
        run.add(0, parts(&["a"]));
        news.await;
        let news = run.news();
        all.over("r");
        news.await;
        assert!(run.is_over() && !all.of("r", "w").is_over());
    }

    #[test]
    fn what_waits_for_the_ledger_is_bounded() {
        let run = Arc::<Transcript>::default();
        run.add(0, vec!["x".repeat(MOST), "y".repeat(9)]);
        assert_eq!(run.from(0, 99), Some((1, vec!["y".repeat(9)])));
        let all = Transcripts::default();
        for n in 0..=KEEP {
            all.of(&n.to_string(), "w");
        }
        assert_eq!(all.all.lock().runs.len(), KEEP);
        all.unused("1");
        assert_eq!(all.all.lock().runs.len(), KEEP - 1);
        // One that comes again is there once.
        all.of("1", "w");
        let lengths = |all: &All| (all.runs.len(), all.order.len());
        assert_eq!(lengths(&all.all.lock()), (KEEP, KEEP));
    }

    #[test]
    fn a_workspace_holds_half_of_what_may_wait_and_its_oldest_go() {
        let all = Transcripts::within(20);
        let [one, two, other] =
            [("1", "w"), ("2", "w"), ("3", "o")].map(|(run, of)| all.of(run, of));
        one.add(0, parts(&["abcd", "efgh"]));
        two.add(0, parts(&["ijkl"]));
        assert_eq!(one.from(0, 99), Some((1, parts(&["efgh"]))));
        assert_eq!(two.from(0, 99), Some((0, parts(&["ijkl"]))));
        other.add(0, parts(&["0123456789"]));
        assert_eq!(all.rooms.held("w"), (18, 8));
        // Together there is too much: who has most gives.
        let more = all.of("4", "x");
        more.add(0, parts(&["yz", "yz"]));
        assert_eq!(other.from(0, 99), None);
        assert_eq!(more.from(0, 99), Some((0, parts(&["yz", "yz"]))));
        one.kept(2);
        all.over("2");
        drop((one, two, other, more));
        all.forget();
        assert_eq!(all.rooms.held("w"), (0, 0));
    }

    #[test]
    fn a_run_is_read_by_pieces() {
        let run = Arc::<Transcript>::default();
        assert!(!run.has_all_before(0), "nothing has begun here");
        run.begin(0);
        run.add(0, parts(&["abc", "def", "ghi"]));
        for (bytes, some) in [(0, 0), (1, 1), (3, 1), (4, 2), (99, 3)] {
            let read = run.from(0, bytes.max(1)).unwrap().1.len();
            assert_eq!(read, some.max(1), "{bytes}");
        }
        assert!(!run.has_all_before(2) && run.has_all_before(3));
    }

    #[test]
    fn one_watches_that_nobody_listens() {
        let run = Transcript::default();
        assert!(run.wait(5) && !run.wait(7), "one does");
        assert_eq!((run.waits(None), run.waits(Some(5))), (Some(7), Some(7)));
        run.joined();
        assert_eq!(run.waits(Some(5)), None);
        run.parted();
        assert!(run.wait(9), "none does any more");
        assert_eq!(run.waits(Some(9)), None);
    }

    #[test]
    fn nobody_listens_when_who_asked_and_all_who_joined_are_gone() {
        let run = Arc::<Transcript>::default();
        run.joined();
        assert!(!run.parted(), "who asked is there");
        run.joined();
        assert!(!run.asker_left(), "who joined it is there");
        assert!(run.parted());
    }
}
