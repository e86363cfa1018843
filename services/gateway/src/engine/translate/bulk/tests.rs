//! Frames of the bulk endpoints as records and back.

use serde_json::{Value, json};
use tg_schemas::Term;

use super::*;

fn read(kind: BulkKind, value: Value) -> Result<Record, String> {
    Record::read(kind, value.as_object().unwrap()).map_err(|error| error.message)
}

fn meta() -> Value {
    json!({"id": "d", "metadata": [], "user": "u", "root": "r", "collection": "c"})
}

#[test]
fn triples_are_batches_or_bare() {
    let triple = json!({"s": {"t": "i", "i": "urn:a"}, "p": {"t": "i", "i": "urn:b"},
                        "o": {"t": "l", "v": "c", "dt": "urn:dt"}, "g": "urn:g"});
    let Record::Triples(batch) = read(
        BulkKind::Triples,
        json!({"metadata": meta(), "triples": [triple]}),
    )
    .unwrap() else {
        panic!()
    };
    let metadata = batch.metadata.clone().unwrap();
    assert_eq!(
        (metadata.root.as_str(), metadata.collection.as_str()),
        ("r", "c")
    );
    assert_eq!(show_triples(&batch)["triples"][0], triple);
    let Record::Triples(bare) = read(BulkKind::Triples, triple).unwrap() else {
        panic!()
    };
    assert_eq!(bare.metadata.unwrap().collection, "default");
}

#[test]
fn every_field_of_vectors_and_contexts_is_kept() {
    let entity = json!({"entity": {"t": "i", "i": "urn:a"}, "vector": [0.5, 1.0], "chunk_id": "k",
                        "rdf_type": ["urn:T"], "attributes": {"x": [1]}, "text": "A is."});
    let body = json!({"metadata": meta(), "entities": [entity], "model": "m"});
    let Record::GraphEmbeddings(record) = read(BulkKind::GraphEmbeddings, body).unwrap() else {
        panic!()
    };
    let shown = Value::Object(show_graph_embeddings(&record));
    assert_eq!(shown["entities"][0], entity);
    assert_eq!(shown["model"], "m");
    assert_eq!(
        shown["metadata"],
        json!({"id": "d", "root": "r", "collection": "c"})
    );

    let context = json!({"entity": {"t": "i", "i": "urn:a"}, "context": "x", "chunk_id": "k",
                         "rdf_type": ["urn:T"], "attributes": {"x": 1}});
    let body = json!({"metadata": meta(), "entities": [context]});
    let Record::EntityContexts(record) = read(BulkKind::EntityContexts, body).unwrap() else {
        panic!()
    };
    assert_eq!(show_entity_contexts(&record)["entities"][0], context);
}

#[test]
fn older_spellings_of_chunk_vectors_are_read_and_shown() {
    for vectors in [
        json!({"vector": [1, 2]}),
        json!({"vectors": [1, 2]}),
        json!({"vectors": [[1, 2]]}),
    ] {
        let mut chunk = vectors.as_object().cloned().unwrap();
        chunk.insert("chunk_id".into(), "k".into());
        let body = json!({"chunks": [chunk]});
        let Record::DocumentEmbeddings(record) = read(BulkKind::DocumentEmbeddings, body).unwrap()
        else {
            panic!()
        };
        assert_eq!(record.metadata.as_ref().unwrap().collection, "default");
        assert_eq!(
            Value::Object(show_document_embeddings(&record)),
            json!({"metadata": {"id": "", "root": "", "collection": "default", "metadata": []},
                   "chunks": [{"chunk_id": "k", "vector": [1.0, 2.0], "vectors": [1.0, 2.0]}]})
        );
    }
    let body = json!({"metadata": meta(), "chunks": [{"chunk_id": "k", "vectors": [[1], [2]]}]});
    assert_eq!(read(BulkKind::DocumentEmbeddings, body).unwrap().items(), 2);
}

#[test]
fn rows_come_as_a_list_or_alone() {
    let body = |values: Value| json!({"metadata": meta(), "schema_name": "s", "values": values});
    let Record::Rows(rows) = read(
        BulkKind::Rows,
        body(json!([{"a": "x", "n": 5, "b": true, "z": null}, {"a": "y"}])),
    )
    .unwrap() else {
        panic!()
    };
    assert_eq!((rows.values.len(), rows.confidence), (2, 1.0));
    assert_eq!(rows.values[0]["n"], "5");
    assert_eq!(rows.values[0]["b"], "true");
    assert!(!rows.values[0].contains_key("z"));
    let one = read(BulkKind::Rows, body(json!({"a": "x"}))).unwrap();
    assert_eq!(one.items(), 1);
}

