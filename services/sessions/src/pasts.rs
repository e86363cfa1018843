//! What was said in sessions, as their agents are sent it, kept in memory from turn to turn: a turn reads only what came since the
//! one before. Messages are only ever added. So what was read holds as long as its last message is there, and no more messages are
//! replaced by a summary than were then. What is not kept here is read anew, and so is a conversation that has a summary.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use moka::policy::EvictionPolicy;
use tg_schemas::WorkspaceKey;

use crate::engine::transcript::{Said, TOLD};
use crate::store::{Message, Purged, Session};

/// Bytes of all that is kept, about.
const KEPT: u64 = 8 << 20;
/// What a message takes beside its texts, about.
const BESIDE: usize = 128;
/// How long it is kept for a session that has no turn.
const IDLE: Duration = Duration::from_secs(600);

/// Sessions by their workspace and id.
type Key = (WorkspaceKey, String);

/// What was said in the sessions that had a turn last.
pub(crate) struct Pasts(Cache<Key, Arc<Past>>);

/// What was said in one session, as far as its agent reads it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Past {
    /// Messages of the session that a summary had replaced.
    replaced: i64,
    /// Number and id of the last message; 0: there is none.
    last: (i64, String),
    /// What the agent reads of the messages, the oldest first.
    said: VecDeque<Arc<Said>>,
}

/// Bytes of what the agent reads of a message. Of a call of a tool that is not its text, which is empty.
pub(crate) fn size(said: &Said) -> usize {
    said.who.len() + said.text.len()
}

/// Messages of a session that a summary replaced.
fn replaced(session: &Session) -> i64 {
    session.messages - session.live
}

impl Pasts {
    /// Nothing is kept yet.
    pub(crate) fn new() -> Arc<Self> {
        let weight = |_: &Key, past: &Arc<Past>| {
            let bytes: usize = past.said.iter().map(|said| size(said) + BESIDE).sum();
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        let kept = Cache::builder()
            .max_capacity(KEPT)
            .weigher(weight)
            .time_to_idle(IDLE)
            .eviction_policy(EvictionPolicy::lru());
        Arc::new(Self(kept.build()))
    }

    /// What was read of a session before, unless it holds no more.
    pub(crate) async fn of(
        &self,
        workspace: &WorkspaceKey,
        session: &Session,
    ) -> Option<Arc<Past>> {
        let key = (workspace.clone(), session.id.clone());
        let known = self.0.get(&key).await;
        known.filter(|known| known.replaced == replaced(session))
    }

    /// Keeps it for the next turn.
    pub(crate) async fn keep(&self, workspace: &WorkspaceKey, session: &Session, past: Arc<Past>) {
        if past.last.0 > 0 {
            let key = (workspace.clone(), session.id.clone());
            self.0.insert(key, past).await;
        }
    }

    /// Drops what was said in a session that is deleted.
    pub(crate) async fn forget(&self, workspace: &WorkspaceKey, session: &str) {
        let key = (workspace.clone(), session.to_owned());
        self.0.invalidate(&key).await;
    }

    /// Drops what was said in all sessions of a workspace.
    pub(crate) async fn forget_all(&self, workspace: &WorkspaceKey) {
        let keys = self.0.iter().map(|(key, _)| key);
        let keys: Vec<Arc<Key>> = keys.filter(|key| key.0 == *workspace).collect();
        for key in keys {
            self.0.invalidate(&*key).await;
        }
        // The texts are freed now, not when the cache is used the next time.
        self.0.run_pending_tasks().await;
    }

    /// The same, as the store calls it.
    pub(crate) fn purged(self: &Arc<Self>) -> Purged {
        let pasts = self.clone();
        Arc::new(move |workspace| {
            let pasts = pasts.clone();
            Box::pin(async move { pasts.forget_all(&workspace).await })
        })
    }
}

impl Past {
    /// The number after which messages are read to go on with it: its last one is read once more.
    pub(crate) fn reads_after(&self) -> i64 {
        self.last.0.saturating_sub(1)
    }

    /// Whether it ends with the first of these messages. Else it is of a session that was deleted, or of one that has gone on by more
    /// than is read at once.
    pub(crate) fn ends_with_first(&self, found: &[Message]) -> bool {
        let first = found.first();
        first.is_some_and(|first| first.seq == self.last.0 && first.id == self.last.1)
    }

