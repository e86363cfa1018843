//! What every adapter of [`SessionStore`] does. A new one is added by one line at the end.

use tg_schemas::operations::{CompactStrategy, ToolCall, Usage};

use self::past::{an_empty_session_alone_is_deleted_as_one, the_past_is_what_fits_from_its_end_on};
use super::sqlite::SqliteSessions;
use super::{
    Agent, AgentRow, AgentStore, Answer, Asked, Message, NewSession, Owner, Page, Role,
    SessionStore, Span, Step, Surface, Unasked,
};
use crate::engine::cursor::Key;

/// A text that is kept apart from its row.
const LARGE: usize = 20 << 10;

fn owner(user: &str) -> Owner {
    Owner {
        surface: Surface::Named,
        agent: "a".to_owned(),
        user: user.to_owned(),
    }
}

fn new(id: &str, user: &str, at: i64) -> NewSession {
    NewSession {
        id: id.to_owned(),
        owner: owner(user),
        title: Some("t".to_owned()),
        knowledge: Vec::new(),
        strategy: CompactStrategy::Manual,
        keep: 3,
        mask: true,
        request: format!("r-{id}"),
        at,
    }
}

/// Some messages after a number.
fn span(after: i64, live: bool, most: usize) -> Span {
    Span {
        after,
        live,
        plain: false,
        most,
        bytes: usize::MAX,
    }
}

fn asked(request: &str, text: &str) -> Asked {
    Asked {
        request: request.to_owned(),
        id: format!("u-{request}"),
        content: text.to_owned(),
        at: 1_000,
    }
}

fn answer(id: &str, text: &str) -> Answer {
    Answer {
        id: id.to_owned(),
        content: text.to_owned(),
        steps: Vec::new(),
        usage: Usage {
            input: 3,
            ..Usage::default()
        },
        result: format!("{{\"of\":\"{id}\"}}"),
        loop_window: "[1]".to_owned(),
        to_search: false,
        at: 1_000,
    }
}

/// One whole turn; the number of its first message.
async fn turn(store: &impl SessionStore, session: &str, request: &str, text: &str) -> i64 {
    let began = store.begin("w", session, asked(request, text)).await;
    let turn = began.unwrap().unwrap().turn;
    let answer = answer(&format!("a-{request}"), &format!("re {text}"));
    let finished = store.finish("w", session, turn, answer).await.unwrap();
    assert!(finished.is_some());
    turn
}

async fn texts(store: &impl SessionStore, session: &str) -> Vec<String> {
    let all = store.messages("w", session, span(0, false, 1_000)).await;
    let all = all.unwrap().items;
    all.into_iter().map(|one| one.content).collect()
}

async fn a_session_is_created_once_and_listed_for_its_owner_alone(store: impl SessionStore) {
    for (id, user, at) in [
        ("1", "ann", 10),
        ("2", "ann", 20),
        ("3", "ann", 20),
        ("4", "bob", 30),
    ] {
        store.create("w", new(id, user, at)).await.unwrap();
    }
    let again = store.create("w", new("1", "ann", 99)).await.unwrap();
    assert_eq!((again.created, again.keep, again.mask), (10, 3, true));
    assert_eq!(again.strategy, CompactStrategy::Manual);
    let ids = async |user: &str, after: Option<(i64, &str)>, most| {
        let after = after.map(|(created, id)| Key {
            created,
            id: id.to_owned(),
        });
        let found = store.sessions("w", owner(user), after, most).await.unwrap();
        found.into_iter().map(|one| one.id).collect::<Vec<_>>()
    };
    assert_eq!(ids("ann", None, 10).await, ["2", "3", "1"]);
    assert_eq!(ids("ann", None, 2).await, ["2", "3"]);
    assert_eq!(ids("ann", Some((20, "2")), 10).await, ["3", "1"]);
    assert_eq!(ids("bob", None, 10).await, ["4"]);
    let other = store.sessions("x", owner("ann"), None, 10).await.unwrap();
    assert!(other.is_empty());
    assert_eq!(store.session("x", "1").await.unwrap(), None);
    assert_eq!(store.session("w", "9").await.unwrap(), None);
}

async fn an_empty_session_is_given_to_another_agent_of_the_same_user(store: impl SessionStore) {
    let to = |agent: &str, user: &str| Owner {
        agent: agent.to_owned(),
        ..owner(user)
    };
    assert_eq!(store.give("w", "1", to("b", "ann")).await.unwrap(), None);
    store.create("w", new("1", "ann", 10)).await.unwrap();
    let agent = async |owner: Owner| {
        let given = store.give("w", "1", owner).await.unwrap();
        given.unwrap().owner.agent
    };
    assert_eq!(agent(to("b", "eve")).await, "a");
    assert_eq!(agent(to("b", "ann")).await, "b");
    turn(&store, "1", "q", "text").await;
    assert_eq!(agent(to("c", "ann")).await, "b");
    assert_eq!(texts(&store, "1").await, ["text", "re text"]);
}

