//! Loading and unloading: what the stores are told, and when the asker is.

use std::collections::BTreeMap;

use tg_schemas::Triple;
use tg_schemas::msg::{ChunkEmbeddings, DocumentEmbeddings, KnowledgeRequest};
use tg_testkit::place::Place;

use crate::world::{REFUSED, World, about, entity, facts, into, metadata, put, put_entities};

fn counts(pairs: &[(&str, i64)]) -> BTreeMap<String, i64> {
    let pairs = pairs.iter().map(|(kind, n)| ((*kind).to_owned(), *n));
    pairs.collect()
}

async fn a_load_ends_when_the_stores_have_everything(place: Place) {
    let world = World::start(&place).await;
    // More than may be on its way at once.
    const RECORDS: usize = 600;
    for at in 0..RECORDS {
        world.one(put("core", facts(&format!("urn:e:{at}")))).await;
    }
    let vectors = vec![entity("urn:e:0", "urn:c:1"), entity("urn:e:1", "")];
    world.one(put_entities("core", vectors)).await;

    let loaded = world.one(into("load-kg-core", "core", "facts")).await;
    let all = (3 * RECORDS) as i64;
    let expected = [
        ("records", RECORDS as i64 + 1),
        ("triples", all),
        ("entities", 2),
    ];
    assert_eq!(loaded.counts, counts(&expected));
    {
        let records = world.stores.triples.all();
        assert_eq!(records.len(), RECORDS);
        let of = records[0].metadata.as_ref().unwrap();
        assert_eq!((of.id.as_str(), of.root.as_str()), ("core", ""));
        assert_eq!(of.collection, "facts");
        let triples: Vec<Triple> = records
            .iter()
            .flat_map(|record| record.triples.clone())
            .collect();
        assert!(facts("urn:e:17").iter().all(|fact| triples.contains(fact)));
    }
    let kept = world.stores.entities.next().await;
    assert_eq!(kept.model, "m");
    assert_eq!(kept.entities[0], entity("urn:e:0", "urn:c:1"));
    // What was loaded passed by kg-store, too, and is where it was, once.
    assert_eq!(world.triples("core").await.len(), 3 * RECORDS);

    // Loading it again is the same again.
    let again = world.one(into("load-kg-core", "core", "facts")).await;
    assert_eq!(again.counts, loaded.counts);
}

async fn document_embeddings_are_loaded_too(place: Place) {
    let world = World::start(&place).await;
    let chunk = ChunkEmbeddings {
        chunk_id: "urn:c".into(),
        vector: vec![0.5],
        ..ChunkEmbeddings::default()
    };
    let record = DocumentEmbeddings {
        metadata: metadata("core", ""),
        chunks: vec![chunk.clone()],
        model: "m".into(),
    };
    let ask = KnowledgeRequest {
        document_embeddings: Some(record),
        ..about("put-de-core", "core")
    };
    world.one(ask).await;
    let loaded = world.one(into("load-de-core", "core", "")).await;
    assert_eq!(loaded.counts, counts(&[("records", 1), ("chunks", 1)]));
    let kept = world.stores.chunks.next().await;
    assert_eq!((kept.chunks, kept.model.as_str()), (vec![chunk], "m"));
    assert_eq!(kept.metadata, metadata("core", ""));
}

async fn what_a_store_refuses_is_an_error_of_the_load(place: Place) {
    let world = World::start(&place).await;
    for name in ["urn:e:good", REFUSED, "urn:e:fine"] {
        world.one(put("core", facts(name))).await;
    }
    let error = world
        .ask(into("load-kg-core", "core", "facts"))
        .await
        .unwrap_err();
    assert_eq!(error.kind, "load-error");
    let expected = "1 of 3 records were refused; the first: triples[0].s: is refused";
    assert_eq!(error.message, expected);
    // The others are there.
    assert_eq!(world.stores.triples.count(), 2);
}

async fn a_flow_that_is_not_there_is_named(place: Place) {
    let world = World::start(&place).await;
    world.one(put("core", facts("urn:a"))).await;
    let mut ask = into("load-kg-core", "core", "facts");
    ask.flow = "nowhere".into();
    let error = world.ask(ask).await.unwrap_err();
    assert_eq!(error.kind, "load-error");
    assert_eq!(error.message, "flow: there is no flow 'nowhere'");
}

async fn an_unload_takes_out_what_loads_brought_in(place: Place) {
    let world = World::start(&place).await;
    world.one(put("core", facts("urn:a"))).await;
    let vectors = vec![entity("urn:a", "urn:c:1"), entity("urn:b", "")];
    world.one(put_entities("core", vectors)).await;
    // Nothing was loaded yet.
    let unloaded = world.one(into("unload-kg-core", "core", "")).await;
    assert_eq!(unloaded.counts, counts(&[("records", 0)]));

    world.one(into("load-kg-core", "core", "facts")).await;
    let elsewhere = world.one(into("unload-kg-core", "core", "default")).await;
    assert_eq!(elsewhere.counts, counts(&[("records", 0)]));
    let unloaded = world.one(into("unload-kg-core", "core", "")).await;
    let expected = [("records", 2), ("triples", 3), ("entities", 2)];
    assert_eq!(unloaded.counts, counts(&expected));
    {
        // One reader works on several at a time.
        let mut retracted = world.stores.retracted.all();
        retracted.sort_by_key(|one| one.triples.is_empty());
        assert_eq!(retracted[0].triples, facts("urn:a"));
        let of = retracted[0].metadata.as_ref().unwrap();
        assert_eq!(of.collection, "facts");
        let chunks: Vec<&String> = retracted.iter().flat_map(|one| &one.chunks).collect();
        assert_eq!(chunks, ["core", "urn:c:1"]);
    }
    // It is unloaded, and the core is still there.
    let again = world.one(into("unload-kg-core", "core", "")).await;
    assert_eq!(again.counts, counts(&[("records", 0)]));
    assert_eq!(world.triples("core").await, facts("urn:a"));
}

tg_testkit::on_both_buses!(
    a_load_ends_when_the_stores_have_everything,
    document_embeddings_are_loaded_too,
    what_a_store_refuses_is_an_error_of_the_load,
    a_flow_that_is_not_there_is_named,
    an_unload_takes_out_what_loads_brought_in,
);