    /// What is known with the messages after it, the first of which is its last; with nothing known, these messages. It has as much as
    /// the store would read at once.
    pub(crate) fn with(
        known: Option<&Self>,
        session: &Session,
        found: &[Message],
        told: fn(&Message) -> Option<Said>,
    ) -> Arc<Self> {
        let new = match known {
            Some(_) => found.get(1..).unwrap_or_default(),
            None => found,
        };
        let new = new.iter().filter_map(told).map(Arc::new);
        let before = known.map(|known| known.said.clone()).unwrap_or_default();
        let mut said: VecDeque<_> = before.into_iter().chain(new).collect();
        let mut room = TOLD;
        let fit = said.iter().rev().take_while(|said| {
            let left = room.checked_sub(size(said));
            room = left.unwrap_or(room);
            left.is_some()
        });
        let left_out = said.len() - fit.count();
        said.drain(..left_out);
        let last = found.last().map(|last| (last.seq, last.id.clone()));
        Arc::new(Self {
            replaced: replaced(session),
            last: last.unwrap_or_default(),
            said,
        })
    }

    /// What the agent is sent, the oldest first.
    pub(crate) fn told(&self) -> impl Iterator<Item = Arc<Said>> + '_ {
        self.said.iter().cloned()
    }
}

#[cfg(test)]
mod tests {
    use tg_collections::WorkspaceStore;
    use tg_schemas::WorkspaceTombstone;
    use tg_schemas::operations::{CompactStrategy, ToolCall};

    use super::*;
    use crate::store::{Owner, Role, SqliteSessions, Surface};

    fn session(messages: i64, live: i64) -> Session {
        Session {
            id: "s".to_owned(),
            owner: Owner {
                surface: Surface::Named,
                agent: "a".to_owned(),
                user: "ann".to_owned(),
            },
            title: None,
            knowledge: Vec::new(),
            strategy: CompactStrategy::Off,
            keep: 0,
            mask: false,
            messages,
            live,
            characters: 0,
            said_bytes: 0,
            request: None,
            parent: None,
            successor: None,
            loop_window: "[]".to_owned(),
            created: 0,
            updated: 0,
            archived: None,
        }
    }

    fn message(seq: i64, content: &str) -> Message {
        Message {
            seq,
            id: format!("m{seq}"),
            at: seq,
            role: Role::User,
            content: content.to_owned(),
            tool_name: None,
            tool_calls: Vec::new(),
            usage: None,
            synthetic: false,
            compacted: None,
            result: None,
        }
    }

    fn told(message: &Message) -> Option<Said> {
        let text = message.content.clone();
        (text != "no").then(|| Said {
            who: "User".to_owned(),
            text,
        })
    }

    fn texts(past: &Past) -> Vec<String> {
        past.told().map(|said| said.text.clone()).collect()
    }

    #[tokio::test]
    async fn a_turn_goes_on_with_what_the_turn_before_read() {
        let (pasts, key) = (Pasts::new(), WorkspaceKey::new("w", 0));
        let all = [message(1, "a"), message(2, "no"), message(3, "b")];
        let first = Past::with(None, &session(3, 3), &all[..2], told);
        assert_eq!(texts(&first), ["a"]);
        pasts.keep(&key, &session(3, 3), first.clone()).await;
        let known = pasts.of(&key, &session(5, 5)).await.unwrap();
        assert_eq!((known.reads_after(), &known), (1, &first));
        assert!(known.ends_with_first(&all[1..]));
        let next = Past::with(Some(&*known), &session(5, 5), &all[1..], told);
        assert_eq!(next, Past::with(None, &session(5, 5), &all, told));
        assert_eq!(texts(&next), ["a", "b"]);
    }

