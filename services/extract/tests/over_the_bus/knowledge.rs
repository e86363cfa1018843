//! Definitions and relationships, and what replies cost.

use serde_json::json;
use tg_runs::JobId;
use tg_schemas::vocabulary::{prov, rdfs, skos, tg};
use tg_schemas::{Error, ErrorCode, Term};
use tg_testkit::config::Config;
use tg_testkit::place::Place;

use crate::world::{Reply, TEXT, World, chunk, effects, items, objects, work};

const DEFINITIONS: &str = "kg-extract-definitions";

fn old_bridge() -> serde_json::Value {
    json!([{"entity": "Old Bridge", "definition": "A bridge over the Sell."}])
}

async fn a_chunk_becomes_facts_with_their_source(place: Place) {
    let rows = Config::new();
    rows.put(
        "prompt",
        "template.extract-definitions",
        "{\"prompt\": \"{{ text }}\"}",
    );
    let world = World::start(&place, DEFINITIONS, rows, [items(old_bridge())]).await;
    let entry = world.process(&chunk("urn:chunk:1", TEXT), "r1").await;
    assert_eq!(
        (entry.outcome.as_str(), entry.subject.as_str()),
        ("ok", "urn:chunk:1")
    );
    assert_eq!(work(&entry), effects(&[("model-calls", 1)]));
    assert_eq!(
        entry.written.len(),
        2,
        "one record of triples, one of contexts"
    );
    world
        .flow
        .until(async || world.triples.count() == 1 && world.contexts.count() == 1)
        .await;
    let record = &world.triples.all()[0];
    let metadata = record.metadata.clone().unwrap();
    assert_eq!(
        (metadata.id.as_str(), metadata.root.as_str()),
        ("urn:chunk:1", "urn:doc:1")
    );
    assert_eq!(metadata.collection, "c");
    let definition = Term::literal("A bridge over the Sell.");
    assert_eq!(objects(&record.triples, skos::DEFINITION), [definition]);
    assert!(objects(&record.triples, rdfs::LABEL).contains(&Term::literal("Old Bridge")));
    assert_eq!(
        objects(&record.triples, prov::WAS_DERIVED_FROM),
        [Term::iri("urn:chunk:1")]
    );
    assert_eq!(
        objects(&record.triples, tg::LLM_MODEL),
        [Term::literal("m-1")]
    );
    assert_eq!(objects(&record.triples, tg::PROMPT_VERSION).len(), 1);
    assert!(matches!(
        objects(&record.triples, tg::CONTAINS)[..],
        [Term::Quoted(_)]
    ));
    let contexts = world.contexts.all();
    assert_eq!(contexts[0].entities.len(), 2);
    assert!(
        contexts[0]
            .entities
            .iter()
            .all(|context| context.chunk_id == "urn:chunk:1")
    );
    let asked = world.prompts.asked.lock();
    assert_eq!(asked[0].id, "extract-definitions");
    assert_eq!(asked[0].terms["text"], json!(TEXT).to_string());
}

async fn a_chunk_is_read_below_where_it_stands(place: Place) {
    let world = World::start(&place, DEFINITIONS, Config::new(), [items(old_bridge())]).await;
    let mut below = chunk("urn:chunk:1", TEXT);
    below.context = "Guide > Bridges".to_owned();
    world.process(&below, "r1").await;
    let asked = world.prompts.asked.lock();
    let read = format!("(Guide > Bridges)\n{TEXT}");
    assert_eq!(asked[0].terms["text"], json!(read).to_string());
}

