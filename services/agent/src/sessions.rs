//! Sessions of agents that were given work: what was asked and answered in them before. And whom a session belongs to: its main
//! agent is told of what comes of tasks.

use std::collections::{HashMap, VecDeque};

use async_trait::async_trait;
use parking_lot::Mutex;
use tg_schemas::Error;
use tg_schemas::msg::LoopRecord;

use crate::engine::bounds::shorten;

/// Turns of a session that are kept, the last ones.
const TURNS: usize = 20;
/// Longest text of a turn that is kept, in bytes.
const MAX_TEXT: usize = 8 << 10;
/// Bytes of all sessions of a workspace in memory; those that were not used for longest go.
const OF_WORKSPACE: usize = 1 << 20;
/// The same of all workspaces.
const OF_ALL: usize = 16 << 20;

/// Names a session. One of another user, or with another agent, is another session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionId {
    /// Its workspace, in the text form of its key.
    pub workspace: String,
    /// The user.
    pub user: String,
    /// Id of the agent.
    pub agent: String,
    /// Its name.
    pub name: String,
}

/// What was asked, and what was answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// Names it in its session: it is added once.
    pub id: String,
    /// What the agent was sent.
    pub asked: String,
    /// What it answered.
    pub answered: String,
    /// The last calls that it had made by then, by their hashes: the next turn goes on from there.
    pub window: Vec<LoopRecord>,
}

/// Who gave a task, and what its session is sent about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notification {
    /// The workspace, in the text form of its key.
    pub workspace: String,
    /// The user.
    pub user: String,
    /// The session that the task was given in.
    pub session: String,
    /// For the main agent, as a turn that nobody typed.
    pub text: String,
}

/// Where sessions are kept.
#[async_trait]
pub trait Sessions: Send + Sync + 'static {
    /// The turns of a session, oldest first.
    ///
    /// # Errors
    /// It cannot be read now.
    async fn turns(&self, of: &SessionId) -> Result<Vec<Turn>, Error>;

    /// Adds a turn, unless it is there.
    ///
    /// # Errors
    /// It cannot be kept now.
    async fn add(&self, to: &SessionId, turn: Turn) -> Result<(), Error>;

    /// Has the main agent of a session reply to a notification. `None`: there is no such session, or it has none.
    ///
    /// # Errors
    /// The main agent failed.
    async fn tell(&self, notification: &Notification) -> Result<Option<String>, Error>;
}

/// Sessions that end with the process, of nobody's main agents.
#[derive(Default)]
pub struct InMemory(Mutex<All>);

#[derive(Default)]
struct All {
    sessions: HashMap<SessionId, Kept>,
    /// By workspace.
    bytes: HashMap<String, usize>,
    clock: u64,
}

#[derive(Default)]
struct Kept {
    turns: VecDeque<Turn>,
    used: u64,
}

/// What a turn takes, with what it is kept in.
fn size(turn: &Turn) -> usize {
    let calls = turn.window.iter();
    let calls =
        calls.map(|call| size_of::<LoopRecord>() + call.t.len() + call.a.len() + call.r.len());
    let texts = turn.id.len() + turn.asked.len() + turn.answered.len();
    size_of::<Turn>() + texts + calls.sum::<usize>()
}

/// What a session takes beside its turns.
fn own_size(id: &SessionId) -> usize {
    let names = [&id.workspace, &id.user, &id.agent, &id.name];
    size_of::<(SessionId, Kept)>() + names.map(String::len).iter().sum::<usize>()
}

impl All {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// Counts what comes, or goes.
    fn count(&mut self, workspace: &str, more: usize, less: usize) {
        let bytes = self.bytes.entry(workspace.to_owned()).or_default();
        *bytes = (*bytes + more).saturating_sub(less);
        if *bytes == 0 {
            self.bytes.remove(workspace);
        }
    }

    /// Drops the session that was not used for longest, of a workspace or of all.
    fn drop_oldest(&mut self, workspace: Option<&str>) {
        let own = self
            .sessions
            .iter()
            .filter(|(id, _)| workspace.is_none_or(|name| id.workspace == name));
        let oldest = own.min_by_key(|(_, kept)| kept.used);
        let Some(id) = oldest.map(|(id, _)| id.clone()) else {
            return;
        };
        let kept = self.sessions.remove(&id).unwrap_or_default();
        let less = own_size(&id) + kept.turns.iter().map(size).sum::<usize>();
        self.count(&id.workspace, 0, less);
    }

