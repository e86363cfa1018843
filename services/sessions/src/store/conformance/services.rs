//! What every adapter of [`LlmServiceStore`] does.

use tg_storage::StorageError;

use super::*;
use crate::engine::service_kind::ServiceKind;
use crate::store::{LlmService, LlmServiceRow, LlmServiceStore, Removed};

fn service(id: &str, request: &str) -> LlmServiceRow {
    LlmServiceRow {
        id: id.to_owned(),
        request: request.to_owned(),
        body: "{}".to_owned(),
        at: 5,
    }
}

fn ids_of<const N: usize>(ids: [&str; N]) -> Vec<String> {
    ids.map(str::to_owned).into()
}

async fn services_are_added_once_listed_and_changed(store: impl LlmServiceStore) {
    let first = store
        .add_service(ServiceKind::Llm, "w", service("a", "1"))
        .await
        .unwrap();
    let again = store
        .add_service(ServiceKind::Llm, "w", service("a", "1"))
        .await
        .unwrap();
    assert!(first.is_some() && first == again);
    assert_eq!(
        store
            .add_service(ServiceKind::Llm, "w", service("a", "2"))
            .await
            .unwrap(),
        None
    );
    for id in ["b", "c"] {
        store
            .add_service(ServiceKind::Llm, "w", service(id, "1"))
            .await
            .unwrap();
    }
    let ids =
        |found: &[LlmService]| -> Vec<String> { found.iter().map(|one| one.id.clone()).collect() };
    let page = store
        .services(ServiceKind::Llm, "w", None, 2, 1 << 10)
        .await
        .unwrap();
    assert_eq!((ids(&page.items), page.more), (ids_of(["a", "b"]), true));
    let after = page.items.last().map(|last| Key {
        created: last.created,
        id: last.id.clone(),
    });
    let rest = store
        .services(ServiceKind::Llm, "w", after, 2, 1 << 10)
        .await
        .unwrap();
    assert_eq!((ids(&rest.items), rest.more), (ids_of(["c"]), false));
    // A page ends with the service that fills it.
    let full = store
        .services(ServiceKind::Llm, "w", None, 2, 1)
        .await
        .unwrap();
    assert_eq!((ids(&full.items), full.more), (ids_of(["a"]), true));
    let elsewhere = store
        .services(ServiceKind::Llm, "x", None, 2, 1 << 10)
        .await
        .unwrap();
    assert!(elsewhere.items.is_empty() && !elsewhere.more);
    let changed = store
        .change_service(ServiceKind::Llm, "w", "a", "[]".to_owned(), 1)
        .await;
    let changed = changed.unwrap().unwrap();
    assert_eq!(changed.body, "[]");
    assert!(changed.updated > changed.created);
    assert_eq!(
        store.service(ServiceKind::Llm, "w", "a").await.unwrap(),
        Some(changed)
    );
    let none = store
        .change_service(ServiceKind::Llm, "x", "a", "[]".to_owned(), 1)
        .await;
    assert_eq!(none.unwrap(), None);
}

async fn line_081_a_service_that_an_agent_names_stays(store: impl AgentStore + LlmServiceStore) {
    store
        .add_service(ServiceKind::Llm, "w", service("s", "1"))
        .await
        .unwrap();
    let named = r#"{"llmServiceId":"s","name":"n"}"#;
    let bound = AgentRow {
        body: named.to_owned(),
        ..agent("a", "q")
    };
    store.add_agent("w", bound).await.unwrap();
    let kept = store
        .remove_service(ServiceKind::Llm, "w", "s", "d1")
        .await
        .unwrap();
    assert_eq!(kept, Removed::Named(named.to_owned()));
    assert!(
        store
            .service(ServiceKind::Llm, "w", "s")
            .await
            .unwrap()
            .is_some()
    );
    store
        .change_agent("w", "a", "{}".to_owned(), 9)
        .await
        .unwrap();
    for request in ["d1", "d1"] {
        let gone = store
            .remove_service(ServiceKind::Llm, "w", "s", request)
            .await
            .unwrap();
        assert_eq!(gone, Removed::Gone);
    }
    let missing = store
        .remove_service(ServiceKind::Llm, "w", "s", "d2")
        .await
        .unwrap();
    assert_eq!(missing, Removed::Missing);
    assert_eq!(
        store.service(ServiceKind::Llm, "w", "s").await.unwrap(),
        None
    );
}

async fn each_kind_of_service_is_for_itself(store: impl AgentStore + LlmServiceStore) {
    const KINDS: [ServiceKind; 2] = [ServiceKind::Llm, ServiceKind::Reranking];
    for (kind, id) in KINDS.into_iter().zip(["a", "b"]) {
        let added = store.add_service(kind, "w", service(id, "1")).await;
        assert!(added.unwrap().is_some());
    }
    for (kind, own, other) in [(KINDS[0], "a", "b"), (KINDS[1], "b", "a")] {
        let page = store.services(kind, "w", None, 9, 1 << 10).await.unwrap();
        assert_eq!((page.items.len(), page.items[0].id.as_str()), (1, own));
        assert_eq!(store.service(kind, "w", other).await.unwrap(), None);
        let taken = store.add_service(kind, "w", service(other, "1")).await;
        assert_eq!(taken.unwrap(), None);
        let none = store
            .change_service(kind, "w", other, "[]".to_owned(), 9)
            .await;
        assert_eq!(none.unwrap(), None);
        let missing = store.remove_service(kind, "w", other, "d").await.unwrap();
        assert_eq!(missing, Removed::Missing);
    }
    // The field by which an agent names one is that of its kind.
    let named = r#"{"rerankingServiceId":"b","llmServiceId":"b"}"#;
    let bound = AgentRow {
        body: named.to_owned(),
        ..agent("a", "q")
    };
    store.add_agent("w", bound).await.unwrap();
    let kept = store.remove_service(KINDS[1], "w", "b", "d").await.unwrap();
    assert_eq!(kept, Removed::Named(named.to_owned()));
    let gone = store.remove_service(KINDS[0], "w", "a", "d").await.unwrap();
    assert_eq!(gone, Removed::Gone);
}

async fn a_workspace_has_a_thousand_services(store: impl LlmServiceStore) {
    for at in 0..1_000 {
        let one = service(&format!("s{at}"), "1");
        store.add_service(ServiceKind::Llm, "w", one).await.unwrap();
    }
    let more = store
        .add_service(ServiceKind::Llm, "w", service("more", "1"))
        .await;
    assert!(matches!(more, Err(StorageError::Refused(_))));
    // One that was added before is found, and another workspace has its own.
    let again = store
        .add_service(ServiceKind::Llm, "w", service("s0", "1"))
        .await
        .unwrap();
    assert!(again.is_some());
    assert!(
        store
            .add_service(ServiceKind::Llm, "x", service("s0", "1"))
            .await
            .is_ok()
    );
    store
        .remove_service(ServiceKind::Llm, "w", "s0", "d")
        .await
        .unwrap();
    let more = store
        .add_service(ServiceKind::Llm, "w", service("more", "1"))
        .await;
    assert!(more.is_ok());
}

conformance!(in_sqlite, sqlite;
    a_workspace_has_a_thousand_services,
    each_kind_of_service_is_for_itself,
    services_are_added_once_listed_and_changed,
    line_081_a_service_that_an_agent_names_stays);
