//! What is kept: from flows and from questions, once, whole, under the document's name.

use tg_mesh::Relay;
use tg_schemas::msg::{
    ChunkEmbeddings, DocumentEmbeddings, GraphEmbeddings, KnowledgeRequest, Triples,
};
use tg_schemas::sections::Sections;
use tg_schemas::{Class, ErrorCode};
use tg_testkit::flow::topic;
use tg_testkit::place::Place;

use crate::world::{World, about, entity, facts, metadata, put, put_entities};

/// A run that began with the generation of a collection that has ended, and one with the present generation.
async fn what_comes_late_for_an_ended_collection_is_in_no_core(place: Place) {
    let world = World::start(&place).await;
    let of = |id: &str| {
        let mut metadata = metadata(id, "");
        if let Some(metadata) = &mut metadata {
            metadata.collection = "facts".into();
        }
        metadata
    };
    let triples = |id: &str| Triples {
        metadata: of(id),
        triples: facts("urn:e:tower"),
    };
    let vectors = |id: &str| GraphEmbeddings {
        metadata: of(id),
        entities: vec![entity("urn:e:tower", "")],
        model: "m".into(),
    };
    for (generation, id) in [(2, "urn:late"), (3, "urn:present")] {
        let run = tg_runs::JobId::new(generation, "default", id);
        let flow = &world.flow;
        let record = format!("{id} triples");
        flow.write_in("triples-store", &triples(id), &run, &record)
            .await;
        let record = format!("{id} vectors");
        flow.write_in("graph-embeddings-store", &vectors(id), &run, &record)
            .await;
    }
    let whole = async || {
        let kept = world.ask(about("get-kg-core", "urn:present")).await;
        kept.is_ok_and(|parts| parts.len() == 3)
    };
    world.flow.until(whole).await;
    // As long again as that took, at least.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let listed = world.one(about("list-kg-cores", "")).await.ids.unwrap();
    assert_eq!(listed, ["urn:present"]);
}

async fn what_a_flow_writes_is_in_the_core_of_its_document_once(place: Place) {
    let world = World::start(&place).await;
    let record = Triples {
        metadata: metadata("urn:chunk:1", "urn:doc"),
        triples: facts("urn:e:tower"),
    };
    let vectors = GraphEmbeddings {
        metadata: metadata("urn:chunk:1", "urn:doc"),
        entities: vec![entity("urn:e:tower", "")],
        model: "m".into(),
    };
    for _ in 0..2 {
        world.flow.write("triples-store", &record).await;
        world.flow.write("graph-embeddings-store", &vectors).await;
    }
    // What a question left behind is no knowledge of its subject.
    let mut trace = Triples {
        metadata: metadata("urn:session", ""),
        triples: facts("urn:session"),
    };
    for triple in &mut trace.triples {
        triple.g = Some("urn:graph:retrieval".into());
    }
    world.flow.write("triples-store", &trace).await;
    let last = Triples {
        metadata: metadata("urn:other", ""),
        triples: facts("urn:e:other"),
    };
    world.flow.write("triples-store", &last).await;
    world
        .flow
        .until(async || {
            let both =
                world.triples("urn:other").await.len() == 3 && world.stores.entities.count() == 2;
            both && world
                .ask(about("get-kg-core", "urn:doc"))
                .await
                .is_ok_and(|parts| parts.len() == 3)
        })
        .await;
    let parts = world.get("get-kg-core", "urn:doc").await;
    let triples = parts[0].triples.as_ref().unwrap();
    assert_eq!(triples.metadata, metadata("urn:doc", ""));
    assert_eq!(triples.triples, facts("urn:e:tower"));
    let vectors = parts[1].graph_embeddings.as_ref().unwrap();
    assert_eq!(vectors.model, "m");
    // Where it came from is said in the core.
    assert_eq!(vectors.entities, [entity("urn:e:tower", "urn:chunk:1")]);
    let listed = world.one(about("list-kg-cores", "")).await.ids.unwrap();
    assert_eq!(listed, ["urn:doc", "urn:other"]);
}

/// What an answer leaves behind is a record of several messages: the graph takes its triples, and no core has any.
async fn what_an_answer_leaves_behind_is_in_no_core(place: Place) {
    let world = World::start(&place).await;
    let record = |id: &str| Triples {
        metadata: metadata(id, ""),
        triples: facts(id),
    };
    let from = topic(Class::Flow, "together");
    let bus = world.flow.mesh.bus();
    let topics = std::slice::from_ref(&from);
    bus.declare(topics, &[]).await.unwrap();
    let mut sections = Sections::default();
    sections.add(&record("urn:answer")).unwrap();
    let relay = Relay {
        from,
        to: vec![topic(Class::Flow, "triples-store")],
    };
    let options = world.flow.options();
    let mesh = &world.flow.mesh;
    let written = mesh.record_together(&[relay], sections, options).await;
    written.unwrap();
    world
        .flow
        .write("triples-store", &record("urn:other"))
        .await;
    let both =
        async || world.stores.triples.count() == 2 && world.triples("urn:other").await.len() == 3;
    world.flow.until(both).await;
    // As long again as that took, at least.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let listed = world.one(about("list-kg-cores", "")).await.ids.unwrap();
    assert_eq!(listed, ["urn:other"]);
}

