//! The processors as others meet them: embeddings and chunks in, nearest entities, chunks, row values and
//! words out; what is wrong is told; what is retracted or dropped is gone.

mod reembed;
mod system;

use reembed::{
    a_refused_text_holds_up_the_switch_alone_and_may_be_left_out,
    a_slow_collection_delays_no_other, the_old_vectors_serve_until_the_switch,
    who_asks_at_the_switch_has_a_whole_answer,
};
use serde_json::json;
use system::{metadata, start};
use tg_mesh::{Ask, dead_letter};
use tg_schemas::msg::{
    Chunk, ChunkEmbeddings, CollectionDrop, CollectionDropped, DocumentEmbeddings,
    DocumentEmbeddingsRequest, DocumentEmbeddingsResponse, EntityEmbeddings, GraphEmbeddings,
    GraphEmbeddingsRequest, GraphEmbeddingsResponse, KeywordIndexRequest, KeywordIndexResponse,
    Retract, RowEmbeddings, RowEmbeddingsRequest, RowEmbeddingsResponse, RowIndexEmbedding,
};
use tg_schemas::processors::{drop_topic, graph_embeddings_write};
use tg_schemas::{ErrorCode, Term};
use tg_testkit::config::Config;
use tg_testkit::flow::TestFlow;
use tg_testkit::place::Place;

const GRAPH_STORE: &str = "graph-embeddings-store";
const CHUNK_STORE: &str = "document-embeddings-store";
const ROW_STORE: &str = "row-embeddings-store";

fn entity(term: Term, vector: &[f32]) -> EntityEmbeddings {
    EntityEmbeddings {
        entity: Some(term),
        vector: vector.to_vec(),
        ..EntityEmbeddings::default()
    }
}

fn graph(chunk: &str, model: &str, entities: Vec<EntityEmbeddings>) -> GraphEmbeddings {
    GraphEmbeddings {
        metadata: metadata(chunk, "c"),
        entities,
        model: model.to_owned(),
    }
}

fn ask_graph(vector: &[f32]) -> GraphEmbeddingsRequest {
    GraphEmbeddingsRequest {
        vector: vector.to_vec(),
        collection: "c".to_owned(),
        ..GraphEmbeddingsRequest::default()
    }
}

async fn entities(system: &TestFlow, ask: &GraphEmbeddingsRequest) -> Vec<Term> {
    let answer: GraphEmbeddingsResponse = system.ask("graph-embeddings", ask).await.unwrap();
    let found = answer.entities.into_iter();
    found.filter_map(|one| one.entity).collect()
}

/// All vectors of a collection, as they were written; a page at a time.
async fn everything_leaves_page_by_page_as_it_was_written(place: Place) {
    let (system, _dir) = start(&place, Config::new()).await;
    let many = (0..1_001).map(|n| EntityEmbeddings {
        text: format!("text {n}"),
        rdf_type: vec!["urn:T".into()],
        chunk_id: "urn:chunk".into(),
        attributes: json!({"n": n}).as_object().cloned().unwrap(),
        ..entity(Term::iri(format!("urn:x:{n}")), &[n as f32, 0.1])
    });
    let record = graph("d", "m/2", many.collect());
    system.write(GRAPH_STORE, &record).await;
    let chunk = ChunkEmbeddings {
        chunk_id: "k".into(),
        vector: vec![0.25, 1e-8],
        text: "words".into(),
        ..ChunkEmbeddings::default()
    };
    let of_chunks = DocumentEmbeddings {
        metadata: metadata("k", "c"),
        chunks: vec![chunk.clone()],
        model: "m/2".into(),
    };
    system.write(CHUNK_STORE, &of_chunks).await;
    let page = async |collection: &str, after: &str| {
        let ask = GraphEmbeddingsRequest {
            collection: collection.to_owned(),
            export: true,
            after: after.to_owned(),
            ..GraphEmbeddingsRequest::default()
        };
        let page = system.ask::<_, GraphEmbeddingsResponse>("graph-embeddings", &ask);
        page.await
    };
    let chunks = async || {
        let ask = DocumentEmbeddingsRequest {
            collection: "c".to_owned(),
            export: true,
            ..DocumentEmbeddingsRequest::default()
        };
        let page = system.ask::<_, DocumentEmbeddingsResponse>("document-embeddings", &ask);
        page.await.unwrap()
    };
    system
        .until(async || {
            let held = page("c", "").await.unwrap().stored.len();
            (held, chunks().await.stored.len()) == (1_000, 1)
        })
        .await;
    let first = page("c", "").await.unwrap();
    assert_eq!((first.page, first.model.as_str()), (true, "m/2"));
    let second = page("c", &first.next).await.unwrap();
    assert_eq!((second.stored.len(), second.next.as_str()), (1, ""));
    let all = [first.stored, second.stored].concat();
    assert_eq!(all, record.entities);
    assert_eq!(chunks().await.stored, [chunk]);
    let nothing = page("nothing", "").await.unwrap();
    assert_eq!((nothing.page, nothing.stored.len()), (true, 0));
    let refused = page("c", "nowhere").await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::BadRequest);
    // What serves is another than what was begun.
    let replaced = page("c", "1").await.unwrap_err();
    assert_eq!(replaced.code(), ErrorCode::Conflict);
}

