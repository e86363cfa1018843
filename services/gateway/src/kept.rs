//! What detached requests of other services than the agent sent: in memory, for an hour after their end, so that whoever asked
//! joins them again, at this gateway or through another one. It is bounded for a stream, a workspace and in all. A stream that is too
//! long loses its first parts. When all take too much, the workspace that holds the most loses, and in it the user who holds the most:
//! the stream that ended first.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use parking_lot::Mutex;
use tg_schemas::limits::{KEPT_OF_WORKSPACE, KEPT_STREAM, KEPT_STREAMS};
use tg_schemas::{Error, ErrorCode, WorkspaceId, WorkspaceKey};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::ask::{Part, Parts};
use crate::auth::Resource;
use crate::budget::need;
use crate::registry::Gate;

use self::shares::Held;

mod shares;

/// How long a stream is kept that is over.
const KEPT_FOR: Duration = Duration::from_secs(3_600);
/// Streams of one workspace that are kept at once.
const OF_WORKSPACE: usize = 128;
/// A user of whom no more are kept takes the place of any stream of the workspace that is over; beyond that, of an own one.
const OF_USER: usize = OF_WORKSPACE / 8;
/// Streams that are kept at once in all.
const OF_ALL: usize = 1_024;
/// Parts that are handed over at a time.
const AT_ONCE: usize = 8;
/// What a part takes beside what is in it.
const BESIDE: usize = 256;
/// First letter of the mark of a gateway, and the digits that follow.
const MARK: char = 'g';
const DIGITS: usize = 8;

/// All streams that this gateway keeps.
#[derive(Clone)]
pub(crate) struct Kept {
    all: Arc<Mutex<Streams>>,
    /// Stands in the name of each of them: another gateway sees by it whom to ask for that stream.
    mark: Arc<str>,
}

/// Whose a stream is, and what it takes to read it.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    pub(crate) user: Arc<str>,
    pub(crate) workspace: WorkspaceId,
    pub(crate) generation: i64,
    pub(crate) needs: (Gate, Resource),
}

