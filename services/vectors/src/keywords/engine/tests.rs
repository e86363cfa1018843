//! The keyword index: order, hostile words, and ends of collections.

use super::*;

fn key(workspace: &str, collection: &str) -> CollectionKey {
    CollectionKey::new(workspace, collection)
}

async fn put(index: &Keywords, key: &CollectionKey, id: &str, text: &str) -> usize {
    let chunk = ChunkText {
        id: id.to_owned(),
        text: text.to_owned(),
    };
    index.put(key, WriteKind::Direct, chunk).await.unwrap()
}

async fn ids(index: &Keywords, key: &CollectionKey, question: &str) -> Vec<String> {
    let hits = index.search(key, question, 20).await.unwrap();
    assert!(hits.windows(2).all(|pair| pair[0].score >= pair[1].score));
    hits.into_iter().map(|hit| hit.id).collect()
}

#[tokio::test]
async fn better_matches_come_first_and_a_chunk_is_replaced() {
    let index = Keywords::in_memory().unwrap();
    let c = key("w", "c");
    put(
        &index,
        &c,
        "one",
        "the pump feeds the boiler; the boiler heats the hall",
    )
    .await;
    put(&index, &c, "two", "a boiler").await;
    put(&index, &c, "three", "nothing of the kind").await;
    assert_eq!(ids(&index, &c, "pump boiler?").await[0], "one");
    assert_eq!(ids(&index, &c, "BOILER").await.len(), 2);
    assert!(index.search(&c, "boiler", 20).await.unwrap()[0].score > 0.0);

    assert_eq!(put(&index, &c, "one", "a turbine").await, 1);
    assert_eq!(
        put(&index, &c, "one", "a turbine").await,
        0,
        "again: nothing"
    );
    assert_eq!(ids(&index, &c, "boiler").await, ["two"]);
    assert_eq!(ids(&index, &c, "turbine").await, ["one"]);
    assert_eq!(index.count(&c).await.unwrap(), 3);

    let gone = vec!["one".to_owned(), "none".to_owned()];
    assert_eq!(index.retract(&c, gone.clone()).await.unwrap(), 1);
    assert_eq!(index.retract(&c, gone).await.unwrap(), 0);
    assert!(ids(&index, &c, "turbine").await.is_empty());
}

#[tokio::test]
async fn hostile_words_and_names_do_no_harm() {
    let index = Keywords::in_memory().unwrap();
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
                &index,
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
            assert_eq!(ids(&index, &k, "shared").await.len(), 1);
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
        ids(&index, &key("a", "a"), question).await;
    }
    index.drop_collection(&key("a", "a_b")).await.unwrap();
    assert!(ids(&index, &key("a", "a_b"), "shared").await.is_empty());
    assert_eq!(ids(&index, &key("a_b", "a"), "shared").await.len(), 1);
    assert_eq!(index.drop_workspace("a").await.unwrap(), 5);
    assert_eq!(ids(&index, &key("a_b", "a"), "shared").await.len(), 1);
}

#[tokio::test]
async fn a_dropped_life_stays_dead() {
    let index = Keywords::in_memory().unwrap();
    let generation = |n| CollectionKey::new("w", "c").in_generation(n);
    for n in 0..3 {
        put(&index, &generation(n), "x", "word").await;
    }
    assert_eq!(index.drop_collection(&generation(1)).await.unwrap(), 2);
    assert_eq!(index.drop_collection(&generation(1)).await.unwrap(), 0);
    assert!(ids(&index, &generation(0), "word").await.is_empty());
    assert_eq!(ids(&index, &generation(2), "word").await, ["x"]);
    let late = ChunkText {
        id: "late".to_owned(),
        text: "word".to_owned(),
    };
    assert_eq!(
        index
            .put(&generation(1), WriteKind::Tracked, late.clone())
            .await
            .unwrap(),
        0
    );
    assert_eq!(
        index
            .put(&generation(2), WriteKind::Tracked, late)
            .await
            .unwrap(),
        1
    );
    assert!(
        ids(&index, &generation(1), "word").await.is_empty(),
        "its run came too late"
    );
    put(&index, &generation(0), "y", "word").await;
    assert_eq!(
        ids(&index, &generation(0), "word").await,
        ["y"],
        "a new start"
    );
}