async fn chunks(system: &TestFlow, collection: &str, vector: &[f32]) -> Vec<String> {
    let ask = DocumentEmbeddingsRequest {
        vector: vector.to_vec(),
        collection: collection.to_owned(),
        ..DocumentEmbeddingsRequest::default()
    };
    let answer: DocumentEmbeddingsResponse = system.ask("document-embeddings", &ask).await.unwrap();
    answer.chunks.into_iter().map(|one| one.chunk_id).collect()
}

async fn words(system: &TestFlow, collection: &str, query: &str) -> Vec<String> {
    let ask = KeywordIndexRequest {
        query: query.to_owned(),
        collection: collection.to_owned(),
        limit: 0,
    };
    let answer: KeywordIndexResponse = system.ask("keyword-index", &ask).await.unwrap();
    answer.chunks.into_iter().map(|one| one.chunk_id).collect()
}

fn chunk(id: &str, vector: &[f32]) -> DocumentEmbeddings {
    DocumentEmbeddings {
        metadata: metadata("doc", "c"),
        chunks: vec![ChunkEmbeddings {
            chunk_id: id.to_owned(),
            vector: vector.to_vec(),
            ..ChunkEmbeddings::default()
        }],
        model: "m".to_owned(),
    }
}

fn text(id: &str, collection: &str, text: &str) -> Chunk {
    Chunk {
        metadata: metadata(id, collection),
        chunk: text.to_owned(),
        document_id: id.to_owned(),
        ..Chunk::default()
    }
}

async fn entities_are_found_with_their_kind_of_term_and_by_filters(place: Place) {
    let (system, _dir) = start(&place, Config::new()).await;
    let none = entities(&system, &ask_graph(&[1.0, 0.0])).await;
    assert!(none.is_empty(), "a collection that is not there has none");
    let (urn, text) = (Term::iri("urn:x:1"), Term::literal("http://no.iri"));
    let mut filtered = entity(text.clone(), &[0.9, 0.1]);
    filtered.rdf_type = vec!["urn:Pump".to_owned()];
    filtered.attributes = json!({"site": ["a", "b"]}).as_object().unwrap().clone();
    let mut both = vec![entity(urn.clone(), &[1.0, 0.0]), filtered];
    system
        .write(GRAPH_STORE, &graph("k1", "m", both.clone()))
        .await;
    // Again, as after a crash, and from another chunk.
    system
        .write(GRAPH_STORE, &graph("k1", "m", both.clone()))
        .await;
    both.remove(1);
    system.write(GRAPH_STORE, &graph("k2", "m", both)).await;
    let mut ask = ask_graph(&[1.0, 0.0]);
    system
        .until(async || entities(&system, &ask).await == [urn.clone(), text.clone()])
        .await;
    ask.rdf_type = "urn:Pump".to_owned();
    ask.attributes = json!({"site": ["b"]}).as_object().unwrap().clone();
    assert_eq!(entities(&system, &ask).await, [text]);
    ask.attributes = json!({"site": ["b", "c"]}).as_object().unwrap().clone();
    assert!(entities(&system, &ask).await.is_empty());
    ask.attributes = json!({"site": {"not": "comparable"}})
        .as_object()
        .unwrap()
        .clone();
    let refused = system
        .ask::<_, GraphEmbeddingsResponse>("graph-embeddings", &ask)
        .await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::BadRequest);
    assert!(
        refused.message.starts_with("attributes.site: "),
        "{refused}"
    );
}