/// What a name stands for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Named<'a> {
    /// A stream of this gateway, by its id.
    Here(&'a str),
    /// A stream of another gateway, by its id and the mark of that gateway.
    Elsewhere { id: &'a str, mark: &'a str },
    /// Whatever has this id.
    Unmarked(&'a str),
}

/// By id, and so by the millisecond in which their requests came.
#[derive(Default)]
struct Streams {
    entries: BTreeMap<String, Entry>,
    /// What their parts take.
    bytes: Held,
    /// How many there are.
    places: Held,
}

struct Entry {
    access: Access,
    /// The workspace in its generation.
    owner: Arc<str>,
    cancel: CancellationToken,
    /// Number of the first part that is still there.
    first: u64,
    /// With what each of them takes.
    parts: VecDeque<(Arc<Part>, usize)>,
    bytes: usize,
    ended: Option<Instant>,
    changed: watch::Sender<()>,
}

impl Entry {
    /// Drops the first parts until the others take no more than that. Returns what those took.
    fn cut(&mut self, most: usize) -> usize {
        let before = self.bytes;
        while self.bytes > most
            && let Some((_, size)) = self.parts.pop_front()
        {
            self.bytes -= size;
            self.first += 1;
        }
        before - self.bytes
    }
}

impl Streams {
    /// Drops what ended too long ago.
    fn forget(&mut self) {
        let now = Instant::now();
        let (bytes, places) = (&mut self.bytes, &mut self.places);
        self.entries.retain(|_, entry| {
            let over = entry.ended.map(|ended| now.duration_since(ended));
            let stays = over.is_none_or(|over| over < KEPT_FOR);
            if !stays {
                bytes.less(&entry.owner, entry.bytes);
                places.less(&entry.owner, 1);
            }
            stays
        });
    }

    fn remove(&mut self, id: &str) {
        if let Some(gone) = self.entries.remove(id) {
            self.bytes.less(&gone.owner, gone.bytes);
            self.places.less(&gone.owner, 1);
        }
    }

    /// The streams of a workspace, the oldest request first.
    fn of_owner(&self, owner: &str) -> impl Iterator<Item = (&String, &Entry)> {
        let all = self.entries.iter();
        all.filter(move |(_, entry)| *entry.owner == *owner)
    }

    /// Those of one user.
    fn of_user(&self, owner: &str, user: &str) -> impl Iterator<Item = (&String, &Entry)> {
        let all = self.of_owner(owner);
        all.filter(move |(_, entry)| *entry.access.user == *user)
    }

    /// What each user of a workspace holds, by what a stream counts for.
    fn users(&self, owner: &str, counts: impl Fn(&Entry) -> usize) -> Held {
        let mut users = Held::default();
        for (_, entry) in self.of_owner(owner) {
            users.more(&entry.access.user, counts(entry));
        }
        users
    }

    /// Takes a place for one more stream of a user in a workspace, for which another one may have to go. `false`: there are too many,
    /// and none that is over is theirs.
    fn take_place(&mut self, owner: &Arc<str>, user: &Arc<str>) -> bool {
        self.places.more(owner, 1);
        loop {
            let victim = if self.places.of(owner) > OF_WORKSPACE {
                owner.clone()
            } else if self.places.all() > OF_ALL {
                self.places.victim(owner, OF_ALL).owner
            } else {
                return true;
            };
            let Some(gone) = self.gives_place(&victim, (victim == *owner).then_some(user)) else {
                self.places.less(owner, 1);
                return false;
            };
            self.remove(&gone);
        }
    }

    /// The stream of a workspace that gives its place, to `taker` where that is one of its users.
    fn gives_place(&self, owner: &str, taker: Option<&Arc<str>>) -> Option<String> {
        let mut users = self.users(owner, |_| 1);
        if let Some(taker) = taker {
            users.more(taker, 1);
        }
        let loser = users.user_victim(taker, 1).owner;
        let ended = first_ended(self.of_user(owner, &loser), 0);
        if ended.is_some() {
            return ended;
        }
        match taker {
            Some(taker) if *taker == loser => {
                let may = users.of(taker) <= OF_USER;
                may.then(|| first_ended(self.of_owner(owner), 0)).flatten()
            }
            // Requests in progress do not keep others out either.
            _ => {
                let first = self.of_user(owner, &loser).next();
                first.map(|(id, _)| id.clone())
            }
        }
    }

    /// Makes room for what was added to a stream of a workspace.
    fn bound(&mut self, id: &str, owner: &Arc<str>) {
        loop {
            let beyond_own = self.bytes.of(owner).saturating_sub(KEPT_OF_WORKSPACE);
            let beyond_all = self.bytes.all().saturating_sub(KEPT_STREAMS);
            let (victim, bytes) = match (beyond_own, beyond_all) {
                (0, 0) => return,
                (0, bytes) => {
                    let victim = self.bytes.victim(owner, KEPT_STREAMS);
                    (victim.owner, bytes.min(victim.excess))
                }
                (bytes, _) => (owner.clone(), bytes),
            };
            let user = self.entries.get(id).map(|entry| entry.access.user.clone());
            let taker = user.filter(|_| victim == *owner);
            let users = self.users(&victim, |entry| entry.bytes);
            let loser = users.user_victim(taker.as_ref(), bytes);
            if let Some(gone) = first_ended(self.of_user(&victim, &loser.owner), 1) {
                self.remove(&gone);
                continue;
            }
            // A user who takes too much loses the beginning of the stream to which it added.
            let in_progress = match taker.is_some_and(|taker| taker == loser.owner) {
                true => Some(id.to_owned()),
                false => largest(self.of_user(&victim, &loser.owner)),
            };
            let bytes = bytes.min(loser.excess);
            let is_cut = in_progress.is_some_and(|id| self.cut(&id, bytes));
            if !is_cut {
                return;
            }
        }
    }

    /// Drops the first parts of a stream that take so many bytes. `false`: it has none.
    fn cut(&mut self, id: &str, bytes: usize) -> bool {
        let Some(entry) = self.entries.get_mut(id) else {
            return false;
        };
        let gone = entry.cut(entry.bytes.saturating_sub(bytes));
        self.bytes.less(&entry.owner, gone);
        gone > 0
    }

    fn add(&mut self, id: &str, (part, size): (Arc<Part>, usize)) {
        let Some(entry) = self.entries.get_mut(id) else {
            return;
        };
        let owner = entry.owner.clone();
        entry.bytes += size;
        entry.parts.push_back((part, size));
        let gone = entry.cut(KEPT_STREAM);
        self.bytes.more(&owner, size);
        self.bytes.less(&owner, gone);
        self.bound(id, &owner);
        self.notify(id);
    }

    fn end(&mut self, id: &str) {
        if let Some(entry) = self.entries.get_mut(id) {
            entry.ended = Some(Instant::now());
        }
        self.notify(id);
    }

    fn notify(&self, id: &str) {
        if let Some(entry) = self.entries.get(id) {
            entry.changed.send_replace(());
        }
    }

    /// The stream with an id, of a user or of a workspace.
    fn of(&self, (user, owner): (&str, &str), id: &str) -> Option<&Entry> {
        self.entries.get(id).filter(|entry| match owner {
            "" => &*entry.access.user == user,
            owner => *entry.owner == *owner,
        })
    }
}

/// Of some streams the one that ended first, of those that take at least so many bytes.
fn first_ended<'a>(
    of: impl Iterator<Item = (&'a String, &'a Entry)>,
    least: usize,
) -> Option<String> {
    let large = of.filter(|(_, entry)| entry.bytes >= least);
    let ended = large.filter_map(|(id, entry)| Some((entry.ended?, id)));
    ended.min().map(|(_, id)| id.clone())
}