/// 16: rows of older stores may name no user.
async fn line_016_a_session_without_a_user_is_listed_for_nobody(store: impl SessionStore) {
    store.create("w", new("1", "", 10)).await.unwrap();
    let found = store.sessions("w", owner(""), None, 10).await.unwrap();
    assert!(found.is_empty());
    assert!(store.session("w", "1").await.unwrap().is_some());
}

async fn messages_are_numbered_without_gaps_and_each_is_later_than_the_last(
    store: impl SessionStore,
) {
    store.create("w", new("1", "ann", 10)).await.unwrap();
    assert_eq!(turn(&store, "1", "q1", "one").await, 1);
    assert_eq!(turn(&store, "1", "q2", "two").await, 3);
    let all = store.messages("w", "1", span(0, true, 1_000)).await;
    let all = all.unwrap().items;
    let numbers: Vec<i64> = all.iter().map(|one| one.seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert!(all.windows(2).all(|two| two[0].at < two[1].at));
    assert_eq!((all[0].role, all[1].role), (Role::User, Role::Agent));
    assert_eq!(all[1].usage.map(|used| used.input), Some(3));
    let session = store.session("w", "1").await.unwrap().unwrap();
    assert_eq!((session.messages, session.live), (4, 4));
    assert_eq!(session.loop_window, "[1]");
    assert_eq!(session.updated, all[3].at);
    let page = store.messages("w", "1", span(1, false, 2)).await.unwrap();
    assert_eq!(
        (page.items[0].seq, page.items.len(), page.more),
        (2, 2, true)
    );
    let page = store.messages("w", "1", span(2, false, 2)).await.unwrap();
    assert_eq!((page.items.len(), page.more), (2, false));
    let one = store.messages("w", "1", Span::one(3)).await.unwrap();
    assert_eq!((one.items[0].seq, one.items.len()), (3, 1));
}

/// A page ends with the message that fills it, which is read whole.
async fn pages_of_messages_end_by_their_bytes(store: impl SessionStore) {
    store.create("w", new("1", "ann", 10)).await.unwrap();
    for at in 0..3 {
        turn(&store, "1", &format!("q{at}"), &"x".repeat(LARGE)).await;
    }
    let read = async |after, bytes| {
        let span = Span {
            bytes,
            ..span(after, false, 100)
        };
        let page = store.messages("w", "1", span).await.unwrap();
        (page.items.len(), page.more)
    };
    assert_eq!(read(0, 1).await, (1, true));
    assert_eq!(read(0, LARGE + 1).await, (2, true));
    assert_eq!(read(5, 1).await, (1, false));
    assert_eq!(read(0, 7 * LARGE).await, (6, false));
    let seqs = |page: Page<Message>| page.items.iter().map(|one| one.seq).collect::<Vec<_>>();
    let (mut all, mut next) = (Vec::new(), span(0, false, 100));
    next.bytes = 1;
    loop {
        let page = store.messages("w", "1", next).await.unwrap();
        let more = page.more;
        all.extend(seqs(page));
        next.after = all.last().copied().unwrap();
        if !more {
            break;
        }
    }
    assert_eq!(all, [1, 2, 3, 4, 5, 6]);
}

/// 130: a request that comes again.
async fn line_130_a_repeated_request_adds_no_second_message(store: impl SessionStore) {
    store.create("w", new("1", "ann", 10)).await.unwrap();
    let began = store
        .begin("w", "1", asked("q", "one"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((began.turn, began.finished), (1, None));
    let own = store.messages("w", "1", Span::one(1)).await.unwrap();
    assert_eq!(own.items, [began.message]);
    let again = store
        .begin("w", "1", asked("q", "one"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((again.turn, again.finished), (1, None));
    assert_eq!([again.message], *own.items);
    let first = store
        .finish("w", "1", 1, answer("a1", "x"))
        .await
        .unwrap()
        .unwrap();
    let second = store
        .finish("w", "1", 1, answer("a2", "y"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((first.message.content.as_str(), &first), ("x", &second));
    let known = store
        .begin("w", "1", asked("q", "one"))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(known.finished, Some(first));
    assert_eq!(texts(&store, "1").await, ["one", "x"]);
    // The same request of another session is another one.
    store.create("w", new("2", "ann", 10)).await.unwrap();
    let other = Asked {
        id: "u-2".to_owned(),
        ..asked("q", "one")
    };
    let other = store.begin("w", "2", other).await.unwrap().unwrap();
    assert_eq!(other.finished, None);
    let none = store.begin("w", "9", asked("q", "one")).await.unwrap();
    assert_eq!(none, None);
    let none = store.finish("w", "9", 1, answer("a9", "x")).await.unwrap();
    assert_eq!(none, None);
}

async fn line_018_a_deleted_session_takes_its_messages_with_it(store: impl SessionStore) {
    let large = "x".repeat(LARGE);
    for id in ["1", "2"] {
        store.create("w", new(id, "ann", 10)).await.unwrap();
        let asked = asked(&format!("{id}-q"), &large);
        store.begin("w", id, asked).await.unwrap();
    }
    assert!(!store.is_done("w", "d1", "1").await.unwrap());
    assert!(store.delete("w", "1", "d1").await.unwrap());
    assert!(!store.delete("w", "1", "d2").await.unwrap());
    assert!(!store.delete("x", "2", "d1").await.unwrap());
    assert_eq!(store.session("w", "1").await.unwrap(), None);
    assert!(texts(&store, "1").await.is_empty());
    assert_eq!(texts(&store, "2").await, [large]);
    // The same request finds it done, whatever else has its id by now.
    store.create("w", new("1", "ann", 10)).await.unwrap();
    assert!(store.delete("w", "1", "d1").await.unwrap());
    assert!(store.is_done("w", "d1", "1").await.unwrap());
    assert!(!store.is_done("w", "d1", "2").await.unwrap());
    assert!(!store.is_done("x", "d1", "1").await.unwrap());
    assert!(store.session("w", "1").await.unwrap().is_some());
}

fn agent(id: &str, request: &str) -> AgentRow {
    AgentRow {
        id: id.to_owned(),
        request: request.to_owned(),
        template: None,
        body: format!("{{\"of\":\"{request}\"}}"),
        at: 1_000,
    }
}

async fn line_051_an_agent_is_added_once_in_its_workspace(store: impl AgentStore) {
    let first = store.add_agent("w", agent("1", "q1")).await.unwrap();
    let again = store.add_agent("w", agent("1", "q1")).await.unwrap();
    assert!(first.is_some() && first == again);
    let taken = store.add_agent("w", agent("1", "q2")).await.unwrap();
    assert_eq!(taken, None);
    let other = store.add_agent("x", agent("1", "q3")).await.unwrap();
    assert!(other.is_some());
    assert_eq!(store.agent("w", "1").await.unwrap(), first);
    assert_eq!(store.agent("w", "2").await.unwrap(), None);
    assert_eq!(store.agent("y", "1").await.unwrap(), None);
}

async fn line_047_a_workspace_has_its_first_agents_once(store: impl AgentStore) {
    let ids =
        |found: Page<Agent>| -> Vec<String> { found.items.into_iter().map(|one| one.id).collect() };
    assert!(!store.is_seeded("w").await.unwrap());
    let first = || ["b", "a"].map(|id| agent(id, "q")).to_vec();
    for _ in 0..2 {
        store.seed("w", first()).await.unwrap();
        assert!(store.is_seeded("w").await.unwrap());
        assert_eq!(
            ids(store.agents("w", None, 10, usize::MAX).await.unwrap()),
            ["b", "a"]
        );
    }
    store.remove_agent("w", "b", "d").await.unwrap();
    store.seed("w", first()).await.unwrap();
    assert_eq!(
        ids(store.agents("w", None, 10, usize::MAX).await.unwrap()),
        ["a"]
    );
    assert!(!store.is_seeded("x").await.unwrap());
}

async fn agents_are_listed_changed_and_removed(store: impl AgentStore) {
    for id in ["b", "a", "c"] {
        store.add_agent("w", agent(id, id)).await.unwrap();
    }
    let ids = async |after: Option<&str>, most| {
        let after = match after {
            Some(id) => {
                let last = store.agent("w", id).await.unwrap().unwrap();
                Some(Key {
                    created: last.created,
                    id: last.id,
                })
            }
            None => None,
        };
        let found = store.agents("w", after, most, usize::MAX).await.unwrap();
        found
            .items
            .into_iter()
            .map(|one| one.id)
            .collect::<Vec<_>>()
    };
    // The oldest first, also those of one millisecond.
    assert_eq!(ids(None, 10).await, ["b", "a", "c"]);
    assert_eq!(ids(Some("b"), 1).await, ["a"]);
    let changed = store.change_agent("w", "a", "{}".to_owned(), 5).await;
    let changed = changed.unwrap().unwrap();
    assert_eq!(changed.body, "{}");
    assert!(changed.updated > changed.created);
    let none = store.change_agent("w", "z", "{}".to_owned(), 5).await;
    assert_eq!(none.unwrap(), None);
    let few = store.agents("w", None, 10, 1).await.unwrap();
    assert_eq!((few.items.len(), few.more), (1, true));
    assert!(store.remove_agent("w", "b", "d1").await.unwrap());
    assert!(store.remove_agent("w", "b", "d1").await.unwrap());
    assert!(!store.remove_agent("w", "b", "d2").await.unwrap());
    assert!(!store.remove_agent("y", "a", "d1").await.unwrap());
    assert_eq!(ids(None, 10).await, ["a", "c"]);
}

async fn line_079_conversations_go_with_their_agent(store: impl AgentStore + SessionStore) {
    for id in ["a", "b"] {
        store.add_agent("w", agent(id, id)).await.unwrap();
        let conversation = NewSession {
            owner: Owner {
                surface: Surface::Conversation,
                agent: id.to_owned(),
                user: String::new(),
            },
            ..new(&format!("of-{id}"), "", 10)
        };
        store.create("w", conversation).await.unwrap();
    }
    // A session of a user with an agent of that name is another matter.
    store.create("w", new("1", "ann", 10)).await.unwrap();
    let of = |id: &str| Owner {
        surface: Surface::Conversation,
        agent: id.to_owned(),
        user: String::new(),
    };
    let listed = store.sessions("w", of("a"), None, 10).await.unwrap();
    assert_eq!(listed.len(), 1);
    let renamed = store.rename("w", "of-a", None, vec!["k".to_owned()]).await;
    let renamed = renamed.unwrap().unwrap();
    assert_eq!(
        (renamed.title, renamed.knowledge),
        (None, vec!["k".to_owned()])
    );
    let none = store.rename("w", "of-z", None, Vec::new()).await.unwrap();
    assert_eq!(none, None);
    assert!(store.remove_agent("w", "a", "d").await.unwrap());
    assert_eq!(store.session("w", "of-a").await.unwrap(), None);
    assert!(store.session("w", "of-b").await.unwrap().is_some());
    assert!(store.session("w", "1").await.unwrap().is_some());
}

async fn line_080_conversations_forget_a_collection(store: impl SessionStore) {
    let with = |id: &str, surface, knowledge: &[&str]| NewSession {
        owner: Owner {
            surface,
            ..owner("")
        },
        knowledge: knowledge.iter().map(|&one| one.to_owned()).collect(),
        ..new(id, "", 10)
    };
    let of = Surface::Conversation;
    for (workspace, one) in [
        ("w", with("1", of, &["a", "k", "z"])),
        ("w", with("2", of, &["k"])),
        ("w", with("3", of, &["a"])),
        ("w", with("4", Surface::Named, &["k"])),
        ("x", with("5", of, &["k"])),
    ] {
        store.create(workspace, one).await.unwrap();
    }
    assert_eq!(store.forget_collection("w", "k").await.unwrap(), 2);
    assert_eq!(store.forget_collection("w", "k").await.unwrap(), 0);
    assert_eq!(store.forget_collection("none", "k").await.unwrap(), 0);
    for (workspace, id, left) in [
        ("w", "1", &["a", "z"][..]),
        ("w", "2", &[]),
        ("w", "3", &["a"]),
        ("w", "4", &["k"]),
        ("x", "5", &["k"]),
    ] {
        let kept = store.session(workspace, id).await.unwrap().unwrap();
        assert_eq!(kept.knowledge, left, "{id}");
    }
}

async fn the_newest_messages_are_read_from_the_end(store: impl SessionStore) {
    store.create("w", new("1", "ann", 10)).await.unwrap();
    for at in 0..3 {
        turn(&store, "1", &format!("q{at}"), &format!("text {at}")).await;
    }
    let newest = async |most, bytes| {
        let found = store.newest("w", "1", most, bytes).await.unwrap();
        found.into_iter().map(|one| one.seq).collect::<Vec<_>>()
    };
    assert_eq!(newest(3, 1 << 20).await, [4, 5, 6]);
    assert_eq!(newest(1_000, 1 << 20).await, [1, 2, 3, 4, 5, 6]);
    // The message that fills the room is the last that is read.
    assert_eq!(newest(1_000, 1).await, [6]);
    assert!(store.newest("x", "1", 3, 1).await.unwrap().is_empty());
}

async fn line_022_calls_of_tools_are_kept_before_their_answer(store: impl SessionStore) {
    store.create("w", new("1", "ann", 10)).await.unwrap();
    let began = store.begin("w", "1", asked("q", "look")).await.unwrap();
    let step = Step {
        call: ToolCall {
            id: "c".to_owned(),
            name: "search".to_owned(),
            arguments: "{}".to_owned(),
        },
        result: "found".to_owned(),
        ids: ["s1", "s2"].map(str::to_owned),
    };
    let answer = Answer {
        steps: vec![step.clone()],
        ..answer("a", "there")
    };
    store
        .finish("w", "1", began.unwrap().turn, answer)
        .await
        .unwrap();
    let all = store.messages("w", "1", span(0, true, 10)).await.unwrap();
    let all = all.items;
    let roles: Vec<Role> = all.iter().map(|one| one.role).collect();
    assert_eq!(roles, [Role::User, Role::Agent, Role::Tool, Role::Agent]);
    assert_eq!(all[1].tool_calls, [step.call]);
    assert_eq!(
        (all[2].content.as_str(), all[2].tool_name.as_deref()),
        ("found", Some("search"))
    );
    assert!(
        all.windows(2)
            .all(|two| two[0].at < two[1].at && two[0].seq + 1 == two[1].seq)
    );
    let session = store.session("w", "1").await.unwrap().unwrap();
    assert_eq!((session.messages, session.characters), (4, 14));
    assert_eq!(session.said_bytes, 14);
    // A page of what users see is full of it.
    let plain = async |after| {
        let span = Span {
            plain: true,
            ..span(after, true, 1)
        };
        let page = store.messages("w", "1", span).await.unwrap();
        (page.items[0].seq, page.items.len(), page.more)
    };
    assert_eq!(
        (plain(0).await, plain(1).await),
        ((1, 1, true), (4, 1, false))
    );
}

async fn an_announcement_is_added_once_and_begins_no_turn(store: impl SessionStore) {
    let said = |id: &str| Unasked {
        id: id.to_owned(),
        content: "done".to_owned(),
        at: 1_000,
    };
    assert!(!store.announce("w", "1", said("n")).await.unwrap());
    store.create("w", new("1", "ann", 10)).await.unwrap();
    turn(&store, "1", "q", "one").await;
    for _ in 0..2 {
        assert!(store.announce("w", "1", said("n")).await.unwrap());
    }
    assert!(!store.announce("w", "2", said("o")).await.unwrap());
    assert_eq!(turn(&store, "1", "r", "two").await, 4);
    let all = store.messages("w", "1", span(0, true, 10)).await.unwrap();
    let all: Vec<_> = all
        .items
        .iter()
        .map(|one| (&*one.content, one.synthetic))
        .collect();
    assert_eq!(
        all,
        [
            ("one", false),
            ("re one", false),
            ("done", true),
            ("two", false),
            ("re two", false)
        ]
    );
}

/// Holds an adapter to all of it.
macro_rules! conformance {
    ($adapter:ident, $make:expr) => {
        conformance!($adapter, $make;
            a_session_is_created_once_and_listed_for_its_owner_alone,
            an_empty_session_is_given_to_another_agent_of_the_same_user,
            an_empty_session_alone_is_deleted_as_one,
            line_016_a_session_without_a_user_is_listed_for_nobody,
            messages_are_numbered_without_gaps_and_each_is_later_than_the_last,
            line_130_a_repeated_request_adds_no_second_message,
            the_past_is_what_fits_from_its_end_on,
            pages_of_messages_end_by_their_bytes,
            the_newest_messages_are_read_from_the_end,
            line_022_calls_of_tools_are_kept_before_their_answer,
            an_announcement_is_added_once_and_begins_no_turn,
            line_080_conversations_forget_a_collection,
            line_018_a_deleted_session_takes_its_messages_with_it,
            line_051_an_agent_is_added_once_in_its_workspace,
            line_047_a_workspace_has_its_first_agents_once,
            agents_are_listed_changed_and_removed,
            line_079_conversations_go_with_their_agent);
    };
    ($adapter:ident, $make:expr; $($promise:ident),*) => {
        mod $adapter {
            use super::*;

            $(#[tokio::test]
            async fn $promise() {
                let dir = tempfile::tempdir().unwrap();
                super::$promise($make(dir.path())).await;
            })*
        }
    };
}

fn sqlite(dir: &std::path::Path) -> SqliteSessions {
    let durability = tg_storage::Durability::Process;
    SqliteSessions::open(&dir.join("i.sqlite"), &dir.join("all"), durability).unwrap()
}

conformance!(in_sqlite, sqlite);

mod past;
mod purged;
mod room;
mod services;
mod shortened;