async fn another_model_is_refused_both_ways_and_bad_points_do_not_hold_up_good_ones(place: Place) {
    let (system, _dir) = start(&place, Config::new()).await;
    let urn = Term::iri("urn:x:1");
    let bad = EntityEmbeddings::default();
    let empty = entity(Term::iri("urn:x:3"), &[]);
    let points = vec![entity(urn.clone(), &[1.0, 0.0]), bad, empty];
    let record = graph("k", "m/2", points);
    system.write(GRAPH_STORE, &record).await;
    let aside = system.dead_letter_reason().await;
    let each = "entities[1].entity: is required; entities[2].vector: is empty";
    assert!(aside.contains(each), "{aside}");
    let ask = ask_graph(&[1.0, 0.0]);
    assert_eq!(entities(&system, &ask).await, [urn]);

    let other = graph("k", "n/2", vec![entity(Term::iri("urn:x:2"), &[1.0, 0.0])]);
    system.write(GRAPH_STORE, &other).await;
    let aside = system.dead_letter_reason().await;
    assert!(aside.contains("made by 'm/2', these by 'n/2'"), "{aside}");
    let ask = GraphEmbeddingsRequest {
        model: "n/2".to_owned(),
        ..ask
    };
    let refused = system
        .ask::<_, GraphEmbeddingsResponse>("graph-embeddings", &ask)
        .await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::Conflict);
    let longer = ask_graph(&[1.0, 0.0, 0.0]);
    let refused = system
        .ask::<_, GraphEmbeddingsResponse>("graph-embeddings", &longer)
        .await;
    let refused = refused.unwrap_err().message;
    assert!(refused.starts_with("vector: has 3 dimensions"), "{refused}");
}

async fn rows_keep_to_their_schema_and_index(place: Place) {
    let (system, _dir) = start(&place, Config::new()).await;
    let value = |index: &str, value: &str, vector: &[f32]| RowIndexEmbedding {
        index_name: index.to_owned(),
        index_value: vec![value.to_owned()],
        text: value.to_owned(),
        vector: vector.to_vec(),
        ..RowIndexEmbedding::default()
    };
    let record = |schema: &str, of: &str| RowEmbeddings {
        metadata: metadata("k", "c"),
        schema_name: schema.to_owned(),
        embeddings: vec![
            value("name", &format!("{of} name"), &[1.0, 0.0]),
            value("city", &format!("{of} city"), &[0.9, 0.1]),
        ],
        model: "m".to_owned(),
        made_by: String::new(),
    };
    for (schema, of) in [("people", "p"), ("things", "t")] {
        system.write(ROW_STORE, &record(schema, of)).await;
    }
    let ask = RowEmbeddingsRequest {
        vector: vec![1.0, 0.0],
        collection: "c".to_owned(),
        schema_name: "people".to_owned(),
        ..RowEmbeddingsRequest::default()
    };
    let find = async |ask: &RowEmbeddingsRequest| {
        let answer: RowEmbeddingsResponse = system.ask("row-embeddings", ask).await.unwrap();
        let found = answer.matches.into_iter();
        found
            .map(|one| (one.index_name, one.text))
            .collect::<Vec<_>>()
    };
    let pair = |index: &str, text: &str| (index.to_owned(), text.to_owned());
    let all = [pair("name", "p name"), pair("city", "p city")];
    system.until(async || find(&ask).await == all).await;
    let of_index = RowEmbeddingsRequest {
        index_name: Some("city".to_owned()),
        ..ask.clone()
    };
    assert_eq!(find(&of_index).await, [pair("city", "p city")]);
    let nameless = RowEmbeddingsRequest {
        schema_name: String::new(),
        ..ask
    };
    let refused = system
        .ask::<_, RowEmbeddingsResponse>("row-embeddings", &nameless)
        .await;
    assert_eq!(refused.unwrap_err().message, "schema_name: is required");
}

