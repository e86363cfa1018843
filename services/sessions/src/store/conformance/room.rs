//! What a workspace may keep: sessions, and bytes of their messages.

use tg_collections::Quota;
use tg_storage::StorageError;

use super::shortened::shortening;
use super::{agent, answer, asked, new, sqlite, turn};
use crate::engine::service_kind::ServiceKind;
use crate::store::{
    AgentRow, AgentStore, LineageStore, LlmServiceRow, LlmServiceStore, SessionStore,
    SqliteSessions,
};

/// Two sessions, and somewhat more than 4 KiB.
fn small(dir: &std::path::Path) -> SqliteSessions {
    sqlite(dir).holding(Quota {
        items: 2,
        bytes: 5 << 10,
    })
}

fn refused<T: std::fmt::Debug>(result: Result<T, StorageError>) -> String {
    match result {
        Err(StorageError::Refused(error)) => error.message,
        other => panic!("it is not refused: {other:?}"),
    }
}

async fn a_workspace_has_so_many_sessions(store: impl SessionStore + LineageStore) {
    for id in ["1", "2"] {
        store.create("w", new(id, "ann", 10)).await.unwrap();
    }
    let told = "the sessions of this workspace may hold at most 2 sessions";
    assert_eq!(refused(store.create("w", new("3", "ann", 10)).await), told);
    let import = store.import("w", new("3", "ann", 10), Vec::new()).await;
    assert_eq!(refused(import), told);
    // One that is there is found, and another workspace has its own.
    assert!(store.create("w", new("2", "ann", 10)).await.is_ok());
    assert!(store.create("x", new("1", "ann", 10)).await.is_ok());
    // One that is deleted makes room.
    store.delete("w", "1", "d").await.unwrap();
    assert!(store.create("w", new("3", "ann", 10)).await.is_ok());
}

async fn a_workspace_has_so_many_bytes(store: impl SessionStore + LineageStore) {
    store.create("w", new("1", "ann", 10)).await.unwrap();
    turn(&store, "1", "q1", &"x".repeat(1 << 10)).await;
    let begun = store.begin("w", "1", asked("q2", &"x".repeat(512))).await;
    let begun = begun.unwrap().unwrap();
    let more = store
        .begin("w", "1", asked("q3", &"x".repeat(1 << 10)))
        .await;
    assert!(refused(more).ends_with("MiB of messages and agents"));
    // A turn that has begun is finished, and a request that comes again is no more.
    let long = answer("a2", &"x".repeat(8 << 10));
    let finished = store.finish("w", "1", begun.turn, long).await.unwrap();
    assert!(finished.is_some());
    let again = store.begin("w", "1", asked("q2", "")).await.unwrap();
    assert!(again.unwrap().finished.is_some());
    assert!(store.begin("w", "1", asked("q4", "x")).await.is_err());
    store.delete("w", "1", "d").await.unwrap();
    store.create("w", new("2", "ann", 10)).await.unwrap();
    let asked = asked("q5", &"x".repeat(1 << 10));
    assert!(store.begin("w", "2", asked).await.is_ok());
}

async fn agents_have_their_part_of_the_bytes(store: impl AgentStore + SessionStore) {
    let large = |id: &str| AgentRow {
        body: "x".repeat(3 << 10),
        ..agent(id, id)
    };
    assert!(store.add_agent("w", large("a")).await.is_ok());
    refused(store.add_agent("w", large("b")).await);
    store.add_agent("w", agent("c", "c")).await.unwrap();
    let grown = "x".repeat(3 << 10);
    refused(store.change_agent("w", "c", grown, 5).await);
    let shrunk = store.change_agent("w", "a", "{}".to_owned(), 5).await;
    assert!(shrunk.unwrap().is_some());
    assert!(store.add_agent("w", large("b")).await.is_ok());
    store.remove_agent("w", "b", "d").await.unwrap();
    assert!(store.add_agent("w", large("b")).await.is_ok());
}

async fn a_session_that_a_user_wants_shortened_needs_room(store: impl LineageStore + SessionStore) {
    let by_itself = |of: &str, to: &str| {
        let mut new = shortening(of, to, 3);
        new.summary.trigger = "auto".to_owned();
        new
    };
    for id in ["1", "2"] {
        assert!(store.has_room("w").await.is_ok());
        store.create("w", new(id, "ann", 10)).await.unwrap();
    }
    turn(&store, "1", "q1", "text").await;
    refused(store.has_room("w").await);
    let told = refused(store.shorten("w", shortening("1", "3", 3)).await);
    assert!(told.ends_with("2 sessions"));
    let as_before = store.session("w", "1").await.unwrap().unwrap();
    assert_eq!((as_before.archived, as_before.live), (None, 2));
    assert!(store.session("w", "3").await.unwrap().is_none());
    // What fills its model goes on.
    let next = store.shorten("w", by_itself("1", "3")).await.unwrap();
    assert!(next.is_some());
    store.delete("w", "1", "d1").await.unwrap();
    store.delete("w", "3", "d3").await.unwrap();
    // What is copied counts among the bytes.
    turn(&store, "2", "q2", &"x".repeat(1 << 10)).await;
    let told = refused(store.shorten("w", shortening("2", "4", 1)).await);
    assert!(told.ends_with("MiB of messages and agents"));
    assert!(store.shorten("w", by_itself("2", "4")).await.is_ok());
}

async fn llm_services_have_their_part_of_the_bytes(store: impl LlmServiceStore) {
    let large = |id: &str| LlmServiceRow {
        id: id.to_owned(),
        request: id.to_owned(),
        body: "x".repeat(3 << 10),
        at: 5,
    };
    assert!(
        store
            .add_service(ServiceKind::Llm, "w", large("a"))
            .await
            .is_ok()
    );
    refused(store.add_service(ServiceKind::Llm, "w", large("b")).await);
    let grown = "x".repeat(6 << 10);
    refused(
        store
            .change_service(ServiceKind::Llm, "w", "a", grown, 5)
            .await,
    );
    let shrunk = store
        .change_service(ServiceKind::Llm, "w", "a", "{}".to_owned(), 5)
        .await;
    assert!(shrunk.unwrap().is_some());
    assert!(
        store
            .add_service(ServiceKind::Llm, "w", large("b"))
            .await
            .is_ok()
    );
    refused(store.add_service(ServiceKind::Llm, "w", large("c")).await);
    store
        .remove_service(ServiceKind::Llm, "w", "b", "d")
        .await
        .unwrap();
    assert!(
        store
            .add_service(ServiceKind::Llm, "w", large("c"))
            .await
            .is_ok()
    );
}

conformance!(in_sqlite, small;
    a_session_that_a_user_wants_shortened_needs_room,
    llm_services_have_their_part_of_the_bytes,
    agents_have_their_part_of_the_bytes,
    a_workspace_has_so_many_sessions,
    a_workspace_has_so_many_bytes);
