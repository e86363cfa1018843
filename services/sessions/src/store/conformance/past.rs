//! What is read of a session for its agent.

use tg_schemas::operations::ToolCall;

use super::{answer, asked, new, turn};
use crate::store::{Answer, SessionStore, Step};

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
