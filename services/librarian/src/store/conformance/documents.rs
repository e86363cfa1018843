//! Documents and what they keep.

use tg_schemas::WorkspaceKey;
use tg_storage::Durability;

use super::*;
use crate::engine::quota::Usage;
use crate::store::documents::{Listing, Which};
use crate::store::{ONE_WORKSPACE, files_of_content};

fn walk(which: Which, after: i64, most: u32) -> Listing {
    Listing {
        which,
        collection: String::new(),
        id: String::new(),
        after,
        most,
    }
}

async fn ids(store: &Store, which: Which) -> Vec<String> {
    let found = store.walk("w", walk(which, 0, 100)).await.unwrap();
    found.into_iter().map(|(_, one)| one.id).collect()
}

async fn usage(store: &Store) -> (u64, u64) {
    let (used, more) = store.usage("w", Vec::new()).await.unwrap();
    assert_eq!(more, Usage::default());
    (used.documents, used.bytes)
}

pub(super) async fn a_document_belongs_to_its_workspace(store: Store) {
    let new = document("d", "text");
    store.add_new(&asker("q"), new.clone()).await.unwrap();
    assert_eq!(store.document("w", "d").await.unwrap(), Some(new.0.clone()));
    assert_eq!(store.document("other", "d").await.unwrap(), None);
    assert!(!store.update("other", new.0.clone(), None).await.unwrap());
    let other = Asker {
        workspace: "other".into(),
        ..asker("q2")
    };
    assert_eq!(code(store.remove(&other, "d").await), ErrorCode::NotFound);
    assert_eq!(store.workspaces("", 10).await.unwrap(), ["w"]);
    assert!(store.workspaces("w", 10).await.unwrap().is_empty());
}

pub(super) async fn a_repeat_is_told_from_a_duplicate(store: Store) {
    for _ in 0..2 {
        let added = store.add_new(&asker("q"), document("d", "text")).await;
        added.unwrap();
    }
    let repeated = store.add_new(&asker("q2"), document("d", "text")).await;
    repeated.expect("the same document under another request succeeds");
    let other = store.add_new(&asker("q2b"), document("d", "else")).await;
    assert_eq!(code(other), ErrorCode::Conflict);
    let (mut renamed, text) = document("d", "text");
    renamed.title = "another title".into();
    let other = store.add_new(&asker("q2c"), (renamed, text)).await;
    assert_eq!(code(other), ErrorCode::Conflict);
    for question in ["q3", "q4"] {
        let (mut answer, text) = document("a", "said");
        answer.document_type = "answer".into();
        store
            .add_new(&asker(question), (answer, text))
            .await
            .unwrap();
    }
    for _ in 0..2 {
        store.remove(&asker("q5"), "d").await.unwrap();
    }
    assert_eq!(
        code(store.remove(&asker("q6"), "d").await),
        ErrorCode::NotFound
    );
}

pub(super) async fn known_documents_stay_when_many_are_added(store: Store) {
    let first = document("a", "1");
    store.add_new(&asker("q"), first.clone()).await.unwrap();
    let many = vec![
        document("a", "other"),
        document("b", "2"),
        document("c", "3"),
    ];
    for _ in 0..2 {
        let others = store.add_all(&asker(""), many.clone()).await.unwrap();
        assert_eq!(others, std::slice::from_ref(&first.0));
    }
    assert_eq!(ids(&store, Which::OnTop).await, ["a", "b", "c"]);
}

pub(super) async fn a_document_is_given_its_content(store: Store) {
    for text in ["one", "two", "two"] {
        store.ensure(&asker(""), document("d", text)).await.unwrap();
        let found = store.located("w", vec!["d".into()], 100).await.unwrap();
        let (_, place) = found.unwrap().pop().flatten().unwrap();
        assert_eq!(place.unwrap().body.unwrap(), text.as_bytes());
    }
    // A question that comes again late takes nothing back.
    store.ensure(&asker("q"), document("d", "3")).await.unwrap();
    store.ensure(&asker(""), document("d", "4")).await.unwrap();
    store.ensure(&asker("q"), document("d", "3")).await.unwrap();
    assert_eq!(usage(&store).await, (1, 1));
    let (mut image, content) = document("d", "5");
    image.kind = "image/png".into();
    let refused = store.ensure(&asker(""), (image, content)).await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::BadRequest);
}