async fn chunks_are_found_by_vector_and_by_word_until_they_are_retracted(place: Place) {
    let (system, _dir) = start(&place, Config::new()).await;
    for (id, vector, said) in [
        ("urn:chunk:1", [1.0, 0.0], "the pump feeds the boiler"),
        ("urn:chunk:2", [0.8, 0.2], "a boiler, a boiler!"),
    ] {
        system.write(CHUNK_STORE, &chunk(id, &vector)).await;
        system.write("chunk-load", &text(id, "c", said)).await;
    }
    let both = ["urn:chunk:1", "urn:chunk:2"];
    system
        .until(async || chunks(&system, "c", &[1.0, 0.0]).await == both)
        .await;
    system
        .until(async || words(&system, "c", "which pump?").await == both[..1])
        .await;
    system
        .until(async || words(&system, "c", "boiler").await.len() == 2)
        .await;
    assert!(words(&system, "other", "boiler").await.is_empty());
    // What stands above a chunk finds it, too.
    let below = Chunk {
        context: "Guide > Harrowgate".to_owned(),
        ..text("urn:chunk:3", "c", "It was built of stone.")
    };
    system.write("chunk-load", &below).await;
    system
        .until(async || words(&system, "c", "Harrowgate").await == ["urn:chunk:3"])
        .await;
    assert!(words(&system, "c", "?!").await.is_empty());

    let retract = Retract {
        metadata: metadata("doc", "c"),
        chunks: vec!["urn:chunk:1".to_owned(), "urn:chunk:9".to_owned()],
        ..Retract::default()
    };
    system.write("retract", &retract).await;
    system
        .until(async || chunks(&system, "c", &[1.0, 0.0]).await == both[1..])
        .await;
    system
        .until(async || words(&system, "c", "pump").await.is_empty())
        .await;
    assert_eq!(words(&system, "c", "boiler").await, both[1..]);
}

async fn a_dropped_collection_is_gone_and_its_next_life_is_empty(place: Place) {
    let config = Config::new();
    config.collection("c", 3);
    let (system, _dir) = start(&place, config).await;
    system
        .write(CHUNK_STORE, &chunk("urn:chunk:1", &[1.0, 0.0]))
        .await;
    system
        .write("chunk-load", &text("urn:chunk:1", "c", "pump"))
        .await;
    system
        .write("chunk-load", &text("urn:chunk:1", "d", "pump"))
        .await;
    system
        .until(async || !chunks(&system, "c", &[1.0, 0.0]).await.is_empty())
        .await;
    system
        .until(async || !words(&system, "c", "pump").await.is_empty())
        .await;
    let drop = |generation| CollectionDrop {
        workspace: "default".to_owned(),
        collection: "c".to_owned(),
        generation,
    };
    let dropped = async |store: &str, generation| {
        let to = drop_topic(store);
        let asked = system
            .mesh
            .ask::<_, CollectionDropped>(&to, &drop(generation), Ask::default());
        asked.last().await.unwrap().removed[store]
    };
    for store in ["vectors", "keywords"] {
        assert_eq!(dropped(store, 2).await, 0, "an earlier generation only");
        assert_eq!(dropped(store, 3).await, 1);
        assert_eq!(dropped(store, 3).await, 0, "confirmed again");
    }
    assert!(chunks(&system, "c", &[1.0, 0.0]).await.is_empty());
    assert!(words(&system, "c", "pump").await.is_empty());
    system
        .until(async || words(&system, "d", "pump").await.len() == 1)
        .await;
    let nameless = CollectionDrop::default();
    let to = graph_embeddings_write::DROP.of_system();
    let refused = system
        .mesh
        .ask::<_, CollectionDropped>(&to, &nameless, Ask::default());
    assert_eq!(
        refused.last().await.unwrap_err().message,
        "workspace: is required"
    );
}

async fn a_run_into_a_life_that_ended_leaves_nothing(place: Place) {
    let config = Config::new();
    config.collection("c", 1);
    let (system, _dir) = start(&place, config).await;
    let of_run = |generation, id: &str| {
        let run = tg_runs::JobId::new(generation, "default", "p");
        system.in_run(&run, id)
    };
    // The collection of this run was deleted and made again.
    system
        .write_as(CHUNK_STORE, &chunk("old", &[1.0, 0.0]), of_run(0, "a"))
        .await;
    system
        .write_as(CHUNK_STORE, &chunk("new", &[1.0, 0.0]), of_run(1, "b"))
        .await;
    system
        .until(async || chunks(&system, "c", &[1.0, 0.0]).await == ["new"])
        .await;
    let told = system.told(|all| all.len() >= 2).await;
    let effects = |record: &str| {
        let entry = told.iter().find(|entry| entry.record == record).unwrap();
        entry.effects.get("vectors").copied()
    };
    assert_eq!((effects("a"), effects("b")), (None, Some(1)));
    assert!(
        system
            .mesh
            .bus()
            .take(&dead_letter::subscription())
            .await
            .unwrap()
            .is_none()
    );
}