    fn is_full(&self, workspace: &str) -> Option<bool> {
        if self.bytes.get(workspace).copied().unwrap_or(0) > OF_WORKSPACE {
            return Some(true);
        }
        (self.bytes.values().sum::<usize>() > OF_ALL).then_some(false)
    }
}

#[async_trait]
impl Sessions for InMemory {
    async fn turns(&self, of: &SessionId) -> Result<Vec<Turn>, Error> {
        let mut all = self.0.lock();
        let now = all.tick();
        let Some(kept) = all.sessions.get_mut(of) else {
            return Ok(Vec::new());
        };
        kept.used = now;
        Ok(kept.turns.iter().cloned().collect())
    }

    async fn add(&self, to: &SessionId, turn: Turn) -> Result<(), Error> {
        let turn = Turn {
            asked: shorten(&turn.asked, MAX_TEXT),
            answered: shorten(&turn.answered, MAX_TEXT),
            id: turn.id,
            window: turn.window,
        };
        let mut all = self.0.lock();
        let now = all.tick();
        let mut more = size(&turn);
        let mut less = 0;
        let kept = match all.sessions.get_mut(to) {
            Some(kept) => kept,
            None => {
                more += own_size(to);
                all.sessions.entry(to.clone()).or_default()
            }
        };
        if kept.turns.iter().any(|known| known.id == turn.id) {
            return Ok(());
        }
        kept.used = now;
        kept.turns.push_back(turn);
        if kept.turns.len() > TURNS {
            less = kept.turns.pop_front().as_ref().map_or(0, size);
        }
        all.count(&to.workspace, more, less);
        while let Some(own) = all.is_full(&to.workspace) {
            all.drop_oldest(own.then_some(to.workspace.as_str()));
        }
        Ok(())
    }

    async fn tell(&self, _: &Notification) -> Result<Option<String>, Error> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(workspace: &str, user: &str, name: &str) -> SessionId {
        SessionId {
            workspace: workspace.into(),
            user: user.into(),
            agent: "a".into(),
            name: name.into(),
        }
    }

    fn turn(id: &str, text: &str) -> Turn {
        Turn {
            id: id.into(),
            asked: "q".into(),
            answered: text.into(),
            window: Vec::new(),
        }
    }

    #[tokio::test]
    async fn a_session_keeps_its_last_turns_once_and_for_its_user() {
        let sessions = InMemory::default();
        let own = id("ws", "ann", "s");
        for at in 0..25 {
            let turn = turn(&at.to_string(), "x");
            sessions.add(&own, turn.clone()).await.unwrap();
            sessions.add(&own, turn).await.unwrap();
        }
        let known = sessions.turns(&own).await.unwrap();
        assert_eq!(known.len(), TURNS);
        assert_eq!(known[0].id, "5");
        for other in [id("ws", "bob", "s"), id("ws2", "ann", "s")] {
            assert!(sessions.turns(&other).await.unwrap().is_empty());
        }
    }

    #[tokio::test]
    async fn what_a_workspace_keeps_is_bounded_and_others_keep_theirs() {
        let sessions = InMemory::default();
        let (long, other) = ("x".repeat(MAX_TEXT), id("b", "u", "s"));
        sessions.add(&other, turn("1", "kept")).await.unwrap();
        for at in 0..200 {
            let name = id("a", "u", &at.to_string());
            sessions.add(&name, turn("1", &long)).await.unwrap();
        }
        assert!(sessions.0.lock().bytes["a"] <= OF_WORKSPACE);
        assert!(sessions.turns(&id("a", "u", "0")).await.unwrap().is_empty());
        assert_eq!(sessions.turns(&id("a", "u", "199")).await.unwrap().len(), 1);
        assert_eq!(sessions.turns(&other).await.unwrap().len(), 1);
        let all = sessions.0.lock();
        let held = all.sessions.iter();
        let held = held.filter(|(id, _)| id.workspace == "a");
        let held: usize = held
            .map(|(id, kept)| own_size(id) + kept.turns.iter().map(size).sum::<usize>())
            .sum();
        assert_eq!(all.bytes["a"], held, "what is counted is what is there");
    }
}