async fn a_reply_is_paid_for_once(place: Place) {
    let world = World::start(&place, DEFINITIONS, Config::new(), [items(old_bridge())]).await;
    // At the same time, in other places: one call.
    let run = JobId::new(0, "default", "p");
    for number in 0..8 {
        let chunk = chunk(&format!("urn:chunk:{number}"), TEXT);
        let id = format!("r{number}");
        world.flow.write_in("chunk-load", &chunk, &run, &id).await;
    }
    let mut paid = 0;
    for number in 0..8 {
        let entry = world.flow.tallied(&format!("r{number}")).await;
        assert_eq!(entry.outcome, "ok");
        paid += entry.effects.get("model-calls").copied().unwrap_or(0);
    }
    assert_eq!((world.calls(), paid), (1, 1));
    // Again: the same triples, for nothing.
    world.flow.until(async || world.triples.count() == 8).await;
    let entry = world.process(&chunk("urn:chunk:3", TEXT), "again").await;
    assert_eq!(work(&entry), effects(&[]));
    world.flow.until(async || world.triples.count() == 9).await;
    let all = world.triples.all();
    let again = all.last().unwrap();
    assert_eq!(
        all.iter()
            .filter(|record| record.triples == again.triples)
            .count(),
        2
    );
    assert_eq!(world.calls(), 1);
    // Another text is another question.
    world
        .process(&chunk("urn:chunk:9", "Another text."), "other")
        .await;
    assert_eq!(world.calls(), 2);
}

async fn a_failed_call_loses_nothing(place: Place) {
    let limited = Error::new(ErrorCode::RateLimited, "too many requests");
    let replies = [Err(limited), items(old_bridge())];
    let world = World::start(&place, DEFINITIONS, Config::new(), replies).await;
    let chunk = chunk("urn:chunk:1", TEXT);
    let run = JobId::new(0, "default", "p");
    world.flow.write_in("chunk-load", &chunk, &run, "r1").await;
    assert_eq!(world.flow.dead_letter_reason().await, "too many requests");
    let entry = world.process(&chunk, "r1").await;
    assert_eq!(entry.outcome, "ok");
    assert_eq!(world.calls(), 2);
}

async fn an_unreadable_reply_fails_its_chunk_and_is_not_kept(place: Place) {
    let unreadable = Ok(Reply {
        items: json!([{"mood": "la"}]),
        dropped: 3,
    });
    let replies = [unreadable, items(old_bridge())];
    let world = World::start(&place, DEFINITIONS, Config::new(), replies).await;
    let entry = world.process(&chunk("urn:chunk:1", TEXT), "r1").await;
    assert_eq!(entry.outcome, "failed");
    let told =
        "kg-extract-definitions: the reply of m-1 could not be read (4 lines): [{\"mood\":\"la\"}]";
    assert_eq!(entry.detail, told);
    assert_eq!(world.flow.dead_letter_reason().await, told);
    let entry = world.process(&chunk("urn:chunk:1", TEXT), "r2").await;
    assert_eq!(entry.outcome, "ok");
    assert_eq!(world.calls(), 2);
}

async fn good_lines_survive_bad_ones(place: Place) {
    let mixed = Ok(Reply {
        items: json!([{"entity": "", "definition": "x"}, old_bridge()[0]]),
        dropped: 2,
    });
    let world = World::start(&place, DEFINITIONS, Config::new(), [mixed]).await;
    let entry = world.process(&chunk("urn:chunk:1", TEXT), "r1").await;
    assert_eq!(
        work(&entry),
        effects(&[("bad-lines", 3), ("model-calls", 1)])
    );
    world.flow.until(async || world.triples.count() == 1).await;
}

async fn nothing_said_or_nothing_there_writes_nothing(place: Place) {
    let world = World::start(&place, DEFINITIONS, Config::new(), [items(json!([]))]).await;
    let entry = world.process(&chunk("urn:chunk:1", TEXT), "r1").await;
    assert_eq!((entry.outcome.as_str(), entry.written.len()), ("ok", 0));
    let entry = world.process(&chunk("urn:chunk:2", " \n-- "), "r2").await;
    assert_eq!((entry.outcome.as_str(), entry.effects.len()), ("ok", 0));
    assert_eq!(world.calls(), 1);
    let entry = world.process(&chunk("", ""), "r3").await;
    // Without an id of its own, what the metadata is about counts.
    assert_eq!(entry.subject, "urn:page:1");
}

