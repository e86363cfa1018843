//! What is read of a session for its agent.

use tg_schemas::operations::ToolCall;

use super::{answer, asked, new, turn};
use crate::store::{Answer, LineageStore, SessionStore, Step};

pub(super) async fn the_past_is_what_fits_from_its_end_on(store: impl SessionStore) {
    store.create("w", new("1", "ann", 10)).await.unwrap();
    for (request, text) in [("q1", "aaaa"), ("q2", "bbbb"), ("q3", "cccc")] {
        turn(&store, "1", request, text).await;
    }
    let past = async |before, bytes| {
        let past = store.past("w", "1", (0, before), bytes).await.unwrap();
        assert!(past.iter().all(|one| one.usage.is_none()));
        past.into_iter().map(|one| one.content).collect::<Vec<_>>()
    };
    assert_eq!(past(5, 1_000).await, ["aaaa", "re aaaa", "bbbb", "re bbbb"]);
    assert_eq!(past(5, 11).await, ["bbbb", "re bbbb"]);
    assert_eq!(past(5, 10).await, ["re bbbb"]);
    assert_eq!(past(1, 1_000).await, [""; 0]);
    // A call of a tool has no text, and is as long as its name and arguments.
    let began = store.begin("w", "1", asked("q4", "look")).await.unwrap();
    let step = Step {
        call: ToolCall {
            id: "c".to_owned(),
            name: "search".to_owned(),
            arguments: "x".repeat(100),
        },
        result: "found".to_owned(),
        ids: ["s1", "s2"].map(str::to_owned),
    };
    let answer = Answer {
        steps: vec![step],
        ..answer("a-q4", "there")
    };
    let turn = began.unwrap().turn;
    let finished = store.finish("w", "1", turn, answer).await.unwrap();
    assert!(finished.is_some());
    assert_eq!(past(11, 115).await, ["found", "there"]);
    assert_eq!(past(11, 116).await, ["", "found", "there"]);
}

pub(super) async fn an_empty_session_alone_is_deleted_as_one(
    store: impl SessionStore + LineageStore,
) {
    assert!(!store.delete_empty("w", "1").await.unwrap());
    for id in ["1", "2"] {
        store.create("w", new(id, "ann", 10)).await.unwrap();
    }
    assert_eq!(store.last_asked("w", "1").await.unwrap(), None);
    let asked = store.begin("w", "1", asked("q", "text")).await.unwrap();
    let asked = asked.map(|began| began.message.id);
    assert_eq!(store.last_asked("w", "1").await.unwrap(), asked);
    store.finish("w", "1", 1, answer("a1", "x")).await.unwrap();
    assert_eq!(store.last_asked("w", "1").await.unwrap(), asked);
    for (id, gone) in [("1", false), ("2", true)] {
        assert_eq!(store.delete_empty("w", id).await.unwrap(), gone);
        let found = store.session("w", id).await.unwrap();
        assert_eq!(found.is_none(), gone);
    }
}
