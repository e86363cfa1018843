//! What every adapter of [`KeywordStore`] does: order, hostile words, and ends of collections.

use tg_collections::{CollectionKey, CollectionStore, WorkspaceStore, WriteKind};
use tg_schemas::WorkspaceKey;
use tg_storage::Durability;

use crate::store::keywords::{ONE_WORKSPACE, SqliteKeywords};
use crate::store::{ChunkText, KeywordStore};

/// What the suite needs of an adapter.
pub(in crate::store) trait Words:
    KeywordStore + CollectionStore<Part = ()>
{
}

impl<S: KeywordStore + CollectionStore<Part = ()>> Words for S {}

fn key(workspace: &str, collection: &str) -> CollectionKey {
    CollectionKey::new(workspace, collection)
}

async fn put(store: &impl Words, key: &CollectionKey, id: &str, text: &str) -> usize {
    let chunk = ChunkText {
        id: id.to_owned(),
        text: text.to_owned(),
    };
    store.put(key, WriteKind::Direct, chunk).await.unwrap()
}

async fn ids(store: &impl Words, key: &CollectionKey, question: &str) -> Vec<String> {
    let hits = store.search(key, question, 20).await.unwrap();
    assert!(hits.windows(2).all(|pair| pair[0].score >= pair[1].score));
    hits.into_iter().map(|hit| hit.id).collect()
}

pub(super) async fn better_matches_come_first_and_a_chunk_is_replaced(store: &impl Words) {
    let c = key("w", "c");
    put(
        store,
        &c,
        "one",
        "the pump feeds the boiler; the boiler heats the hall",
    )
    .await;
    put(store, &c, "two", "a boiler").await;
    put(store, &c, "three", "nothing of the kind").await;
    assert_eq!(ids(store, &c, "pump boiler?").await[0], "one");
    assert_eq!(ids(store, &c, "BOILER").await.len(), 2);
    assert!(store.search(&c, "boiler", 20).await.unwrap()[0].score > 0.0);

    assert_eq!(put(store, &c, "one", "a turbine").await, 1);
    assert_eq!(
        put(store, &c, "one", "a turbine").await,
        0,
        "again: nothing"
    );
    assert_eq!(ids(store, &c, "boiler").await, ["two"]);
    assert_eq!(ids(store, &c, "turbine").await, ["one"]);
    assert_eq!(store.count(&c).await.unwrap(), 3);

    for left in [1, 0] {
        let what = super::retraction(&["one", "none"]);
        let gone = store.retract(&c, WriteKind::Tracked, (), what);
        assert_eq!(gone.await.unwrap(), left);
    }
    assert!(ids(store, &c, "turbine").await.is_empty());
}

pub(super) async fn a_word_is_found_in_each_of_its_forms(store: &impl Words) {
    let c = key("w", "c");
    for (at, (one, other)) in [
        ("Cafe\u{301}", "CAFÉ"),
        ("ＵＰＳ", "ups"),
        ("Straße", "STRASSE"),
        ("\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}", "한글"),
        ("ﾊﾞｽ", "バス"),
        ("o\u{fb03}ce", "office"),
    ]
    .into_iter()
    .enumerate()
    {
        let (first, second) = (format!("a{at}"), format!("b{at}"));
        put(store, &c, &first, &format!("the {one} of the town")).await;
        put(store, &c, &second, &format!("the {other} of the town")).await;
        for asked in [one, other] {
            let mut found = ids(store, &c, asked).await;
            found.sort_unstable();
            assert_eq!(found, [first.as_str(), second.as_str()], "{asked}");
        }
    }
}

pub(super) async fn hostile_words_and_names_do_no_harm(store: &impl Words) {
    let names = [
        "a",
        "a_b",
        "a:b",
        "\"; DROP TABLE space; --",
        "ü",
        &"n".repeat(300),
    ];
    for workspace in names {
        for collection in names {
            let k = key(workspace, collection);
            put(
                store,
                &k,
                "same id",
                &format!("shared mark{}x{}", workspace.len(), collection.len()),
            )
            .await;
        }
    }
    for workspace in names {
        for collection in names {
            let k = key(workspace, collection);
            assert_eq!(ids(store, &k, "shared").await.len(), 1);
        }
    }
    for question in [
        "AND",
        "\"",
        "a\"b OR *",
        "NEAR(",
        "body:x",
        "^-",
        "(",
        "x*",
        "\u{0}",
    ] {
        ids(store, &key("a", "a"), question).await;
    }
    store.drop_collection(&key("a", "a_b")).await.unwrap();
    assert!(ids(store, &key("a", "a_b"), "shared").await.is_empty());
    assert_eq!(ids(store, &key("a_b", "a"), "shared").await.len(), 1);
    super::end_workspace(store, "a").await;
    assert!(ids(store, &key("a", "a:b"), "shared").await.is_empty());
    assert_eq!(ids(store, &key("a_b", "a"), "shared").await.len(), 1);
}