/// Of some streams the one that takes the most.
fn largest<'a>(of: impl Iterator<Item = (&'a String, &'a Entry)>) -> Option<String> {
    let largest = of.max_by_key(|(_, entry)| entry.bytes);
    largest.map(|(id, _)| id.clone())
}

/// Whether a text has the form of a gateway's mark.
fn is_mark(text: &str) -> bool {
    let digits = text.strip_prefix(MARK).unwrap_or_default();
    digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// What a part takes at most, by an estimate.
fn weight(part: &Part) -> usize {
    let inside = match part {
        Part::Body { body, .. } => serde_json::to_vec(body).map_or(0, |text| need(&text)),
        Part::Error(error) => error.message.len(),
    };
    inside + BESIDE
}

impl Kept {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        let random = uuid::Uuid::new_v4().simple().to_string();
        let mark: String = [MARK]
            .into_iter()
            .chain(random.chars().take(DIGITS))
            .collect();
        Self {
            all: Arc::default(),
            mark: mark.into(),
        }
    }

    /// The mark of this gateway.
    pub(crate) fn mark(&self) -> &str {
        &self.mark
    }

    /// What clients call the stream with an id.
    pub(crate) fn name(&self, id: &str) -> Arc<str> {
        format!("{id}.{}", self.mark).into()
    }

    /// What a client means by a name.
    pub(crate) fn named<'a>(&self, run: &'a str) -> Named<'a> {
        match run.rsplit_once('.') {
            Some((id, mark)) if mark == &*self.mark => Named::Here(id),
            Some((id, mark)) if is_mark(mark) => Named::Elsewhere { id, mark },
            _ => Named::Unmarked(run),
        }
    }

    /// Whether a name stands for a stream of a gateway, and not for a run of the agent.
    pub(crate) fn knows(&self, run: &str) -> bool {
        match self.named(run) {
            Named::Unmarked(id) => self.all.lock().entries.contains_key(id),
            _ => true,
        }
    }

    /// Keeps a stream from now on. `None`: there is no place for it.
    pub(crate) fn record(
        &self,
        id: &str,
        access: Access,
        cancel: CancellationToken,
    ) -> Option<Recorder> {
        let owner = WorkspaceKey::new(access.workspace.as_str(), access.generation);
        let owner: Arc<str> = owner.as_str().into();
        let mut all = self.all.lock();
        all.forget();
        if !all.take_place(&owner, &access.user) {
            return None;
        }
        let entry = Entry {
            access,
            owner,
            cancel: cancel.clone(),
            first: 0,
            parts: VecDeque::new(),
            bytes: 0,
            ended: None,
            changed: watch::channel(()).0,
        };
        all.remove(id);
        all.entries.insert(id.to_owned(), entry);
        drop(all);
        Some(Recorder {
            all: self.all.clone(),
            id: id.to_owned(),
            cancel,
            over: false,
        })
    }

    /// The stream with an id, of a user or of a workspace.
    pub(crate) fn find(&self, whose: (&str, &str), id: &str) -> Option<(Access, Follower)> {
        let mut all = self.all.lock();
        all.forget();
        let entry = all.of(whose, id)?;
        let follower = Follower {
            all: self.all.clone(),
            id: id.to_owned(),
            cancel: entry.cancel.clone(),
            changed: entry.changed.subscribe(),
        };
        Some((entry.access.clone(), follower))
    }

    /// Ends the request behind a stream. Whether it was over; `None`: there is no such stream.
    pub(crate) fn cancel(&self, whose: (&str, &str), id: &str) -> Option<bool> {
        let mut all = self.all.lock();
        all.forget();
        let entry = all.of(whose, id)?;
        entry.cancel.cancel();
        Some(entry.ended.is_some())
    }
}

