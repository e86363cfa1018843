//! Collections: made, listed, deleted for good.

use std::sync::atomic::Ordering;

use tg_schemas::ErrorCode;
use tg_schemas::msg::CollectionManagementRequest;
use tg_testkit::place::Place;

use crate::flow;
use crate::world::{World, soon};

fn set(name: &str, tags: &[&str]) -> CollectionManagementRequest {
    CollectionManagementRequest {
        operation: "update-collection".into(),
        collection: name.into(),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ..CollectionManagementRequest::default()
    }
}

fn drops(stores: &flow::Stores, store: &str) -> Vec<(String, i64)> {
    let dropped = stores.dropped.lock();
    let of = dropped.iter().filter(|(name, _)| name == store);
    of.map(|(_, ask)| (ask.collection.clone(), ask.generation))
        .collect()
}

async fn collections_are_set_listed_and_deleted(place: Place) {
    let world = World::start(&place).await;
    let made = world.collections("default", "update-collection", "c").await;
    let made = made.unwrap();
    assert_eq!(made.collections[0].name, "c");
    assert!(made.timestamp.ends_with('Z'), "{}", made.timestamp);
    let tagged = set("d", &["x", "y", "x"]);
    world.collection("default", &tagged).await.unwrap();
    let listed = world.collections("default", "list-collections", "").await;
    assert_eq!(listed.unwrap().collections.len(), 2);
    for (operation, name, told) in [
        ("reembed-collection", "c", "flow: 'default' does not run"),
        ("show-reembedding", "none", "collection: does not exist"),
        ("abandon-reembedding", "", "collection: is required"),
    ] {
        let refused = world.collections("default", operation, name).await;
        let refused = refused.unwrap_err().message;
        assert!(refused.starts_with(told), "{operation}: {refused}");
    }
    let filter = CollectionManagementRequest {
        operation: "list-collections".into(),
        tag_filter: vec!["y".into()],
        ..CollectionManagementRequest::default()
    };
    let found = world.collection("default", &filter).await.unwrap();
    assert_eq!(found.collections[0].tags, ["x", "y"]);
    let limit = CollectionManagementRequest {
        limit: 1,
        tag_filter: Vec::new(),
        ..filter
    };
    let found = world.collection("default", &limit).await.unwrap();
    assert_eq!(found.collections[0].collection, "c");
    let rest = CollectionManagementRequest {
        after: found.next,
        ..limit.clone()
    };
    let found = world.collection("default", &rest).await.unwrap();
    assert_eq!(
        (
            found.collections[0].collection.as_str(),
            found.next.as_str()
        ),
        ("d", "")
    );
    for (wrong, field) in [
        (
            CollectionManagementRequest {
                limit: -1,
                ..limit.clone()
            },
            "limit: ",
        ),
        (
            CollectionManagementRequest {
                after: "d".into(),
                ..limit
            },
            "after: ",
        ),
    ] {
        let error = world.collection("default", &wrong).await.unwrap_err();
        assert!(error.message.starts_with(field), "{error}");
    }
    let other = world.collections("other", "list-collections", "").await;
    assert!(other.unwrap().collections.is_empty());
    let unnamed = world.collections("default", "delete-collection", "").await;
    assert_eq!(unnamed.unwrap_err().message, "collection: is required");
}

async fn a_deletion_names_one_collection_and_every_store_confirms_it(place: Place) {
    let world = World::start(&place).await;
    let stores = flow::start(&world).await;
    let long = "x".repeat(300);
    let names = [
        "docs",
        "docs_2024",
        "a",
        "a_b",
        "a:b",
        "ü☃ '\"",
        long.as_str(),
    ];
    for workspace in ["default", "other"] {
        for name in names {
            world.collection(workspace, &set(name, &[])).await.unwrap();
        }
    }
    world
        .collections("default", "delete-collection", "docs")
        .await
        .unwrap();
    for store in ["graph", "keywords"] {
        assert_eq!(drops(&stores, store), [("docs".to_owned(), 0)]);
    }
    for (_, ask) in stores.dropped.lock().iter() {
        assert_eq!(ask.workspace, "default");
    }
    let names_of = async |workspace: &str| {
        let listed = world.collections(workspace, "list-collections", "").await;
        let listed = listed.unwrap().collections.into_iter();
        listed.map(|one| one.collection).collect::<Vec<_>>()
    };
    let mut left: Vec<_> = names[1..].iter().map(|name| (*name).to_owned()).collect();
    left.sort();
    assert_eq!(names_of("default").await, left);
    assert_eq!(names_of("other").await.len(), names.len());
    // What is not there is deleted all the same.
    for _ in 0..2 {
        let again = world
            .collections("default", "delete-collection", "docs")
            .await;
        assert!(again.unwrap().collections.is_empty());
    }
}

async fn a_name_that_comes_again_is_another_collection(place: Place) {
    let world = World::start(&place).await;
    let stores = flow::start(&world).await;
    let row = || world.config.get("default", "collection", "c");
    for generation in 0..3 {
        world.collection("default", &set("c", &[])).await.unwrap();
        let said = row()
            .unwrap()
            .contains(&format!("\"incarnation\":{generation}"));
        assert_eq!(said, generation > 0, "{:?}", row());
        // Saying something else of it changes nothing about that.
        world
            .collection("default", &set("c", &["t"]))
            .await
            .unwrap();
        let gone = world.collections("default", "delete-collection", "c").await;
        gone.unwrap();
        assert_eq!(row(), None);
    }
    let each = [0, 1, 2].map(|n| ("c".to_owned(), n));
    assert_eq!(drops(&stores, "graph"), each);
    // Whose row another hand took away is not met again either.
    world.collection("default", &set("v", &[])).await.unwrap();
    let vanished = [("collection", "v", None)];
    world.config.change(&world.mesh, "default", &vanished).await;
    world.collection("default", &set("v", &[])).await.unwrap();
    let row = world.config.get("default", "collection", "v").unwrap();
    assert!(row.contains("\"incarnation\":1"), "{row}");
    soon("the old one is dropped", || {
        drops(&stores, "graph").contains(&("v".to_owned(), 0))
    })
    .await;
}

async fn a_store_that_does_not_confirm_is_named_and_asked_again(place: Place) {
    let world = World::start(&place).await;
    let stores = flow::start(&world).await;
    world.collection("default", &set("c", &[])).await.unwrap();
    stores.stubborn.store(true, Ordering::SeqCst);
    let failed = world.collections("default", "delete-collection", "c").await;
    let failed = failed.unwrap_err();
    assert_eq!(failed.code(), ErrorCode::Unavailable);
    assert_eq!(
        failed.message,
        "Failed to delete collection: not confirmed yet by graph; it goes on in the background"
    );
    assert_eq!(world.config.get("default", "collection", "c"), None);
    // A new one of the name is not touched by that.
    world.collection("default", &set("c", &[])).await.unwrap();
    stores.stubborn.store(false, Ordering::SeqCst);
    soon("the graph drops it", || {
        drops(&stores, "graph") == [("c".to_owned(), 0)]
    })
    .await;
    let row = world.config.get("default", "collection", "c").unwrap();
    assert!(row.contains("\"incarnation\":1"), "{row}");
}

tg_testkit::on_both_buses!(
    collections_are_set_listed_and_deleted,
    a_deletion_names_one_collection_and_every_store_confirms_it,
    a_name_that_comes_again_is_another_collection,
    a_store_that_does_not_confirm_is_named_and_asked_again,
);