async fn a_late_retraction_meets_nothing_of_the_next_life(place: Place) {
    let config = Config::new();
    config.collection("c", 1);
    let (system, _dir) = start(&place, config).await;
    let of_run = |generation, id: &str| {
        let run = tg_runs::JobId::new(generation, "default", "p");
        system.in_run(&run, id)
    };
    let id = "urn:chunk:1";
    system
        .write_as(CHUNK_STORE, &chunk(id, &[1.0, 0.0]), of_run(1, "a"))
        .await;
    system
        .write_as("chunk-load", &text(id, "c", "pump"), of_run(1, "b"))
        .await;
    system.told(|all| all.len() >= 2).await;
    // Chunks are named by their content: what was processed again after the deletion has the names it had before.
    let retract = Retract {
        metadata: metadata("doc", "c"),
        chunks: vec![id.to_owned()],
        ..Retract::default()
    };
    system
        .write_as("retract", &retract, of_run(0, "late"))
        .await;
    let told = system.told(|all| all.len() >= 6).await;
    let late = told.iter().filter(|entry| entry.record == "late");
    assert!(late.clone().all(|entry| entry.outcome == "ok"));
    assert_eq!(late.count(), 4);
    assert_eq!(chunks(&system, "c", &[1.0, 0.0]).await, [id]);
    assert_eq!(words(&system, "c", "pump").await, [id]);
    // One of its own run does what it says.
    system.write_as("retract", &retract, of_run(1, "due")).await;
    system.told(|all| all.len() >= 10).await;
    assert!(chunks(&system, "c", &[1.0, 0.0]).await.is_empty());
    assert!(words(&system, "c", "pump").await.is_empty());
}

/// Done once by each store, however often it is delivered: what a later run made the same stays.
async fn a_retraction_that_comes_again_takes_nothing_of_a_later_run(place: Place) {
    let config = Config::new();
    config.collection("c", 1);
    let (system, _dir) = start(&place, config).await;
    let of_run = |record: &str| Ask {
        id: Some(record.to_owned()),
        thread: Some(tg_runs::JobId::new(1, "default", "p").to_string()),
        ..system.options()
    };
    let id = "urn:chunk:1";
    let made = async |round: &str| {
        let vector = of_run(&format!("vector{round}"));
        system
            .write_as(CHUNK_STORE, &chunk(id, &[1.0, 0.0]), vector)
            .await;
        let word = of_run(&format!("word{round}"));
        system
            .write_as("chunk-load", &text(id, "c", "pump"), word)
            .await;
    };
    let gone = async || {
        chunks(&system, "c", &[1.0, 0.0]).await.is_empty()
            && words(&system, "c", "pump").await.is_empty()
    };
    let retract = |chunk: &str| Retract {
        metadata: metadata("doc", "c"),
        chunks: vec![chunk.to_owned()],
        ..Retract::default()
    };
    made("1").await;
    system.told(|all| all.len() >= 2).await;
    system
        .write_as("retract", &retract(id), of_run("due"))
        .await;
    system.told(|all| all.len() >= 6).await;
    assert!(gone().await);
    made("2").await;
    system.told(|all| all.len() >= 8).await;
    system
        .write_as("retract", &retract(id), of_run("due"))
        .await;
    let behind = retract("urn:chunk:2");
    system.write_as("retract", &behind, of_run("behind")).await;
    system
        .told(|all| all.iter().filter(|one| one.record == "behind").count() >= 4)
        .await;
    assert_eq!(chunks(&system, "c", &[1.0, 0.0]).await, [id]);
    assert_eq!(words(&system, "c", "pump").await, [id]);
    system
        .write_as("retract", &retract(id), of_run("other"))
        .await;
    system.until(gone).await;
}

tg_testkit::on_both_buses!(
    everything_leaves_page_by_page_as_it_was_written,
    entities_are_found_with_their_kind_of_term_and_by_filters,
    another_model_is_refused_both_ways_and_bad_points_do_not_hold_up_good_ones,
    rows_keep_to_their_schema_and_index,
    chunks_are_found_by_vector_and_by_word_until_they_are_retracted,
    a_dropped_collection_is_gone_and_its_next_life_is_empty,
    a_run_into_a_life_that_ended_leaves_nothing,
    a_late_retraction_meets_nothing_of_the_next_life,
    a_retraction_that_comes_again_takes_nothing_of_a_later_run,
    the_old_vectors_serve_until_the_switch,
    a_refused_text_holds_up_the_switch_alone_and_may_be_left_out,
    a_slow_collection_delays_no_other,
    who_asks_at_the_switch_has_a_whole_answer,
);
