//! Facts along ontologies.

use serde_json::{Value, json};
use tg_schemas::Term;
use tg_schemas::vocabulary::{rdf, tg};
use tg_testkit::config::Config;
use tg_testkit::place::Place;

use crate::world::{TEXT, World, chunk, effects, items, objects};

const ONTOLOGY: &str = "kg-extract-ontology";
const TOWN: &str = r#"{
  "metadata": {"namespace": "https://e.x/town"},
  "classes": {"Bridge": {"uri": "https://e.x/town#Bridge"}, "River": {"uri": "https://e.x/town#River"},
    "Person": {"uri": "https://e.x/town#Person"}},
  "objectProperties": {"crosses": {"uri": "https://e.x/town#crosses", "rdfs:domain": "Bridge",
    "rdfs:range": "River"}},
  "datatypeProperties": {"built": {"uri": "https://e.x/town#built", "rdfs:domain": "Bridge",
    "rdfs:range": "xsd:gYear"}}
}"#;
const WORKS: &str =
    "@prefix : <https://e.x/works#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
    :Book a owl:Class . :Bookshop a owl:Class .";

fn reply() -> Value {
    json!([
        {"type": "entity", "entity": "Old Bridge", "entity_type": "Bridge"},
        {"type": "relationship", "subject": "Old Bridge", "subject_type": "Bridge", "relation": "crosses",
         "object": "Sell", "object_type": "River"},
        {"type": "relationship", "subject": "Sell", "subject_type": "River", "relation": "crosses",
         "object": "Old Bridge", "object_type": "Bridge"},
        {"type": "attribute", "entity": "Old Bridge", "entity_type": "Bridge", "attribute": "built",
         "value": "1429"},
    ])
}

async fn what_fits_is_written_and_what_does_not_is_told(place: Place) {
    let rows = Config::new();
    rows.put("ontology", "town", TOWN)
        .put("ontology", "works", WORKS)
        .put("ontology", "worse", "{");
    let world = World::start(&place, ONTOLOGY, rows, [items(reply())]).await;
    let entry = world.process(&chunk("urn:chunk:1", TEXT), "r1").await;
    assert_eq!(entry.outcome, "ok");
    assert_eq!(
        entry.effects,
        effects(&[("model-calls", 1), ("violations", 1)])
    );
    assert!(
        entry.detail.contains("ontology 'worse': "),
        "{}",
        entry.detail
    );
    assert!(
        entry
            .detail
            .contains("crosses: 'Sell' is River, not Bridge"),
        "{}",
        entry.detail
    );
    world
        .flow
        .until(async || world.triples.count() == 2 && world.contexts.count() == 1)
        .await;
    let all = world.triples.all();
    let facts = &all[0].triples;
    assert_eq!(
        objects(facts, "https://e.x/town#built"),
        [Term::Literal {
            value: "1429".to_owned(),
            datatype: "http://www.w3.org/2001/XMLSchema#gYear".to_owned(),
            language: String::new(),
        }]
    );
    assert_eq!(
        objects(facts, "https://e.x/town#crosses"),
        [Term::iri("http://trustgraph.ai/e/sell")]
    );
    assert_eq!(
        objects(facts, tg::ONTOLOGY),
        [Term::iri("https://e.x/town")]
    );
    let elements = &all[1].triples;
    assert_eq!(
        objects(elements, rdf::TYPE).len(),
        7,
        "every element of both ontologies"
    );
    // Only what the text speaks of is in the index, never what made it.
    let named = world.contexts.all()[0]
        .entities
        .iter()
        .filter_map(|context| context.entity.clone())
        .collect::<Vec<_>>();
    assert_eq!(named.len(), 4);
    assert!(named.iter().all(
        |entity| matches!(entity, Term::Iri(iri) if iri.starts_with("http://trustgraph.ai/e/"))
    ));
    // The model saw what the text is about, and no more.
    let asked = world.prompts.asked.lock()[0].terms["classes"].clone();
    assert!(
        asked.contains("Bridge") && asked.contains("River") && !asked.contains("Book"),
        "{asked}"
    );
}

async fn elements_are_embedded_and_described_once(place: Place) {
    let rows = Config::new();
    rows.put("ontology", "town", TOWN);
    let world = World::start(&place, ONTOLOGY, rows, [items(reply())]).await;
    for number in 1..=3 {
        let text = format!("{TEXT} Part {number}.");
        let entry = world
            .process(
                &chunk(&format!("urn:chunk:{number}"), &text),
                &format!("r{number}"),
            )
            .await;
        assert_eq!(entry.outcome, "ok");
    }
    let asked = world
        .embeddings
        .texts
        .lock()
        .iter()
        .map(Vec::len)
        .collect::<Vec<_>>();
    assert_eq!(
        asked,
        [3, 5, 3, 3],
        "one request a chunk, and the elements once"
    );
    world.flow.until(async || world.triples.count() == 4).await;
}

async fn a_text_about_something_else_costs_no_call(place: Place) {
    let rows = Config::new();
    rows.put("ontology", "town", TOWN);
    let world = World::start(&place, ONTOLOGY, rows, [items(reply())]).await;
    let entry = world
        .process(&chunk("urn:chunk:1", "Wool is warm."), "r1")
        .await;
    assert_eq!(entry.outcome, "ok");
    assert_eq!(world.calls(), 0);
}

async fn without_a_usable_ontology_the_chunk_says_why(place: Place) {
    let rows = Config::new();
    rows.put("ontology", "worse", "{");
    let world = World::start(&place, ONTOLOGY, rows, [items(reply())]).await;
    let entry = world.process(&chunk("urn:chunk:1", TEXT), "r1").await;
    assert_eq!(entry.outcome, "failed");
    assert!(
        entry.detail.starts_with("ontology 'worse': "),
        "{}",
        entry.detail
    );
    let world = World::start(
        &place.another().await,
        ONTOLOGY,
        Config::new(),
        [items(reply())],
    )
    .await;
    let entry = world.process(&chunk("urn:chunk:1", TEXT), "r1").await;
    assert_eq!((entry.outcome.as_str(), world.calls()), ("ok", 0));
}

tg_testkit::on_both_buses!(
    what_fits_is_written_and_what_does_not_is_told,
    elements_are_embedded_and_described_once,
    a_text_about_something_else_costs_no_call,
    without_a_usable_ontology_the_chunk_says_why,
);