pub(super) async fn a_dropped_generation_stays_dead(store: &impl Words) {
    let generation = |n| CollectionKey::new("w", "c").in_generation(n);
    for n in 0..3 {
        put(store, &generation(n), "x", "word").await;
    }
    assert_eq!(store.drop_collection(&generation(1)).await.unwrap(), 2);
    assert_eq!(store.drop_collection(&generation(1)).await.unwrap(), 0);
    assert!(ids(store, &generation(0), "word").await.is_empty());
    assert_eq!(ids(store, &generation(2), "word").await, ["x"]);
    let late = ChunkText {
        id: "late".to_owned(),
        text: "word".to_owned(),
    };
    assert_eq!(
        store
            .put(&generation(1), WriteKind::Tracked, late.clone())
            .await
            .unwrap(),
        0
    );
    assert_eq!(
        store
            .put(&generation(2), WriteKind::Tracked, late)
            .await
            .unwrap(),
        1
    );
    assert!(
        ids(store, &generation(1), "word").await.is_empty(),
        "its run came too late"
    );
    put(store, &generation(0), "y", "word").await;
    assert_eq!(
        ids(store, &generation(0), "word").await,
        ["y"],
        "a new start"
    );
}

pub(super) async fn a_workspace_keeps_its_quota_of_chunks_and_may_replace_them(store: &impl Words) {
    let (c, d) = (key("w", "c"), key("w", "d"));
    for n in 0..20 {
        let of = if n % 2 == 0 { &c } else { &d };
        put(store, of, &format!("chunk {n}"), "word").await;
    }
    let more = ChunkText {
        id: "chunk 20".to_owned(),
        text: "word".to_owned(),
    };
    for full in [&c, &key("w", "e")] {
        let over = store.put(full, WriteKind::Direct, more.clone()).await;
        super::refused(over, "20 chunks");
    }
    assert_eq!(put(store, &c, "chunk 0", "word").await, 0);
    assert_eq!(put(store, &c, "chunk 0", "another").await, 1);
    put(store, &key("other", "c"), "chunk 20", "word").await;
    let what = super::retraction(&["chunk 0"]);
    let gone = store.retract(&c, WriteKind::Tracked, (), what);
    assert_eq!(gone.await.unwrap(), 1);
    put(store, &d, "chunk 20", "word").await;
}

pub(super) async fn and_its_quota_of_bytes_whatever_becomes_of_its_chunks(store: &impl Words) {
    let (c, d) = (key("w", "c"), key("w", "d"));
    let long = |id: &str, words: usize| ChunkText {
        id: id.to_owned(),
        text: "word ".repeat(words),
    };
    let put = async |key: &CollectionKey, chunk| store.put(key, WriteKind::Direct, chunk).await;
    // A MiB has room for two of 100,000 words.
    assert_eq!(put(&c, long("a", 100_000)).await, Ok(1));
    assert_eq!(put(&d, long("b", 100_000)).await, Ok(1));
    super::refused(put(&c, long("c", 100_000)).await, "1 MiB of text");
    super::refused(put(&c, long("a", 200_000)).await, "1 MiB of text");
    assert_eq!(store.count(&c).await.unwrap(), 1);
    assert_eq!(put(&key("other", "c"), long("c", 100_000)).await, Ok(1));
    // What becomes shorter makes room, and so does what is taken back.
    assert_eq!(put(&c, long("a", 10)).await, Ok(1));
    assert_eq!(put(&c, long("c", 100_000)).await, Ok(1));
    super::refused(put(&d, long("d", 100_000)).await, "1 MiB of text");
    let what = super::retraction(&["b"]);
    let gone = store.retract(&d, WriteKind::Tracked, (), what);
    assert_eq!(gone.await.unwrap(), 1);
    assert_eq!(put(&d, long("d", 100_000)).await, Ok(1));
}

#[tokio::test]
async fn a_backup_of_one_workspace_finds_the_same_words() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("keywords.sqlite");
    let open = || SqliteKeywords::open(&file, Durability::Process, super::CHUNKS).unwrap();
    let store = open();
    let (acme, other) = (key("acme#7", "c"), key("other", "c"));
    put(&store, &other, "theirs", "a boiler").await;
    put(&store, &acme, "ours", "a boiler").await;
    drop(store);
    ONE_WORKSPACE
        .keep(&file, &WorkspaceKey::new("acme", 7))
        .unwrap();
    let store = open();
    assert_eq!(store.workspaces().await.unwrap(), ["acme#7"]);
    assert_eq!(ids(&store, &acme, "boiler").await, ["ours"]);
    // A collection that comes later does not meet what was removed.
    put(&store, &other, "new", "a boiler").await;
    assert_eq!(ids(&store, &other, "boiler").await, ["new"]);
}
