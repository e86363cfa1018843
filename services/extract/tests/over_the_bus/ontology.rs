//! Facts along ontologies.

use serde_json::{Value, json};
use tg_schemas::Term;
use tg_schemas::vocabulary::{rdf, tg};
use tg_testkit::config::Config;
use tg_testkit::place::Place;

use crate::world::{TEXT, World, chunk, effects, items, objects, work};

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
        work(&entry),
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
    let written: usize = all.iter().map(|record| record.triples.len()).sum();
    assert_eq!(entry.effects["triples"], written as i64, "what is to come");
    // Which of both records a consumer has handled first says nothing.
    let (elements, facts): (Vec<_>, Vec<_>) = all
        .iter()
        .partition(|record| objects(&record.triples, "https://e.x/town#crosses").is_empty());
    let ([elements], [facts]) = (elements.as_slice(), facts.as_slice()) else {
        panic!("{all:?}");
    };
    let (elements, facts) = (&elements.triples, &facts.triples);
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

async fn what_does_not_fit_is_kept_and_replayed_after_a_correction(place: Place) {
    let rows = Config::new();
    rows.put("ontology", "town", TOWN);
    let world = World::start(&place, ONTOLOGY, rows, [items(reply())]).await;
    let entry = world.process(&chunk("urn:chunk:1", TEXT), "r1").await;
    assert_eq!(entry.outcome, "ok");
    world.flow.until(async || world.triples.count() == 2).await;
    let listed = world.violations("list-violations", "").await.unwrap();
    let [one] = listed.violations.as_slice() else {
        panic!("{listed:?}");
    };
    assert_eq!(
        [
            &one.flow,
            &one.collection,
            &one.document,
            &one.chunk,
            &one.reason,
            &one.model
        ],
        [
            "default",
            "c",
            "urn:doc:1",
            "urn:chunk:1",
            "crosses: 'Sell' is River, not Bridge",
            "m-1"
        ]
    );
    let statement: Value = serde_json::from_str(&one.statement).unwrap();
    assert_eq!(
        (&statement["relation"], &statement["subject_type"]),
        (&json!("crosses"), &json!("River"))
    );
    let counts = async || {
        let reply = world.violations("replay-violations", "").await.unwrap();
        (reply.replayed, reply.kept, reply.discarded)
    };
    // Nothing was corrected; and then its chunk is not there.
    world
        .library
        .put("urn:chunk:1", "text/plain", String::new());
    assert_eq!(counts().await, (0, 1, 0));
    let mut corrected: Value = serde_json::from_str(TOWN).unwrap();
    let crosses = corrected["objectProperties"]["crosses"].as_object_mut();
    crosses.unwrap().retain(|key, _| key == "uri");
    let (config, mesh) = (&world.flow.config, &world.flow.mesh);
    config
        .apply(mesh, "ontology", "town", Some(&corrected))
        .await;
    world.library.documents.lock().clear();
    assert_eq!(counts().await, (0, 1, 0));
    let listed = world.violations("list-violations", &one.id).await.unwrap();
    assert_eq!(
        listed.violations[0].reason,
        "its chunk is not in the library any more"
    );
    assert_eq!(world.triples.count(), 2, "nothing was written");

    world
        .library
        .put("urn:chunk:1", "text/plain", String::new());
    assert_eq!(counts().await, (1, 0, 0));
    world
        .flow
        .until(async || world.triples.count() == 3 && world.contexts.count() == 2)
        .await;
    let written = world.triples.all().remove(2);
    assert_eq!(written.metadata.unwrap().root, "urn:doc:1");
    assert_eq!(
        objects(&written.triples, "https://e.x/town#crosses"),
        [Term::iri("http://trustgraph.ai/e/old-bridge")]
    );
    let chunk_of = Some(Term::iri("urn:chunk:1"));
    assert!(written.triples.iter().any(|triple| triple.o == chunk_of));
    assert_eq!(counts().await, (0, 0, 0), "nothing is left");
    let gone = world.violations("replay-violations", &one.id).await;
    assert_eq!(gone.unwrap_err().code(), tg_schemas::ErrorCode::NotFound);

    // Others are thrown away.
    let town: Value = serde_json::from_str(TOWN).unwrap();
    config.apply(mesh, "ontology", "town", Some(&town)).await;
    world.process(&chunk("urn:chunk:2", TEXT), "r2").await;
    world.process(&chunk("urn:chunk:3", TEXT), "r3").await;
    // "list-violations" with a limit comes in pages.
    let (whole, next) = world.page_of_violations(0, "").await;
    assert_eq!((whole.len(), next.as_str()), (2, ""));
    let (first, next) = world.page_of_violations(1, "").await;
    let (second, end) = world.page_of_violations(1, &next).await;
    assert_eq!(([first, second].concat(), end.as_str()), (whole, ""));
    let discarded = world.violations("discard-violations", "").await.unwrap();
    assert_eq!(discarded.discarded, 2);
    let listed = world.violations("list-violations", "").await.unwrap();
    assert!(listed.violations.is_empty());
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
    what_does_not_fit_is_kept_and_replayed_after_a_correction,
    elements_are_embedded_and_described_once,
    a_text_about_something_else_costs_no_call,
    without_a_usable_ontology_the_chunk_says_why,
);