/// A stream of another gateway, which cannot be asked.
pub(crate) fn elsewhere() -> Error {
    let text = "this gateway does not keep that stream: the gateway that took the request keeps it, for an hour after its end, \
                and it does not answer";
    Error::new(ErrorCode::NotFound, text)
}

/// Keeps the parts of one stream as they pass.
pub(crate) struct Recorder {
    all: Arc<Mutex<Streams>>,
    id: String,
    cancel: CancellationToken,
    over: bool,
}

impl Recorder {
    /// The same parts, each of which is kept when it comes.
    pub(crate) fn recorded(mut self, parts: Parts) -> Parts {
        let recorded = parts.map(move |part| {
            self.add(&part);
            part
        });
        recorded.boxed()
    }

    fn add(&mut self, part: &Part) {
        let last = !matches!(part, Part::Body { last: false, .. });
        let kept = match part {
            // What is empty has no number: who reads on counts so too.
            Part::Body { body, .. } if body.is_empty() => None,
            // How it ended in its service says less.
            Part::Error(_) if self.cancel.is_cancelled() => Some(Part::Error(cancelled())),
            part => Some(part.clone()),
        };
        let kept = kept.map(|part| (weight(&part), Arc::new(part)));
        let mut all = self.all.lock();
        if let Some((size, part)) = kept {
            all.add(&self.id, (part, size));
        }
        if last {
            all.end(&self.id);
            self.over = true;
        }
    }
}

/// Nobody reads on: it was cancelled, or what read it had another reason to end.
impl Drop for Recorder {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        let error = Error::new(ErrorCode::Interrupted, "the answer is incomplete");
        self.add(&Part::Error(error));
    }
}

fn cancelled() -> Error {
    Error::new(ErrorCode::Cancelled, "the request was cancelled")
}

/// Reads a stream that is kept.
pub(crate) struct Follower {
    all: Arc<Mutex<Streams>>,
    id: String,
    cancel: CancellationToken,
    changed: watch::Receiver<()>,
}

impl Follower {
    /// Ends the request behind it.
    pub(crate) fn cancel(&self) {
        self.cancel.cancel();
    }

    /// The parts from a number on, with the number of the first of them: a higher one where parts were cut. `None`: nothing
    /// follows any more.
    pub(crate) async fn more(&mut self, from: u64) -> Result<Option<(u64, Vec<Arc<Part>>)>, Error> {
        loop {
            drop(self.changed.borrow_and_update());
            match self.look(from)? {
                Looked::Parts(first, parts) => return Ok(Some((first, parts))),
                Looked::Over => return Ok(None),
                // A stream that went meanwhile changes no more, which the next look shows.
                Looked::Nothing => _ = self.changed.changed().await,
            }
        }
    }

    fn look(&self, from: u64) -> Result<Looked, Error> {
        let all = self.all.lock();
        let entry = all.entries.get(&self.id).ok_or_else(|| {
            let text = "the stream is not kept any more: there was no room for it";
            Error::new(ErrorCode::NotFound, text)
        })?;
        let first = entry.first.max(from);
        let skip = usize::try_from(first - entry.first).unwrap_or(usize::MAX);
        let some = entry.parts.iter().skip(skip).take(AT_ONCE);
        let some: Vec<_> = some.map(|(part, _)| part.clone()).collect();
        Ok(match entry.ended {
            _ if first > from || !some.is_empty() => Looked::Parts(first, some),
            Some(_) => Looked::Over,
            None => Looked::Nothing,
        })
    }
}

/// What a stream has behind a part.
enum Looked {
    Parts(u64, Vec<Arc<Part>>),
    Over,
    /// Nothing yet.
    Nothing,
}

#[cfg(test)]
mod tests;