async fn what_is_put_comes_back_and_goes_when_it_is_deleted(place: Place) {
    let world = World::start(&place).await;
    for _ in 0..2 {
        let reply = world.one(put("core", facts("urn:a"))).await;
        assert!(reply.carries_nothing());
        world
            .one(put_entities("core", vec![entity("urn:a", "urn:c")]))
            .await;
    }
    let chunks = DocumentEmbeddings {
        metadata: metadata("x", "core"),
        chunks: vec![ChunkEmbeddings {
            chunk_id: "urn:c".into(),
            vector: vec![0.5],
            ..ChunkEmbeddings::default()
        }],
        model: String::new(),
    };
    let put_chunks = KnowledgeRequest {
        document_embeddings: Some(chunks.clone()),
        ..about("put-de-core", "whatever")
    };
    world.one(put_chunks).await;

    let parts = world.get("get-kg-core", "core").await;
    assert_eq!(parts.len(), 2);
    assert_eq!(parts[0].triples.as_ref().unwrap().triples, facts("urn:a"));
    let vectors = parts[1].graph_embeddings.as_ref().unwrap();
    assert_eq!(vectors.entities, [entity("urn:a", "urn:c")]);
    let parts = world.get("get-de-core", "core").await;
    let got = parts[0].document_embeddings.as_ref().unwrap();
    assert_eq!(got.chunks, chunks.chunks);
    assert_eq!(got.metadata, metadata("core", ""));

    for operation in ["delete-kg-core", "delete-kg-core", "delete-de-core"] {
        world.one(about(operation, "core")).await;
    }
    for operation in ["get-kg-core", "get-de-core", "load-kg-core"] {
        let gone = world.ask(about(operation, "core")).await.unwrap_err();
        assert_eq!(gone.code(), ErrorCode::NotFound, "{operation}: {gone}");
    }
    for operation in ["list-kg-cores", "list-de-cores"] {
        assert_eq!(world.one(about(operation, "")).await.ids, Some(Vec::new()));
    }
}

async fn cores_are_listed_in_pages(place: Place) {
    let world = World::start(&place).await;
    for id in ["d", "a", "c", "b"] {
        world.one(put(id, facts("urn:a"))).await;
    }
    let page = async |limit: i64, after: &str| {
        let ask = KnowledgeRequest {
            limit,
            after: after.to_owned(),
            ..about("list-kg-cores", "")
        };
        let reply = world.ask(ask).await?.remove(0);
        Ok::<_, tg_schemas::Error>((reply.ids.unwrap_or_default(), reply.next))
    };
    let (first, next) = page(2, "").await.unwrap();
    assert_eq!(first, ["a", "b"]);
    // The last one seen goes, and one comes before it.
    world.one(about("delete-kg-core", "b")).await;
    world.one(put("aa", facts("urn:a"))).await;
    let (second, end) = page(2, &next).await.unwrap();
    assert_eq!(
        (second, end.as_str()),
        (vec!["c".to_owned(), "d".to_owned()], "")
    );
    let (all, end) = page(0, "").await.unwrap();
    assert_eq!((all.len(), end.as_str()), (4, ""));
    let wrong = [page(-1, "").await, page(1, "x").await];
    let wrong = wrong.map(|refused| refused.unwrap_err().message);
    assert!(
        wrong[0].starts_with("limit: ") && wrong[1].starts_with("after: "),
        "{wrong:?}"
    );
    let others = KnowledgeRequest {
        after: next,
        ..about("list-de-cores", "")
    };
    let refused = world.ask(others).await.unwrap_err();
    assert!(refused.message.starts_with("after: "), "{refused}");
}

async fn what_is_wrong_with_a_question_is_named(place: Place) {
    let world = World::start(&place).await;
    let nameless = KnowledgeRequest {
        triples: Some(Triples::default()),
        ..about("put-kg-core", "core")
    };
    for (ask, why) in [
        (about("", ""), "operation: is required"),
        (about("get-kg-core", ""), "id: is required"),
        (about("put-kg-core", "x"), "triples: is required"),
        (
            about("put-de-core", "x"),
            "document-embeddings: is required",
        ),
        (nameless, "triples.metadata: is required"),
        (put("", facts("urn:a")), "triples.metadata.id: is required"),
    ] {
        let error = world.ask(ask).await.unwrap_err();
        assert_eq!(error.message, why);
        assert_eq!(error.code(), ErrorCode::BadRequest);
    }
    let unknown = world.ask(about("melt-kg-core", "x")).await.unwrap_err();
    assert_eq!(unknown.code(), ErrorCode::BadOperation);
}

tg_testkit::on_both_buses!(
    what_comes_late_for_an_ended_collection_is_in_no_core,
    what_a_flow_writes_is_in_the_core_of_its_document_once,
    what_an_answer_leaves_behind_is_in_no_core,
    what_is_put_comes_back_and_goes_when_it_is_deleted,
    cores_are_listed_in_pages,
    what_is_wrong_with_a_question_is_named,
);