async fn a_deleted_collection_costs_nothing(place: Place) {
    let rows = Config::new();
    rows.collection("c", 2);
    let world = World::start(&place, DEFINITIONS, rows, [items(old_bridge())]).await;
    let run = JobId::new(1, "default", "p");
    world
        .flow
        .write_in("chunk-load", &chunk("urn:chunk:1", TEXT), &run, "r1")
        .await;
    assert_eq!(world.flow.tallied("r1").await.outcome, "ok");
    assert_eq!((world.calls(), world.triples.count()), (0, 0));
}

async fn relationships_tell_the_index_of_their_entities(place: Place) {
    let reply = json!([
        {"subject": "Old Bridge", "predicate": "crosses", "object": "Sell", "object-entity": true},
        {"subject": "Old Bridge", "predicate": "was built in", "object": "1429", "object-entity": false},
    ]);
    let world = World::start(
        &place,
        "kg-extract-relationships",
        Config::new(),
        [items(reply)],
    )
    .await;
    let entry = world.process(&chunk("urn:chunk:1", TEXT), "r1").await;
    assert_eq!((entry.outcome.as_str(), entry.written.len()), ("ok", 2));
    world
        .flow
        .until(async || world.triples.count() == 1 && world.contexts.count() == 1)
        .await;
    let triples = &world.triples.all()[0].triples;
    assert_eq!(
        objects(triples, "http://trustgraph.ai/e/crosses"),
        [Term::iri("http://trustgraph.ai/e/sell")]
    );
    assert_eq!(
        objects(triples, "http://trustgraph.ai/e/was-built-in"),
        [Term::literal("1429")]
    );
    let texts: Vec<String> = world.contexts.all()[0]
        .entities
        .iter()
        .map(|context| context.context.clone())
        .collect();
    assert_eq!(
        texts,
        [
            "Old Bridge",
            "Old Bridge crosses Sell; Old Bridge was built in 1429",
            "Sell",
            "Old Bridge crosses Sell"
        ]
    );
}

/// A chunk that only some are to read, under fingerprints.
async fn only_who_is_named_reads_and_says_under_which_fingerprint(place: Place) {
    let world = World::start(&place, DEFINITIONS, Config::new(), [items(old_bridge())]).await;
    let mut of_others = chunk("urn:chunk:1", TEXT);
    of_others.readers = [("kw-index".to_owned(), "1".to_owned())].into();
    let entry = world.process(&of_others, "r1").await;
    assert_eq!((entry.outcome.as_str(), entry.written.len()), ("ok", 0));
    assert!(world.prompts.asked.lock().is_empty());
    let mut mine = chunk("urn:chunk:2", TEXT);
    mine.readers = [(DEFINITIONS.to_owned(), "f".to_owned())].into();
    let entry = world.process(&mine, "r2").await;
    assert_eq!((entry.outcome.as_str(), entry.written.len()), ("ok", 2));
    world
        .flow
        .until(async || world.triples.count() == 1 && world.contexts.count() == 1)
        .await;
    let id = tg_provenance::extraction_id("urn:chunk:2", DEFINITIONS, "f");
    let triples = &world.triples.all()[0].triples;
    assert!(triples.iter().any(|one| one.s == Some(Term::iri(&id))));
    let contexts = &world.contexts.all()[0].entities;
    assert!(
        !contexts.is_empty()
            && contexts
                .iter()
                .all(|one| one.made_by == "kg-extract-definitions@f")
    );
}

tg_testkit::on_both_buses!(
    a_chunk_becomes_facts_with_their_source,
    only_who_is_named_reads_and_says_under_which_fingerprint,
    a_chunk_is_read_below_where_it_stands,
    a_reply_is_paid_for_once,
    a_failed_call_loses_nothing,
    an_unreadable_reply_fails_its_chunk_and_is_not_kept,
    good_lines_survive_bad_ones,
    nothing_said_or_nothing_there_writes_nothing,
    a_deleted_collection_costs_nothing,
    relationships_tell_the_index_of_their_entities,
);