#[test]
fn faults_name_the_field() {
    for (kind, body, text) in [
        (BulkKind::Triples, json!({}), "metadata: is required"),
        (
            BulkKind::Triples,
            json!({"metadata": {"id": ""}, "triples": []}),
            "metadata.collection: is required",
        ),
        (
            BulkKind::Triples,
            json!({"metadata": meta(), "triples": [{"s": "x"}]}),
            "triples[0].p: is required",
        ),
        (
            BulkKind::GraphEmbeddings,
            json!({"metadata": meta(), "entities": [{"vector": [1]}]}),
            "entities[0].entity: is required",
        ),
        (
            BulkKind::GraphEmbeddings,
            json!({"metadata": meta(), "entities": [{"entity": "urn:a"}]}),
            "entities[0].vector: is required",
        ),
        (
            BulkKind::DocumentEmbeddings,
            json!({"chunks": [{"chunk_id": "k", "vector": ["x"]}]}),
            "chunks[0].vector[0]: must be a number",
        ),
        (
            BulkKind::DocumentEmbeddings,
            json!({"chunks": [{"vector": []}]}),
            "chunks[0].chunk_id: is required",
        ),
        (
            BulkKind::EntityContexts,
            json!({"metadata": meta(), "entities": [{"entity": "urn:a"}]}),
            "entities[0].context: is required",
        ),
        (
            BulkKind::Rows,
            json!({"metadata": meta(), "values": []}),
            "schema_name: is required",
        ),
        (
            BulkKind::Rows,
            json!({"metadata": meta(), "schema_name": "s", "values": ["x"]}),
            "values[0]: must be an object",
        ),
    ] {
        assert_eq!(read(kind, body), Err(text.to_owned()), "{}", kind.name());
    }
}

#[test]
fn large_frames_become_several_records_and_empty_ones_none() {
    let triple =
        tg_schemas::Triple::new(Term::iri("urn:a"), Term::iri("urn:b"), Term::literal("c"));
    let record = Record::Triples(Triples {
        metadata: None,
        triples: vec![triple; 2500],
    });
    let sizes: Vec<_> = record.split().iter().map(Record::items).collect();
    assert_eq!(sizes, [1000, 1000, 500]);
    let entity = tg_schemas::msg::EntityEmbeddings {
        vector: vec![0.0; 4096],
        ..Default::default()
    };
    let record = Record::GraphEmbeddings(GraphEmbeddings {
        entities: vec![entity; 300],
        ..Default::default()
    });
    let sizes: Vec<_> = record.split().iter().map(Record::items).collect();
    assert_eq!(sizes, [256, 44]);
    assert!(Record::Triples(Triples::default()).split().is_empty());
}

#[test]
fn records_are_bounded_by_bytes_whatever_they_hold() {
    let long = || "x".repeat(10 << 10);
    let triple = tg_schemas::Triple::new(
        Term::iri("urn:a"),
        Term::iri("urn:p"),
        Term::Literal {
            value: long(),
            datatype: String::new(),
            language: String::new(),
        },
    );
    let context = tg_schemas::msg::EntityContext {
        context: long(),
        ..Default::default()
    };
    let entity = tg_schemas::msg::EntityEmbeddings {
        text: long(),
        ..Default::default()
    };
    let mut attributes = serde_json::Map::new();
    attributes.insert("a".to_owned(), json!(long()));
    let chunk = tg_schemas::msg::ChunkEmbeddings {
        attributes,
        ..Default::default()
    };
    let row = std::collections::BTreeMap::from([("a".to_owned(), long())]);
    let most = |items: usize| items * (10 << 10) <= BYTES;
    for record in [
        Record::Triples(Triples {
            metadata: None,
            triples: vec![triple; 1000],
        }),
        Record::EntityContexts(EntityContexts {
            entities: vec![context; 1000],
            ..Default::default()
        }),
        Record::GraphEmbeddings(GraphEmbeddings {
            entities: vec![entity; 1000],
            ..Default::default()
        }),
        Record::DocumentEmbeddings(DocumentEmbeddings {
            chunks: vec![chunk; 1000],
            ..Default::default()
        }),
        Record::Rows(ExtractedObject {
            values: vec![row; 1000],
            ..Default::default()
        }),
    ] {
        let sizes: Vec<_> = record.split().iter().map(Record::items).collect();
        assert_eq!(sizes.iter().sum::<usize>(), 1000);
        assert_eq!(sizes.len(), 3, "{sizes:?}");
        assert!(sizes.iter().all(|items| most(*items)), "{sizes:?}");
    }
    // One that is larger than all that a record may hold is a record of its own.
    let huge = std::collections::BTreeMap::from([("a".to_owned(), "x".repeat(BYTES + 1))]);
    let small = std::collections::BTreeMap::new();
    let record = Record::Rows(ExtractedObject {
        values: vec![small.clone(), huge, small],
        ..Default::default()
    });
    let sizes: Vec<_> = record.split().iter().map(Record::items).collect();
    assert_eq!(sizes, [1, 1, 1]);
}

#[test]
fn kinds_have_names() {
    for kind in BulkKind::ALL {
        assert_eq!(BulkKind::named(kind.name()), Some(kind));
    }
    assert_eq!(BulkKind::named("nothing"), None);
}