pub(super) async fn a_change_is_whole(store: Store) {
    let (mut one, longer) = document("d", "longer");
    store
        .add_new(&asker("q"), document("d", "text"))
        .await
        .unwrap();
    one.title = "new".into();
    for _ in 0..2 {
        let content = Some(longer.clone());
        assert!(store.update("w", one.clone(), content).await.unwrap());
        assert_eq!(store.document("w", "d").await.unwrap(), Some(one.clone()));
        assert_eq!(usage(&store).await, (1, 6));
    }
    assert!(!store.update("w", document("e", "").0, None).await.unwrap());
}

pub(super) async fn parts_need_their_parent_and_go_with_it(store: Store) {
    let orphan = store.add_child(&asker(""), part("p", "d", "x")).await;
    assert_eq!(code(orphan), ErrorCode::NotFound);
    store
        .add_new(&asker("q"), document("d", "text"))
        .await
        .unwrap();
    for _ in 0..2 {
        store
            .add_child(&asker(""), part("p", "d", "x"))
            .await
            .unwrap();
    }
    let other = store.add_child(&asker(""), part("p", "d", "y")).await;
    assert_eq!(code(other), ErrorCode::Conflict);
    let below = vec![part("q", "p", "y"), part("r", "d", "z")];
    for _ in 0..2 {
        let done = store.add_children(&asker(""), below.clone(), true).await;
        assert!(done.unwrap().unchanged.is_empty(), "no run has them");
    }
    let parts = Which::PartsOf("d".into());
    assert_eq!(ids(&store, parts).await, ["p", "r"]);
    assert_eq!(ids(&store, Which::Everything).await.len(), 4);
    store.remove(&asker("q2"), "d").await.unwrap();
    assert!(ids(&store, Which::Everything).await.is_empty());
    assert_eq!(usage(&store).await, (0, 0));
}

pub(super) async fn a_walk_comes_in_pages_in_the_order_they_came(store: Store) {
    let wanted: Vec<String> = (0..7).map(|at| format!("d{}", 9 - at)).collect();
    for id in &wanted {
        store.add_new(&asker(""), document(id, "x")).await.unwrap();
    }
    for most in [1, 3, 100] {
        let (mut found, mut after) = (Vec::new(), 0);
        loop {
            let page = store.walk("w", walk(Which::OnTop, after, most));
            let page = page.await.unwrap();
            assert!(page.len() <= most as usize);
            let Some((last, _)) = page.last() else { break };
            after = *last;
            found.extend(page.into_iter().map(|(_, one)| one.id));
        }
        assert_eq!(found, wanted, "in pages of {most}");
    }
    let into = Listing {
        collection: "c".into(),
        ..walk(Which::OnTop, 0, 100)
    };
    assert!(store.walk("w", into).await.unwrap().is_empty());
    for (id, found) in [("d5", 1), ("gone", 0)] {
        let one = Listing {
            id: id.into(),
            ..walk(Which::OnTop, 0, 100)
        };
        let one = store.walk("w", one).await.unwrap();
        assert_eq!(one.len(), found, "{id}");
        assert!(one.iter().all(|(_, one)| one.id == id));
    }
}

pub(super) async fn places_come_in_the_order_of_the_ids_or_not_at_all(store: Store) {
    store
        .add_new(&asker(""), document("a", "12345"))
        .await
        .unwrap();
    let (large, _) = document("b", "");
    let new = (large, file("large", 1000));
    store.add_new(&asker(""), new).await.unwrap();
    let ids = || vec!["b".into(), "gone".into(), "a".into()];
    let found = store.located("w", ids(), 1005).await.unwrap().unwrap();
    let sizes: Vec<Option<u64>> = found
        .into_iter()
        .map(|one| one.and_then(|(_, place)| place?.size))
        .collect();
    assert_eq!(sizes, [Some(1000), None, Some(5)]);
    assert_eq!(store.located("w", ids(), 1004).await.unwrap(), None);
}

