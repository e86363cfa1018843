//! What a deleted workspace leaves behind: nothing.

use tg_collections::WorkspaceStore;
use tg_schemas::{WorkspaceKey, WorkspaceTombstone};

use super::shortened::shortening;
use super::{agent, answer, asked, new, span, sqlite};
use crate::engine::service_kind::ServiceKind;
use crate::store::{
    AgentStore, Answer, FactStore, LineageStore, LlmServiceRow, LlmServiceStore, MemoryRow,
    SessionStore, SettingStore, SqliteSessions,
};

/// One of each that a workspace may keep; of messages, two.
async fn filled(store: &SqliteSessions, at: &str) {
    store.create(at, new("1", "ann", 10)).await.unwrap();
    let begun = store.begin(at, "1", asked("q", "text")).await.unwrap();
    let turn = begun.unwrap().turn;
    let answer = Answer {
        to_search: true,
        ..answer("a", "re text")
    };
    let finished = store.finish(at, "1", turn, answer).await;
    assert!(finished.unwrap().is_some());
    let next = store.shorten(at, shortening("1", "2", 3)).await.unwrap();
    assert!(next.is_some());
    store.add_agent(at, agent("a", "q")).await.unwrap();
    let service = LlmServiceRow {
        id: "s".to_owned(),
        request: "q".to_owned(),
        body: "{}".to_owned(),
        at: 5,
    };
    store
        .add_service(ServiceKind::Llm, at, service)
        .await
        .unwrap();
    let set = [("k".to_owned(), Some("1".to_owned()))].into();
    store.set(at, set, 5).await.unwrap();
    let fact = MemoryRow {
        id: "m".to_owned(),
        user: "ann".to_owned(),
        subject: "ann".to_owned(),
        predicate: "lives in".to_owned(),
        object: "Kassel".to_owned(),
        agent: "a".to_owned(),
        session: "1".to_owned(),
        message: "m".to_owned(),
        at: 5,
    };
    store.remember(at, ("1", 9), vec![fact], 10).await.unwrap();
}

/// How much there is of each kind.
async fn counted(store: &SqliteSessions, at: &str) -> [usize; 8] {
    let messages = store.messages(at, "1", span(0, false, 10)).await.unwrap();
    let services = store
        .services(ServiceKind::Llm, at, None, 10, 1 << 10)
        .await
        .unwrap();
    [
        usize::from(store.session(at, "2").await.unwrap().is_some()),
        messages.items.len(),
        store.summaries(at, "1").await.unwrap().len(),
        usize::from(store.agent(at, "a").await.unwrap().is_some()),
        services.items.len(),
        store.settings(at).await.unwrap().len(),
        store.memories(at, "ann", 0, 10).await.unwrap().len(),
        store.unsearched(at, "2", 10).await.unwrap().len(),
    ]
}

/// Of a deleted workspace nothing is left, of whatever kind, and nothing of another one goes.
#[tokio::test]
async fn line_082_a_deleted_workspace_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let store = sqlite(dir.path());
    let gone = WorkspaceTombstone {
        generation: 0,
        deleted_at: 1,
        purge_after: 1,
    };
    let keys = ["w", "x"].map(|name| WorkspaceKey::new(name, 0));
    for key in &keys {
        filled(&store, key.as_str()).await;
        assert_eq!(
            counted(&store, key.as_str()).await,
            [1, 2, 1, 1, 1, 1, 1, 1]
        );
    }
    store.purge(&keys[0], &gone).await.unwrap();
    assert_eq!(counted(&store, keys[0].as_str()).await, [0; 8]);
    assert_eq!(
        counted(&store, keys[1].as_str()).await,
        [1, 2, 1, 1, 1, 1, 1, 1]
    );
}