    #[tokio::test]
    async fn what_was_read_holds_while_its_last_message_is_there_and_no_more_are_replaced() {
        let (pasts, key) = (Pasts::new(), WorkspaceKey::new("w", 0));
        let past = Past::with(None, &session(2, 2), &[message(1, "a")], told);
        pasts.keep(&key, &session(2, 2), past.clone()).await;
        assert!(pasts.of(&key, &session(9, 8)).await.is_none());
        pasts.forget(&key, "other").await;
        assert!(pasts.of(&key, &session(2, 2)).await.is_some());
        pasts.forget(&key, "s").await;
        assert!(pasts.of(&key, &session(2, 2)).await.is_none());
        pasts.keep(&key, &session(2, 2), past.clone()).await;
        let later = WorkspaceKey::new("w", 1);
        assert!(pasts.of(&later, &session(2, 2)).await.is_none());
        // Another session of the same id has other messages.
        let mut other = message(1, "a");
        other.id = "other".to_owned();
        assert!(past.ends_with_first(&[message(1, "a")]));
        assert!(!past.ends_with_first(&[other]) && !past.ends_with_first(&[]));
        let nothing = Past::with(None, &session(0, 0), &[], told);
        pasts.keep(&later, &session(0, 0), nothing).await;
        assert!(pasts.of(&later, &session(0, 0)).await.is_none());
    }

    #[test]
    fn it_has_as_much_as_is_read_at_once() {
        // With who says it, it leaves room for the message before it.
        let long = "x".repeat(TOLD - 9);
        let known = Past::with(
            None,
            &session(2, 2),
            &[message(1, "aa"), message(2, "b")],
            told,
        );
        let found = [message(2, "b"), message(3, &long)];
        let next = Past::with(Some(&*known), &session(4, 4), &found, told);
        assert_eq!(texts(&next), ["b".to_owned(), long.clone()]);
        let found = [message(3, &long), message(4, "cc")];
        let next = Past::with(Some(&*next), &session(5, 5), &found, told);
        assert_eq!(texts(&next), ["cc"]);
    }

    /// A call of a tool: its message has no text, and the agent reads its name and arguments.
    fn called(message: &Message) -> Option<Said> {
        let call = message.tool_calls.first()?;
        Some(Said {
            who: "Assistant calls".to_owned(),
            text: format!("{} {}", call.name, call.arguments),
        })
    }

    #[tokio::test]
    async fn a_call_of_a_tool_weighs_as_much_as_its_arguments() {
        let call = |seq: i64, arguments: usize| Message {
            role: Role::Agent,
            tool_calls: vec![ToolCall {
                id: "c".to_owned(),
                name: "search".to_owned(),
                arguments: "x".repeat(arguments),
            }],
            ..message(seq, "")
        };
        let (pasts, key) = (Pasts::new(), WorkspaceKey::new("w", 0));
        let large = TOLD / 2;
        let one = Past::with(None, &session(2, 2), &[call(1, large)], called);
        assert_eq!(one.told().count(), 1);
        let two = [call(1, large), call(2, large)];
        let two = Past::with(None, &session(3, 3), &two, called);
        assert_eq!(two.told().count(), 1, "both do not fit");
        pasts.keep(&key, &session(2, 2), one).await;
        pasts.0.run_pending_tasks().await;
        assert!(pasts.0.weighted_size() > large as u64);
        for n in 0..100 {
            let other = Session {
                id: format!("s{n}"),
                ..session(3, 3)
            };
            pasts.keep(&key, &other, two.clone()).await;
        }
        pasts.0.run_pending_tasks().await;
        assert!(pasts.0.entry_count() <= KEPT / large as u64);
    }

    #[tokio::test]
    async fn a_purged_workspace_leaves_nothing_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        let durability = tg_storage::Durability::Process;
        let store = SqliteSessions::open(&dir.path().join("i"), dir.path(), durability).unwrap();
        let pasts = Pasts::new();
        let store = store.purging(pasts.purged());
        let keys = ["w", "x"].map(|name| WorkspaceKey::new(name, 0));
        let past = Past::with(None, &session(2, 2), &[message(1, "a")], told);
        for key in &keys {
            pasts.keep(key, &session(2, 2), past.clone()).await;
        }
        let gone = WorkspaceTombstone {
            generation: 0,
            deleted_at: 1,
            purge_after: 1,
        };
        store.purge(&keys[0], &gone).await.unwrap();
        assert_eq!(pasts.0.entry_count(), 1);
        assert!(pasts.of(&keys[0], &session(2, 2)).await.is_none());
        assert!(pasts.of(&keys[1], &session(2, 2)).await.is_some());
    }
}
