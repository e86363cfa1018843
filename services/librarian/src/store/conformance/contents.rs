//! What every adapter of [`ContentStore`] does. A new one is added by one line at the end.

use std::path::Path;

use tempfile::tempdir;
use tg_storage::blob::{BlobId, BlobStore, Part, StageId, Staged};
use tg_storage::{Durability, StorageError};

use crate::store::contents::ContentStore;

fn stage(name: &str) -> StageId {
    StageId::parse(name).unwrap()
}

fn parts(all: &[&[u8]]) -> Vec<Part> {
    let part = |bytes: &&[u8]| Part {
        hash: BlobId::of(bytes),
        length: bytes.len() as u64,
    };
    all.iter().map(part).collect()
}

async fn written(store: &dyn ContentStore, name: &StageId, all: &[(u64, &[u8])]) {
    for (offset, bytes) in all {
        let written = store.stage_write(name, *offset, bytes.to_vec());
        written.await.unwrap();
    }
}

async fn content_has_the_name_of_its_hash(store: &dyn ContentStore) {
    let id = store.put(b"one".to_vec()).await.unwrap();
    assert_eq!(id, BlobId::of(b"one"));
    // Once more is the same.
    assert_eq!(store.put(b"one".to_vec()).await.unwrap(), id);
    let empty = store.put(Vec::new()).await.unwrap();
    assert_eq!(store.get(id).await.unwrap().as_deref(), Some(&b"one"[..]));
    assert_eq!(store.get(empty).await.unwrap(), Some(Vec::new()));
    assert_eq!(store.size(id).await.unwrap(), Some(3));
    assert_eq!(store.size(empty).await.unwrap(), Some(0));
    let other = BlobId::of(b"other");
    assert_eq!(store.get(other).await.unwrap(), None);
    assert_eq!(store.size(other).await.unwrap(), None);
}

async fn a_range_ends_where_its_content_does(store: &dyn ContentStore) {
    let id = store.put(b"0123456789".to_vec()).await.unwrap();
    let cases: [(u64, usize, &[u8]); 6] = [
        (0, 10, b"0123456789"),
        (3, 4, b"3456"),
        (8, 5, b"89"),
        (10, 1, b""),
        (99, 1, b""),
        (4, 0, b""),
    ];
    for (offset, length, found) in cases {
        let range = store.get_range(id, offset, length).await.unwrap();
        assert_eq!(range.as_deref(), Some(found), "{offset} {length}");
    }
    let none = store.get_range(BlobId::of(b"other"), 0, 1).await.unwrap();
    assert_eq!(none, None);
}

async fn what_is_removed_is_gone_and_the_rest_stays(store: &dyn ContentStore) {
    let gone = store.put(b"gone".to_vec()).await.unwrap();
    let stays = store.put(b"stays".to_vec()).await.unwrap();
    for _ in 0..2 {
        store.remove(gone).await.unwrap();
        assert_eq!(store.get(gone).await.unwrap(), None);
    }
    assert_eq!(store.size(stays).await.unwrap(), Some(5));
    assert_eq!(store.put(b"gone".to_vec()).await.unwrap(), gone);
    assert_eq!(store.size(gone).await.unwrap(), Some(4));
}

async fn all_contents_are_listed_by_their_first_byte(store: &dyn ContentStore) {
    let mut kept = Vec::new();
    for number in 0..40_u8 {
        kept.push(store.put(vec![number; 3]).await.unwrap());
    }
    // What is not whole yet is no content.
    written(store, &stage("open"), &[(0, b"abc")]).await;
    let mut found = Vec::new();
    for first in 0..=u8::MAX {
        let here = store.list(first).await.unwrap();
        assert!(here.iter().all(|id| id.bytes()[0] == first), "{here:?}");
        found.extend(here);
    }
    kept.sort_by_key(|id| *id.bytes());
    found.sort_by_key(|id| *id.bytes());
    assert_eq!(found, kept);
}

async fn parts_in_any_order_become_the_content(store: &dyn ContentStore) {
    let (name, other) = (stage("a-1"), stage("b"));
    written(store, &name, &[(6, b"789"), (0, b"xyz"), (3, b"456")]).await;
    // A part that comes again takes the place of the one before.
    written(store, &name, &[(0, b"123")]).await;
    written(store, &other, &[(0, b"else")]).await;
    let wanted = parts(&[b"123", b"456", b"789"]);
    let whole = BlobId::of(b"123456789");
    for _ in 0..2 {
        let found = store.staged_hash(&name, wanted.clone()).await.unwrap();
        assert_eq!(found, Staged::Whole(whole));
    }
    assert_eq!(store.get(whole).await.unwrap(), None);
    for _ in 0..2 {
        store.adopt(&name, whole).await.unwrap();
        let content = store.get(whole).await.unwrap();
        assert_eq!(content.as_deref(), Some(&b"123456789"[..]));
    }
    let found = store.staged_hash(&name, wanted).await.unwrap();
    assert_eq!(found, Staged::Absent);
    assert_eq!(store.stages().await.unwrap(), [other]);
}

