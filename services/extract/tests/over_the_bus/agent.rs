//! Extraction by an agent.

use serde_json::json;
use tg_testkit::config::Config;
use tg_testkit::place::Place;

use crate::world::{TEXT, World, chunk, effects, items, work};

const AGENT: &str = "kg-extract-agent";

fn prompted() -> Config {
    let rows = Config::new();
    rows.put(
        "prompt",
        "template.agent-kg-extract",
        r#"{"prompt": "Read <{{ text }}>", "response-type": "jsonl"}"#,
    );
    rows
}

async fn the_agents_answer_becomes_facts(place: Place) {
    let answer = "```json\n{\"type\": \"definition\", \"entity\": \"Old Bridge\", \"definition\": \"A bridge.\"}\n\
        {\"type\": \"relationship\", \"subject\": \"Old Bridge\", \"predicate\": \"crosses\", \
        \"object\": \"Sell\", \"object-entity\": true}\n```";
    let world = World::start(&place, AGENT, prompted(), [items(json!(answer))]).await;
    let entry = world.process(&chunk("urn:chunk:1", TEXT), "r1").await;
    assert_eq!((entry.outcome.as_str(), entry.written.len()), ("ok", 2));
    world.process(&chunk("urn:chunk:2", TEXT), "r2").await;
    let asked = world.agent.asked.lock().clone();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].question, format!("Read <{TEXT}>"));
    assert_eq!(asked[0].collection, "c");
    world
        .flow
        .until(async || world.triples.count() == 2 && world.contexts.count() == 2)
        .await;
}

async fn an_unusable_answer_is_asked_for_again_once(place: Place) {
    let good = json!("{\"entity\": \"Old Bridge\", \"definition\": \"A bridge.\"}");
    let world = World::start(
        &place,
        AGENT,
        prompted(),
        [items(json!("I would rather not.")), items(good)],
    )
    .await;
    let entry = world.process(&chunk("urn:chunk:1", TEXT), "r1").await;
    assert_eq!(work(&entry), effects(&[("model-calls", 1)]));
    assert_eq!(entry.outcome, "ok");
    let asked = world.agent.asked.lock().clone();
    assert!(
        asked[1].question.contains("I would rather not."),
        "{}",
        asked[1].question
    );
    let world = World::start(
        &place.another().await,
        AGENT,
        prompted(),
        [items(json!("No."))],
    )
    .await;
    let entry = world.process(&chunk("urn:chunk:1", TEXT), "r1").await;
    assert_eq!((entry.outcome.as_str(), world.calls()), ("failed", 2));
}

async fn a_missing_prompt_is_told(place: Place) {
    let world = World::start(&place, AGENT, Config::new(), []).await;
    let entry = world.process(&chunk("urn:chunk:1", TEXT), "r1").await;
    assert_eq!(entry.outcome, "failed");
    assert!(
        entry
            .detail
            .contains("prompt 'agent-kg-extract' does not exist"),
        "{}",
        entry.detail
    );
}

tg_testkit::on_both_buses!(
    the_agents_answer_becomes_facts,
    an_unusable_answer_is_asked_for_again_once,
    a_missing_prompt_is_told,
);