pub(super) async fn what_is_kept_is_counted(store: Store) {
    for id in ["a", "b"] {
        store
            .add_new(&asker(""), document(id, "same"))
            .await
            .unwrap();
    }
    assert_eq!(
        usage(&store).await,
        (2, 8),
        "the same content counts for each"
    );
    let adds = vec![("a".into(), 3), ("b".into(), 9), ("c".into(), 7)];
    let (_, more) = store.usage("w", adds).await.unwrap();
    assert_eq!((more.documents, more.bytes), (1, 5 + 7));
    store.remove(&asker(""), "a").await.unwrap();
    assert_eq!(usage(&store).await, (1, 4));
    let (other, _) = store.usage("other", Vec::new()).await.unwrap();
    assert_eq!(other, Usage::default());
}

pub(super) async fn content_that_nobody_uses_is_named_once(store: Store) {
    let (shared, stray) = (file("shared", 10), file("stray", 10));
    for id in ["a", "b"] {
        let (one, _) = document(id, "");
        store
            .add_new(&asker(""), (one, shared.clone()))
            .await
            .unwrap();
    }
    store.remove(&asker(""), "a").await.unwrap();
    assert!(store.take_unused(10).await.unwrap().is_empty());
    let hashes = vec![shared.hash, stray.hash];
    assert_eq!(store.unknown(hashes).await.unwrap(), [stray.hash]);
    store.remove(&asker(""), "b").await.unwrap();
    assert_eq!(store.take_unused(10).await.unwrap(), [shared.hash]);
    assert!(store.take_unused(10).await.unwrap().is_empty());
}

pub(super) async fn the_oldest_answers_go(store: Store) {
    store.add_new(&asker(""), document("d", "x")).await.unwrap();
    for at in 0..5 {
        let (mut answer, text) = document(&format!("a{at}"), "said");
        answer.document_type = "answer".into();
        store.add_new(&asker(""), (answer, text)).await.unwrap();
    }
    assert_eq!(store.trim_answers(2, 2).await.unwrap(), 2);
    assert_eq!(store.trim_answers(2, 2).await.unwrap(), 1);
    assert_eq!(store.trim_answers(2, 2).await.unwrap(), 0);
    assert_eq!(ids(&store, Which::Everything).await, ["d", "a3", "a4"]);
}

pub(super) async fn a_purge_leaves_nothing_and_buries_collections(store: Store) {
    store.add_new(&asker(""), document("d", "x")).await.unwrap();
    store.begin_collection("w", "c", None).await.unwrap();
    let other = Asker {
        workspace: "x".into(),
        ..asker("")
    };
    store.add_new(&other, document("d", "x")).await.unwrap();
    for _ in 0..2 {
        store.purge("w").await.unwrap();
        assert_eq!(store.workspaces("", 10).await.unwrap(), ["x"]);
        assert!(!store.tombstones_of("w", "c").await.unwrap().is_empty());
    }
    assert!(store.document("x", "d").await.unwrap().is_some());
}

#[tokio::test]
async fn a_backup_keeps_the_documents_of_one_workspace_and_the_uses_of_their_content() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("librarian.sqlite");
    let open = || -> Store { Arc::new(SqliteLibrary::open(&path, Durability::Process).unwrap()) };
    let of = |workspace: &str| Asker {
        workspace: workspace.into(),
        ..asker("")
    };
    let (both, theirs) = (file("both", 10), file("theirs", 10));
    let store = open();
    for (workspace, id, content) in [
        ("acme#7", "d", &both),
        ("other", "d", &both),
        ("other", "e", &theirs),
    ] {
        let new = (document(id, "").0, content.clone());
        store.add_new(&of(workspace), new).await.unwrap();
    }
    drop(store);
    ONE_WORKSPACE
        .keep(&path, &WorkspaceKey::new("acme", 7))
        .unwrap();
    let files = files_of_content(&path).unwrap();
    assert_eq!(Vec::from_iter(files), [both.hash.to_string()]);
    let store = open();
    assert_eq!(store.workspaces("", 9).await.unwrap(), ["acme#7"]);
    assert!(store.document("acme#7", "d").await.unwrap().is_some());
    store.remove(&of("acme#7"), "d").await.unwrap();
    assert_eq!(store.take_unused(10).await.unwrap(), [both.hash]);
}