async fn parts_that_are_not_as_they_should_be_are_named(store: &dyn ContentStore) {
    let name = stage("a");
    written(store, &name, &[(0, b"123"), (3, b"4x6"), (6, b"78")]).await;
    let wanted = parts(&[b"123", b"456", b"789"]);
    let found = store.staged_hash(&name, wanted.clone()).await.unwrap();
    assert_eq!(found, Staged::Damaged(vec![1, 2]));
    written(store, &name, &[(3, b"456"), (6, b"789")]).await;
    let found = store.staged_hash(&name, wanted).await.unwrap();
    assert_eq!(found, Staged::Whole(BlobId::of(b"123456789")));
}

async fn what_is_behind_the_last_part_is_let_go_of(store: &dyn ContentStore) {
    let name = stage("a");
    written(store, &name, &[(0, b"123456 of an earlier try")]).await;
    let found = store.staged_hash(&name, parts(&[b"123", b"456"])).await;
    let whole = BlobId::of(b"123456");
    assert_eq!(found.unwrap(), Staged::Whole(whole));
    store.adopt(&name, whole).await.unwrap();
    assert_eq!(store.size(whole).await.unwrap(), Some(6));
}

async fn what_is_adopted_takes_the_place_of_what_was_there(store: &dyn ContentStore) {
    let id = store.put(b"same".to_vec()).await.unwrap();
    let name = stage("a");
    written(store, &name, &[(0, b"same")]).await;
    store.adopt(&name, id).await.unwrap();
    assert_eq!(store.get(id).await.unwrap().as_deref(), Some(&b"same"[..]));
    assert!(store.stages().await.unwrap().is_empty());
}

async fn what_is_not_what_its_hash_says_is_told_and_replaced(store: &dyn ContentStore) {
    let (name, id) = (stage("a"), BlobId::of(b"right"));
    written(store, &name, &[(0, b"wrong")]).await;
    store.adopt(&name, id).await.unwrap();
    let read = store.get(id).await;
    assert!(matches!(read, Err(StorageError::Corrupt(_))), "{read:?}");
    assert_eq!(store.put(b"right".to_vec()).await.unwrap(), id);
    assert_eq!(store.get(id).await.unwrap().as_deref(), Some(&b"right"[..]));
}

async fn what_is_given_up_is_forgotten(store: &dyn ContentStore) {
    let (name, stays) = (stage("a"), stage("stays"));
    written(store, &name, &[(0, b"123")]).await;
    written(store, &stays, &[(0, b"123")]).await;
    for _ in 0..2 {
        store.stage_remove(&name).await.unwrap();
        assert_eq!(store.stages().await.unwrap(), std::slice::from_ref(&stays));
    }
    // Begun again, nothing of it is there.
    written(store, &name, &[(3, b"456")]).await;
    let found = store.staged_hash(&name, parts(&[b"123", b"456"])).await;
    assert_eq!(found.unwrap(), Staged::Damaged(vec![0]));
}

/// Every promise, kept by one adapter, which `$open` makes in a directory of its own.
macro_rules! suite {
    ($adapter:ident, $open:expr) => {
        suite!(@ $adapter, $open;
            content_has_the_name_of_its_hash,
            a_range_ends_where_its_content_does,
            what_is_removed_is_gone_and_the_rest_stays,
            all_contents_are_listed_by_their_first_byte,
            parts_in_any_order_become_the_content,
            parts_that_are_not_as_they_should_be_are_named,
            what_is_behind_the_last_part_is_let_go_of,
            what_is_adopted_takes_the_place_of_what_was_there,
            what_is_not_what_its_hash_says_is_told_and_replaced,
            what_is_given_up_is_forgotten,
        );
    };
    (@ $adapter:ident, $open:expr; $($promise:ident,)+) => {
        mod $adapter {
            $(
                #[tokio::test]
                async fn $promise() {
                    let dir = super::tempdir().unwrap();
                    super::$promise(&$open(dir.path())).await;
                }
            )+
        }
    };
}

fn files(dir: &Path) -> BlobStore {
    BlobStore::open(dir, Durability::Process).unwrap()
}

suite!(over_files, super::files);
